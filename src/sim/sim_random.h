/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers for simulations (splitmix64). The same seed gives the same numbers on every
 * machine and in every version, because results are compared by their seeds.
 */
#ifndef SIM_SIM_RANDOM_H
#define SIM_SIM_RANDOM_H

#include <stdint.h>

/* A generator. Initialise it with {seed}, any number. */
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

#endif
