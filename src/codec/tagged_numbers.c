/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of fields that are numbers.
 */
#include <inttypes.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/optional.h"
#include "codec/tagged.h"
#include "codec/tagged_internal.h"
#include "model/machine/capability.h"

enum { NUMBER_SIZE_MAX = 8 };

static void append_number(struct text *out, uint64_t number)
{
    unsigned char *place = text_reserve(out, NUMBER_SIZE_MAX);
    size_t size = 0;

    if (place == NULL)
        return;
    tagged_put(place, number, NUMBER_SIZE_MAX);
    for (; number != 0; number >>= 8)
        size++;
    text_commit(out, size);
}

static int parse_number(const struct tagged_reading *reading, const struct tagged_field *field,
                        struct tagged_span value, uint64_t *ret_number)
{
    size_t length = value.end - value.at;
    uint64_t number;

    if (length > NUMBER_SIZE_MAX)
        return error_set(reading->error, BERTH_ERROR_SYNTAX,
                         "expected %s of at most %d bytes, got %zu at byte %zu", field->name,
                         NUMBER_SIZE_MAX, length, value.at);
    number = tagged_get(reading->bytes + value.at, length);
    if (number > field->max)
        return error_set(reading->error, BERTH_ERROR_SYNTAX,
                         "expected %s of at most %" PRIu64 ", got %" PRIu64 " at byte %zu",
                         field->name, field->max, number, value.at);
    *ret_number = number;
    return 0;
}

static bool number_is_default(const struct tagged_field *field, uint32_t type_bit,
                              const void *whole)
{
    return tagged_load(tagged_const_member(whole, field->offset), field->size) ==
           tagged_default(field, type_bit);
}

static int number_write(const struct tagged_field *field, const void *whole, struct text *out)
{
    uint64_t number = tagged_load(tagged_const_member(whole, field->offset), field->size);

    if (number > field->max)
        return BERTH_ERROR_INVALID;
    append_number(out, number);
    return 0;
}

static int number_read(const struct tagged_reading *reading, const struct tagged_field *field,
                       struct tagged_span value, void *whole)
{
    uint64_t number = 0;
    int code = parse_number(reading, field, value, &number);

    if (code == 0)
        tagged_store(tagged_member(whole, field->offset), field->size, number);
    return code;
}

static void number_reset(const struct tagged_field *field, uint32_t type_bit, void *whole)
{
    tagged_store(tagged_member(whole, field->offset), field->size, tagged_default(field, type_bit));
}

const struct tagged_kind tagged_number = {
    .shape = TAGGED_SHAPE_NUMBER,
    .is_default = number_is_default,
    .write = number_write,
    .reset = number_reset,
    .read = number_read,
};

static bool maybe_is_default(const struct tagged_field *field, uint32_t type_bit, const void *whole)
{
    const struct optional_number *member = tagged_const_member(whole, field->offset);

    (void)type_bit;
    return !member->known;
}

static int maybe_write(const struct tagged_field *field, const void *whole, struct text *out)
{
    const struct optional_number *member = tagged_const_member(whole, field->offset);

    if (member->value > field->max)
        return BERTH_ERROR_INVALID;
    append_number(out, member->value);
    return 0;
}

static int maybe_read(const struct tagged_reading *reading, const struct tagged_field *field,
                      struct tagged_span value, void *whole)
{
    struct optional_number *member = tagged_member(whole, field->offset);
    int code = parse_number(reading, field, value, &member->value);

    member->known = code == 0;
    return code;
}

const struct tagged_kind tagged_maybe = {
    .is_default = maybe_is_default,
    .write = maybe_write,
    .read = maybe_read,
};

static bool capability_is_default(const struct tagged_field *field, uint32_t type_bit,
                                  const void *whole)
{
    const struct capability *member = tagged_const_member(whole, field->offset);

    (void)type_bit;
    return !member->known;
}

static int capability_write(const struct tagged_field *field, const void *whole, struct text *out)
{
    const struct capability *member = tagged_const_member(whole, field->offset);

    append_number(out, (uint64_t)member->major << 16 | member->minor);
    return 0;
}

static int capability_read(const struct tagged_reading *reading, const struct tagged_field *field,
                           struct tagged_span value, void *whole)
{
    uint64_t number = 0;
    int code = parse_number(reading, field, value, &number);

    if (code == 0)
        *(struct capability *)tagged_member(whole, field->offset) = (struct capability){
            .known = true,
            .major = (uint16_t)(number >> 16),
            .minor = (uint16_t)number,
        };
    return code;
}

const struct tagged_kind tagged_capability = {
    .is_default = capability_is_default,
    .write = capability_write,
    .read = capability_read,
};
