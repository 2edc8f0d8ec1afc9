/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/text/text.h"

#include <berth/error.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "support/failing_allocator.h"
#include "support/random.h"
#include "support/steps.h"

static void an_empty_text_is_an_empty_string(void **state)
{
    struct text text = {0};

    (void)state;
    assert_string_equal(text_string(&text), "");
    assert_false(text_failed(&text));
    text_clear(&text);
    assert_null(text.bytes);
    text_finish(&text);
    text_finish(&text);
}

static void appending_adds_at_the_end(void **state)
{
    struct text text = {0};

    (void)state;
    text_append(&text, "one");
    text_append(&text, "");
    text_append_char(&text, ',');
    text_append_bytes(&text, "two-three", 3);
    text_append_repeated(&text, '.', 3);
    text_append_repeated(&text, '!', 0);
    text_append_format(&text, "%d%s", 4, "five");
    assert_string_equal(text_string(&text), "one,two...4five");
    assert_int_equal(text.length, strlen("one,two...4five"));
    text_finish(&text);
    assert_string_equal(text_string(&text), "");
}

static void zero_bytes_are_kept(void **state)
{
    struct text text = {0};

    (void)state;
    text_append_bytes(&text, "a\0b", 3);
    text_append_char(&text, '\0');
    assert_int_equal(text.length, 4);
    assert_memory_equal(text_string(&text), "a\0b\0", 5);
    text_append_bytes(&text, NULL, 0);
    assert_int_equal(text.length, 4);
    text_finish(&text);
}

static void long_formats_fit(void **state)
{
    struct text text = {0};

    (void)state;
    text_append_format(&text, "%*d|%s", 1000, 7, "end");
    assert_int_equal(text.length, 1004);
    assert_string_equal(text_string(&text) + 998, " 7|end");
    text_finish(&text);
}

static void clear_keeps_the_memory(void **state)
{
    struct text text = {0};
    const char *bytes;

    (void)state;
    text_append(&text, "something");
    bytes = text.bytes;
    text_clear(&text);
    assert_string_equal(text_string(&text), "");
    assert_int_equal(text.length, 0);
    text_append(&text, "else");
    assert_ptr_equal(text.bytes, bytes);
    assert_string_equal(text_string(&text), "else");
    text_finish(&text);
}

static void take_hands_the_string_over(void **state)
{
    struct text text = {0};
    char *taken;

    (void)state;
    text_append(&text, "mine");
    taken = text_detach(&text);
    assert_string_equal(taken, "mine");
    free(taken);
    assert_null(text.bytes);
    assert_string_equal(text_string(&text), "");
    taken = text_detach(&text);
    assert_string_equal(taken, "");
    free(taken);
}

/* Returns a text that contains "before", and whose next append failed. */
static struct text failed_text(void)
{
    struct text text = {0};

    text_append(&text, "before");
    failing_allocator_start(1);
    text_append_repeated(&text, 'x', 1000);
    failing_allocator_stop();
    return text;
}

static void a_failure_is_remembered_until_cleared(void **state)
{
    struct text text = failed_text();

    (void)state;
    assert_true(text_failed(&text));
    text_append(&text, "!");
    text_append_char(&text, '!');
    text_append_bytes(&text, "!", 1);
    text_append_repeated(&text, '!', 1);
    text_append_format(&text, "!");
    assert_string_equal(text_string(&text), "before");
    text_clear(&text);
    assert_false(text_failed(&text));
    text_append(&text, "after");
    assert_string_equal(text_string(&text), "after");
    text_finish(&text);
}

static void take_after_a_failure_is_null(void **state)
{
    struct text text = failed_text();

    (void)state;
    assert_null(text_detach(&text));
    assert_false(text_failed(&text));
    assert_string_equal(text_string(&text), "");
    failing_allocator_start(1);
    assert_null(text_detach(&text));
    failing_allocator_stop();
}

