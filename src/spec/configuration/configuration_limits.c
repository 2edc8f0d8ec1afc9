/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads `limits`: how many devices a user may hold at once, and for how long.
 */
#include "base/count.h"
#include "base/error.h"
#include "base/text/quantity.h"
#include "model/request.h"
#include "spec/configuration/configuration_types.h"

enum { DEVICES_MAX = 1000000 };

static int parse_devices(const struct field *field, const char *text, void *target,
                         struct berth_error *error)
{
    (void)field;
    return quantity_parse_decimal(text, SHARE_DECIMALS, (uint64_t)DEVICES_MAX * SHARE_WHOLE, target,
                                  error);
}

static const struct field_type type_devices = {
    .wanted = "a number of devices such as 2 or 0.5",
    .bare = true,
    .parse = parse_devices,
};

static const struct field allowance_fields[] = {
    {"devices", &type_devices, .offset = offsetof(struct allowance, devices)},
    {"longest_time", &field_duration, .offset = offsetof(struct allowance, longest_time),
     .min = DURATION_SECOND},
};

static const struct record allowance_record = {
    .what = "a limit",
    .fields = allowance_fields,
    .field_count = COUNT(allowance_fields),
};

/* Reads a number of devices, or a mapping with devices, longest_time or both. */
static int read_allowance(const struct field_reading *reading, const struct field *field,
                          const struct document_node *node, void *target)
{
    struct allowance allowance = {.devices = DEVICES_UNLIMITED};
    int code = node->kind == NODE_MAPPING
                   ? field_read_record(reading, &allowance_record, node, &allowance)
                   : field_read(reading, &type_devices, field, node, &allowance.devices);

    if (code < 0)
        return code;
    if (allowance.devices == DEVICES_UNLIMITED && allowance.longest_time == 0)
        return document_error(reading->document, node, reading->error, BERTH_ERROR_SYNTAX,
                              "%s: expected devices, longest_time or both, got neither",
                              field->name);
    *(struct allowance *)target = allowance;
    return 0;
}

static const struct field_type type_allowance = {.read = read_allowance};

static bool is_limited(const struct limit_list *list, uint32_t key, bool is_group)
{
    const struct device_limit *limit;

    vector_for_each (limit, list) {
        if (limit->key == key && limit->is_group == is_group)
            return true;
    }
    return false;
}

static int read_limit(const struct field_reading *reading, const struct field *field,
                      const struct document_node *key, const struct document_node *value,
                      bool is_group, struct limit_list *list)
{
    struct device_limit limit = {.is_group = is_group};
    struct device_limit *added;
    int code = field_read(reading, is_group ? &configuration_group : &configuration_user, field,
                          key, &limit.key);

    if (code == 0)
        code = read_allowance(reading, field, value, &limit.allowance);
    if (code < 0)
        return code;
    if (is_limited(list, limit.key, is_group))
        return document_error(reading->document, key, reading->error, BERTH_ERROR_INVALID,
                              "%s: %s is given twice", field->name,
                              document_node_describe(key).text);
    if (list->count == CONFIGURED_LIMITS_MAX)
        return document_error(reading->document, key, reading->error, BERTH_ERROR_LIMIT,
                              "%s: expected at most %d limits, got more", field->name,
                              CONFIGURED_LIMITS_MAX);
    added = vector_append(list);
    if (added == NULL)
        return error_set_memory(reading->error);
    *added = limit;
    return 0;
}

/* Reads a mapping of names to limits. */
static int read_limits(const struct field_reading *reading, const struct field *field,
                       const struct document_node *node, bool is_group, struct limit_list *list)
{
    int code = 0;

    if (node->kind != NODE_MAPPING)
        return document_error(reading->document, node, reading->error, BERTH_ERROR_SYNTAX,
                              "%s: expected a mapping of names to numbers of devices, got %s",
                              field->name, document_node_describe(node).text);
    for (size_t i = 0; i + 1 < node->count && code == 0; i += 2)
        code = read_limit(reading, field, node->items[i], node->items[i + 1], is_group, list);
    return code;
}

static int read_user_limits(const struct field_reading *reading, const struct field *field,
                            const struct document_node *node, void *target)
{
    return read_limits(reading, field, node, false, target);
}

static int read_group_limits(const struct field_reading *reading, const struct field *field,
                             const struct document_node *node, void *target)
{
    return read_limits(reading, field, node, true, target);
}

static const struct field_type type_user_limits = {.read = read_user_limits};
static const struct field_type type_group_limits = {.read = read_group_limits};

static const struct field limits_fields[] = {
    {"each_user", &type_allowance, .offset = offsetof(struct configuration, each_user)},
    {"users", &type_user_limits, .offset = offsetof(struct configuration, limits)},
    {"groups", &type_group_limits, .offset = offsetof(struct configuration, limits)},
};

static const struct record limits_record = {
    .what = "limits",
    .fields = limits_fields,
    .field_count = COUNT(limits_fields),
};

static int read_limits_record(const struct field_reading *reading, const struct field *field,
                              const struct document_node *node, void *target)
{
    (void)field;
    return field_read_record(reading, &limits_record, node, target);
}

const struct field_type configuration_limits = {.read = read_limits_record};
