/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/text/quantity.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "support/assert_error.h"
#include "support/random.h"
#include "support/steps.h"
#include "support/units.h"

__extension__ typedef unsigned __int128 wide;

#define SIZE_WANTED     "expected a size such as 8GiB or 512M, got "
#define DURATION_WANTED "expected a duration such as 90s, 1h30m or 2-00:00:00, got "

/* The value of results before a call, to check that a failure leaves it untouched. */
#define UNTOUCHED 4711

/* An invalid string, and the error for it. */
struct refusal {
    const char *string;
    int code;
    const char *message;
};

static void numbers_are_read(void **state)
{
    uint64_t number;

    (void)state;
    assert_int_equal(quantity_parse_number("0", 0, UINT64_MAX, &number, NULL), 0);
    assert_int_equal(number, 0);
    assert_int_equal(quantity_parse_number("007", 7, 7, &number, NULL), 0);
    assert_int_equal(number, 7);
    assert_int_equal(quantity_parse_number("1", 1, 64, &number, NULL), 0);
    assert_int_equal(number, 1);
    assert_int_equal(quantity_parse_number("64", 1, 64, &number, NULL), 0);
    assert_int_equal(number, 64);
    assert_int_equal(quantity_parse_number("18446744073709551615", 0, UINT64_MAX, &number, NULL),
                     0);
    assert_true(number == UINT64_MAX);
}

