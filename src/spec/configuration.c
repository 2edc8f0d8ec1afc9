/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/configuration.h"

#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/error.h"
#include "base/quantity.h"
#include "base/quote.h"
#include "model/request.h"
#include "spec/field.h"

enum { TENANTS_MOST = 1024, DEVICES_MOST = 1000000 };

#define SHORTEST_GRACE (DURATION_SECOND / 1000)

static int parse_duration(const struct field *field, const char *text, void *target,
                          struct berth_error *error)
{
    int64_t duration;
    int code = quantity_parse_duration(text, &duration, error);

    if (code == 0 && duration < (int64_t)field->least)
        code = error_set(error, BERTH_ERROR_RANGE, "wanted at least %s, found %s",
                         quantity_format_duration((int64_t)field->least).text, quote(text).text);
    if (code == 0)
        *(int64_t *)target = duration;
    return code;
}

static const struct field_type type_duration = {
    .wanted = "a duration such as 90s or 1h30m",
    .parse = parse_duration,
};

static int read_policy(const struct reading *reading, const struct field *field,
                       const struct node *node, void *target)
{
    struct configured_policy *policy = target;

    policy->line = node->line;
    policy->column = node->column;
    return field_read(reading, &field_text, field, node, &policy->name);
}

static const struct field_type type_policy = {.read = read_policy};

/* ---- Users and groups, by name or number ---- */

static int parse_user(const struct field *field, const char *text, void *target,
                      struct berth_error *error)
{
    const struct passwd *entry;
    uint64_t number;

    (void)field;
    if (quantity_parse_number(text, 0, UINT32_MAX - 1, &number, NULL) == 0) {
        *(uint32_t *)target = (uint32_t)number;
        return 0;
    }
    entry = getpwnam(text);
    if (entry == NULL)
        return error_set(error, BERTH_ERROR_INVALID, "wanted a user that is known here, found %s",
                         quote(text).text);
    *(uint32_t *)target = entry->pw_uid;
    return 0;
}

static const struct field_type type_user = {.wanted = "a user", .parse = parse_user};

static int parse_group(const struct field *field, const char *text, void *target,
                       struct berth_error *error)
{
    const struct group *entry;
    uint64_t number;

    (void)field;
    if (quantity_parse_number(text, 0, UINT32_MAX - 1, &number, NULL) == 0) {
        *(uint32_t *)target = (uint32_t)number;
        return 0;
    }
    entry = getgrnam(text);
    if (entry == NULL)
        return error_set(error, BERTH_ERROR_INVALID, "wanted a group that is known here, found %s",
                         quote(text).text);
    *(uint32_t *)target = entry->gr_gid;
    return 0;
}

static const struct field_type type_group = {.wanted = "a group", .parse = parse_group};

static int read_users(const struct reading *reading, const struct field *field,
                      const struct node *node, void *target)
{
    struct number_list *list = target;
    int code = 0;

    if (node->kind != NODE_LIST)
        return document_error(reading->document, node, reading->error, BERTH_ERROR_SYNTAX,
                              "%s: wanted a list of users, found %s", field->name,
                              node_describe(node).text);
    for (size_t i = 0; i < node->count && code == 0; i++) {
        uint32_t *uid = vector_append(list);

        code = uid == NULL ? error_set_memory(reading->error)
                           : field_read(reading, &type_user, field, node->items[i], uid);
    }
    return code;
}

static const struct field_type type_users = {.read = read_users};

/* ---- Limits ---- */

static int parse_devices(const struct field *field, const char *text, void *target,
                         struct berth_error *error)
{
    (void)field;
    return quantity_parse_decimal(text, SHARE_DECIMALS, (uint64_t)DEVICES_MOST * SHARE_WHOLE,
                                  target, error);
}

static const struct field_type type_devices = {
    .wanted = "a number of devices such as 2 or 0.5",
    .bare = true,
    .parse = parse_devices,
};

static const struct field_type type_group_limits;

static bool is_limited(const struct limit_list *list, uint32_t key, bool is_group)
{
    const struct device_limit *limit;

    vector_for_each (limit, list) {
        if (limit->key == key && limit->is_group == is_group)
            return true;
    }
    return false;
}

static int read_limit(const struct reading *reading, const struct field *field,
                      const struct node *key, const struct node *value, struct limit_list *list)
{
    struct device_limit limit = {.is_group = field->type == &type_group_limits};
    struct device_limit *added;
    int code =
        field_read(reading, limit.is_group ? &type_group : &type_user, field, key, &limit.key);

    if (code == 0)
        code = field_read(reading, &type_devices, field, value, &limit.allowance.devices);
    if (code == 0 && is_limited(list, limit.key, limit.is_group))
        return document_error(reading->document, key, reading->error, BERTH_ERROR_INVALID,
                              "%s: %s is given twice", field->name, node_describe(key).text);
    if (code < 0)
        return code;
    added = vector_append(list);
    if (added == NULL)
        return error_set_memory(reading->error);
    *added = limit;
    return 0;
}

/* A mapping of names to how many devices. */
static int read_limits(const struct reading *reading, const struct field *field,
                       const struct node *node, void *target)
{
    int code = 0;

    if (node->kind != NODE_MAPPING)
        return document_error(reading->document, node, reading->error, BERTH_ERROR_SYNTAX,
                              "%s: wanted a mapping of names to numbers of devices, found %s",
                              field->name, node_describe(node).text);
    for (size_t i = 0; i + 1 < node->count && code == 0; i += 2)
        code = read_limit(reading, field, node->items[i], node->items[i + 1], target);
    return code;
}

