/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "model/machine/capability.h"

#include <stdio.h>

#include "base/count.h"
#include "support/assert_error.h"
#include "support/random.h"
#include "support/steps.h"

static const struct capability untouched = {false, 47, 11};

static struct capability of(unsigned major, unsigned minor)
{
    return (struct capability){true, (uint16_t)major, (uint16_t)minor};
}

static void check_equal(struct capability found, struct capability wanted)
{
    assert_int_equal(found.known, wanted.known);
    assert_int_equal(found.major, wanted.major);
    assert_int_equal(found.minor, wanted.minor);
}

static void capabilities_are_written(void **state)
{
    (void)state;
    assert_string_equal(capability_format(of(8, 0)).text, "8.0");
    assert_string_equal(capability_format(of(8, 10)).text, "8.10");
    assert_string_equal(capability_format(of(0, 0)).text, "0.0");
    assert_string_equal(capability_format(of(999, 999)).text, "999.999");
    assert_string_equal(capability_format(of(UINT16_MAX, UINT16_MAX)).text, "65535.65535");
}

static void capabilities_are_read(void **state)
{
    static const struct {
        const char *text;
        struct capability capability;
    } cases[] = {
        {"8.0", {true, 8, 0}},   {"8", {true, 8, 0}},     {"8.6", {true, 8, 6}},
        {"8.10", {true, 8, 10}}, {"12.1", {true, 12, 1}}, {"0", {true, 0, 0}},
        {"0.0", {true, 0, 0}},   {"999", {true, 999, 0}}, {"999.999", {true, 999, 999}},
        {"8.06", {true, 8, 6}},  {"0.001", {true, 0, 1}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct berth_error error = BERTH_ERROR_INIT;
        struct capability capability = untouched;

        assert_int_equal(capability_parse(cases[i].text, &capability, &error), 0);
        check_equal(capability, cases[i].capability);
        assert_string_equal(error.message, "");
    }
}

static void other_texts_are_refused(void **state)
{
    static const char *const texts[] = {
        "",      ".",    "8.",     ".0",      "8.0.",
        "8.0.0", "8,0",  " 8.0",   "8.0 ",    "-8.0",
        "+8.0",  "8.-1", "8.x",    "x",       "8.0a",
        "sm_80", "1000", "1000.0", "8.1000",  "8 .0",
        "8..0",  "0x8",  "8e0",    "65536.0", "18446744073709551616",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct berth_error error = BERTH_ERROR_INIT;
        struct capability capability = untouched;
        char message[128];

        snprintf(message, sizeof(message), "expected a compute capability such as 8.0, got '%s'",
                 texts[i]);
        assert_fails(capability_parse(texts[i], &capability, &error), BERTH_ERROR_SYNTAX, &error,
                     message);
        assert_int_equal(capability_parse(texts[i], &capability, NULL), BERTH_ERROR_SYNTAX);
        check_equal(capability, untouched);
    }
}

static struct capability random_capability(struct test_random *random)
{
    return of((unsigned)(test_random_any_length(random) % 1000),
              (unsigned)(test_random_any_length(random) % 1000));
}

static void random_capabilities_come_back(void **state)
{
    struct test_random random = {5};

    (void)state;
    for (unsigned long step = test_steps(20000); step > 0; step--) {
        struct capability capability = random_capability(&random);
        struct capability again = untouched;

        assert_int_equal(capability_parse(capability_format(capability).text, &again, NULL), 0);
        check_equal(again, capability);
    }
}

static void the_minor_is_a_number_and_no_fraction(void **state)
{
    (void)state;
    assert_true(capability_is_at_least(of(8, 10), of(8, 9)));
    assert_false(capability_is_at_least(of(8, 9), of(8, 10)));
    assert_true(capability_is_at_least(of(10, 0), of(9, 9)));
    assert_false(capability_is_at_least(of(9, 9), of(10, 0)));
    assert_true(capability_is_at_least(of(8, 6), of(8, 6)));
    assert_true(capability_is_at_least(of(0, 0), of(0, 0)));
}

static void an_unknown_one_is_below_all(void **state)
{
    (void)state;
    assert_false(capability_is_at_least((struct capability){0}, of(0, 0)));
    assert_false(capability_is_at_least((struct capability){false, 9, 0}, of(8, 0)));
}

static void random_capabilities_are_ordered(void **state)
{
    struct test_random random = {6};

    (void)state;
    for (unsigned long step = test_steps(20000); step > 0; step--) {
        struct capability one = random_capability(&random);
        struct capability other = random_capability(&random);

        if (test_random_below(&random, 2) == 0)
            other.major = one.major;
        assert_int_equal(capability_is_at_least(one, other),
                         one.major * 1000 + one.minor >= other.major * 1000 + other.minor);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(capabilities_are_written),
        cmocka_unit_test(capabilities_are_read),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(random_capabilities_come_back),
        cmocka_unit_test(the_minor_is_a_number_and_no_fraction),
        cmocka_unit_test(an_unknown_one_is_below_all),
        cmocka_unit_test(random_capabilities_are_ordered),
    };

    return cmocka_run_group_tests_name("capability", tests, NULL, NULL);
}