static void bad_numbers_are_refused(void **state)
{
    static const struct refusal cases[] = {
        {"x", BERTH_ERROR_SYNTAX, "expected a whole number, got 'x'"},
        {"", BERTH_ERROR_SYNTAX, "expected a whole number, got ''"},
        {" 1", BERTH_ERROR_SYNTAX, "expected a whole number, got ' 1'"},
        {"1 ", BERTH_ERROR_SYNTAX, "expected a whole number, got '1 '"},
        {"+1", BERTH_ERROR_SYNTAX, "expected a whole number, got '+1'"},
        {"-1", BERTH_ERROR_SYNTAX, "expected a whole number, got '-1'"},
        {"1.5", BERTH_ERROR_SYNTAX, "expected a whole number, got '1.5'"},
        {"1.0", BERTH_ERROR_SYNTAX, "expected a whole number, got '1.0'"},
        {"1.", BERTH_ERROR_SYNTAX, "expected a whole number, got '1.'"},
        {"0x10", BERTH_ERROR_SYNTAX, "expected a whole number, got '0x10'"},
        {"1\n", BERTH_ERROR_SYNTAX, "expected a whole number, got '1?'"},
        {"0", BERTH_ERROR_RANGE, "expected a whole number from 1 to 64, got 0"},
        {"65", BERTH_ERROR_RANGE, "expected a whole number from 1 to 64, got 65"},
        {"18446744073709551615", BERTH_ERROR_RANGE,
         "expected a whole number from 1 to 64, got 18446744073709551615"},
        {"18446744073709551616", BERTH_ERROR_RANGE,
         "expected a whole number from 1 to 64, got '18446744073709551616'"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct berth_error error = BERTH_ERROR_INIT;
        uint64_t number = UNTOUCHED;

        assert_fails(quantity_parse_number(cases[i].string, 1, 64, &number, &error), cases[i].code,
                     &error, cases[i].message);
        assert_int_equal(quantity_parse_number(cases[i].string, 1, 64, &number, NULL),
                         cases[i].code);
        assert_int_equal(number, UNTOUCHED);
    }
}

static void sizes_are_read(void **state)
{
    static const struct {
        const char *string;
        uint64_t bytes;
    } cases[] = {
        {"0", 0},
        {"1", 1},
        {"512", 512},
        {"1B", 1},
        {"1b", 1},
        {"1 B", 1},
        {"80 GiB", 80 * GIB},
        {"1K", KIB},
        {"1M", MIB},
        {"1G", GIB},
        {"1T", TIB},
        {"1P", PIB},
        {"1E", EIB},
        {"1KiB", KIB},
        {"1MiB", MIB},
        {"1GiB", GIB},
        {"1TiB", TIB},
        {"1PiB", PIB},
        {"1EiB", EIB},
        {"1KB", 1000},
        {"1MB", 1000000},
        {"1GB", 1000000000},
        {"1TB", UINT64_C(1000000000000)},
        {"1PB", UINT64_C(1000000000000000)},
        {"1EB", UINT64_C(1000000000000000000)},
        {"8g", 8 * GIB},
        {"8gib", 8 * GIB},
        {"8GIB", 8 * GIB},
        {"8gIb", 8 * GIB},
        {"8gb", UINT64_C(8000000000)},
        {"0EiB", 0},
        {"007K", 7 * KIB},
        {"1.5GiB", GIB + GIB / 2},
        {"1.5", 1},
        {"0.999999999B", 0},
        {"0.0009K", 0},
        {"0.001K", 1},
        {"0.000000001E", 1152921504},
        {"1.000000000K", KIB},
        {"18446744073709551615", UINT64_MAX},
        {"18446744073709551615.999999999", UINT64_MAX},
        {"18446744073709551615B", UINT64_MAX},
        {"15EiB", 15 * EIB},
        {"15.999999999EiB", UINT64_C(18446744072556630111)},
        {"18.446744073EB", UINT64_C(18446744073000000000)},
        {"17179869183GiB", 17179869183 * GIB},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct berth_error error = BERTH_ERROR_INIT;
        uint64_t bytes = UNTOUCHED;

        assert_int_equal(quantity_parse_size(cases[i].string, &bytes, &error), 0);
        assert_true(bytes == cases[i].bytes);
        assert_string_equal(error.message, "");
    }
}

static void bad_sizes_are_refused(void **state)
{
    static const struct refusal cases[] = {
        {"", BERTH_ERROR_SYNTAX, SIZE_WANTED "''"},
        {"x", BERTH_ERROR_SYNTAX, SIZE_WANTED "'x'"},
        {"G", BERTH_ERROR_SYNTAX, SIZE_WANTED "'G'"},
        {" 8G", BERTH_ERROR_SYNTAX, SIZE_WANTED "' 8G'"},
        {"-8G", BERTH_ERROR_SYNTAX, SIZE_WANTED "'-8G'"},
        {"+8G", BERTH_ERROR_SYNTAX, SIZE_WANTED "'+8G'"},
        {".5G", BERTH_ERROR_SYNTAX, SIZE_WANTED "'.5G'"},
        {"8Gx", BERTH_ERROR_SYNTAX, SIZE_WANTED "'8Gx': unknown unit 'Gx'"},
        {"8Gi", BERTH_ERROR_SYNTAX, SIZE_WANTED "'8Gi': unknown unit 'Gi'"},
        {"8  G", BERTH_ERROR_SYNTAX, SIZE_WANTED "'8  G': unknown unit ' G'"},
        {"8 ", BERTH_ERROR_SYNTAX, SIZE_WANTED "'8 ': unknown unit ' '"},
        {"8 .5G", BERTH_ERROR_SYNTAX, SIZE_WANTED "'8 .5G': unknown unit '.5G'"},
        {"8G ", BERTH_ERROR_SYNTAX, SIZE_WANTED "'8G ': unknown unit 'G '"},
        {"8GBB", BERTH_ERROR_SYNTAX, SIZE_WANTED "'8GBB': unknown unit 'GBB'"},
        {"8BB", BERTH_ERROR_SYNTAX, SIZE_WANTED "'8BB': unknown unit 'BB'"},
        {"8iB", BERTH_ERROR_SYNTAX, SIZE_WANTED "'8iB': unknown unit 'iB'"},
        {"8Z", BERTH_ERROR_SYNTAX, SIZE_WANTED "'8Z': unknown unit 'Z'"},
        {"8.", BERTH_ERROR_SYNTAX, SIZE_WANTED "'8.': unknown unit '.'"},
        {"8.G", BERTH_ERROR_SYNTAX, SIZE_WANTED "'8.G': unknown unit '.G'"},
        {"1.2.3", BERTH_ERROR_SYNTAX, SIZE_WANTED "'1.2.3': unknown unit '.3'"},
        {"1,5G", BERTH_ERROR_SYNTAX, SIZE_WANTED "'1,5G': unknown unit ',5G'"},
        {"1e3", BERTH_ERROR_SYNTAX, SIZE_WANTED "'1e3': unknown unit 'e3'"},
        {"8\x1b[31m", BERTH_ERROR_SYNTAX, SIZE_WANTED "'8?[31m': unknown unit '?[31m'"},
        {"1.0000000001G", BERTH_ERROR_SYNTAX,
         SIZE_WANTED "'1.0000000001G': more than 9 digits after the point"},
        {"99999999999999999999Gx", BERTH_ERROR_SYNTAX,
         SIZE_WANTED "'99999999999999999999Gx': unknown unit 'Gx'"},
        {"99999999999999999999", BERTH_ERROR_RANGE,
         "expected a size below 16 EiB, got '99999999999999999999'"},
        {"18446744073709551616", BERTH_ERROR_RANGE,
         "expected a size below 16 EiB, got '18446744073709551616'"},
        {"16EiB", BERTH_ERROR_RANGE, "expected a size below 16 EiB, got '16EiB'"},
        {"16384P", BERTH_ERROR_RANGE, "expected a size below 16 EiB, got '16384P'"},
        {"18.446744074EB", BERTH_ERROR_RANGE, "expected a size below 16 EiB, got '18.446744074EB'"},
        {"18446744073709551615E", BERTH_ERROR_RANGE,
         "expected a size below 16 EiB, got '18446744073709551615E'"},
        {"9999999999999999999999999999999999999999999999999999999999999999", BERTH_ERROR_RANGE,
         "expected a size below 16 EiB, got "
         "'999999999999999999999999999999999999999999999999999999999999...'"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct berth_error error = BERTH_ERROR_INIT;
        uint64_t bytes = UNTOUCHED;

        assert_fails(quantity_parse_size(cases[i].string, &bytes, &error), cases[i].code, &error,
                     cases[i].message);
        assert_int_equal(quantity_parse_size(cases[i].string, &bytes, NULL), cases[i].code);
        assert_int_equal(bytes, UNTOUCHED);
    }
}

/* Compares sizes with random digits and units with a calculation in 128 bits. */
static void random_sizes_agree_with_an_oracle(void **state)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } units[] = {
        {"", 1},
        {"B", 1},
        {"k", KIB},
        {"KiB", KIB},
        {"KB", 1000},
        {"m", MIB},
        {"GiB", GIB},
        {"tib", TIB},
        {"pb", 1000 * UINT64_C(1000000000000)},
        {"PiB", PIB},
        {"e", EIB},
        {"EiB", EIB},
        {"EB", 1000000 * UINT64_C(1000000000000)},
    };
    struct test_random random = {1};

    (void)state;
    for (unsigned long step = test_steps(100000); step > 0; step--) {
        size_t unit = test_random_below(&random, COUNT(units));
        int decimals = (int)test_random_below(&random, 10);
        uint64_t power = 1;
        uint64_t whole = test_random_any_length(&random);
        uint64_t fraction, bytes = UNTOUCHED;
        wide expected;
        char string[64];
        int code;

        for (int i = 0; i < decimals; i++)
            power *= 10;
        fraction = test_random_next(&random) % power;
        if (decimals > 0)
            snprintf(string, sizeof(string), "%" PRIu64 ".%0*" PRIu64 "%s", whole, decimals,
                     fraction, units[unit].name);
        else
            snprintf(string, sizeof(string), "%" PRIu64 "%s", whole, units[unit].name);
        /* If the whole part alone is out of range, the product could overflow. */
        expected = whole > UINT64_MAX / units[unit].bytes
                       ? (wide)UINT64_MAX + 1
                       : ((wide)whole * power + fraction) * units[unit].bytes / power;
        code = quantity_parse_size(string, &bytes, NULL);
        assert_int_equal(code, expected > UINT64_MAX ? BERTH_ERROR_RANGE : 0);
        assert_true(bytes == (expected > UINT64_MAX ? UNTOUCHED : (uint64_t)expected));
    }
}

