/* SPDX-License-Identifier: Apache-2.0
 *
 * Access to the members of structs by their offsets, for the kinds of fields.
 */
#ifndef CODEC_TAGGED_INTERNAL_H
#define CODEC_TAGGED_INTERNAL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "codec/tagged.h"
#include "model/machine/device_id.h"

static inline void *tagged_member(void *whole, size_t offset)
{
    return (unsigned char *)whole + offset;
}

static inline const void *tagged_const_member(const void *whole, size_t offset)
{
    return (const unsigned char *)whole + offset;
}

/* Loads a member of 1, 2, 4 or 8 bytes. */
static inline uint64_t tagged_load(const void *member, size_t size)
{
    uint64_t wide = 0;
    uint32_t middle = 0;
    uint16_t narrow = 0;

    switch (size) {
    case sizeof(wide):
        memcpy(&wide, member, sizeof(wide));
        return wide;
    case sizeof(middle):
        memcpy(&middle, member, sizeof(middle));
        return middle;
    case sizeof(narrow):
        memcpy(&narrow, member, sizeof(narrow));
        return narrow;
    default:
        return *(const unsigned char *)member;
    }
}

static inline void tagged_store(void *member, size_t size, uint64_t number)
{
    uint32_t middle = (uint32_t)number;
    uint16_t narrow = (uint16_t)number;

    switch (size) {
    case sizeof(number):
        memcpy(member, &number, sizeof(number));
        break;
    case sizeof(middle):
        memcpy(member, &middle, sizeof(middle));
        break;
    case sizeof(narrow):
        memcpy(member, &narrow, sizeof(narrow));
        break;
    default:
        *(unsigned char *)member = (unsigned char)number;
    }
}

/* Returns the default of a number. */
static inline uint64_t tagged_default(const struct tagged_field *field, uint32_t type_bit)
{
    bool counts = field->default_types == 0 || (field->default_types & type_bit) != 0;

    return counts ? field->default_value : 0;
}

/* Load and store a pointer of any type. */
static inline const void *tagged_load_pointer(const struct tagged_field *field, const void *whole)
{
    const void *pointer;

    memcpy(&pointer, tagged_const_member(whole, field->offset), sizeof(pointer));
    return pointer;
}

static inline void tagged_store_pointer(const struct tagged_field *field, void *whole,
                                        void *pointer)
{
    memcpy(tagged_member(whole, field->offset), &pointer, sizeof(pointer));
}

/* Write and read a device id of TAGGED_ID_SIZE bytes. They fail with BERTH_ERROR_INVALID and
 * _SYNTAX for an invalid id. */
enum { TAGGED_ID_SIZE = 9 };
int tagged_append_id(struct text *out, struct device_id id);
int tagged_get_id(const struct tagged_reading *reading, const struct tagged_field *field, size_t at,
                  struct device_id *ret_id);

#endif
