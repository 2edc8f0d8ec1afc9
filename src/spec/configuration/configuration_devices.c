/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads preferred and reserved devices.
 */
#include <string.h>

#include "base/error.h"
#include "spec/configuration/configuration_types.h"

static int parse_id(const struct field *field, const char *text, void *target,
                    struct berth_error *error)
{
    (void)field;
    return device_id_parse(text, target, error);
}

static const struct field_type type_id = {
    .wanted = "a device id such as nvidia0",
    .parse = parse_id,
};

static int fail_twice(const struct field_reading *reading, const struct field *field,
                      const struct document_node *node)
{
    return document_error(reading->document, node, reading->error, BERTH_ERROR_INVALID,
                          "%s: %s is given twice", field->name, document_node_describe(node).text);
}

static int read_ids(const struct field_reading *reading, const struct field *field,
                    const struct document_node *node, void *target)
{
    struct device_id_list *list = target;
    int code = field_require_list(reading, field, node, "device ids", DEVICE_ID_LIST_MAX);

    for (size_t i = 0; i < node->count && code == 0; i++) {
        struct device_id id;
        struct device_id *added;

        code = field_read(reading, &type_id, field, node->items[i], &id);
        if (code == 0 && device_id_list_has(list, id))
            code = fail_twice(reading, field, node->items[i]);
        if (code < 0)
            break;
        added = vector_append(list);
        if (added == NULL)
            return error_set_memory(reading->error);
        *added = id;
    }
    return code;
}

const struct field_type configuration_device_ids = {.read = read_ids};

static bool is_reserved(const struct reserved_list *list, struct device_id id)
{
    const struct reserved_device *reserved;

    vector_for_each (reserved, list) {
        if (device_id_equals(reserved->id, id))
            return true;
    }
    return false;
}

/* Returns whether the value is `nobody`: the device is reserved for no user. A user called nobody
 * must be in a list. */
static bool is_nobody(const struct document_node *node)
{
    return node->kind == NODE_SCALAR && strcmp(node->text, "nobody") == 0 &&
           node->length == strlen("nobody");
}

static int read_device(const struct field_reading *reading, const struct field *field,
                       const struct document_node *key, const struct document_node *value,
                       struct reserved_list *list)
{
    struct device_id id;
    struct reserved_device *added;
    int code = field_read(reading, &type_id, field, key, &id);

    if (code < 0)
        return code;
    if (is_reserved(list, id))
        return fail_twice(reading, field, key);
    added = vector_append(list);
    if (added == NULL)
        return error_set_memory(reading->error);
    added->id = id;
    if (is_nobody(value))
        return 0;
    if (value->kind == NODE_SCALAR)
        return document_error(reading->document, value, reading->error, BERTH_ERROR_SYNTAX,
                              "%s: expected a list of users, a mapping of users and groups, or "
                              "nobody, got %s",
                              field->name, document_node_describe(value).text);
    return field_read(reading, &configuration_principals, field, value, &added->principals);
}

static int read_reserved(const struct field_reading *reading, const struct field *field,
                         const struct document_node *node, void *target)
{
    int code = 0;

    if (node->kind != NODE_MAPPING)
        return document_error(reading->document, node, reading->error, BERTH_ERROR_SYNTAX,
                              "%s: expected a mapping of device ids to users, got %s", field->name,
                              document_node_describe(node).text);
    if (node->count / 2 > DEVICE_ID_LIST_MAX)
        return document_error(reading->document, node, reading->error, BERTH_ERROR_LIMIT,
                              "%s: expected at most %d device ids, got %zu", field->name,
                              DEVICE_ID_LIST_MAX, node->count / 2);
    for (size_t i = 0; i + 1 < node->count && code == 0; i += 2)
        code = read_device(reading, field, node->items[i], node->items[i + 1], target);
    return code;
}

const struct field_type configuration_reserved = {.read = read_reserved};
