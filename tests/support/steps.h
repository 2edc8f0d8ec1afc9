/* SPDX-License-Identifier: Apache-2.0
 *
 * How many steps a random test takes.
 */
#ifndef TESTS_STEPS_H
#define TESTS_STEPS_H

#include <stdlib.h>

/* The number of steps of a random test: `standard`, times the whole number in BERTH_TEST_SCALE
 * when that is set, so that a soak run can do more. */
static inline unsigned long test_steps(unsigned long standard)
{
    const char *scale = getenv("BERTH_TEST_SCALE");

    return scale == NULL ? standard : standard * strtoul(scale, NULL, 10);
}

/* The same with an upper bound, for a test whose steps take long: `most` is enough of a soak. */
static inline unsigned long test_steps_up_to(unsigned long standard, unsigned long max)
{
    unsigned long steps = test_steps(standard);

    return steps < max ? steps : max;
}

#endif
