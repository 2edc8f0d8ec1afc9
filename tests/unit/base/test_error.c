/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/error.h"

#include <errno.h>
#include <string.h>
#include <wchar.h>

#include "base/count.h"
#include "base/text/utf8.h"
#include "support/assert_error.h"

enum { MESSAGE_MAX = BERTH_ERROR_MESSAGE_SIZE - 1 };

static void codes_have_descriptions(void **state)
{
    (void)state;
    assert_string_equal(berth_error_describe(0), "no error");
    assert_string_equal(berth_error_describe(1), "unknown error");
    assert_string_equal(berth_error_describe(-1000), "unknown error");
    assert_string_equal(berth_error_describe(BERTH_ERROR_INVALID), "invalid argument");
    assert_string_equal(berth_error_describe(BERTH_ERROR_PERMISSION), "permission denied");
}

static void codes_keep_their_numbers(void **state)
{
    (void)state;
    assert_int_equal(BERTH_ERROR_INVALID, -1);
    assert_int_equal(BERTH_ERROR_MEMORY, -2);
    assert_int_equal(BERTH_ERROR_IO, -3);
    assert_int_equal(BERTH_ERROR_NOT_FOUND, -4);
    assert_int_equal(BERTH_ERROR_SYNTAX, -5);
    assert_int_equal(BERTH_ERROR_RANGE, -6);
    assert_int_equal(BERTH_ERROR_LIMIT, -7);
    assert_int_equal(BERTH_ERROR_IMPOSSIBLE, -8);
    assert_int_equal(BERTH_ERROR_PERMISSION, -9);
}

static void set_replaces(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    assert_int_equal(error.code, 0);
    assert_string_equal(error.message, "");
    assert_fails(error_set(&error, BERTH_ERROR_RANGE, "expected %d, got %s", 1, "two"),
                 BERTH_ERROR_RANGE, &error, "expected 1, got two");
    assert_fails(error_set(&error, BERTH_ERROR_IO, "%s", "short"), BERTH_ERROR_IO, &error, "short");
    assert_fails(error_set(&error, BERTH_ERROR_IO, "again: %s", error.message), BERTH_ERROR_IO,
                 &error, "again: short");
}

static void wrap_puts_the_outside_first(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    error_set(&error, BERTH_ERROR_SYNTAX, "unknown key");
    assert_fails(error_wrap(&error, BERTH_ERROR_SYNTAX, "line %d", 3), BERTH_ERROR_SYNTAX, &error,
                 "line 3: unknown key");
    assert_fails(error_wrap(&error, BERTH_ERROR_INVALID, "%s", "machine.yaml"), BERTH_ERROR_INVALID,
                 &error, "machine.yaml: line 3: unknown key");
}

static void wrapping_nothing_is_the_prefix(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    assert_fails(error_wrap(&error, BERTH_ERROR_IO, "machine.yaml"), BERTH_ERROR_IO, &error,
                 "machine.yaml");
}

