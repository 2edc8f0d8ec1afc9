/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/text/choice.h"

#include <string.h>

#include "base/count.h"
#include "support/assert_error.h"
#include "support/failing_allocator.h"

#define UNTOUCHED 4711

static const struct choice classes[] = {
    {"low", 3}, {"normal", 0}, {"high", -7}, {"urgent", -7}, {0},
};

static const struct choice lonely[] = {{"alone", 1}, {0}};

static const struct choice none[] = {{0}};

static void values_have_names(void **state)
{
    (void)state;
    assert_string_equal(choice_name(classes, 3), "low");
    assert_string_equal(choice_name(classes, 0), "normal");
    assert_string_equal(choice_name(lonely, 1), "alone");
}

static void of_two_names_the_first_is_given(void **state)
{
    (void)state;
    assert_string_equal(choice_name(classes, -7), "high");
}

static void other_values_have_none(void **state)
{
    (void)state;
    assert_null(choice_name(classes, 1));
    assert_null(choice_name(classes, INT32_MAX));
    /* The end of a table has the value 0 and is no choice. */
    assert_null(choice_name(lonely, 0));
    assert_null(choice_name(none, 0));
}

static void names_are_found(void **state)
{
    (void)state;
    for (const struct choice *choice = classes; choice->name != NULL; choice++) {
        struct berth_error error = BERTH_ERROR_INIT;
        char copy[16];
        int value = UNTOUCHED;

        strcpy(copy, choice->name);
        assert_int_equal(choice_parse(classes, copy, &value, &error), 0);
        assert_int_equal(value, choice->value);
        assert_string_equal(error.message, "");
    }
}

static void other_names_are_refused(void **state)
{
    static const struct {
        const struct choice *table;
        const char *name;
        const char *message;
    } cases[] = {
        {classes, "hihg",
         "expected one of low, normal, high, urgent, got 'hihg' (did you mean high?)"},
        {classes, "Low",
         "expected one of low, normal, high, urgent, got 'Low' (did you mean low?)"},
        {classes, "norma",
         "expected one of low, normal, high, urgent, got 'norma' (did you mean normal?)"},
        {classes, "lowest", "expected one of low, normal, high, urgent, got 'lowest'"},
        {classes, "", "expected one of low, normal, high, urgent, got ''"},
        {classes, " low",
         "expected one of low, normal, high, urgent, got ' low' (did you mean low?)"},
        {classes, "a\nb", "expected one of low, normal, high, urgent, got 'a?b'"},
        {lonely, "alien", "expected one of alone, got 'alien' (did you mean alone?)"},
        {lonely, "x", "expected one of alone, got 'x'"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct berth_error error = BERTH_ERROR_INIT;
        int value = UNTOUCHED;

        assert_fails(choice_parse(cases[i].table, cases[i].name, &value, &error),
                     BERTH_ERROR_INVALID, &error, cases[i].message);
        assert_int_equal(choice_parse(cases[i].table, cases[i].name, &value, NULL),
                         BERTH_ERROR_INVALID);
        assert_int_equal(value, UNTOUCHED);
    }
}

static void check_list(const struct choice *table, const char *separator, const char *wanted)
{
    struct text text = {0};

    text_append(&text, "(");
    choice_list(&text, table, separator);
    text_append(&text, ")");
    assert_string_equal(text_string(&text), wanted);
    text_finish(&text);
}

static void all_names_are_listed(void **state)
{
    (void)state;
    check_list(classes, "|", "(low|normal|high|urgent)");
    check_list(classes, ", ", "(low, normal, high, urgent)");
    check_list(classes, "", "(lownormalhighurgent)");
    check_list(lonely, "|", "(alone)");
    check_list(none, "|", "()");
}

/* Finding a name needs no memory; only the message for an unknown name does. */
static int refuse(void *context)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int value = UNTOUCHED;
    int code;

    (void)context;
    assert_int_equal(choice_parse(classes, "urgent", &value, &error), 0);
    value = UNTOUCHED;
    code = choice_parse(classes, "hihg", &value, &error);
    assert_int_equal(value, UNTOUCHED);
    if (code != BERTH_ERROR_MEMORY)
        return code == BERTH_ERROR_INVALID ? 0 : code;
    assert_string_equal(error.message, "out of memory");
    return code;
}

static void out_of_memory_is_reported(void **state)
{
    (void)state;
    assert_true(failing_allocator_try_all(refuse, NULL) >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_have_names),
        cmocka_unit_test(of_two_names_the_first_is_given),
        cmocka_unit_test(other_values_have_none),
        cmocka_unit_test(names_are_found),
        cmocka_unit_test(other_names_are_refused),
        cmocka_unit_test(all_names_are_listed),
        cmocka_unit_test(out_of_memory_is_reported),
    };

    return cmocka_run_group_tests_name("choice", tests, NULL, NULL);
}
