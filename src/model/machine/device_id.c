/* SPDX-License-Identifier: Apache-2.0 */
#include "model/machine/device_id.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text/quote.h"

struct device_id_text device_id_format(struct device_id id)
{
    struct device_id_text text;

    if (id.mig == DEVICE_NO_MIG)
        snprintf(text.text, sizeof(text.text), "%s%u", vendor_name(id.vendor), id.index);
    else
        snprintf(text.text, sizeof(text.text), "%s%u.%u", vendor_name(id.vendor), id.index, id.mig);
    return text;
}

void device_id_append(struct device_id id, struct text *out)
{
    text_append(out, vendor_name(id.vendor));
    text_append_number(out, id.index);
    if (id.mig == DEVICE_NO_MIG)
        return;
    text_append_char(out, '.');
    text_append_number(out, id.mig);
}

/* Reads digits at *cursor and moves past them. Leading zeros are refused, so that each id has only
 * one spelling. */
static bool read_index(const char **cursor, uint32_t *ret_index)
{
    const char *digits = *cursor;
    uint32_t index = 0;

    if (*digits == '0' && digits[1] >= '0' && digits[1] <= '9')
        return false;
    while (**cursor >= '0' && **cursor <= '9') {
        index = index * 10 + (uint32_t)(**cursor - '0');
        if (index > DEVICE_INDEX_MAX)
            return false;
        (*cursor)++;
    }
    *ret_index = index;
    return *cursor != digits;
}

static bool read_id(const char *string, struct device_id *id)
{
    for (const struct choice *choice = vendor_names; choice->name != NULL; choice++) {
        const char *cursor = string + strlen(choice->name);

        if (strncmp(string, choice->name, strlen(choice->name)) != 0)
            continue;
        id->vendor = (enum vendor)choice->value;
        id->mig = DEVICE_NO_MIG;
        if (!read_index(&cursor, &id->index))
            return false;
        if (id->vendor == VENDOR_NVIDIA && *cursor == '.') {
            cursor++;
            if (!read_index(&cursor, &id->mig))
                return false;
        }
        return *cursor == '\0';
    }
    return false;
}

int device_id_parse(const char *string, struct device_id *ret_id, struct berth_error *error)
{
    struct device_id id;

    if (!read_id(string, &id))
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "expected a device id such as nvidia0, amd3 or nvidia0.1, got %s",
                         quote(string).text);
    *ret_id = id;
    return 0;
}

bool device_id_equals(struct device_id one, struct device_id other)
{
    return one.vendor == other.vendor && one.index == other.index && one.mig == other.mig;
}

bool device_id_list_has(const struct device_id_list *list, struct device_id id)
{
    const struct device_id *member;

    vector_for_each (member, list) {
        if (device_id_equals(*member, id))
            return true;
    }
    return false;
}

bool device_id_list_equals(const struct device_id_list *one, const struct device_id_list *other)
{
    if (one->count != other->count)
        return false;
    for (size_t i = 0; i < one->count; i++) {
        if (!device_id_equals(one->items[i], other->items[i]))
            return false;
    }
    return true;
}

int device_id_list_copy(struct device_id_list *ret_list, const struct device_id_list *from)
{
    struct device_id_list list = {0};

    if (from->count > 0) {
        if (vector_reserve(&list, from->count) < 0)
            return BERTH_ERROR_MEMORY;
        memcpy(list.items, from->items, from->count * sizeof(*list.items));
        list.count = from->count;
    }
    *ret_list = list;
    return 0;
}

/* Reads an index without a vendor. Returns whether the string is one. */
static bool parse_bare_index(const char *string, struct device_id *ret_id)
{
    struct device_id id = {.vendor = VENDOR_UNNAMED, .mig = DEVICE_NO_MIG};

    if (!read_index(&string, &id.index) || *string != '\0')
        return false;
    *ret_id = id;
    return true;
}

static int add_id(struct device_id_list *list, const char *string, enum device_id_form form,
                  struct berth_error *error)
{
    struct device_id id;
    struct device_id *place;
    int code = 0;

    if (form != DEVICE_ID_OR_INDEX || !parse_bare_index(string, &id))
        code = device_id_parse(string, &id, error);
    if (code < 0 || device_id_list_has(list, id))
        return code;
    if (list->count == DEVICE_ID_LIST_MAX)
        return error_set(error, BERTH_ERROR_LIMIT, "expected at most %d device ids, got more",
                         DEVICE_ID_LIST_MAX);
    place = vector_append(list);
    if (place == NULL)
        return error_set_memory(error);
    *place = id;
    return 0;
}