static void durations_are_read(void **state)
{
    static const struct {
        const char *string;
        int64_t nanoseconds;
    } cases[] = {
        {"0", 0},
        {"90", 90 * DURATION_SECOND},
        {"0.5", DURATION_SECOND / 2},
        {"0.000000001", 1},
        {"0s", 0},
        {"90s", 90 * DURATION_SECOND},
        {"5m", 5 * DURATION_MINUTE},
        {"4h", 4 * DURATION_HOUR},
        {"1d", DURATION_DAY},
        {"500ms", DURATION_SECOND / 2},
        {"1h30m", 90 * DURATION_MINUTE},
        {"1h90m", 150 * DURATION_MINUTE},
        {"2d12h", 60 * DURATION_HOUR},
        {"1d2h3m4s5ms", 93784 * DURATION_SECOND + 5000000},
        {"1d5ms", DURATION_DAY + 5000000},
        {"1h1.5s", DURATION_HOUR + 1500000000},
        {"1.5h", 90 * DURATION_MINUTE},
        {"0.000000001d", 86400},
        {"0.000001ms", 1},
        {"0.000000999ms", 0},
        {"1:30:00", 90 * DURATION_MINUTE},
        {"0:00:00", 0},
        {"100:00:01", 100 * DURATION_HOUR + DURATION_SECOND},
        {"1:2:3", DURATION_HOUR + 2 * DURATION_MINUTE + 3 * DURATION_SECOND},
        {"0:59:59", DURATION_HOUR - DURATION_SECOND},
        {"2-00:00:00", 2 * DURATION_DAY},
        {"0-23:59:59", DURATION_DAY - DURATION_SECOND},
        {"9223372036.854775807", INT64_MAX},
        {"9223372036.854775807s", INT64_MAX},
        {"9223372036854.775807ms", INT64_MAX},
        {"9223372036s854.775807999ms", INT64_MAX},
        {"106751d23h47m16s854.775807ms", INT64_MAX},
        {"106751-23:47:16", INT64_MAX / DURATION_SECOND * DURATION_SECOND},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct berth_error error = BERTH_ERROR_INIT;
        int64_t nanoseconds = UNTOUCHED;

        assert_int_equal(quantity_parse_duration(cases[i].string, &nanoseconds, &error), 0);
        assert_true(nanoseconds == cases[i].nanoseconds);
        assert_string_equal(error.message, "");
    }
}

