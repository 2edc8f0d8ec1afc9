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

/* A generator of random numbers (splitmix64); initialise it with {seed}, any number. The same seed
 * gives the same numbers on every machine and in every version, because results are compared by
 * their seeds. */
struct sim_random {
    uint64_t state;
};

static inline uint64_t sim_random_next(struct sim_random *random)
{
    uint64_t mixed;

    random->state += UINT64_C(0x9E3779B97F4A7C15);
    mixed = random->state;
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94D049BB133111EB);
    return mixed ^ (mixed >> 31);
}

/* Returns a number from 0 to limit - 1, all equally likely. `limit` must be above 0. */
static inline uint64_t sim_random_below(struct sim_random *random, uint64_t limit)
{
    /* Numbers below this would make the results uneven. */
    uint64_t uneven = -limit % limit;
    uint64_t drawn;

    do {
        drawn = sim_random_next(random);
    } while (drawn < uneven);
    return drawn % limit;
}

/* Draws arrivals until they demand at least `demand` thousandths of GPUs. The same seed and trace
 * give the same arrivals. Returns 0 or BERTH_ERROR_MEMORY; on an error *ret_arrivals stays as it
 * is. */
int arrivals_draw(const struct pod_trace *trace, uint64_t seed, uint64_t demand,
                  struct arrivals *ret_arrivals, struct berth_error *error);
void arrivals_finish(struct arrivals *arrivals);

#endif
