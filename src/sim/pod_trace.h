/* SPDX-License-Identifier: Apache-2.0
 *
 * A cluster and the pods that were started on it, as the openb traces have them: a file of nodes
 * (sn, cpu_milli, memory_mib, gpu, and perhaps model) and one of pods (cpu_milli, memory_mib,
 * num_gpu, gpu_milli, and perhaps gpu_spec: models that would do, "A|B").
 */
#ifndef SIM_POD_TRACE_H
#define SIM_POD_TRACE_H

#include <berth/error.h>
#include <stdint.h>

#include "base/vector.h"
#include "model/machine.h"
#include "model/request.h"

/* Traces count GPUs in thousandths. */
#define TRACE_WHOLE 1000

/* More than any node or pod has: GPUs, thousandths of a CPU, mebibytes; and nodes times over. */
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
    size_t line;     /* of the file */
};

/* Pods that want the same. */
struct trace_kind {
    uint32_t gpus;   /* 0: only CPUs and memory */
    uint32_t part;   /* thousandths of each GPU; TRACE_WHOLE: alone */
    uint64_t cpus;   /* thousandths */
    uint64_t memory; /* bytes */
    char *models;    /* that would do, "A|B"; "": all */
    uint32_t pods;   /* how many there are */
};

/* Zeroed memory is an empty trace. */
struct pod_trace {
    struct {
        VECTOR_OF(struct trace_node);
    } nodes; /* by name */
    struct {
        VECTOR_OF(struct trace_kind);
    } kinds; /* each of them another; their order does not depend on the file's */
    struct {
        VECTOR_OF(uint32_t);
    } pods;            /* their kinds, in the order of the file */
    uint64_t capacity; /* thousandths of GPUs */
};

/* Reads both files. With `scale` above 1 the nodes are there so many times, the later ones with
 * names of their own: "node~2". Fails as trace_csv_open and trace_csv_next do, and with
 * BERTH_ERROR_INVALID for what makes no sense: FILE:LINE and a sentence; *ret_trace is untouched
 * then. */
int pod_trace_read(const char *nodes, const char *pods, uint32_t scale, struct pod_trace *ret_trace,
                   struct berth_error *error);
void pod_trace_finish(struct pod_trace *trace);

/* Thousandths of GPUs that a pod of the kind takes. */
static inline uint64_t pod_trace_demand(const struct trace_kind *kind)
{
    return (uint64_t)kind->gpus * kind->part;
}

/* The nodes as hosts of a machine, the one that `order` names first before the others: slots, and
 * so what is first among equals, go by it. NULL: by name. Fails with BERTH_ERROR_MEMORY. */
int pod_trace_build_machine(const struct pod_trace *trace, const uint32_t *order,
                            struct machine *ret_machine, struct berth_error *error);

/* What a pod of the kind asks for; to be finished. Fails with BERTH_ERROR_MEMORY. */
int pod_trace_build_request(const struct trace_kind *kind, struct request *ret_request,
                            struct berth_error *error);

#endif
