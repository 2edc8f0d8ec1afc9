/* SPDX-License-Identifier: Apache-2.0
 *
 * In which order the pods of a trace arrive: shuffled, then drawn again from the trace, each as
 * likely, until they demand as many GPUs as is wanted.
 */
#ifndef SIM_ARRIVALS_H
#define SIM_ARRIVALS_H

#include <berth/error.h>
#include <stdint.h>

#include "base/vector.h"
#include "sim/pod_trace.h"

struct arrivals {
    VECTOR_OF(uint32_t); /* kinds of pods */
    uint32_t *order;     /* of the nodes, shuffled */
};

/* The arrivals up to the first by which `demand` thousandths of GPUs or more are wanted; the same
 * for the same seed and trace. Fails with BERTH_ERROR_MEMORY; *ret_arrivals is untouched then. */
int arrivals_draw(const struct pod_trace *trace, uint64_t seed, uint64_t demand,
                  struct arrivals *ret_arrivals, struct berth_error *error);
void arrivals_finish(struct arrivals *arrivals);

#endif
