/* SPDX-License-Identifier: Apache-2.0
 *
 * How many steps a random test takes.
 */
#ifndef TESTS_STEPS_H
#define TESTS_STEPS_H

#include <stdlib.h>

/* Returns the number of steps of a random test: `standard`, times the whole number in
 * BERTH_TEST_SCALE if that is set. A soak run sets it. */
static inline unsigned long test_steps(unsigned long standard)
{
    const char *scale = getenv("BERTH_TEST_SCALE");

    return scale == NULL ? standard : standard * strtoul(scale, NULL, 10);
}

/* Returns the same number, but at most `max`: for tests whose steps take long. */
static inline unsigned long test_steps_up_to(unsigned long standard, unsigned long max)
{
    unsigned long steps = test_steps(standard);

    return steps < max ? steps : max;
}

#endif
