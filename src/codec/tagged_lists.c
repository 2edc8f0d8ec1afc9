/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of fields that own memory: text, lists, structs.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/quote.h"
#include "base/text/utf8.h"
#include "codec/tagged.h"
#include "codec/tagged_internal.h"
#include "model/machine/device_id.h"
#include "model/machine/vendor.h"

enum { ITEM_SIZE = 4 };

static void free_pointer(const struct tagged_field *field, void *whole)
{
    free((void *)tagged_load_pointer(field, whole));
}

static bool is_null(const struct tagged_field *field, uint32_t type_bit, const void *whole)
{
    (void)type_bit;
    return tagged_load_pointer(field, whole) == NULL;
}

static int text_write(const struct tagged_field *field, const void *whole, struct text *out)
{
    const char *text = tagged_load_pointer(field, whole);
    size_t length = strlen(text);

    if (length > field->max)
        return BERTH_ERROR_INVALID;
    text_append_bytes(out, text, length);
    return 0;
}

static int text_read(const struct tagged_reading *reading, const struct tagged_field *field,
                     struct tagged_span value, void *whole)
{
    const char *bytes = (const char *)reading->bytes + value.at;
    size_t length = value.end - value.at;
    char *text;

    if (length > field->max || memchr(bytes, '\0', length) != NULL)
        return error_set(reading->error, BERTH_ERROR_SYNTAX,
                         "expected %s of at most %" PRIu64
                         " bytes without a zero, got %s at byte %zu",
                         field->name, field->max, quote_bytes(bytes, length).text, value.at);
    text = strndup(bytes, length);
    if (text == NULL)
        return error_set_memory(reading->error);
    tagged_store_pointer(field, whole, text);
    return 0;
}

const struct tagged_kind tagged_text = {
    .shape = TAGGED_SHAPE_POINTER,
    .is_default = is_null,
    .write = text_write,
    .read = text_read,
    .finish = free_pointer,
};

/* Writes the text and cuts it if it is too long, because otherwise the message could not be
 * sent. */
static int words_write(const struct tagged_field *field, const void *whole, struct text *out)
{
    static const char cut_mark[] = "...";
    const char *words = tagged_load_pointer(field, whole);
    size_t length = strlen(words);

    if (length <= field->max) {
        text_append_bytes(out, words, length);
        return 0;
    }
    text_append_bytes(out, words, utf8_boundary(words, field->max - strlen(cut_mark)));
    text_append(out, cut_mark);
    return 0;
}

const struct tagged_kind tagged_words = {
    .is_default = is_null,
    .write = words_write,
    .read = text_read,
    .finish = free_pointer,
};

/* ---- Lists ---- */

/* Computes how many items of `item_size` bytes the value has. */
static int parse_count(const struct tagged_reading *reading, const struct tagged_field *field,
                       struct tagged_span value, size_t item_size, size_t *ret_count)
{
    size_t length = value.end - value.at;

    if (length % item_size != 0 || length / item_size > field->max)
        return error_set(reading->error, BERTH_ERROR_SYNTAX,
                         "expected %s as at most %" PRIu64
                         " times %zu bytes, got %zu bytes at byte %zu",
                         field->name, field->max, item_size, length, value.at);
    *ret_count = length / item_size;
    return 0;
}

static uint64_t list_count(const struct tagged_field *field, const void *whole)
{
    return tagged_load(tagged_const_member(whole, field->count_offset), field->count_size);
}

static bool list_is_default(const struct tagged_field *field, uint32_t type_bit, const void *whole)
{
    (void)type_bit;
    return list_count(field, whole) == 0;
}

static int list_write(const struct tagged_field *field, const void *whole, struct text *out)
{
    const uint32_t *items = tagged_load_pointer(field, whole);
    uint64_t count = list_count(field, whole);

    if (count > field->max)
        return BERTH_ERROR_INVALID;
    for (uint64_t i = 0; i < count; i++) {
        unsigned char bytes[ITEM_SIZE];

        tagged_put(bytes, items[i], sizeof(bytes));
        text_append_bytes(out, bytes, sizeof(bytes));
    }
    return 0;
}

static int list_read(const struct tagged_reading *reading, const struct tagged_field *field,
                     struct tagged_span value, void *whole)
{
    uint32_t *items;
    size_t count = 0;
    int code = parse_count(reading, field, value, ITEM_SIZE, &count);

    if (code < 0 || count == 0)
        return code;
    items = reallocarray(NULL, count, sizeof(*items));
    if (items == NULL)
        return error_set_memory(reading->error);
    for (size_t i = 0; i < count; i++)
        items[i] = (uint32_t)tagged_get(reading->bytes + value.at + i * ITEM_SIZE, ITEM_SIZE);
    tagged_store_pointer(field, whole, items);
    tagged_store(tagged_member(whole, field->count_offset), field->count_size, count);
    return 0;
}

const struct tagged_kind tagged_list = {
    .is_default = list_is_default,
    .write = list_write,
    .read = list_read,
    .finish = free_pointer,
};

static bool is_device_id(struct device_id id)
{
    return id.vendor <= VENDOR_DRI && id.index <= DEVICE_INDEX_MAX &&
           (id.mig <= DEVICE_INDEX_MAX || id.mig == DEVICE_NO_MIG);
}

