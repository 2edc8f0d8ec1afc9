/* SPDX-License-Identifier: Apache-2.0
 *
 * Somebody's text as part of one of our sentences.
 */
#ifndef BASE_TEXT_QUOTE_H
#define BASE_TEXT_QUOTE_H

#include <stddef.h>

struct quoted {
    char text[72];
};

/* `string` in single quotes, inert and cut to about 60 bytes with "...", for use within one
 * expression: error_set(error, code, "got %s", quote(value).text). Never blocks or allocates. */
struct quoted quote(const char *string);

/* The same for bytes that need not be terminated and may hold zero bytes. */
struct quoted quote_bytes(const char *bytes, size_t length);

#endif
