/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes and reads traces in the working directory.
 */
#ifndef TESTS_TRACES_H
#define TESTS_TRACES_H

#include "support/unit.h"

#include <stdio.h>

#include "sim/pod_trace.h"

#define TRACE_NODES "sn,cpu_milli,memory_mib,gpu,model\n"
#define TRACE_PODS  "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"

static inline void write_trace_file(const char *path, const char *header, const char *rows)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fprintf(file, "%s%s", header, rows) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Writes both files. */
static inline void write_trace(const char *nodes, const char *pods)
{
    write_trace_file("nodes.csv", TRACE_NODES, nodes);
    write_trace_file("pods.csv", TRACE_PODS, pods);
}

/* Reads the trace of these rows, with `scale` copies of the nodes. */
static inline struct pod_trace trace_of(const char *nodes, const char *pods, uint32_t scale)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct pod_trace trace = {0};

    write_trace(nodes, pods);
    assert_int_equal(pod_trace_read("nodes.csv", "pods.csv", scale, &trace, &error), 0);
    return trace;
}

#endif