static void errno_becomes_a_code(void **state)
{
    static const struct {
        int number;
        int code;
        const char *message;
    } cases[] = {
        {EACCES, BERTH_ERROR_PERMISSION, "/dev/x: Permission denied"},
        {EPERM, BERTH_ERROR_PERMISSION, "/dev/x: Operation not permitted"},
        {ENOENT, BERTH_ERROR_NOT_FOUND, "/dev/x: No such file or directory"},
        {ENOTDIR, BERTH_ERROR_NOT_FOUND, "/dev/x: Not a directory"},
        {ENOMEM, BERTH_ERROR_MEMORY, "/dev/x: Cannot allocate memory"},
        {EIO, BERTH_ERROR_IO, "/dev/x: Input/output error"},
        {123456, BERTH_ERROR_IO, "/dev/x: Unknown error 123456"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct berth_error error = {BERTH_ERROR_LIMIT, "an older one"};

        assert_fails(error_set_errno(&error, cases[i].number, "%s", "/dev/x"), cases[i].code,
                     &error, cases[i].message);
        assert_int_equal(error_set_errno(NULL, cases[i].number, "x"), cases[i].code);
    }
}

static void no_buffer_passes_the_code_on(void **state)
{
    (void)state;
    assert_int_equal(error_set(NULL, BERTH_ERROR_RANGE, "%d", 1), BERTH_ERROR_RANGE);
    assert_int_equal(error_wrap(NULL, BERTH_ERROR_SYNTAX, "%d", 1), BERTH_ERROR_SYNTAX);
    assert_int_equal(error_set_memory(NULL), BERTH_ERROR_MEMORY);
}

static void memory_has_its_message(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    assert_fails(error_set_memory(&error), BERTH_ERROR_MEMORY, &error, "out of memory");
}

static void messages_cannot_steer_a_terminal(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    error_set(&error, BERTH_ERROR_IO, "a\nb\r\tc\x1b[31m\x7f");
    assert_string_equal(error.message, "a?b??c?[31m?");
    error_set(&error, BERTH_ERROR_IO, "broken \xff\xc3 end");
    assert_string_equal(error.message, "broken ?? end");
    error_set(&error, BERTH_ERROR_IO, "gr\xc3\xbc\xc3\x9f \xf0\x9f\x9a\xa2");
    assert_string_equal(error.message, "gr\xc3\xbc\xc3\x9f \xf0\x9f\x9a\xa2");
    error_wrap(&error, BERTH_ERROR_IO, "a\nb");
    assert_string_equal(error.message, "a?b: gr\xc3\xbc\xc3\x9f \xf0\x9f\x9a\xa2");
}

static void a_message_that_just_fits_stays(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    char message[MESSAGE_MAX + 2];

    (void)state;
    memset(message, 'a', sizeof(message));
    message[MESSAGE_MAX] = '\0';
    error_set(&error, BERTH_ERROR_IO, "%s", message);
    assert_string_equal(error.message, message);
    message[MESSAGE_MAX] = 'a';
    message[MESSAGE_MAX + 1] = '\0';
    error_set(&error, BERTH_ERROR_IO, "%s", message);
    assert_int_equal(strlen(error.message), MESSAGE_MAX);
    assert_string_equal(error.message + MESSAGE_MAX - 4, "a...");
}

/* Shifts characters of every length over the place where the message is cut. */
static void a_cut_leaves_characters_whole(void **state)
{
    static const char *const characters[] = {"\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x9a\xa2"};
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    for (size_t i = 0; i < COUNT(characters); i++) {
        size_t width = strlen(characters[i]);

        for (size_t lead = 0; lead < width; lead++) {
            char message[2 * BERTH_ERROR_MESSAGE_SIZE] = "";
            size_t length;

            memset(message, 'a', lead);
            while (strlen(message) <= MESSAGE_MAX)
                strcat(message, characters[i]);
            error_set(&error, BERTH_ERROR_IO, "%s", message);
            length = strlen(error.message);
            assert_true(length <= MESSAGE_MAX && length + width > MESSAGE_MAX);
            assert_true(utf8_is_valid(error.message, length));
            assert_null(strchr(error.message, '?'));
            assert_memory_equal(error.message, message, length - 3);
            assert_string_equal(error.message + length - 3, "...");
        }
    }
}

static void wrapping_a_long_message_keeps_the_head(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    char tail[MESSAGE_MAX + 1], head[4 * BERTH_ERROR_MESSAGE_SIZE];

    (void)state;
    memset(tail, 't', sizeof(tail));
    tail[MESSAGE_MAX] = '\0';
    memset(head, 'h', sizeof(head));
    head[sizeof(head) - 1] = '\0';
    error_set(&error, BERTH_ERROR_IO, "%s", tail);
    error_wrap(&error, BERTH_ERROR_IO, "machine.yaml");
    assert_memory_equal(error.message, "machine.yaml: tttt", 18);
    assert_string_equal(error.message + MESSAGE_MAX - 4, "t...");
    error_wrap(&error, BERTH_ERROR_IO, "%s", head);
    assert_memory_equal(error.message, head, MESSAGE_MAX - 3);
    assert_string_equal(error.message + MESSAGE_MAX - 4, "h...");
    error_set_errno(&error, EIO, "%s", head);
    assert_string_equal(error.message + MESSAGE_MAX - 4, "h...");
}

static void what_cannot_be_formatted_leaves_the_format(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    const wint_t no_character = 0x110000;

    (void)state;
    assert_fails(error_set(&error, BERTH_ERROR_IO, "got %lc", no_character), BERTH_ERROR_IO, &error,
                 "got %lc");
    assert_fails(error_wrap(&error, BERTH_ERROR_IO, "line %lc", no_character), BERTH_ERROR_IO,
                 &error, "line %lc: got %lc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_have_descriptions),
        cmocka_unit_test(codes_keep_their_numbers),
        cmocka_unit_test(set_replaces),
        cmocka_unit_test(wrap_puts_the_outside_first),
        cmocka_unit_test(wrapping_nothing_is_the_prefix),
        cmocka_unit_test(errno_becomes_a_code),
        cmocka_unit_test(no_buffer_passes_the_code_on),
        cmocka_unit_test(memory_has_its_message),
        cmocka_unit_test(messages_cannot_steer_a_terminal),
        cmocka_unit_test(a_message_that_just_fits_stays),
        cmocka_unit_test(a_cut_leaves_characters_whole),
        cmocka_unit_test(wrapping_a_long_message_keeps_the_head),
        cmocka_unit_test(what_cannot_be_formatted_leaves_the_format),
    };

    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
