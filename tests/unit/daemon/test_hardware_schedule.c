/* SPDX-License-Identifier: Apache-2.0
 *
 * How often the daemon probes the hardware, and how soon it retries.
 */
#include "support/unit.h"

#include "daemon/hardware.h"

static void it_looks_as_often_as_somebody_cares(void **state)
{
    (void)state;
    assert_int_equal(hardware_interval(true, true), DURATION_SECOND);
    assert_int_equal(hardware_interval(true, false), DURATION_SECOND);
    assert_int_equal(hardware_interval(false, true), 10 * DURATION_SECOND);
    assert_int_equal(hardware_interval(false, false), 60 * DURATION_SECOND);
}

static void a_probe_that_fails_again_and_again_is_left_alone_longer(void **state)
{
    static const int64_t seconds[] = {1, 2, 4, 8, 16, 32, 60, 60};

    (void)state;
    for (unsigned i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++)
        assert_int_equal(hardware_restart_after(i + 1), seconds[i] * DURATION_SECOND);
    assert_int_equal(hardware_restart_after(UINT32_MAX), 60 * DURATION_SECOND);
}

/* The process that starts a daemon waits for 10 s. */
static void a_first_look_does_not_outlast_who_waits_for_it(void **state)
{
    (void)state;
    assert_true(HARDWARE_START_TIMEOUT <= 8 * DURATION_SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_looks_as_often_as_somebody_cares),
        cmocka_unit_test(a_probe_that_fails_again_and_again_is_left_alone_longer),
        cmocka_unit_test(a_first_look_does_not_outlast_who_waits_for_it),
    };

    return cmocka_run_group_tests_name("hardware_schedule", tests, NULL, NULL);
}
