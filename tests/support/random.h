/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers for tests: the same on every run and machine.
 */
#ifndef TESTS_RANDOM_H
#define TESTS_RANDOM_H

#include <stdint.h>

#include "base/hash.h"

/* Start with {seed}; any seed is fine. */
struct test_random {
    uint64_t state;
};

static inline uint64_t test_random_next(struct test_random *random)
{
    /* A Weyl sequence, whose values are mixed until every bit depends on all bits. */
    random->state += UINT64_C(0x9E3779B97F4A7C15);
    return hash_mix(random->state);
}

/* Returns a number from 0 to limit - 1. The limit must be above 0. */
static inline uint64_t test_random_below(struct test_random *random, uint64_t limit)
{
    return test_random_next(random) % limit;
}

/* Returns a number of 0 to 64 bits. Each length is equally likely, so small numbers occur too. */
static inline uint64_t test_random_any_length(struct test_random *random)
{
    unsigned bits = (unsigned)test_random_below(random, 65);

    return bits == 0 ? 0 : test_random_next(random) >> (64 - bits);
}

#endif
