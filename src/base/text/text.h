/* SPDX-License-Identifier: Apache-2.0
 *
 * A growing string. Zeroed memory is an empty text. A failed allocation is remembered: later
 * appends do nothing and text_failed says so, so that a long piece of output needs one check at
 * its end. Not for use by two threads at once.
 */
#ifndef BASE_TEXT_TEXT_H
#define BASE_TEXT_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    char *bytes;   /* terminated by a zero byte, NULL while nothing was ever appended */
    size_t length; /* without the terminator */
    size_t capacity;
    bool failed;
};

void text_append(struct text *text, const char *string);
void text_append_bytes(struct text *text, const void *bytes, size_t length);
void text_append_char(struct text *text, char character);
/* In decimal, much quicker than with a format. */
void text_append_number(struct text *text, uint64_t number);
void text_append_repeated(struct text *text, char character, size_t times);
void text_append_format(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void text_append_list(struct text *text, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

/* A place at the end for up to `most` bytes, which the caller writes and then adds with
 * text_commit; NULL when there is no memory, which is remembered. */
void *text_reserve(struct text *text, size_t max);
void text_commit(struct text *text, size_t length);

/* The contents as a string, "" when empty; good until the next change. */
const char *text_string(const struct text *text);

/* Whether an allocation failed, and so something is missing. */
bool text_failed(const struct text *text);

/* Empties the text but keeps its memory and forgets a failure. */
void text_clear(struct text *text);

/* Hands the string over to the caller, who frees it; the text is empty afterwards. NULL when an
 * allocation failed. */
char *text_detach(struct text *text);

/* Frees the memory and leaves an empty text. */
void text_finish(struct text *text);

#endif
