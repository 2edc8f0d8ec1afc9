/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes tagged fields by hand, from the format in codec/tagged.h.
 */
#ifndef TESTS_TAGGED_BYTES_H
#define TESTS_TAGGED_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "base/text/text.h"

static inline void append_little(struct text *out, uint64_t number, size_t size)
{
    for (size_t i = 0; i < size; i++)
        text_append_char(out, (char)(number >> 8 * i));
}

static inline void append_field(struct text *out, unsigned tag, const void *value, size_t length)
{
    append_little(out, tag, 2);
    append_little(out, length, 4);
    text_append_bytes(out, value, length);
}

/* Appends a field with a number of `size` bytes. */
static inline void append_number_field(struct text *out, unsigned tag, uint64_t number, size_t size)
{
    append_little(out, tag, 2);
    append_little(out, size, 4);
    append_little(out, number, size);
}

#endif
