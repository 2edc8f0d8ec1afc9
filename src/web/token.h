/* SPDX-License-Identifier: Apache-2.0
 *
 * The secret token that a client must send to see the pool.
 */
#ifndef WEB_TOKEN_H
#define WEB_TOKEN_H

#include <berth/error.h>
#include <stdbool.h>

#include "base/text/span.h"
#include "web/http.h"

#define TOKEN_MIN 16
#define TOKEN_MAX 256

/* Zeroed memory: no token is needed. */
struct token {
    char text[TOKEN_MAX + 1];
    size_t length;
};

enum token_result {
    TOKEN_GOOD, /* also if no token is needed */
    TOKEN_MISSING,
    TOKEN_WRONG,
};

/* Reads the token from a file that has one line. Fails with BERTH_ERROR_INVALID if it is no regular
 * file, if other users may read or change it, or if it has no valid token; or as file_read(). */
int token_read(const char *path, struct token *ret_token, struct berth_error *error);

/* Returns whether these bytes are the token. The comparison time depends only on their length. */
bool token_equals(const struct token *token, struct span found);

/* Checks the token of a request: `Authorization: Bearer`. */
enum token_result token_check(const struct token *token, const struct http_request *request);

#endif
