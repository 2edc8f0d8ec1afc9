/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"

/* Makes room for `extra` more bytes and a terminator. */
static bool grow_text(struct text *text, size_t extra)
{
    if (text->failed)
        return false;
    if (extra < text->capacity - text->length)
        return true;
    if (extra >= SIZE_MAX - text->length ||
        vector_grow((void **)&text->bytes, &text->capacity, 1, text->length + extra + 1) < 0)
        text->failed = true;
    return !text->failed;
}

void text_append_bytes(struct text *text, const void *bytes, size_t length)
{
    if (!grow_text(text, length))
        return;
    if (length > 0)
        memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

void *text_reserve(struct text *text, size_t max)
{
    return grow_text(text, max) ? text->bytes + text->length : NULL;
}

void text_commit(struct text *text, size_t length)
{
    text->length += length;
    text->bytes[text->length] = '\0';
}

void text_append(struct text *text, const char *string)
{
    text_append_bytes(text, string, strlen(string));
}

void text_append_char(struct text *text, char character)
{
    text_append_bytes(text, &character, 1);
}

void text_append_number(struct text *text, uint64_t number)
{
    char digits[20];
    size_t first = sizeof(digits);

    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    text_append_bytes(text, digits + first, sizeof(digits) - first);
}

void text_append_repeated(struct text *text, char character, size_t times)
{
    if (!grow_text(text, times))
        return;
    memset(text->bytes + text->length, character, times);
    text->length += times;
    text->bytes[text->length] = '\0';
}

void text_append_list(struct text *text, const char *format, va_list arguments)
{
    va_list again;
    int length;

    va_copy(again, arguments);
    length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0) {
        text->failed = true;
        return;
    }
    if (!grow_text(text, (size_t)length))
        return;
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, arguments);
    text->length += (size_t)length;
}

void text_append_format(struct text *text, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    text_append_list(text, format, arguments);
    va_end(arguments);
}

const char *text_string(const struct text *text)
{
    return text->bytes == NULL ? "" : text->bytes;
}

bool text_failed(const struct text *text)
{
    return text->failed;
}

void text_clear(struct text *text)
{
    text->length = 0;
    text->failed = false;
    if (text->bytes != NULL)
        text->bytes[0] = '\0';
}

char *text_detach(struct text *text)
{
    char *taken;

    text_append_bytes(text, "", 0);
    taken = text->failed ? NULL : text->bytes;
    if (taken == NULL)
        free(text->bytes);
    *text = (struct text){0};
    return taken;
}

void text_finish(struct text *text)
{
    free(text->bytes);
    *text = (struct text){0};
}
