/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of fields that describe devices, and lists of values.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/string_list.h"
#include "codec/tagged.h"
#include "codec/tagged_internal.h"
#include "model/machine/device_id.h"
#include "model/machine/load.h"
#include "model/machine/pci.h"

enum {
    PCI_SIZE = 7,
    FIGURE_SIZE = 16,
    LENGTH_SIZE = 4,
    PCI_DEVICES = 32,
    PCI_FUNCTIONS = 8,
};

/* Checks that the value has exactly this size. */
static int check_size(const struct tagged_reading *reading, const struct tagged_field *field,
                      struct tagged_span value, size_t size)
{
    if (value.end - value.at == size)
        return 0;
    return error_set(reading->error, BERTH_ERROR_SYNTAX,
                     "expected %s of %zu bytes, got %zu at byte %zu", field->name, size,
                     value.end - value.at, value.at);
}

static bool never_default(const struct tagged_field *field, uint32_t type_bit, const void *whole)
{
    (void)field;
    (void)type_bit;
    (void)whole;
    return false;
}

static int id_write(const struct tagged_field *field, const void *whole, struct text *out)
{
    const struct device_id *id = tagged_const_member(whole, field->offset);

    return tagged_append_id(out, *id);
}

static int id_read(const struct tagged_reading *reading, const struct tagged_field *field,
                   struct tagged_span value, void *whole)
{
    int code = check_size(reading, field, value, TAGGED_ID_SIZE);

    return code < 0 ? code
                    : tagged_get_id(reading, field, value.at, tagged_member(whole, field->offset));
}

const struct tagged_kind tagged_id = {
    .is_default = never_default,
    .write = id_write,
    .read = id_read,
};

static bool pci_is_default(const struct tagged_field *field, uint32_t type_bit, const void *whole)
{
    const struct pci_address *pci = tagged_const_member(whole, field->offset);

    (void)type_bit;
    return !pci->known;
}

static int pci_write(const struct tagged_field *field, const void *whole, struct text *out)
{
    const struct pci_address *pci = tagged_const_member(whole, field->offset);
    unsigned char bytes[PCI_SIZE];

    if (pci->device >= PCI_DEVICES || pci->function >= PCI_FUNCTIONS)
        return BERTH_ERROR_INVALID;
    tagged_put(bytes, pci->domain, 4);
    bytes[4] = pci->bus;
    bytes[5] = pci->device;
    bytes[6] = pci->function;
    text_append_bytes(out, bytes, sizeof(bytes));
    return 0;
}

static int pci_read(const struct tagged_reading *reading, const struct tagged_field *field,
                    struct tagged_span value, void *whole)
{
    const unsigned char *bytes = reading->bytes + value.at;
    int code = check_size(reading, field, value, PCI_SIZE);

    if (code < 0)
        return code;
    if (bytes[5] >= PCI_DEVICES || bytes[6] >= PCI_FUNCTIONS)
        return error_set(reading->error, BERTH_ERROR_SYNTAX,
                         "expected %s with a device below %d and a function below %d, got %d and "
                         "%d at byte %zu",
                         field->name, PCI_DEVICES, PCI_FUNCTIONS, bytes[5], bytes[6], value.at);
    *(struct pci_address *)tagged_member(whole, field->offset) = (struct pci_address){
        .known = true,
        .domain = (uint32_t)tagged_get(bytes, 4),
        .bus = bytes[4],
        .device = bytes[5],
        .function = bytes[6],
    };
    return 0;
}

const struct tagged_kind tagged_pci = {
    .is_default = pci_is_default,
    .write = pci_write,
    .read = pci_read,
};

static bool figure_is_default(const struct tagged_field *field, uint32_t type_bit,
                              const void *whole)
{
    const struct figure *figure = tagged_const_member(whole, field->offset);

    (void)type_bit;
    return !figure->known;
}

static int figure_write(const struct tagged_field *field, const void *whole, struct text *out)
{
    const struct figure *figure = tagged_const_member(whole, field->offset);
    unsigned char bytes[FIGURE_SIZE];

    tagged_put(bytes, (uint64_t)figure->value, 8);
    tagged_put(bytes + 8, (uint64_t)figure->sampled_at, 8);
    text_append_bytes(out, bytes, sizeof(bytes));
    return 0;
}

static int figure_read(const struct tagged_reading *reading, const struct tagged_field *field,
                       struct tagged_span value, void *whole)
{
    int code = check_size(reading, field, value, FIGURE_SIZE);

    if (code == 0)
        *(struct figure *)tagged_member(whole, field->offset) =
            load_figure_sampled((int64_t)tagged_get(reading->bytes + value.at, 8),
                                (int64_t)tagged_get(reading->bytes + value.at + 8, 8));
    return code;
}

const struct tagged_kind tagged_figure = {
    .is_default = figure_is_default,
    .write = figure_write,
    .read = figure_read,
};

/* ---- Lists of values with lengths ---- */

/* Reads the length of the next value of a list, and moves to the value after it. */
static int read_part_header(const struct tagged_reading *reading, const struct tagged_field *field,
                            struct tagged_span *span, struct tagged_span *ret_part)
{
    size_t left = span->end - span->at;
    size_t length = left < LENGTH_SIZE ? 0 : tagged_get(reading->bytes + span->at, LENGTH_SIZE);

