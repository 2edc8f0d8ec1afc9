/* SPDX-License-Identifier: Apache-2.0
 *
 * The typical pods of a trace: the most frequent combinations of CPUs, GPUs and models that
 * together make up 95 % of the pods. Policies expect such pods, and fragmentation is measured with
 * them.
 */
#ifndef SIM_TYPICAL_PODS_H
#define SIM_TYPICAL_PODS_H

#include <berth/error.h>

#include "sim/pod_trace.h"

struct typical_pods {
    VECTOR_OF(struct trace_kind); /* most frequent first; memory is 0; strings are the trace's */
    uint64_t pods;                /* sum over all kinds */
};

/* Finds the typical pods of a trace, which must outlive them. Returns 0 or BERTH_ERROR_MEMORY; on
 * an error *ret_typical stays as it is. */
int typical_pods_find(const struct pod_trace *trace, struct typical_pods *ret_typical,
                      struct berth_error *error);
void typical_pods_finish(struct typical_pods *typical);

#endif
