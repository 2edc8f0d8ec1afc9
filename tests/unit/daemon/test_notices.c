/* SPDX-License-Identifier: Apache-2.0
 *
 * When a holder is warned of its time limit, and when a device counts as used.
 */
#include "support/unit.h"

#include "base/text/quantity.h"
#include "daemon/notices.h"

static void warnings_come_in_time(void **state)
{
    static const struct {
        int64_t length;
        int64_t before;
        int64_t wanted; /* the warning, before the end; 0: none */
    } rows[] = {
        {DURATION_HOUR, 5 * DURATION_MINUTE, 5 * DURATION_MINUTE},
        {20 * DURATION_MINUTE, 5 * DURATION_MINUTE, 5 * DURATION_MINUTE},
        {20 * DURATION_MINUTE - 4, 5 * DURATION_MINUTE, 5 * DURATION_MINUTE - 1},
        {4 * DURATION_MINUTE, 5 * DURATION_MINUTE, DURATION_MINUTE},
        {4 * DURATION_SECOND, 5 * DURATION_MINUTE, DURATION_SECOND},
        {2 * DURATION_SECOND, 5 * DURATION_MINUTE, DURATION_SECOND},
        {DURATION_SECOND, 5 * DURATION_MINUTE, 0},
        {1, 5 * DURATION_MINUTE, 0},
        {DURATION_HOUR, 0, 0},
        {10 * DURATION_SECOND, 1, 1},
    };
    const int64_t granted = 1000 * DURATION_HOUR;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t expires = granted + rows[i].length;

        assert_int_equal(notice_limit_time(granted, expires, rows[i].before),
                         rows[i].wanted == 0 ? TIME_NEVER : expires - rows[i].wanted);
    }
}

static void no_limit_no_warning(void **state)
{
    (void)state;
    assert_int_equal(notice_limit_time(0, TIME_NEVER, DURATION_MINUTE), TIME_NEVER);
    assert_int_equal(notice_limit_time(DURATION_HOUR, TIME_NEVER, DURATION_MINUTE), TIME_NEVER);
    assert_int_equal(notice_limit_time(0, TIME_NEVER - 1, DURATION_MINUTE),
                     TIME_NEVER - 1 - DURATION_MINUTE);
}

static void what_counts_as_use(void **state)
{
    struct device device = {.health = HEALTH_OK};

    (void)state;
    assert_int_equal(notice_use_of(&device, true, true), DEVICE_USED);
    assert_int_equal(notice_use_of(&device, true, false), DEVICE_USED);
    assert_int_equal(notice_use_of(&device, false, true), DEVICE_UNUSED);
    assert_int_equal(notice_use_of(&device, false, false), DEVICE_USE_UNKNOWN);
    device.load.utilization = load_figure_sampled(0, 1);
    assert_int_equal(notice_use_of(&device, true, true), DEVICE_UNUSED);
    assert_int_equal(notice_use_of(&device, false, false), DEVICE_UNUSED);
    device.load.utilization = load_figure_sampled(1, 1);
    assert_int_equal(notice_use_of(&device, false, true), DEVICE_USED);
}

static void what_cannot_be_known(void **state)
{
    struct device device = {.load.utilization = load_figure_sampled(0, 1)};

    (void)state;
    assert_int_equal(notice_use_of(&device, false, true), DEVICE_UNUSED);
    device.old = true;
    assert_int_equal(notice_use_of(&device, false, true), DEVICE_USE_UNKNOWN);
    device.old = false;
    device.health = HEALTH_SICK;
    assert_int_equal(notice_use_of(&device, false, true), DEVICE_USE_UNKNOWN);
    device.health = HEALTH_OK;
    device.load.utilization.known = false;
    device.asleep = true;
    assert_int_equal(notice_use_of(&device, true, false), DEVICE_UNUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warnings_come_in_time),
        cmocka_unit_test(no_limit_no_warning),
        cmocka_unit_test(what_counts_as_use),
        cmocka_unit_test(what_cannot_be_known),
    };

    return cmocka_run_group_tests_name("notices", tests, NULL, NULL);
}
