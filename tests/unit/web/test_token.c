/* SPDX-License-Identifier: Apache-2.0
 *
 * The token: its file, and requests with and without it.
 */
#include "support/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/count.h"
#include "support/assert_error.h"
#include "support/temporary_directory.h"
#include "web/token.h"

static void write_token(const char *content, size_t length, mode_t mode)
{
    FILE *file = fopen("token", "w");

    assert_non_null(file);
    assert_int_equal(fwrite(content, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod("token", mode), 0);
}

static int read_token(const char *content, mode_t mode, struct token *ret_token,
                      struct berth_error *error)
{
    write_token(content, strlen(content), mode);
    return token_read("token", ret_token, error);
}

static struct token token_of(const char *text)
{
    struct token token = {.length = strlen(text)};

    memcpy(token.text, text, token.length + 1);
    return token;
}

static void files_that_will_do(void **state)
{
    static const char *const contents[] = {
        "0123456789abcdef",
        "0123456789abcdef\n",
        "0123456789abcdef\r\n",
    };
    struct berth_error error = BERTH_ERROR_INIT;
    struct token token;

    (void)state;
    for (size_t i = 0; i < COUNT(contents); i++) {
        assert_int_equal(read_token(contents[i], 0600, &token, &error), 0);
        assert_string_equal(token.text, "0123456789abcdef");
        assert_int_equal(token.length, 16);
    }
    /* A file that the group may read is accepted on purpose. */
    assert_int_equal(read_token(contents[0], 0640, &token, &error), 0);
}

static void files_that_will_not(void **state)
{
    struct token token = {.length = 99};
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    assert_fails(read_token("short\n", 0600, &token, &error), BERTH_ERROR_INVALID, &error,
                 "token: expected a token of 16 to 256 characters in one line, got 5");
    assert_fails(read_token("0123456789 abcdef", 0600, &token, &error), BERTH_ERROR_INVALID, &error,
                 "token: expected a token of printable characters without blanks, got another at "
                 "character 11");
    assert_fails(read_token("0123456789abcdef", 0604, &token, &error), BERTH_ERROR_INVALID, &error,
                 "token: expected a file that others cannot read or change, got mode 0604 (use "
                 "chmod 600)");
    assert_fails(read_token("0123456789abcdef", 0620, &token, &error), BERTH_ERROR_INVALID, &error,
                 "token: expected a file that others cannot read or change, got mode 0620 (use "
                 "chmod 600)");
    write_token("0123456789abcde\0f", 17, 0600);
    assert_int_equal(token_read("token", &token, &error), BERTH_ERROR_INVALID);
    assert_fails(token_read(".", &token, &error), BERTH_ERROR_INVALID, &error,
                 ".: expected a regular file, got another kind");
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_int_equal(token_read("pipe", &token, &error), BERTH_ERROR_INVALID);
    assert_int_equal(token_read("none", &token, &error), BERTH_ERROR_NOT_FOUND);
    assert_int_equal(token.length, 99);
}

static enum token_result judge(const struct token *token, const char *authorization)
{
    struct http_request request = {.authorization = {authorization, strlen(authorization)}};

    return token_check(token, &request);
}

static void requests(void **state)
{
    struct token token = token_of("0123456789abcdef");
    struct token none = {0};

    (void)state;
    assert_int_equal(judge(&none, ""), TOKEN_GOOD);
    assert_int_equal(judge(&none, "Bearer x"), TOKEN_GOOD);
    assert_int_equal(judge(&token, ""), TOKEN_MISSING);
    assert_int_equal(judge(&token, "Bearer 0123456789abcdef"), TOKEN_GOOD);
    assert_int_equal(judge(&token, "bearer  0123456789abcdef "), TOKEN_GOOD);
    assert_int_equal(judge(&token, "Bearer 0123456789abcdeF"), TOKEN_WRONG);
    assert_int_equal(judge(&token, "Bearer 0123456789abcde"), TOKEN_WRONG);
    assert_int_equal(judge(&token, "Bearer 0123456789abcdef0"), TOKEN_WRONG);
    assert_int_equal(judge(&token, "Bearer "), TOKEN_WRONG);
    assert_int_equal(judge(&token, "Basic 0123456789abcdef"), TOKEN_WRONG);
    assert_int_equal(judge(&token, "0123456789abcdef"), TOKEN_WRONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_that_will_do, temporary_directory_enter,
                                        temporary_directory_leave),
        cmocka_unit_test_setup_teardown(files_that_will_not, temporary_directory_enter,
                                        temporary_directory_leave),
        cmocka_unit_test(requests),
    };

    return cmocka_run_group_tests_name("web token", tests, NULL, NULL);
}
