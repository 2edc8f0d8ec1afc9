/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers for simulations: the same for the same seed on every machine, now and later, since
 * results are compared by their seeds. The generator is splitmix64.
 */
#ifndef SIM_SIM_RANDOM_H
#define SIM_SIM_RANDOM_H

#include <stdint.h>

/* Start with {seed}; any seed is fine. */
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

/* From 0 to limit - 1, each as likely; the limit is above 0. */
static inline uint64_t sim_random_below(struct sim_random *random, uint64_t limit)
{
    /* The last numbers would not come out even. */
    uint64_t uneven = -limit % limit;
    uint64_t drawn;

    do {
        drawn = sim_random_next(random);
    } while (drawn < uneven);
    return drawn % limit;
}

#endif