static void an_absurd_length_is_a_failure(void **state)
{
    struct text text = {0};

    (void)state;
    text_append(&text, "abc");
    text_append_repeated(&text, 'x', SIZE_MAX);
    assert_true(text_failed(&text));
    text_clear(&text);
    text_append(&text, "abc");
    text_append_repeated(&text, 'x', SIZE_MAX - 3);
    assert_true(text_failed(&text));
    assert_string_equal(text_string(&text), "abc");
    text_finish(&text);
}

static void what_cannot_be_formatted_is_a_failure(void **state)
{
    struct text text = {0};
    const wint_t no_character = 0x110000;

    (void)state;
    text_append(&text, "abc");
    text_append_format(&text, "%lc", no_character);
    assert_true(text_failed(&text));
    assert_string_equal(text_string(&text), "abc");
    text_finish(&text);
}

enum { MODEL_SIZE = 4096 };

static void append_random(struct test_random *random, struct text *text, char *model)
{
    size_t length = strlen(model);
    size_t times = test_random_below(random, 40);
    char piece[41];

    memset(piece, (int)('a' + test_random_below(random, 26)), sizeof(piece));
    piece[times] = '\0';
    strcpy(model + length, piece);
    switch (test_random_below(random, 4)) {
    case 0:
        text_append(text, piece);
        break;
    case 1:
        text_append_bytes(text, piece, times);
        break;
    case 2:
        text_append_format(text, "%s", piece);
        break;
    default:
        text_append_repeated(text, piece[0], times);
        break;
    }
}

static void random_appends_agree_with_a_model(void **state)
{
    struct test_random random = {8};
    struct text text = {0};
    char model[MODEL_SIZE] = "";

    (void)state;
    for (unsigned long step = test_steps(20000); step > 0; step--) {
        if (strlen(model) > MODEL_SIZE - 50) {
            model[0] = '\0';
            if (test_random_below(&random, 2) == 0)
                text_clear(&text);
            else
                text_finish(&text);
        }
        append_random(&random, &text, model);
        assert_int_equal(text.length, strlen(model));
        assert_string_equal(text_string(&text), model);
    }
    text_finish(&text);
}

static int append_and_take(void *context)
{
    struct text text = {0};
    char *taken;

    (void)context;
    text_append(&text, "one");
    text_append_repeated(&text, ' ', 100);
    text_append_format(&text, "%500d", 1);
    text_append_bytes(&text, "two", 3);
    taken = text_detach(&text);
    if (taken == NULL)
        return BERTH_ERROR_MEMORY;
    free(taken);
    return 0;
}

static void numbers_are_decimal(void **state)
{
    struct text text = {0};

    (void)state;
    text_append_number(&text, 0);
    text_append_char(&text, ' ');
    text_append_number(&text, 1090);
    text_append_char(&text, ' ');
    text_append_number(&text, UINT64_MAX);
    assert_string_equal(text_string(&text), "0 1090 18446744073709551615");
    text_finish(&text);
}

static void null_equals_only_null(void **state)
{
    (void)state;
    assert_true(text_equals(NULL, NULL));
    assert_false(text_equals(NULL, ""));
    assert_false(text_equals("", NULL));
    assert_true(text_equals("", ""));
    assert_false(text_equals("a", "ab"));
}

static void out_of_memory_is_reported(void **state)
{
    (void)state;
    assert_true(failing_allocator_try_all(append_and_take, NULL) >= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_text_is_an_empty_string),
        cmocka_unit_test(appending_adds_at_the_end),
        cmocka_unit_test(zero_bytes_are_kept),
        cmocka_unit_test(long_formats_fit),
        cmocka_unit_test(clear_keeps_the_memory),
        cmocka_unit_test(take_hands_the_string_over),
        cmocka_unit_test(a_failure_is_remembered_until_cleared),
        cmocka_unit_test(take_after_a_failure_is_null),
        cmocka_unit_test(an_absurd_length_is_a_failure),
        cmocka_unit_test(what_cannot_be_formatted_is_a_failure),
        cmocka_unit_test(random_appends_agree_with_a_model),
        cmocka_unit_test(numbers_are_decimal),
        cmocka_unit_test(null_equals_only_null),
        cmocka_unit_test(out_of_memory_is_reported),
    };

    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