    if (left < LENGTH_SIZE || length > left - LENGTH_SIZE)
        return error_set(reading->error, BERTH_ERROR_SYNTAX,
                         "expected a part of %s within its %zu bytes, got one of %zu at byte %zu",
                         field->name, left, length, span->at);
    ret_part->at = span->at + LENGTH_SIZE;
    ret_part->end = ret_part->at + length;
    span->at = ret_part->end;
    return 0;
}

static int report_too_many(const struct tagged_reading *reading, const struct tagged_field *field,
                           size_t at)
{
    return error_set(reading->error, BERTH_ERROR_SYNTAX,
                     "expected at most %" PRIu64 " of %s, got more at byte %zu", field->max,
                     field->name, at);
}

static bool strings_are_default(const struct tagged_field *field, uint32_t type_bit,
                                const void *whole)
{
    const struct string_list *list = tagged_const_member(whole, field->offset);

    (void)type_bit;
    return list->count == 0;
}

static int strings_write(const struct tagged_field *field, const void *whole, struct text *out)
{
    const struct string_list *list = tagged_const_member(whole, field->offset);
    char *const *string;

    if (list->count > field->max)
        return BERTH_ERROR_INVALID;
    vector_for_each (string, list) {
        unsigned char lead[LENGTH_SIZE];

        tagged_put(lead, strlen(*string), sizeof(lead));
        text_append_bytes(out, lead, sizeof(lead));
        text_append_bytes(out, *string, strlen(*string));
    }
    return 0;
}

static int add_string(const struct tagged_reading *reading, const struct tagged_field *field,
                      struct tagged_span part, struct string_list *list)
{
    const char *bytes = (const char *)reading->bytes + part.at;
    char **string;

    if (list->count >= field->max)
        return report_too_many(reading, field, part.at);
    if (memchr(bytes, '\0', part.end - part.at) != NULL)
        return error_set(reading->error, BERTH_ERROR_SYNTAX,
                         "expected %s without a zero, got one at byte %zu", field->name, part.at);
    string = vector_append(list);
    if (string == NULL)
        return error_set_memory(reading->error);
    *string = strndup(bytes, part.end - part.at);
    return *string == NULL ? error_set_memory(reading->error) : 0;
}

static int strings_read(const struct tagged_reading *reading, const struct tagged_field *field,
                        struct tagged_span value, void *whole)
{
    int code = 0;

    while (value.at < value.end && code == 0) {
        struct tagged_span part = {0};

        code = read_part_header(reading, field, &value, &part);
        if (code == 0)
            code = add_string(reading, field, part, tagged_member(whole, field->offset));
    }
    return code;
}

static void strings_finish(const struct tagged_field *field, void *whole)
{
    string_list_finish(tagged_member(whole, field->offset));
}

const struct tagged_kind tagged_strings = {
    .shape = TAGGED_SHAPE_POINTER,
    .is_default = strings_are_default,
    .write = strings_write,
    .read = strings_read,
    .finish = strings_finish,
};

/* The layout of every vector (base/vector.h). */
struct items {
    VECTOR_OF(void);
};

static bool items_are_default(const struct tagged_field *field, uint32_t type_bit,
                              const void *whole)
{
    const struct items *items = tagged_const_member(whole, field->offset);

    (void)type_bit;
    return items->count == 0;
}

static int items_write(const struct tagged_field *field, const void *whole, struct text *out)
{
    const struct items *items = tagged_const_member(whole, field->offset);
    int code = items->count > field->max ? BERTH_ERROR_INVALID : 0;

    for (size_t i = 0; i < items->count && code == 0; i++) {
        unsigned char lead[LENGTH_SIZE] = {0};
        size_t start = out->length;

        text_append_bytes(out, lead, sizeof(lead));
        code = tagged_write(field->inner, TAGGED_ALL_TYPES,
                            tagged_const_member(items->items, i * field->inner->size), out);
        if (code == 0 && !text_failed(out))
            tagged_put((unsigned char *)out->bytes + start, out->length - start - sizeof(lead),
                       sizeof(lead));
    }
    return code;
}

static int items_read(const struct tagged_reading *reading, const struct tagged_field *field,
                      struct tagged_span value, void *whole)
{
    struct items *items = tagged_member(whole, field->offset);
    int code = 0;

    while (value.at < value.end && code == 0) {
        struct tagged_span part = {0};
        void *item;

        code = read_part_header(reading, field, &value, &part);
        if (code < 0)
            break;
        if (items->count >= field->max)
            return report_too_many(reading, field, part.at);
        item = vector_append_zeroed(&items->items, &items->count, &items->capacity,
                                    field->inner->size);
        if (item == NULL)
            return error_set_memory(reading->error);
        code = tagged_read(reading, field->inner, part, item);
    }
    return code;
}

static void items_finish(const struct tagged_field *field, void *whole)
{
    struct items *items = tagged_member(whole, field->offset);

    for (size_t i = 0; i < items->count; i++)
        tagged_finish(field->inner, tagged_member(items->items, i * field->inner->size));
    vector_finish(items);
}

const struct tagged_kind tagged_items = {
    .shape = TAGGED_SHAPE_POINTER,
    .is_default = items_are_default,
    .write = items_write,
    .read = items_read,
    .finish = items_finish,
};
