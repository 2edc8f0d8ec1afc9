/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "model/request.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/count.h"
#include "support/assert_error.h"
#include "support/random.h"
#include "support/steps.h"

#define FORMS   "expected a number of devices, a range such as 2-4, or all, got "
#define NUMBERS "expected a whole number from 1 to 1000000, got "
#define ORDER   "expected a range from the smaller number to the larger, got "

static const struct device_count untouched = {47, 11, false};

static void check_equal(struct device_count found, struct device_count wanted)
{
    assert_int_equal(found.min, wanted.min);
    assert_int_equal(found.max, wanted.max);
    assert_int_equal(found.all, wanted.all);
}

static void counts_are_read(void **state)
{
    static const struct {
        const char *text;
        struct device_count count;
    } cases[] = {
        {"1", {1, 1, false}},
        {"8", {8, 8, false}},
        {"008", {8, 8, false}},
        {"1000000", {REQUEST_COUNT_MAX, REQUEST_COUNT_MAX, false}},
        {"2-4", {2, 4, false}},
        {"2-2", {2, 2, false}},
        {"1-1000000", {1, REQUEST_COUNT_MAX, false}},
        {"02-04", {2, 4, false}},
        {"all", {0, 0, true}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct berth_error error = BERTH_ERROR_INIT;
        struct device_count count = untouched;

        assert_int_equal(request_parse_device_count(cases[i].text, &count, &error), 0);
        check_equal(count, cases[i].count);
        assert_string_equal(error.message, "");
    }
}

static void other_texts_are_refused(void **state)
{
    static const struct {
        const char *text;
        int code;
        const char *message;
    } cases[] = {
        {"", BERTH_ERROR_SYNTAX, FORMS "''"},
        {"x", BERTH_ERROR_SYNTAX, FORMS "'x'"},
        {"ALL", BERTH_ERROR_SYNTAX, FORMS "'ALL'"},
        {"all ", BERTH_ERROR_SYNTAX, FORMS "'all '"},
        {"all-4", BERTH_ERROR_SYNTAX, FORMS "'all-4'"},
        {"2-all", BERTH_ERROR_SYNTAX, FORMS "'2-all'"},
        {" 2", BERTH_ERROR_SYNTAX, FORMS "' 2'"},
        {"2 ", BERTH_ERROR_SYNTAX, FORMS "'2 '"},
        {"2 - 4", BERTH_ERROR_SYNTAX, FORMS "'2 - 4'"},
        {"+2", BERTH_ERROR_SYNTAX, FORMS "'+2'"},
        {"2.0", BERTH_ERROR_SYNTAX, FORMS "'2.0'"},
        {"0x2", BERTH_ERROR_SYNTAX, FORMS "'0x2'"},
        {"2..4", BERTH_ERROR_SYNTAX, FORMS "'2..4'"},
        {"-", BERTH_ERROR_SYNTAX, FORMS "'-'"},
        {"-2", BERTH_ERROR_SYNTAX, FORMS "'-2'"},
        {"-2-4", BERTH_ERROR_SYNTAX, FORMS "'-2-4'"},
        {"2-", BERTH_ERROR_SYNTAX, FORMS "'2-'"},
        {"2--4", BERTH_ERROR_SYNTAX, FORMS "'2--4'"},
        {"2-4-", BERTH_ERROR_SYNTAX, FORMS "'2-4-'"},
        {"2-4-8", BERTH_ERROR_SYNTAX, FORMS "'2-4-8'"},
        {"2-------------------------", BERTH_ERROR_SYNTAX, FORMS "'2-------------------------'"},
        {"2\n", BERTH_ERROR_SYNTAX, FORMS "'2?'"},
        {"0", BERTH_ERROR_RANGE, NUMBERS "0"},
        {"0-4", BERTH_ERROR_RANGE, NUMBERS "0"},
        {"2-0", BERTH_ERROR_RANGE, NUMBERS "0"},
        {"1000001", BERTH_ERROR_RANGE, NUMBERS "1000001"},
        {"2-1000001", BERTH_ERROR_RANGE, NUMBERS "1000001"},
        {"4294967297", BERTH_ERROR_RANGE, NUMBERS "4294967297"},
        {"18446744073709551617", BERTH_ERROR_RANGE, NUMBERS "'18446744073709551617'"},
        {"18446744073709551617000", BERTH_ERROR_RANGE, NUMBERS "'18446744073709551617000'"},
        {"184467440737095516170000", BERTH_ERROR_RANGE,
         "expected at most 1000000 devices, got '184467440737095516170000'"},
        {"1-184467440737095516170000", BERTH_ERROR_RANGE,
         "expected at most 1000000 devices, got '184467440737095516170000'"},
        {"4-2", BERTH_ERROR_RANGE, ORDER "'4-2'"},
        {"10-9", BERTH_ERROR_RANGE, ORDER "'10-9'"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct berth_error error = BERTH_ERROR_INIT;
        struct device_count count = untouched;

        assert_fails(request_parse_device_count(cases[i].text, &count, &error), cases[i].code,
                     &error, cases[i].message);
        assert_int_equal(request_parse_device_count(cases[i].text, &count, NULL), cases[i].code);
        check_equal(count, untouched);
    }
}

static void random_counts_come_back(void **state)
{
    struct test_random random = {12};

    (void)state;
    for (unsigned long step = test_steps(20000); step > 0; step--) {
        uint64_t min = test_random_any_length(&random) % (2 * REQUEST_COUNT_MAX);
        uint64_t max = test_random_any_length(&random) % (2 * REQUEST_COUNT_MAX);
        struct device_count count = untouched;
        bool good = min >= 1 && min <= max && max <= REQUEST_COUNT_MAX;
        char text[48];

        snprintf(text, sizeof(text), "%" PRIu64 "-%" PRIu64, min, max);
        assert_int_equal(request_parse_device_count(text, &count, NULL),
                         good ? 0 : BERTH_ERROR_RANGE);
        if (good)
            check_equal(count, (struct device_count){(uint32_t)min, (uint32_t)max, false});
        else
            check_equal(count, untouched);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_read),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(random_counts_come_back),
    };

    return cmocka_run_group_tests_name("device_count", tests, NULL, NULL);
}