static void bad_durations_are_refused(void **state)
{
    static const struct refusal cases[] = {
        {"", BERTH_ERROR_SYNTAX, DURATION_WANTED "''"},
        {"x", BERTH_ERROR_SYNTAX, DURATION_WANTED "'x'"},
        {"-5", BERTH_ERROR_SYNTAX, DURATION_WANTED "'-5'"},
        {"+5", BERTH_ERROR_SYNTAX, DURATION_WANTED "'+5'"},
        {" 5", BERTH_ERROR_SYNTAX, DURATION_WANTED "' 5'"},
        {".5", BERTH_ERROR_SYNTAX, DURATION_WANTED "'.5'"},
        {"h", BERTH_ERROR_SYNTAX, DURATION_WANTED "'h'"},
        {"5x", BERTH_ERROR_SYNTAX, DURATION_WANTED "'5x': unknown unit 'x'"},
        {"5H", BERTH_ERROR_SYNTAX, DURATION_WANTED "'5H': unknown unit 'H'"},
        {"5 ", BERTH_ERROR_SYNTAX, DURATION_WANTED "'5 ': unknown unit ' '"},
        {"5.", BERTH_ERROR_SYNTAX, DURATION_WANTED "'5.': unknown unit '.'"},
        {"5us", BERTH_ERROR_SYNTAX, DURATION_WANTED "'5us': unknown unit 'us'"},
        {"1h 30m", BERTH_ERROR_SYNTAX, DURATION_WANTED "'1h 30m': unknown unit 'h '"},
        {"2-00", BERTH_ERROR_SYNTAX, DURATION_WANTED "'2-00': unknown unit '-'"},
        {"1h30", BERTH_ERROR_SYNTAX, DURATION_WANTED "'1h30': the last part has no unit"},
        {"30m1h", BERTH_ERROR_SYNTAX,
         DURATION_WANTED "'30m1h': units must go from large to small: d, h, m, s, ms"},
        {"1h1h", BERTH_ERROR_SYNTAX,
         DURATION_WANTED "'1h1h': units must go from large to small: d, h, m, s, ms"},
        {"1ms1m", BERTH_ERROR_SYNTAX,
         DURATION_WANTED "'1ms1m': units must go from large to small: d, h, m, s, ms"},
        {"1.5h30m", BERTH_ERROR_SYNTAX,
         DURATION_WANTED "'1.5h30m': only the last part may have a fraction"},
        {"0.1234567890s", BERTH_ERROR_SYNTAX,
         DURATION_WANTED "'0.1234567890s': more than 9 digits after the point"},
        {"30:00", BERTH_ERROR_SYNTAX,
         DURATION_WANTED "'30:00': the clock form is hours:minutes:seconds"},
        {":", BERTH_ERROR_SYNTAX, DURATION_WANTED "':': the clock form is hours:minutes:seconds"},
        {"1:00:", BERTH_ERROR_SYNTAX,
         DURATION_WANTED "'1:00:': the clock form is hours:minutes:seconds"},
        {"1:00:00:00", BERTH_ERROR_SYNTAX,
         DURATION_WANTED "'1:00:00:00': the clock form is hours:minutes:seconds"},
        {"1:00:00.5", BERTH_ERROR_SYNTAX,
         DURATION_WANTED "'1:00:00.5': the clock form is hours:minutes:seconds"},
        {"1:00:00s", BERTH_ERROR_SYNTAX,
         DURATION_WANTED "'1:00:00s': the clock form is hours:minutes:seconds"},
        {"-1:00:00", BERTH_ERROR_SYNTAX,
         DURATION_WANTED "'-1:00:00': the clock form is hours:minutes:seconds"},
        {"1-1-00:00:00", BERTH_ERROR_SYNTAX,
         DURATION_WANTED "'1-1-00:00:00': the clock form is hours:minutes:seconds"},
        {"1:60:00", BERTH_ERROR_SYNTAX, DURATION_WANTED "'1:60:00': minutes must be below 60"},
        {"1:00:60", BERTH_ERROR_SYNTAX, DURATION_WANTED "'1:00:60': seconds must be below 60"},
        {"2-24:00:00", BERTH_ERROR_SYNTAX,
         DURATION_WANTED "'2-24:00:00': hours after days must be below 24"},
        {"1:18446744073709551616:00", BERTH_ERROR_SYNTAX,
         DURATION_WANTED "'1:18446744073709551616:00': minutes must be below 60"},
        {"9223372036.854775808", BERTH_ERROR_RANGE,
         "expected a duration of at most 106751 days, got '9223372036.854775808'"},
        {"9223372036s854.775808ms", BERTH_ERROR_RANGE,
         "expected a duration of at most 106751 days, got '9223372036s854.775808ms'"},
        {"106752d", BERTH_ERROR_RANGE, "expected a duration of at most 106751 days, got '106752d'"},
        {"106751-23:47:17", BERTH_ERROR_RANGE,
         "expected a duration of at most 106751 days, got '106751-23:47:17'"},
        {"18446744073709551616ms", BERTH_ERROR_RANGE,
         "expected a duration of at most 106751 days, got '18446744073709551616ms'"},
        {"18446744073709551616-00:00:00", BERTH_ERROR_RANGE,
         "expected a duration of at most 106751 days, got '18446744073709551616-00:00:00'"},
        {"18446744073709551615d18446744073709551615h18446744073709551615m", BERTH_ERROR_RANGE,
         "expected a duration of at most 106751 days, got "
         "'18446744073709551615d18446744073709551615h184467440737095516...'"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct berth_error error = BERTH_ERROR_INIT;
        int64_t nanoseconds = UNTOUCHED;

        assert_fails(quantity_parse_duration(cases[i].string, &nanoseconds, &error), cases[i].code,
                     &error, cases[i].message);
        assert_int_equal(quantity_parse_duration(cases[i].string, &nanoseconds, NULL),
                         cases[i].code);
        assert_int_equal(nanoseconds, UNTOUCHED);
    }
}

/* Reads one random duration in all three forms. */
static void random_durations_agree_in_all_forms(void **state)
{
    struct test_random random = {2};

    (void)state;
    for (unsigned long step = test_steps(100000); step > 0; step--) {
        int64_t wanted = (int64_t)(test_random_any_length(&random) >> 1);
        int64_t seconds = wanted / DURATION_SECOND;
        int64_t fraction = wanted % DURATION_SECOND;
        int64_t days = seconds / 86400;
        int hours = (int)(seconds / 3600 % 24);
        int minutes = (int)(seconds / 60 % 60);
        int second = (int)(seconds % 60);
        int64_t found = -1;
        char string[80];

        snprintf(string, sizeof(string), "%" PRId64 ".%09" PRId64, seconds, fraction);
        assert_int_equal(quantity_parse_duration(string, &found, NULL), 0);
        assert_true(found == wanted);
        snprintf(string, sizeof(string), "%" PRId64 "d%dh%dm%ds%" PRId64 ".%06" PRId64 "ms", days,
                 hours, minutes, second, fraction / 1000000, fraction % 1000000);
        assert_int_equal(quantity_parse_duration(string, &found, NULL), 0);
        assert_true(found == wanted);
        snprintf(string, sizeof(string), "%" PRId64 "-%02d:%02d:%02d", days, hours, minutes,
                 second);
        assert_int_equal(quantity_parse_duration(string, &found, NULL), 0);
        assert_true(found == wanted - fraction);
    }
}

static void decimals_are_read(void **state)
{
    uint64_t value;

    (void)state;
    assert_int_equal(quantity_parse_decimal("0.25", 6, 1000000, &value, NULL), 0);
    assert_int_equal(value, 250000);
    assert_int_equal(quantity_parse_decimal("0", 6, 1000000, &value, NULL), 0);
    assert_int_equal(value, 0);
    assert_int_equal(quantity_parse_decimal("1", 6, 1000000, &value, NULL), 0);
    assert_int_equal(value, 1000000);
    assert_int_equal(quantity_parse_decimal("1.000000", 6, 1000000, &value, NULL), 0);
    assert_int_equal(value, 1000000);
    assert_int_equal(quantity_parse_decimal("7", 0, 7, &value, NULL), 0);
    assert_int_equal(value, 7);
    assert_int_equal(quantity_parse_decimal("18446744073709551615", 0, UINT64_MAX, &value, NULL),
                     0);
    assert_true(value == UINT64_MAX);
    assert_int_equal(quantity_parse_decimal("18.446744073709551615", 18, UINT64_MAX, &value, NULL),
                     0);
    assert_true(value == UINT64_MAX);
    assert_int_equal(quantity_parse_decimal("18.446744073709551616", 18, UINT64_MAX, &value, NULL),
                     BERTH_ERROR_RANGE);
}

static void bad_decimals_are_refused(void **state)
{
    static const struct refusal cases[] = {
        {"", BERTH_ERROR_SYNTAX, "expected a number from 0 to 1, got ''"},
        {"x", BERTH_ERROR_SYNTAX, "expected a number from 0 to 1, got 'x'"},
        {"-0.5", BERTH_ERROR_SYNTAX, "expected a number from 0 to 1, got '-0.5'"},
        {"+0.5", BERTH_ERROR_SYNTAX, "expected a number from 0 to 1, got '+0.5'"},
        {" 0.5", BERTH_ERROR_SYNTAX, "expected a number from 0 to 1, got ' 0.5'"},
        {"0.5 ", BERTH_ERROR_SYNTAX, "expected a number from 0 to 1, got '0.5 '"},
        {".5", BERTH_ERROR_SYNTAX, "expected a number from 0 to 1, got '.5'"},
        {"1.", BERTH_ERROR_SYNTAX, "expected a number from 0 to 1, got '1.'"},
        {"0,5", BERTH_ERROR_SYNTAX, "expected a number from 0 to 1, got '0,5'"},
        {"50%", BERTH_ERROR_SYNTAX, "expected a number from 0 to 1, got '50%'"},
        {"0.1234567", BERTH_ERROR_SYNTAX,
         "expected a number from 0 to 1, got '0.1234567': more than 6 digits after the point"},
        {"1.000001", BERTH_ERROR_RANGE, "expected a number from 0 to 1, got '1.000001'"},
        {"2", BERTH_ERROR_RANGE, "expected a number from 0 to 1, got '2'"},
        {"18446744073709551616", BERTH_ERROR_RANGE,
         "expected a number from 0 to 1, got '18446744073709551616'"},
    };
    struct berth_error error = BERTH_ERROR_INIT;
    uint64_t value = UNTOUCHED;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_fails(quantity_parse_decimal(cases[i].string, 6, 1000000, &value, &error),
                     cases[i].code, &error, cases[i].message);
        assert_int_equal(quantity_parse_decimal(cases[i].string, 6, 1000000, &value, NULL),
                         cases[i].code);
    }
    assert_fails(quantity_parse_decimal("3", 18, UINT64_MAX >> 3, &value, &error),
                 BERTH_ERROR_RANGE, &error,
                 "expected a number from 0 to 2.305843009213693951, got '3'");
    assert_int_equal(value, UNTOUCHED);
}