int device_id_list_parse(struct device_id_list *list, const char *string, struct berth_error *error)
{
    return device_id_list_parse_form(list, string, DEVICE_ID_FULL, error);
}

int device_id_list_parse_form(struct device_id_list *list, const char *string,
                              enum device_id_form form, struct berth_error *error)
{
    char *copy = strdup(string);
    char *rest = copy;
    int code = 0;

    if (copy == NULL)
        return error_set_memory(error);
    while (rest != NULL && code == 0)
        code = add_id(list, strsep(&rest, ","), form, error);
    free(copy);
    return code;
}

bool device_id_list_is_unresolved(const struct device_id_list *list)
{
    const struct device_id *id;

    vector_for_each (id, list) {
        if (id->vendor == VENDOR_UNNAMED)
            return true;
    }
    return false;
}

/* Returns whether `next` is the device after `id`: one index higher, of the same vendor. */
static bool is_successor(struct device_id id, struct device_id next)
{
    return id.vendor == next.vendor && id.index + 1 == next.index && id.mig == DEVICE_NO_MIG &&
           next.mig == DEVICE_NO_MIG;
}

void device_id_list_describe(const struct device_id_list *present, struct text *out)
{
    size_t end;

    if (present->count == 0) {
        text_append(out, "there are none");
        return;
    }
    text_append(out, present->count == 1 ? "there is only " : "there are ");
    for (size_t first = 0; first < present->count; first = end) {
        for (end = first + 1; end < present->count; end++) {
            if (!is_successor(present->items[end - 1], present->items[end]))
                break;
        }
        /* Two consecutive ids are not shown as a range. */
        if (end == first + 2)
            end--;
        if (first > 0)
            text_append(out, end == present->count ? " and " : ", ");
        device_id_append(present->items[first], out);
        if (end - first > 1) {
            text_append(out, " to ");
            device_id_append(present->items[end - 1], out);
        }
    }
}

void device_id_list_describe_missing(const struct device_id_list *present, struct device_id id,
                                     struct text *out)
{
    text_append_format(out, "no device %s %s here; ",
                       id.vendor == VENDOR_UNNAMED ? "with index" : "named",
                       device_id_format(id).text);
    device_id_list_describe(present, out);
}

int device_id_list_refuse(const struct device_id_list *present, struct device_id id,
                          struct berth_error *error)
{
    struct text sentence = {0};
    int code;

    device_id_list_describe_missing(present, id, &sentence);
    code = text_failed(&sentence)
               ? error_set_memory(error)
               : error_set(error, BERTH_ERROR_INVALID, "%s", text_string(&sentence));
    text_finish(&sentence);
    return code;
}

/* Finds the one device that has the index; sets an error if there is none or more than one. */
static int resolve_index(struct device_id *id, enum vendor vendor,
                         const struct device_id_list *present, struct berth_error *error)
{
    const struct device_id *found = NULL;
    const struct device_id *other;

    vector_for_each (other, present) {
        if (other->index != id->index || other->mig != DEVICE_NO_MIG ||
            (vendor != VENDOR_UNNAMED && other->vendor != vendor))
            continue;
        if (found != NULL)
            return error_set(error, BERTH_ERROR_INVALID,
                             "index %u is ambiguous here: did you mean %s or %s?", id->index,
                             device_id_format(*found).text, device_id_format(*other).text);
        found = other;
    }
    if (found == NULL)
        return device_id_list_refuse(present, *id, error);
    *id = *found;
    return 0;
}

int device_id_list_resolve(struct device_id_list *list, enum vendor vendor,
                           const struct device_id_list *present, struct berth_error *error)
{
    struct device_id *id;
    size_t kept = 0;
    int code = 0;

    vector_for_each (id, list) {
        if (id->vendor == VENDOR_UNNAMED)
            code = resolve_index(id, vendor, present, error);
        if (code < 0)
            return code;
    }
    /* "0,nvidia0" names one device twice. */
    for (size_t i = 0; i < list->count; i++) {
        struct device_id_list before = {.items = list->items, .count = kept};

        if (!device_id_list_has(&before, list->items[i]))
            list->items[kept++] = list->items[i];
    }
    list->count = kept;
    return 0;
}
