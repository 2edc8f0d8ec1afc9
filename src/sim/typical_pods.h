/* SPDX-License-Identifier: Apache-2.0
 *
 * What pods of a trace usually want: the most frequent combinations of CPUs, GPUs and models that
 * together make up 95 % of the pods. Policies keep room for those, and fragmentation is measured by
 * them.
 */
#ifndef SIM_TYPICAL_PODS_H
#define SIM_TYPICAL_PODS_H

#include <berth/error.h>

#include "sim/pod_trace.h"

struct typical_pods {
    VECTOR_OF(struct trace_kind); /* most frequent first; the memory is 0, the strings the trace's
                                   */
    uint64_t pods;                /* of all of them */
};

/* Fails with BERTH_ERROR_MEMORY; *ret_typical is untouched then. */
int typical_pods_find(const struct pod_trace *trace, struct typical_pods *ret_typical,
                      struct berth_error *error);
void typical_pods_finish(struct typical_pods *typical);

#endif
