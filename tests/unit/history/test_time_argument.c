/* SPDX-License-Identifier: Apache-2.0
 *
 * Points in time as users type them.
 */
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/count.h"
#include "base/text/quantity.h"
#include "history/time_argument.h"

#define NOW (INT64_C(1793491200) * DURATION_SECOND) /* 2026-11-01 00:00 UTC */

static void use_zone(const char *zone)
{
    setenv("TZ", zone, 1);
    tzset();
}

static int64_t parse(const char *string)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int64_t time = 0;

    if (time_argument_parse(string, NOW, &time, &error) < 0)
        fail_msg("%s", error.message);
    return time;
}

static void good_ones_are_read(void **state)
{
    static const struct {
        const char *string;
        double after; /* seconds after NOW */
    } rows[] = {
        {"0", 0},
        {"90", -90},
        {"7d", -7 * 86400.0},
        {"24h", -86400},
        {"1h30m", -5400},
        {"2-00:00:00", -2 * 86400.0},
        {"2026-11-01", 0},
        {"2026-11-02", 86400},
        {"2026-11-01T09:30", 34200},
        {"2026-11-01 09:30", 34200},
        {"2026-11-01T09:30:15", 34215},
        {"2026-11-01T09:30:15.250", 34215.25},
        {"2026-11-01T09:30:15.2500000009", 34215.25},
        {"2026-11-01T09:30Z", 34200},
        {"2026-11-01t09:30:00z", 34200},
        {"2026-11-01T09:30+01:00", 30600},
        {"2026-11-01T09:30:00-05:30", 54000},
        {"2028-02-29", 41904000},
    };

    (void)state;
    use_zone("UTC");
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(parse(rows[i].string), NOW + (int64_t)(rows[i].after * 1e9));
}

static void days_begin_here(void **state)
{
    (void)state;
    /* Three hours ahead of UTC. */
    use_zone("XXX-3");
    assert_int_equal(parse("2026-11-01"), NOW - 3 * DURATION_HOUR);
    assert_int_equal(parse("2026-11-01T09:30"), NOW + 13 * DURATION_HOUR / 2);
    assert_int_equal(parse("2026-11-01T09:30Z"), NOW + 19 * DURATION_HOUR / 2);
    use_zone("UTC");
}

static void a_time_before_the_epoch_is_not_zero(void **state)
{
    (void)state;
    /* 0 would mean that no time was given. */
    assert_int_equal(parse("100000d"), 1);
    assert_int_equal(parse("1970-01-01T00:00Z"), 1);
}

static void bad_ones_are_refused(void **state)
{
    static const char *const strings[] = {
        "",
        "yesterday",
        "2026-11",
        "2026-11-1",
        "2026-13-01",
        "2026-02-30",
        "2027-02-29",
        "2026-00-10",
        "1969-12-31",
        "2262-01-01",
        "2026-11-01T",
        "2026-11-01T9:30",
        "2026-11-01X09:30",
        "2026-11-01T24:00",
        "2026-11-01T09:60",
        "2026-11-01T09:30:61",
        "2026-11-01T09:30:15.",
        "2026-11-01T09:30+1",
        "2026-11-01T09:30Zx",
        "2026-11-01T09:30+24:00",
        "2026-11-01 ",
        "-1d",
        "1d ",
        "99999999999999999999d",
        "1970-01-01T00:00+01:00",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(strings); i++) {
        struct berth_error error = BERTH_ERROR_INIT;
        int64_t time = 4711;

        if (time_argument_parse(strings[i], NOW, &time, &error) == 0)
            fail_msg("'%s' was accepted", strings[i]);
        assert_int_equal(strncmp(error.message, "expected a duration (7d, 24h)", 28), 0);
        assert_int_equal(time, 4711);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_ones_are_read),
        cmocka_unit_test(days_begin_here),
        cmocka_unit_test(a_time_before_the_epoch_is_not_zero),
        cmocka_unit_test(bad_ones_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
