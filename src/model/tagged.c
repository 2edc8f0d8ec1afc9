/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tagged.h"

#include "base/error.h"
#include "model/tagged_members.h"

static inline __attribute__((always_inline)) bool is_default(const struct tagged_field *field,
                                                             uint32_t type_bit, const void *whole)
{
    const struct tagged_kind *kind = field->kind;

    if (kind->shape == TAGGED_SHAPE_NUMBER)
        return tagged_load(tagged_const_member(whole, field->offset), field->size) ==
               tagged_default(field, type_bit);
    if (kind->shape == TAGGED_SHAPE_POINTER && tagged_load_pointer(field, whole) == NULL)
        return true;
    return kind->is_default(field, type_bit, whole);
}

static int write_field(const struct tagged_table *table, size_t tag, uint32_t type_bit,
                       const void *whole, struct text *out)
{
    const struct tagged_field *field = &table->fields[tag];
    unsigned char lead[TAGGED_FIELD_SIZE] = {0};
    size_t start = out->length;
    int code;

    if (field->kind == NULL)
        return 0;
    if (is_default(field, type_bit, whole))
        return field->required ? BERTH_ERROR_INVALID : 0;
    text_append_bytes(out, lead, sizeof(lead));
    code = field->kind->write(field, whole, out);
    if (code < 0 || text_failed(out))
        return code;
    tagged_put((unsigned char *)out->bytes + start, tag, 2);
    tagged_put((unsigned char *)out->bytes + start + 2, out->length - start - sizeof(lead), 4);
    return 0;
}

int tagged_write(const struct tagged_table *table, uint32_t type_bit, const void *whole,
                 struct text *out)
{
    int code = 0;

    for (size_t tag = 0; tag < table->count && code == 0; tag++)
        code = write_field(table, tag, type_bit, whole, out);
    return code;
}

/* Finds tag and value of the field at span->at and goes on to the next one. */
static int take_field(const struct tagged_reading *reading, struct tagged_span *span,
                      size_t *ret_tag, struct tagged_span *ret_value)
{
    size_t left = span->end - span->at;
    size_t length;

    if (left < TAGGED_FIELD_SIZE)
        return error_set(reading->error, BERTH_ERROR_SYNTAX,
                         "wanted a field of at least %d bytes, found %zu at byte %zu",
                         TAGGED_FIELD_SIZE, left, span->at);
    left -= TAGGED_FIELD_SIZE;
    length = tagged_get(reading->bytes + span->at + 2, 4);
    if (length > left)
        return error_set(reading->error, BERTH_ERROR_SYNTAX,
                         "wanted a value of at most %zu bytes, found %zu at byte %zu", left, length,
                         span->at);
    *ret_tag = tagged_get(reading->bytes + span->at, 2);
    ret_value->at = span->at + TAGGED_FIELD_SIZE;
    ret_value->end = ret_value->at + length;
    span->at = ret_value->end;
    return 0;
}

static int read_field(const struct tagged_reading *reading, const struct tagged_table *table,
                      size_t tag, struct tagged_span value, uint64_t *seen, void *whole)
{
    const struct tagged_field *field = tag < table->count ? &table->fields[tag] : NULL;

    if (field == NULL || field->kind == NULL) {
        if (tag < TAGGED_MANDATORY)
            return 0;
        return error_set(reading->error, BERTH_ERROR_SYNTAX,
                         "wanted fields that this version knows, found mandatory field "
                         "%zu at byte %zu",
                         tag, value.at - TAGGED_FIELD_SIZE);
    }
    if ((*seen >> tag & 1) != 0)
        return error_set(reading->error, BERTH_ERROR_SYNTAX,
                         "wanted %s once, found it again at byte %zu", field->name,
                         value.at - TAGGED_FIELD_SIZE);
    *seen |= UINT64_C(1) << tag;
    return field->kind->read(reading, field, value, whole);
}

/* Whether nothing is missing of `required`, which was to be within the span. */
static int check_required(const struct tagged_reading *reading, const struct tagged_table *table,
                          struct tagged_span span, uint64_t required, uint64_t seen,
                          const void *whole)
{
    for (; required != 0; required &= required - 1) {
        size_t tag = (size_t)__builtin_ctzll(required);
        const struct tagged_field *field = &table->fields[tag];

        if ((seen >> tag & 1) == 0 || is_default(field, reading->type_bit, whole))
            return error_set(reading->error, BERTH_ERROR_SYNTAX,
                             "wanted %s, found none in the %zu bytes at byte %zu", field->name,
                             span.end - span.at, span.at);
    }
    return 0;
}

/* Makes a zeroed struct one of defaults. Returns the tags that are required, as bits. */
static uint64_t reset_all(const struct tagged_table *table, uint32_t type_bit, void *whole)
{
    uint64_t required = 0;

    for (size_t tag = 0; tag < table->count; tag++) {
        const struct tagged_field *field = &table->fields[tag];

        if (field->required)
            required |= UINT64_C(1) << tag;
        /* Zero is what most are by default. */
        if (field->kind == NULL || field->kind->reset == NULL ||
            (field->kind->shape == TAGGED_SHAPE_NUMBER && field->by_default == 0))
            continue;
        field->kind->reset(field, type_bit, whole);
    }
    return required;
}

int tagged_read(const struct tagged_reading *reading, const struct tagged_table *table,
                struct tagged_span span, void *whole)
{
    const struct tagged_span all = span;
    uint64_t required = table->plain ? 0 : reset_all(table, reading->type_bit, whole);
    uint64_t seen = 0;
    int code = 0;

    while (span.at < span.end && code == 0) {
        struct tagged_span value = {0};
        size_t tag = 0;

        code = take_field(reading, &span, &tag, &value);
        if (code == 0)
            code = read_field(reading, table, tag, value, &seen, whole);
    }
    return code < 0 ? code : check_required(reading, table, all, required, seen, whole);
}

void tagged_finish(const struct tagged_table *table, void *whole)
{
    for (size_t tag = 0; tag < table->count; tag++) {
        const struct tagged_field *field = &table->fields[tag];

        if (field->kind == NULL || field->kind->finish == NULL ||
            (field->kind->shape == TAGGED_SHAPE_POINTER &&
             tagged_load_pointer(field, whole) == NULL))
            continue;
        field->kind->finish(field, whole);
    }
}
