/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a cluster and its pods in the format of the openb traces: a file of nodes (sn, cpu_milli,
 * memory_mib, gpu and optionally model) and a file of pods (cpu_milli, memory_mib, num_gpu,
 * gpu_milli and optionally gpu_spec: accepted models, "A|B").
 */
#ifndef SIM_POD_TRACE_H
#define SIM_POD_TRACE_H

#include <berth/error.h>
#include <stdint.h>

#include "base/vector.h"
#include "model/machine/machine.h"
#include "model/request.h"

/* Traces count GPUs in thousandths. */
#define TRACE_WHOLE 1000

/* Maximums of a node or pod (GPUs, thousandths of a CPU, mebibytes) and of `scale`. */
#define TRACE_GPUS_MAX   1024
#define TRACE_CPUS_MAX   1000000000
#define TRACE_MEMORY_MAX 1000000000
#define TRACE_SCALE_MAX  1000

struct trace_node {
    char *name;
    char *model; /* NULL: unknown */
    uint32_t gpus;
    uint64_t cpus;   /* thousandths */
    uint64_t memory; /* bytes */
    size_t line;     /* in the file */
};

/* All pods with the same demand. */
struct trace_kind {
    uint32_t gpus;   /* 0: only CPUs and memory */
    uint32_t part;   /* thousandths of each GPU; TRACE_WHOLE: exclusive */
    uint64_t cpus;   /* thousandths */
    uint64_t memory; /* bytes */
    char *models;    /* accepted models, "A|B"; "": all */
    uint32_t pods;   /* number of pods */
};

/* Zeroed memory is an empty trace. */
struct pod_trace {
    struct {
        VECTOR_OF(struct trace_node);
    } nodes; /* sorted by name */
    struct {
        VECTOR_OF(struct trace_kind);
    } kinds; /* all different; their order does not depend on the file's */
    struct {
        VECTOR_OF(uint32_t);
    } pods;            /* the kind of each pod, in the order of the file */
    uint64_t capacity; /* thousandths of GPUs */
};

/* Reads both files. `scale` is the number of copies of each node; copies are named "node~2".
 * Returns 0, an error of trace_csv_open() or trace_csv_next(), or BERTH_ERROR_INVALID with
 * FILE:LINE for contradictory rows; on an error *ret_trace stays as it is. */
int pod_trace_read(const char *nodes, const char *pods, uint32_t scale, struct pod_trace *ret_trace,
                   struct berth_error *error);
void pod_trace_finish(struct pod_trace *trace);

/* Returns the thousandths of GPUs that a pod of the kind takes. */
static inline uint64_t pod_trace_demand(const struct trace_kind *kind)
{
    return (uint64_t)kind->gpus * kind->part;
}

/* Builds a machine with the nodes as hosts, in this order; NULL: by name. The order decides among
 * equal devices. Returns 0 or BERTH_ERROR_MEMORY. */
int pod_trace_build_machine(const struct pod_trace *trace, const uint32_t *order,
                            struct machine *ret_machine, struct berth_error *error);

/* Builds the request of a pod of the kind, which the caller finishes. Returns 0 or
 * BERTH_ERROR_MEMORY. */
int pod_trace_build_request(const struct trace_kind *kind, struct request *ret_request,
                            struct berth_error *error);

#endif