int tagged_append_id(struct text *out, struct device_id id)
{
    unsigned char bytes[TAGGED_ID_SIZE];

    if (!is_device_id(id))
        return BERTH_ERROR_INVALID;
    tagged_put(bytes, id.vendor, 1);
    tagged_put(bytes + 1, id.index, 4);
    tagged_put(bytes + 5, id.mig, 4);
    text_append_bytes(out, bytes, sizeof(bytes));
    return 0;
}

int tagged_get_id(const struct tagged_reading *reading, const struct tagged_field *field, size_t at,
                  struct device_id *ret_id)
{
    struct device_id id = {
        .vendor = (enum vendor)tagged_get(reading->bytes + at, 1),
        .index = (uint32_t)tagged_get(reading->bytes + at + 1, 4),
        .mig = (uint32_t)tagged_get(reading->bytes + at + 5, 4),
    };

    if (!is_device_id(id))
        return error_set(reading->error, BERTH_ERROR_SYNTAX,
                         "expected a device id in %s, got vendor %d, index %" PRIu32
                         ", MIG %" PRIu32 " at byte %zu",
                         field->name, (int)id.vendor, id.index, id.mig, at);
    *ret_id = id;
    return 0;
}

static int append_ids(const struct tagged_field *field, const struct device_id_list *list,
                      struct text *out)
{
    const struct device_id *id;
    int code = list->count > field->max ? BERTH_ERROR_INVALID : 0;

    vector_for_each (id, list) {
        if (code < 0)
            break;
        code = tagged_append_id(out, *id);
    }
    return code;
}

static int parse_ids(const struct tagged_reading *reading, const struct tagged_field *field,
                     struct tagged_span value, struct device_id_list *list)
{
    size_t count = 0;
    int code = parse_count(reading, field, value, TAGGED_ID_SIZE, &count);

    if (code < 0)
        return code;
    if (vector_reserve(list, count) < 0)
        return error_set_memory(reading->error);
    for (size_t at = value.at; at < value.end; at += TAGGED_ID_SIZE) {
        code = tagged_get_id(reading, field, at, &list->items[list->count]);
        if (code < 0)
            return code;
        list->count++;
    }
    return 0;
}

static bool ids_are_default(const struct tagged_field *field, uint32_t type_bit, const void *whole)
{
    const struct device_id_list *list = tagged_const_member(whole, field->offset);

    (void)type_bit;
    return list->count == 0;
}

static int ids_write(const struct tagged_field *field, const void *whole, struct text *out)
{
    return append_ids(field, tagged_const_member(whole, field->offset), out);
}

static int ids_read(const struct tagged_reading *reading, const struct tagged_field *field,
                    struct tagged_span value, void *whole)
{
    return parse_ids(reading, field, value, tagged_member(whole, field->offset));
}

static void ids_finish(const struct tagged_field *field, void *whole)
{
    struct device_id_list *list = tagged_member(whole, field->offset);

    vector_finish(list);
}

const struct tagged_kind tagged_ids = {
    .shape = TAGGED_SHAPE_POINTER,
    .is_default = ids_are_default,
    .write = ids_write,
    .read = ids_read,
    .finish = ids_finish,
};

/* ---- Pointers to structs ---- */

/* Allocates a zeroed struct for the member to point to. Returns NULL when there is no memory. */
static void *allocate_inner(const struct tagged_reading *reading, const struct tagged_field *field,
                            void *whole, size_t size)
{
    void *below = calloc(1, size);

    tagged_store_pointer(field, whole, below);
    if (below == NULL)
        error_set_memory(reading->error);
    return below;
}

static int maybe_ids_write(const struct tagged_field *field, const void *whole, struct text *out)
{
    return append_ids(field, tagged_load_pointer(field, whole), out);
}

static int maybe_ids_read(const struct tagged_reading *reading, const struct tagged_field *field,
                          struct tagged_span value, void *whole)
{
    struct device_id_list *list = allocate_inner(reading, field, whole, sizeof(*list));

    return list == NULL ? BERTH_ERROR_MEMORY : parse_ids(reading, field, value, list);
}

static void maybe_ids_finish(const struct tagged_field *field, void *whole)
{
    struct device_id_list *list = (struct device_id_list *)tagged_load_pointer(field, whole);

    if (list != NULL)
        vector_finish(list);
    free(list);
}

const struct tagged_kind tagged_maybe_ids = {
    .shape = TAGGED_SHAPE_POINTER,
    .is_default = is_null,
    .write = maybe_ids_write,
    .read = maybe_ids_read,
    .finish = maybe_ids_finish,
};

static int inner_write(const struct tagged_field *field, const void *whole, struct text *out)
{
    return tagged_write(field->inner, TAGGED_ALL_TYPES, tagged_load_pointer(field, whole), out);
}

static int inner_read(const struct tagged_reading *reading, const struct tagged_field *field,
                      struct tagged_span value, void *whole)
{
    void *below = allocate_inner(reading, field, whole, field->inner->size);

    return below == NULL ? BERTH_ERROR_MEMORY : tagged_read(reading, field->inner, value, below);
}

static void inner_finish(const struct tagged_field *field, void *whole)
{
    void *below = (void *)tagged_load_pointer(field, whole);

    if (below != NULL)
        tagged_finish(field->inner, below);
    free(below);
}

const struct tagged_kind tagged_inner = {
    .shape = TAGGED_SHAPE_POINTER,
    .is_default = is_null,
    .write = inner_write,
    .read = inner_read,
    .finish = inner_finish,
};
