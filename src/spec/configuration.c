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

/* The number of a user or group: its name, or the number itself. */
static int find_user(const char *name, uint32_t *ret_uid, struct berth_error *error)
{
    const struct passwd *entry;
    uint64_t number;

    if (quantity_parse_number(name, 0, UINT32_MAX - 1, &number, NULL) == 0) {
        *ret_uid = (uint32_t)number;
        return 0;
    }
    entry = getpwnam(name);
    if (entry == NULL)
        return error_set(error, BERTH_ERROR_INVALID, "wanted a user that is known here, found %s",
                         quote(name).text);
    *ret_uid = entry->pw_uid;
    return 0;
}

static int find_group(const char *name, uint32_t *ret_gid, struct berth_error *error)
{
    const struct group *entry;
    uint64_t number;

    if (quantity_parse_number(name, 0, UINT32_MAX - 1, &number, NULL) == 0) {
        *ret_gid = (uint32_t)number;
        return 0;
    }
    entry = getgrnam(name);
    if (entry == NULL)
        return error_set(error, BERTH_ERROR_INVALID, "wanted a group that is known here, found %s",
                         quote(name).text);
    *ret_gid = entry->gr_gid;
    return 0;
}

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

/* A list of users. */
static int read_users(const struct reading *reading, const struct field *field,
                      const struct node *node, void *target)
{
    struct {
        VECTOR_OF(uint32_t);
    } *list = target;

    if (node->kind != NODE_LIST)
        return document_error(reading->document, node, reading->error, BERTH_ERROR_SYNTAX,
                              "%s: wanted a list of users, found %s", field->name,
                              node_describe(node).text);
    for (size_t i = 0; i < node->count; i++) {
        const struct node *item = node->items[i];
        uint32_t *uid = vector_append(list);
        int code = uid == NULL ? error_set_memory(reading->error) : 0;

        if (code == 0 && item->kind != NODE_SCALAR)
            return document_error(reading->document, item, reading->error, BERTH_ERROR_SYNTAX,
                                  "%s: wanted a user, found %s", field->name,
                                  node_describe(item).text);
        if (code == 0)
            code = find_user(item->text, uid, reading->error);
        if (code < 0)
            return document_wrap(reading->document, item, reading->error,
                                 error_wrap(reading->error, code, "%s", field->name));
    }
    return 0;
}

static const struct field_type type_users = {.read = read_users};

struct limit_list {
    VECTOR_OF(struct device_limit);
};

static int read_limit(const struct reading *reading, const struct field *field,
                      const struct node *key, const struct node *value, struct limit_list *list)
{
    bool is_group = field->choices != NULL;
    struct device_limit *limit = vector_append(list);
    int code = limit == NULL ? error_set_memory(reading->error) : 0;
    const struct node *place = key;

    if (code == 0 && (key->kind != NODE_SCALAR || value->kind != NODE_SCALAR))
        code = error_set(reading->error, BERTH_ERROR_SYNTAX, "wanted a name and a number, found %s",
                         node_describe(value).text);
    if (code == 0)
        code = is_group ? find_group(key->text, &limit->key, reading->error)
                        : find_user(key->text, &limit->key, reading->error);
    if (code == 0) {
        place = value;
        limit->is_group = is_group;
        code = quantity_parse_decimal(value->text, SHARE_DECIMALS,
                                      (uint64_t)DEVICES_MOST * SHARE_WHOLE, &limit->most,
                                      reading->error);
    }
    if (code < 0)
        return document_wrap(reading->document, place, reading->error,
                             error_wrap(reading->error, code, "%s", field->name));
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

static const struct field_type type_limits = {.read = read_limits};

/* Marks the field whose names are groups'. */
static const struct choice groups_mark[] = {{0}};

static const struct field limit_fields[] = {
    {"users", &type_limits, .offset = offsetof(struct configuration, limits)},
    {"groups", &type_limits, .offset = offsetof(struct configuration, limits),
     .choices = groups_mark},
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

#define MEMBER(member) .offset = offsetof(struct configuration, member)

static const struct field configuration_fields[] = {
    {"policy", &field_text, MEMBER(policy)},
    {"grace", &type_duration, MEMBER(grace), .least = 0},
    {"age_step", &type_duration, MEMBER(age_step), .least = DURATION_SECOND},
    {"time_slice_tenants", &field_number32, MEMBER(time_slice_tenants), .least = 1,
     .most = TENANTS_MOST},
    {"mps_tenants", &field_number32, MEMBER(mps_tenants), .least = 1, .most = TENANTS_MOST},
    {"default_time", &type_duration, MEMBER(default_time), .least = DURATION_SECOND},
    {"longest_time", &type_duration, MEMBER(longest_time), .least = DURATION_SECOND},
    {"high", &type_users, MEMBER(high)},
    {"limits", &type_limits_record, .offset = 0, .record = &limits_record},
};

static const struct record configuration_record = {
    .what = "a configuration",
    .fields = configuration_fields,
    .field_count = COUNT(configuration_fields),
};

static void set_defaults(struct configuration *configuration)
{
    *configuration = (struct configuration){
        .grace = 10 * DURATION_SECOND,
        .age_step = DURATION_HOUR,
        .time_slice_tenants = 4,
        .mps_tenants = 8,
    };
}

int configuration_read(const char *path, struct configuration *ret_configuration,
                       struct berth_error *error)
{
    struct configuration configuration;
    struct document document;
    int code = path == NULL ? BERTH_ERROR_NOT_FOUND : document_read(&document, path, error);

    set_defaults(&configuration);
    if (code == BERTH_ERROR_NOT_FOUND) {
        if (error != NULL)
            *error = (struct berth_error)BERTH_ERROR_INIT;
        *ret_configuration = configuration;
        return 0;
    }
    if (code < 0)
        return code;
    if (document.root != NULL && !node_is_null(document.root))
        code = record_read(&(struct reading){&document, error}, &configuration_record,
                           document.root, &configuration);
    document_finish(&document);
    if (code < 0)
        configuration_finish(&configuration);
    else
        *ret_configuration = configuration;
    return code;
}

void configuration_finish(struct configuration *configuration)
{
    free(configuration->policy);
    vector_finish(&configuration->high);
    vector_finish(&configuration->limits);
    *configuration = (struct configuration){0};
}
