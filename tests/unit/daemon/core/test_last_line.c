/* SPDX-License-Identifier: Apache-2.0
 *
 * The last line of a program's output.
 */
#include "support/unit.h"

#include <string.h>

#include "daemon/core/last_line.h"

static void assert_kept(const struct last_line *line, const char *wanted)
{
    struct text text = {0};

    last_line_append(line, &text);
    assert_string_equal(text_string(&text), wanted);
    text_finish(&text);
}

static void it_is_the_last_with_something_in_it(void **state)
{
    static const struct {
        const char *printed;
        const char *kept;
    } rows[] = {
        {"", ""},
        {"\n\n", ""},
        {" \t \n", ""},
        {"one", "one"},
        {"one\n", "one"},
        {"one\ntwo\n", "two"},
        {"one\n\n \r\n", "one"},
        {"one\ntwo", "two"},
        {"\n  one two \t\n\n", "one two"},
        {"10%\r20%\r", "20%"},
        {"a\033[31mb\n", "a\xef\xbf\xbd[31mb"},
        {"\xff\n", "\xef\xbf\xbd"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t length = strlen(rows[i].printed);

        /* The output may arrive in pieces of any size. */
        for (size_t piece = 1; piece <= length + 1; piece++) {
            struct last_line line = {0};

            for (size_t at = 0; at < length; at += piece)
                last_line_add(&line, rows[i].printed + at,
                              at + piece < length ? piece : length - at);
            assert_kept(&line, rows[i].kept);
        }
    }
}

static void zero_bytes_end_nothing(void **state)
{
    struct last_line line = {0};

    (void)state;
    last_line_add(&line, "\0a\0b\0\n", 6);
    assert_kept(&line, "a b");
}

static void a_long_line_is_cut(void **state)
{
    struct last_line line = {0};
    char wanted[LAST_LINE_MAX + 1];

    (void)state;
    for (int i = 0; i < 100000; i++)
        last_line_add(&line, "xy", 2);
    for (size_t i = 0; i < LAST_LINE_MAX; i++)
        wanted[i] = i % 2 == 0 ? 'x' : 'y';
    wanted[LAST_LINE_MAX] = '\0';
    assert_kept(&line, wanted);
    last_line_add(&line, "\nshort", 6);
    assert_kept(&line, "short");
}

static void no_character_is_cut_in_two(void **state)
{
    struct last_line line = {0};
    struct text text = {0};

    (void)state;
    last_line_add(&line, "x", 1);
    for (int i = 0; i < LAST_LINE_MAX; i++)
        last_line_add(&line, "\xc3\xa4", 2);
    last_line_append(&line, &text);
    assert_int_equal(text.length, LAST_LINE_MAX - 1);
    assert_null(strstr(text.bytes, "\xef\xbf\xbd"));
    text_finish(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_last_with_something_in_it),
        cmocka_unit_test(zero_bytes_end_nothing),
        cmocka_unit_test(a_long_line_is_cut),
        cmocka_unit_test(no_character_is_cut_in_two),
    };

    return cmocka_run_group_tests_name("last_line", tests, NULL, NULL);
}
