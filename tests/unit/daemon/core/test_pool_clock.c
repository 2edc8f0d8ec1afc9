/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/core/pool_clock.h"

#include <time.h>

#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "engine/engine.h"

static void it_starts_at_the_time_of_the_machine(void **state)
{
    struct loop loop = {0};
    struct pool_clock clock;
    int64_t before = clock_read(CLOCK_REALTIME);

    (void)state;
    pool_clock_init(&clock, &loop);
    assert_in_range(pool_clock_now(&clock), before - DURATION_SECOND,
                    clock_read(CLOCK_REALTIME) + DURATION_SECOND);
}

/* The time of day is read once. From then on only the loop's time counts. */
static void setting_the_machines_clock_changes_nothing(void **state)
{
    struct loop loop = {.now = 1000 * DURATION_SECOND};
    struct pool_clock clock = {.loop = &loop, .offset = -500 * DURATION_SECOND};

    (void)state;
    assert_int_equal(pool_clock_now(&clock), 500 * DURATION_SECOND);
    loop.now += 3 * DURATION_SECOND;
    assert_int_equal(pool_clock_now(&clock), 503 * DURATION_SECOND);
}

static void times_are_converted_to_the_loops(void **state)
{
    struct loop loop = {.now = 1000 * DURATION_SECOND};
    struct pool_clock clock = {.loop = &loop, .offset = 7 * DURATION_SECOND};

    (void)state;
    assert_int_equal(pool_clock_loop_time(&clock, pool_clock_now(&clock)), loop.now);
    assert_int_equal(pool_clock_loop_time(&clock, 0), -7 * DURATION_SECOND);
    assert_int_equal(pool_clock_loop_time(&clock, TIME_NEVER), LOOP_NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_starts_at_the_time_of_the_machine),
        cmocka_unit_test(setting_the_machines_clock_changes_nothing),
        cmocka_unit_test(times_are_converted_to_the_loops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