static void random_decimals_return(void **state)
{
    struct test_random random = {3};

    (void)state;
    for (unsigned long step = test_steps(100000); step > 0; step--) {
        unsigned decimals = (unsigned)test_random_below(&random, 19);
        uint64_t value = test_random_any_length(&random) >> 1;
        struct quantity_text text = quantity_format_decimal((int64_t)value, decimals);
        const char *point = strchr(text.text, '.');
        uint64_t again = UNTOUCHED;

        assert_int_equal(quantity_parse_decimal(text.text, decimals, value, &again, NULL), 0);
        assert_true(again == value);
        if (point != NULL)
            assert_int_not_equal(point[strlen(point) - 1], '0');
        if (value > 0)
            assert_int_equal(quantity_parse_decimal(text.text, decimals, value - 1, &again, NULL),
                             BERTH_ERROR_RANGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read),
        cmocka_unit_test(bad_numbers_are_refused),
        cmocka_unit_test(sizes_are_read),
        cmocka_unit_test(bad_sizes_are_refused),
        cmocka_unit_test(random_sizes_agree_with_an_oracle),
        cmocka_unit_test(durations_are_read),
        cmocka_unit_test(bad_durations_are_refused),
        cmocka_unit_test(random_durations_agree_in_all_forms),
        cmocka_unit_test(decimals_are_read),
        cmocka_unit_test(bad_decimals_are_refused),
        cmocka_unit_test(random_decimals_return),
    };

    return cmocka_run_group_tests_name("quantity", tests, NULL, NULL);
}
