/* SPDX-License-Identifier: Apache-2.0
 *
 * The order in which the pods of a trace arrive: first all of them shuffled, then pods drawn from
 * the trace with equal probability, until the demand is reached.
 */
#ifndef SIM_ARRIVALS_H
#define SIM_ARRIVALS_H

#include <berth/error.h>
#include <stdint.h>

#include "base/vector.h"
#include "sim/pod_trace.h"

struct arrivals {
    VECTOR_OF(uint32_t); /* the kinds of the pods, in order of arrival */
    uint32_t *order;     /* the nodes, shuffled */
};

/* Draws arrivals until they demand at least `demand` thousandths of GPUs. The same seed and trace
 * give the same arrivals. Returns 0 or BERTH_ERROR_MEMORY; on an error *ret_arrivals stays as it
 * is. */
int arrivals_draw(const struct pod_trace *trace, uint64_t seed, uint64_t demand,
                  struct arrivals *ret_arrivals, struct berth_error *error);
void arrivals_finish(struct arrivals *arrivals);

#endif
