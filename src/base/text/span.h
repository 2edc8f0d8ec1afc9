/* SPDX-License-Identifier: Apache-2.0
 *
 * A part of a text, for parsers. It has no terminating zero byte.
 */
#ifndef BASE_TEXT_SPAN_H
#define BASE_TEXT_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span {
    const char *bytes;
    size_t length;
};

static inline bool span_equals(struct span span, const char *string)
{
    return strlen(string) == span.length && memcmp(span.bytes, string, span.length) == 0;
}

/* Removes these bytes from the beginning. Returns false when the span does not begin with them. */
static inline bool span_skip_prefix(struct span *span, const char *beginning)
{
    size_t length = strlen(beginning);

    if (span->length < length || memcmp(span->bytes, beginning, length) != 0)
        return false;
    span->bytes += length;
    span->length -= length;
    return true;
}

/* Removes these bytes from the end. Returns false when the span does not end with them. */
static inline bool span_drop_suffix(struct span *span, const char *end)
{
    size_t length = strlen(end);

    if (span->length < length || memcmp(span->bytes + span->length - length, end, length) != 0)
        return false;
    span->length -= length;
    return true;
}

/* Reads and removes a decimal number at the beginning. Returns false when there is none, or it is
 * too large. */
static inline bool span_read_number(struct span *span, uint64_t *ret_number)
{
    uint64_t number = 0;
    size_t digits = 0;

    for (; digits < span->length && span->bytes[digits] >= '0' && span->bytes[digits] <= '9';
         digits++) {
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(span->bytes[digits] - '0'), &number))
            return false;
    }
    if (digits == 0)
        return false;
    span->bytes += digits;
    span->length -= digits;
    *ret_number = number;
    return true;
}

/* Reads and removes the first line; *ret_line is without its newline. Returns false when no newline
 * is left. */
static inline bool span_read_line(struct span *span, struct span *ret_line)
{
    const char *newline = span->length == 0 ? NULL : memchr(span->bytes, '\n', span->length);

    if (newline == NULL)
        return false;
    *ret_line = (struct span){span->bytes, (size_t)(newline - span->bytes)};
    span->bytes = newline + 1;
    span->length -= ret_line->length + 1;
    return true;
}

/* Returns the span without leading and trailing blanks. */
static inline struct span span_trim(struct span span)
{
    while (span.length > 0 && (*span.bytes == ' ' || *span.bytes == '\t')) {
        span.bytes++;
        span.length--;
    }
    while (span.length > 0 &&
           (span.bytes[span.length - 1] == ' ' || span.bytes[span.length - 1] == '\t'))
        span.length--;
    return span;
}

#endif
