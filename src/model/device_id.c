/* SPDX-License-Identifier: Apache-2.0 */
#include "model/device_id.h"

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

/* Reads digits at *cursor and moves it past them. One spelling per number: no leading zeros. */
static bool take_index(const char **cursor, uint32_t *ret_index)
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

static bool take_id(const char *string, struct device_id *id)
{
    for (const struct choice *choice = vendor_names; choice->name != NULL; choice++) {
        const char *cursor = string + strlen(choice->name);

        if (strncmp(string, choice->name, strlen(choice->name)) != 0)
            continue;
        id->vendor = (enum vendor)choice->value;
        id->mig = DEVICE_NO_MIG;
        if (!take_index(&cursor, &id->index))
            return false;
        if (id->vendor == VENDOR_NVIDIA && *cursor == '.') {
            cursor++;
            if (!take_index(&cursor, &id->mig))
                return false;
        }
        return *cursor == '\0';
    }
    return false;
}

int device_id_parse(const char *string, struct device_id *ret_id, struct berth_error *error)
{
    struct device_id id;

    if (!take_id(string, &id))
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "wanted a device id such as nvidia0, amd3 or nvidia0.1, found %s",
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

static int add_one(struct device_id_list *list, const char *string, struct berth_error *error)
{
    struct device_id id;
    struct device_id *place;
    int code = device_id_parse(string, &id, error);

    if (code < 0 || device_id_list_has(list, id))
        return code;
    if (list->count == DEVICE_ID_LIST_MAX)
        return error_set(error, BERTH_ERROR_LIMIT, "wanted at most %d device ids, found more",
                         DEVICE_ID_LIST_MAX);
    place = vector_append(list);
    if (place == NULL)
        return error_set_memory(error);
    *place = id;
    return 0;
}

int device_id_list_parse(struct device_id_list *list, const char *string, struct berth_error *error)
{
    char *copy = strdup(string);
    char *rest = copy;
    int code = 0;

    if (copy == NULL)
        return error_set_memory(error);
    while (rest != NULL && code == 0)
        code = add_one(list, strsep(&rest, ","), error);
    free(copy);
    return code;
}
