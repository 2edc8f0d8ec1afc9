/* SPDX-License-Identifier: Apache-2.0 */
#include "web/token.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/file.h"

static int check_file(int descriptor, const char *path, struct berth_error *error)
{
    struct stat status;

    if (fstat(descriptor, &status) != 0)
        return error_set_errno(error, errno, "cannot read %s", path);
    if (!S_ISREG(status.st_mode))
        return error_set(error, BERTH_ERROR_INVALID,
                         "%s: expected a regular file, got another kind", path);
    if ((status.st_mode & (S_IROTH | S_IWOTH | S_IWGRP)) != 0)
        return error_set(error, BERTH_ERROR_INVALID,
                         "%s: expected a file that others cannot read or change, got mode %04o "
                         "(use chmod 600)",
                         path, (unsigned)(status.st_mode & 07777));
    return 0;
}

static int parse_token(const char *path, const struct text *content, struct token *ret_token,
                       struct berth_error *error)
{
    struct span line = {text_string(content), content->length};
    struct token token = {0};

    span_drop_suffix(&line, "\n");
    span_drop_suffix(&line, "\r");
    if (line.length < TOKEN_MIN || line.length > TOKEN_MAX)
        return error_set(error, BERTH_ERROR_INVALID,
                         "%s: expected a token of %d to %d characters in one line, got %zu", path,
                         TOKEN_MIN, TOKEN_MAX, line.length);
    for (size_t i = 0; i < line.length; i++) {
        if (line.bytes[i] <= ' ' || line.bytes[i] > '~')
            return error_set(error, BERTH_ERROR_INVALID,
                             "%s: expected a token of printable characters without blanks, got "
                             "another at character %zu",
                             path, i + 1);
    }
    memcpy(token.text, line.bytes, line.length);
    token.length = line.length;
    *ret_token = token;
    return 0;
}

int token_read(const char *path, struct token *ret_token, struct berth_error *error)
{
    struct text content = {0};
    /* Opening a pipe must not block. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int code;

    if (descriptor < 0)
        return error_set_errno(error, errno, "cannot read %s", path);
    code = check_file(descriptor, path, error);
    if (code == 0)
        code = file_read_open(descriptor, path, 4096, &content, error);
    if (code == 0)
        code = parse_token(path, &content, ret_token, error);
    close(descriptor);
    if (content.bytes != NULL)
        explicit_bzero(content.bytes, content.length);
    text_finish(&content);
    return code;
}

bool token_equals(const struct token *token, struct span found)
{
    volatile unsigned char difference = token->length != found.length;

    for (size_t i = 0; i < found.length; i++) {
        unsigned char wanted = i < token->length ? (unsigned char)token->text[i] : 0;

        difference |= (unsigned char)(wanted ^ (unsigned char)found.bytes[i]);
    }
    return difference == 0 && token->length > 0;
}

enum token_result token_check(const struct token *token, const struct http_request *request)
{
    static const char scheme[] = "Bearer ";
    struct span found = request->authorization;

    if (token->length == 0)
        return TOKEN_GOOD;
    if (found.length == 0)
        return TOKEN_MISSING;
    if (found.length < sizeof(scheme) - 1 ||
        strncasecmp(found.bytes, scheme, sizeof(scheme) - 1) != 0)
        return TOKEN_WRONG;
    found.bytes += sizeof(scheme) - 1;
    found.length -= sizeof(scheme) - 1;
    return token_equals(token, span_trim(found)) ? TOKEN_GOOD : TOKEN_WRONG;
}
