/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/text/quote.h"

#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/text/utf8.h"
#include "support/random.h"
#include "support/steps.h"

/* The longest text that is shown whole. */
enum { WHOLE = 60 };

static void short_text_is_shown_whole(void **state)
{
    (void)state;
    assert_string_equal(quote("").text, "''");
    assert_string_equal(quote("8Gx").text, "'8Gx'");
    assert_string_equal(quote("it's").text, "'it's'");
    assert_string_equal(quote("gr\xc3\xbc\xc3\x9f").text, "'gr\xc3\xbc\xc3\x9f'");
    assert_string_equal(quote("100%s").text, "'100%s'");
}

static void two_fit_into_one_expression(void **state)
{
    char both[200];

    (void)state;
    snprintf(both, sizeof(both), "%s and %s", quote("one").text, quote("two").text);
    assert_string_equal(both, "'one' and 'two'");
}

static void what_could_steer_a_terminal_is_replaced(void **state)
{
    (void)state;
    assert_string_equal(quote("a\nb\x1b[0m\x7f").text, "'a?b?[0m?'");
    assert_string_equal(quote("\xff.\xc3").text, "'?.?'");
}

static void bytes_need_no_terminator(void **state)
{
    (void)state;
    assert_string_equal(quote_bytes("abcdef", 3).text, "'abc'");
    assert_string_equal(quote_bytes("a\0b", 3).text, "'a?b'");
    assert_string_equal(quote_bytes("a\0", 2).text, "'a?'");
    assert_string_equal(quote_bytes("", 0).text, "''");
    assert_string_equal(quote_bytes(NULL, 0).text, "''");
    assert_string_equal(quote_bytes("\xc3\xbc", 1).text, "'?'");
}

static void long_text_is_cut(void **state)
{
    char text[WHOLE + 2];
    struct quoted quoted;

    (void)state;
    memset(text, 'a', sizeof(text));
    text[WHOLE] = '\0';
    quoted = quote(text);
    assert_int_equal(strlen(quoted.text), WHOLE + 2);
    assert_string_equal(quoted.text + WHOLE, "a'");
    text[WHOLE] = 'a';
    text[WHOLE + 1] = '\0';
    quoted = quote(text);
    assert_int_equal(strlen(quoted.text), WHOLE + 5);
    assert_string_equal(quoted.text + WHOLE, "a...'");
}

/* Shifts characters of every length over the place where the text is cut. */
static void a_cut_leaves_characters_whole(void **state)
{
    static const char *const characters[] = {"\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x9a\xa2"};

    (void)state;
    for (size_t i = 0; i < COUNT(characters); i++) {
        for (size_t lead = 0; lead < strlen(characters[i]); lead++) {
            char text[2 * WHOLE] = "";
            struct quoted quoted;

            memset(text, 'a', lead);
            while (strlen(text) <= WHOLE)
                strcat(text, characters[i]);
            quoted = quote(text);
            assert_true(utf8_is_valid(quoted.text, strlen(quoted.text)));
            assert_null(strchr(quoted.text, '?'));
            assert_true(strlen(quoted.text) > WHOLE + 5 - strlen(characters[i]));
            assert_string_equal(quoted.text + strlen(quoted.text) - 4, "...'");
        }
    }
}

static void random_bytes_come_out_inert(void **state)
{
    struct test_random random = {9};

    (void)state;
    for (unsigned long step = test_steps(20000); step > 0; step--) {
        char bytes[100];
        size_t length = test_random_below(&random, sizeof(bytes) + 1);
        struct quoted quoted;
        size_t shown;

        for (size_t i = 0; i < length; i++)
            bytes[i] = (char)test_random_next(&random);
        quoted = quote_bytes(bytes, length);
        shown = strlen(quoted.text);
        assert_true(shown >= 2 && shown <= WHOLE + 5);
        assert_true(utf8_is_valid(quoted.text, shown));
        for (size_t i = 0; i < shown; i++)
            assert_true((unsigned char)quoted.text[i] >= ' ');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_text_is_shown_whole),
        cmocka_unit_test(two_fit_into_one_expression),
        cmocka_unit_test(what_could_steer_a_terminal_is_replaced),
        cmocka_unit_test(bytes_need_no_terminator),
        cmocka_unit_test(long_text_is_cut),
        cmocka_unit_test(a_cut_leaves_characters_whole),
        cmocka_unit_test(random_bytes_come_out_inert),
    };

    return cmocka_run_group_tests_name("quote", tests, NULL, NULL);
}
