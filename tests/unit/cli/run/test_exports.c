/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "cli/run/exports.h"

static void check(char *const *before, char *const *after, const char *wanted)
{
    struct text out = {0};

    exports_write(before, after, &out);
    assert_string_equal(text_string(&out), wanted);
    text_finish(&out);
}

/* Environments of up to three entries. */
#define LIST(...) ((char *[4]){__VA_ARGS__})

static void nothing_changes(void **state)
{
    (void)state;
    check(LIST(NULL), LIST(NULL), "");
    check(LIST((char *)"A=1", (char *)"B="), LIST((char *)"B=", (char *)"A=1"), "");
}

static void what_is_new_or_other_is_exported(void **state)
{
    (void)state;
    check(LIST((char *)"A=1", (char *)"AB=2"), LIST((char *)"A=2", (char *)"AB=2", (char *)"C="),
          "export A='2'\nexport C=''\n");
}

static void what_is_gone_is_unset(void **state)
{
    (void)state;
    check(LIST((char *)"A=1", (char *)"AB=2"), LIST((char *)"AB=2"), "unset A\n");
    check(LIST((char *)"AB=2"), LIST((char *)"A=x"), "unset AB\nexport A='x'\n");
}

static void values_are_quoted(void **state)
{
    (void)state;
    check(LIST(NULL), LIST((char *)"A=it's $HOME; `id`\n\"x\"\\=1"),
          "export A='it'\\''s $HOME; `id`\n\"x\"\\=1'\n");
    check(LIST(NULL), LIST((char *)"A='"), "export A=''\\'''\n");
}

static void entries_without_a_value_are_passed_over(void **state)
{
    (void)state;
    check(LIST((char *)"A"), LIST((char *)"B"), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_changes),
        cmocka_unit_test(what_is_new_or_other_is_exported),
        cmocka_unit_test(what_is_gone_is_unset),
        cmocka_unit_test(values_are_quoted),
        cmocka_unit_test(entries_without_a_value_are_passed_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
