/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes, durations, decimals and times as they are written.
 */
#include "support/unit.h"

#include "base/text/quantity.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/count.h"
#include "support/random.h"
#include "support/steps.h"
#include "support/units.h"

static void sizes_are_written(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},
        {1, "1 B"},
        {512, "512 B"},
        {1023, "1023 B"},
        {1024, "1 KiB"},
        {1536, "1.5 KiB"},
        {1034, "1 KiB"},
        {1035, "1.01 KiB"},
        {10 * KIB - 1, "9.99 KiB"},
        {100 * KIB - 1, "99.9 KiB"},
        {100 * KIB + 1023, "100 KiB"},
        {GIB - 1, "1023 MiB"},
        {1023 * MIB, "1023 MiB"},
        {64 * MIB, "64 MiB"},
        {80 * GIB, "80 GiB"},
        {79 * GIB + GIB / 4, "79.2 GiB"},
        {TIB, "1 TiB"},
        {2 * TIB - 1, "1.99 TiB"},
        {PIB, "1 PiB"},
        {EIB, "1 EiB"},
        {UINT64_MAX, "15.9 EiB"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_string_equal(quantity_format_size(cases[i].bytes).text, cases[i].text);
}

/* Checks that the text is rounded down, by less than one unit of its last digit. */
static void random_sizes_are_rounded_down(void **state)
{
    struct test_random random = {4};

    (void)state;
    for (unsigned long step = test_steps(100000); step > 0; step--) {
        uint64_t bytes = test_random_any_length(&random);
        struct quantity_text text = quantity_format_size(bytes);
        uint64_t again, lost;

        assert_int_equal(quantity_parse_size(text.text, &again, NULL), 0);
        assert_true(again <= bytes);
        lost = bytes - again;
        if (bytes < KIB)
            assert_int_equal(lost, 0);
        else
            assert_true(lost <= bytes / 100 + 1);
        assert_true(strspn(text.text, "0123456789.") <= 4);
    }
}