static const struct field_type type_user_limits = {.read = read_limits};
static const struct field_type type_group_limits = {.read = read_limits};

static const struct field limit_fields[] = {
    {"users", &type_user_limits, .offset = offsetof(struct configuration, limits)},
    {"groups", &type_group_limits, .offset = offsetof(struct configuration, limits)},
};

static const struct record limits_record = {
    .what = "limits",
    .fields = limit_fields,
    .field_count = COUNT(limit_fields),
};

static int read_limits_record(const struct reading *reading, const struct field *field,
                              const struct node *node, void *target)
{
    return record_read(reading, field->record, node, target);
}

static const struct field_type type_limits_record = {.read = read_limits_record};

/* ---- The whole ---- */

#define MEMBER(member) .offset = offsetof(struct configuration, member)

static const struct field configuration_fields[] = {
    {"policy", &type_policy, MEMBER(policy)},
    {"grace", &type_duration, MEMBER(grace), .least = SHORTEST_GRACE},
    {"age_step", &type_duration, MEMBER(age_step), .least = DURATION_SECOND},
    {"time_slice_tenants", &field_number32, MEMBER(time_slice_tenants), .least = 1,
     .most = TENANTS_MOST},
    {"mps_tenants", &field_number32, MEMBER(mps_tenants), .least = 1, .most = TENANTS_MOST},
    {"default_time", &type_duration, MEMBER(default_time), .least = DURATION_SECOND},
    {"longest_time", &type_duration, MEMBER(longest_time), .least = DURATION_SECOND},
    {"high", &type_users, MEMBER(high.users)},
    {"limits", &type_limits_record, .offset = 0, .record = &limits_record},
};

static int check_times(const struct reading *reading, const struct node *node, void *target)
{
    const struct configuration *configuration = target;

    if (configuration->longest_time == 0 ||
        configuration->default_time <= configuration->longest_time)
        return 0;
    return document_error(reading->document, record_value(node, "default_time"), reading->error,
                          BERTH_ERROR_INVALID,
                          "default_time: wanted at most longest_time (%s), found %s",
                          quantity_format_duration(configuration->longest_time).text,
                          quantity_format_duration(configuration->default_time).text);
}

static const struct record configuration_record = {
    .what = "a configuration",
    .fields = configuration_fields,
    .field_count = COUNT(configuration_fields),
    .check = check_times,
};

static const struct configuration usual = {
    .grace = 10 * DURATION_SECOND,
    .age_step = DURATION_HOUR,
    .time_slice_tenants = 4,
    .mps_tenants = 8,
    .time_warning = 5 * DURATION_MINUTE,
    .each_user = {.devices = DEVICES_UNLIMITED},
    .bounds = {.connections = 1000, .messages = 5000, .waiting = 1000},
};

static int build(const struct document *document, struct configuration *ret_configuration,
                 struct berth_error *error)
{
    struct configuration configuration = usual;
    int code = 0;

    if (document->root != NULL && !node_is_null(document->root))
        code = record_read(&(struct reading){document, error}, &configuration_record,
                           document->root, &configuration);
    if (code < 0)
        configuration_finish(&configuration);
    else
        *ret_configuration = configuration;
    return code;
}

int configuration_parse(const char *file, const char *text, size_t length,
                        struct configuration *ret_configuration, struct berth_error *error)
{
    struct document document;
    int code = document_parse(&document, file, text, length, error);

    if (code < 0)
        return code;
    code = build(&document, ret_configuration, error);
    document_finish(&document);
    return code;
}

int configuration_read(const char *path, struct configuration *ret_configuration,
                       struct berth_error *error)
{
    struct berth_error reason = BERTH_ERROR_INIT;
    struct document document;
    int code = path == NULL ? BERTH_ERROR_NOT_FOUND : document_read(&document, path, &reason);

    if (code == BERTH_ERROR_NOT_FOUND) {
        *ret_configuration = usual;
        return 0;
    }
    if (code < 0)
        return error_set(error, code, "%s", reason.message);
    code = build(&document, ret_configuration, error);
    document_finish(&document);
    return code;
}

static void people_finish(struct people *people)
{
    vector_finish(&people->users);
    vector_finish(&people->groups);
}

void configuration_finish(struct configuration *configuration)
{
    struct reserved_device *reserved;

    free(configuration->policy.name);
    people_finish(&configuration->admins);
    people_finish(&configuration->high);
    vector_finish(&configuration->limits);
    vector_finish(&configuration->preferred);
    vector_for_each (reserved, &configuration->reserved)
        people_finish(&reserved->people);
    vector_finish(&configuration->reserved);
    string_list_finish(&configuration->squatters_except);
    string_list_finish(&configuration->prolog.words);
    string_list_finish(&configuration->epilog.words);
    string_list_finish(&configuration->notify);
    *configuration = (struct configuration){0};
}

bool number_list_has(const struct number_list *list, uint32_t number)
{
    const uint32_t *item;

    vector_for_each (item, list) {
        if (*item == number)
            return true;
    }
    return false;
}
