/* SPDX-License-Identifier: Apache-2.0
 *
 * Quotes foreign text in messages.
 */
#ifndef BASE_TEXT_QUOTE_H
#define BASE_TEXT_QUOTE_H

#include <stddef.h>

struct quoted {
    char text[72];
};

/* Returns `string` in single quotes. Control characters and invalid UTF-8 become '?', and a string
 * of more than 60 bytes is cut and ends in "...". For use within one expression:
 * error_set(error, code, "got %s", quote(value).text). Never blocks or allocates. */
struct quoted quote(const char *string);

/* Quotes bytes in the same way. They need not be terminated and may include zero bytes. */
struct quoted quote_bytes(const char *bytes, size_t length);

#endif