static void durations_are_written(void **state)
{
    static const struct {
        int64_t nanoseconds;
        const char *text;
    } cases[] = {
        {0, "0s"},
        {1, "0s"},
        {999999, "0s"},
        {-999999, "0s"},
        {1000000, "1ms"},
        {350000000, "350ms"},
        {999999999, "999ms"},
        {-350000000, "-350ms"},
        {DURATION_SECOND, "1s"},
        {DURATION_SECOND * 3 / 2, "1s"},
        {45 * DURATION_SECOND, "45s"},
        {DURATION_MINUTE - 1, "59s"},
        {DURATION_MINUTE, "1m"},
        {90 * DURATION_SECOND, "1m30s"},
        {DURATION_HOUR - 1, "59m59s"},
        {DURATION_HOUR, "1h"},
        {DURATION_HOUR + 59 * DURATION_SECOND, "1h"},
        {90 * DURATION_MINUTE, "1h30m"},
        {-90 * DURATION_MINUTE, "-1h30m"},
        {DURATION_DAY - 1, "23h59m"},
        {DURATION_DAY, "1d"},
        {DURATION_DAY + 59 * DURATION_MINUTE, "1d"},
        {52 * DURATION_HOUR, "2d4h"},
        {INT64_MAX, "106751d23h"},
        {INT64_MIN, "-106751d23h"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_string_equal(quantity_format_duration(cases[i].nanoseconds).text, cases[i].text);
}

static void random_durations_return(void **state)
{
    struct test_random random = {5};

    (void)state;
    for (unsigned long step = test_steps(100000); step > 0; step--) {
        int64_t nanoseconds = (int64_t)(test_random_any_length(&random) >> 1);
        struct quantity_text text = quantity_format_duration(nanoseconds);
        struct quantity_text negative = quantity_format_duration(-nanoseconds);
        int64_t again, lost;

        assert_int_equal(quantity_parse_duration(text.text, &again, NULL), 0);
        lost = nanoseconds - again;
        assert_true(lost >= 0);
        assert_true(lost < (nanoseconds < DURATION_SECOND ? 1000000
                            : nanoseconds < DURATION_HOUR ? DURATION_SECOND
                            : nanoseconds < DURATION_DAY  ? DURATION_MINUTE
                                                          : DURATION_HOUR));
        assert_string_equal(quantity_format_duration(again).text, text.text);
        assert_string_equal(negative.text + (again > 0), text.text);
        assert_int_equal(negative.text[0] == '-', again > 0);
    }
}

static void decimals_are_written(void **state)
{
    (void)state;
    assert_string_equal(quantity_format_decimal(250000, 6).text, "0.25");
    assert_string_equal(quantity_format_decimal(0, 0).text, "0");
    assert_string_equal(quantity_format_decimal(0, 18).text, "0");
    assert_string_equal(quantity_format_decimal(1, 18).text, "0.000000000000000001");
    assert_string_equal(quantity_format_decimal(-1, 1).text, "-0.1");
    assert_string_equal(quantity_format_decimal(2000, 3).text, "2");
    assert_string_equal(quantity_format_decimal(2000, 0).text, "2000");
    assert_string_equal(quantity_format_decimal(-12345, 2).text, "-123.45");
    assert_string_equal(quantity_format_decimal(INT64_MAX, 18).text, "9.223372036854775807");
    assert_string_equal(quantity_format_decimal(INT64_MIN, 18).text, "-9.223372036854775808");
    assert_string_equal(quantity_format_decimal(INT64_MIN, 0).text, "-9223372036854775808");
}

static void check_time(int64_t nanoseconds)
{
    int64_t rest = nanoseconds % DURATION_SECOND;
    time_t seconds;
    struct tm broken_down;
    char date[32], expected[40];

    if (rest < 0)
        rest += DURATION_SECOND;
    /* Rounds down. Subtracting `rest` first would overflow for the smallest value. */
    seconds = nanoseconds / DURATION_SECOND - (nanoseconds % DURATION_SECOND < 0);
    assert_non_null(gmtime_r(&seconds, &broken_down));
    assert_true(strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &broken_down) > 0);
    snprintf(expected, sizeof(expected), "%s.%03dZ", date, (int)(rest / 1000000));
    assert_string_equal(quantity_format_time(nanoseconds).text, expected);
}

static void times_are_written(void **state)
{
    (void)state;
    assert_string_equal(quantity_format_time(0).text, "1970-01-01T00:00:00.000Z");
    assert_string_equal(quantity_format_time(-1).text, "1969-12-31T23:59:59.999Z");
    assert_string_equal(quantity_format_time(INT64_C(1767323045678999999)).text,
                        "2026-01-02T03:04:05.678Z");
    assert_string_equal(quantity_format_time(INT64_MAX).text, "2262-04-11T23:47:16.854Z");
    assert_string_equal(quantity_format_time(INT64_MIN).text, "1677-09-21T00:12:43.145Z");
    assert_string_equal(quantity_format_time(INT64_C(951782400) * DURATION_SECOND).text,
                        "2000-02-29T00:00:00.000Z");
}

static void every_day_agrees_with_gmtime(void **state)
{
    const int64_t last = INT64_MAX / DURATION_DAY;

    (void)state;
    check_time(INT64_MIN);
    check_time(INT64_MAX);
    for (int64_t day = -last; day <= last; day++) {
        check_time(day * DURATION_DAY);
        check_time(day * DURATION_DAY - 1);
    }
}

static void random_times_agree_with_gmtime(void **state)
{
    struct test_random random = {6};

    (void)state;
    for (unsigned long step = test_steps(50000); step > 0; step--)
        check_time((int64_t)test_random_next(&random));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_written),
        cmocka_unit_test(random_sizes_are_rounded_down),
        cmocka_unit_test(durations_are_written),
        cmocka_unit_test(random_durations_return),
        cmocka_unit_test(decimals_are_written),
        cmocka_unit_test(times_are_written),
        cmocka_unit_test(every_day_agrees_with_gmtime),
        cmocka_unit_test(random_times_agree_with_gmtime),
    };

    return cmocka_run_group_tests_name("quantity_format", tests, NULL, NULL);
}
