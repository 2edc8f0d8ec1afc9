/* SPDX-License-Identifier: Apache-2.0
 *
 * A growing string. Zeroed memory is an empty text. After a failed allocation, later appends do
 * nothing and text_failed returns true, so one check at the end is enough. Only one thread may use
 * a text at a time.
 */
#ifndef BASE_TEXT_TEXT_H
#define BASE_TEXT_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct text {
    char *bytes;   /* terminated by a zero byte; NULL before the first append */
    size_t length; /* without the terminator */
    size_t capacity;
    bool failed;
};

void text_append(struct text *text, const char *string);
void text_append_bytes(struct text *text, const void *bytes, size_t length);
void text_append_char(struct text *text, char character);
/* Appends a decimal number, much faster than text_append_format. */
void text_append_number(struct text *text, uint64_t number);
void text_append_repeated(struct text *text, char character, size_t times);
void text_append_format(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void text_append_list(struct text *text, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

/* Returns room for up to `max` bytes at the end, or NULL when there is no memory; text_failed
 * returns true then. The caller writes bytes there and appends them with text_commit. */
void *text_reserve(struct text *text, size_t max);
void text_commit(struct text *text, size_t length);

/* Returns the text as a string, valid until the next change. */
const char *text_string(const struct text *text);

/* Returns whether an allocation failed, and so a part of the text is missing. */
bool text_failed(const struct text *text);

/* Empties the text, keeps its memory, and forgets a failure. */
void text_clear(struct text *text);

/* Returns the string, which the caller frees, or NULL when an allocation failed. The text is empty
 * afterwards. */
char *text_detach(struct text *text);

/* Frees the memory and leaves an empty text. */
void text_finish(struct text *text);

/* Returns whether two strings are equal. NULL equals only NULL. */
static inline bool text_equals(const char *one, const char *other)
{
    return one == NULL || other == NULL ? one == other : strcmp(one, other) == 0;
}

#endif
