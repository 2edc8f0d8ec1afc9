/* SPDX-License-Identifier: Apache-2.0
 *
 * The token that whoever wants to see the pool has to know.
 */
#ifndef WEB_TOKEN_H
#define WEB_TOKEN_H

#include <berth/error.h>
#include <stdbool.h>

#include "base/text/span.h"
#include "base/text/text.h"
#include "web/http.h"

#define TOKEN_MIN    16
#define TOKEN_MAX    256
#define TOKEN_COOKIE "berth_token"

/* Zeroed memory: none is wanted. */
struct token {
    char text[TOKEN_MAX + 1];
    size_t length;
};

enum token_result {
    TOKEN_GOOD, /* also where none is wanted */
    TOKEN_MISSING,
    TOKEN_WRONG,
};

/* Reads it from a file: its first and only line. Fails with BERTH_ERROR_INVALID when that is no
 * regular file, others may read it, or it holds something else; or as file_read. */
int token_read(const char *path, struct token *ret_token, struct berth_error *error);

/* Whether these bytes are the token. Takes as long for one that is nearly right as for any of the
 * same length. */
bool token_equals(const struct token *token, struct span found);

/* What a request brings with it: `Authorization: Bearer`, or the cookie. */
enum token_result token_check(const struct token *token, const struct http_request *request);

/* Appends the headers that give a browser the cookie, or take it away. */
void token_append_cookie(const struct token *token, struct text *out);
void token_append_no_cookie(struct text *out);

#endif
