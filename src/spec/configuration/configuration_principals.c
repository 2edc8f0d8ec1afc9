/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads users and groups, by name or number.
 */
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/error.h"
#include "base/text/quantity.h"
#include "base/text/quote.h"
#include "base/text/suggest.h"
#include "spec/configuration/configuration_types.h"

/* The maximum number of names to compare for a suggestion. The user database of a large
 * organisation is too long to read in full. */
enum { NAMES_MAX = 10000 };

/* The database of users or of groups. */
struct registry {
    const char *what;
    bool (*find)(const char *name, uint32_t *ret_number);
    void (*begin)(void);
    const char *(*next)(void); /* NULL: no more; valid until the next call */
    void (*end)(void);
};

static bool find_user(const char *name, uint32_t *ret_number)
{
    const struct passwd *entry = getpwnam(name);

    if (entry != NULL)
        *ret_number = entry->pw_uid;
    return entry != NULL;
}

static const char *next_user(void)
{
    const struct passwd *entry = getpwent();

    return entry == NULL ? NULL : entry->pw_name;
}

static bool find_group(const char *name, uint32_t *ret_number)
{
    const struct group *entry = getgrnam(name);

    if (entry != NULL)
        *ret_number = entry->gr_gid;
    return entry != NULL;
}

static const char *next_group(void)
{
    const struct group *entry = getgrent();

    return entry == NULL ? NULL : entry->gr_name;
}

static const struct registry registry_users = {
    .what = "a user",
    .find = find_user,
    .begin = setpwent,
    .next = next_user,
    .end = endpwent,
};

static const struct registry registry_groups = {
    .what = "a group",
    .find = find_group,
    .begin = setgrent,
    .next = next_group,
    .end = endgrent,
};

bool configuration_find_name(bool is_group, const char *name, uint32_t *ret_number)
{
    return (is_group ? &registry_groups : &registry_users)->find(name, ret_number);
}

/* Finds the name that is most like `text`, and writes it to `best`. */
static void find_similar(const struct registry *registry, const char *text, char *best, size_t size)
{
    struct suggestion nearest = {.wanted = text};
    const char *name;

    registry->begin();
    for (int i = 0; i < NAMES_MAX && (name = registry->next()) != NULL; i++) {
        suggest_compare(&nearest, name);
        if (nearest.best != name)
            continue;
        snprintf(best, size, "%s", name);
        nearest.best = best;
    }
    registry->end();
}

static int fail_unknown(const struct registry *registry, bool may_ask, const char *text,
                        struct berth_error *error)
{
    char best[80] = "";

    if (may_ask)
        find_similar(registry, text, best, sizeof(best));
    if (best[0] == '\0')
        return error_set(error, BERTH_ERROR_INVALID, "expected %s that is known here, got %s",
                         registry->what, quote(text).text);
    return error_set(error, BERTH_ERROR_INVALID,
                     "expected %s that is known here, got %s (did you mean %s?)", registry->what,
                     quote(text).text, best);
}

static int find_number(const struct field_reading *reading, bool is_group, const char *text,
                       uint32_t *target)
{
    const struct configuration_names *names = reading->context;
    const struct registry *registry = is_group ? &registry_groups : &registry_users;
    uint64_t number;

    if (quantity_parse_number(text, 0, UINT32_MAX - 1, &number, NULL) == 0) {
        *target = (uint32_t)number;
        return 0;
    }
    if (names == NULL ? registry->find(text, target)
                      : names->find(names->context, is_group, text, target))
        return 0;
    return fail_unknown(registry, names == NULL, text, reading->error);
}

/* The target is a const char *: the text in the document. */
static int parse_name(const struct field *field, const char *text, void *target,
                      struct berth_error *error)
{
    (void)field;
    (void)error;
    *(const char **)target = text;
    return 0;
}

static const struct field_type type_user_name = {.wanted = "a user", .parse = parse_name};
static const struct field_type type_group_name = {.wanted = "a group", .parse = parse_name};

static int read_name(const struct field_reading *reading, const struct field *field,
                     const struct document_node *node, bool is_group, void *target)
{
    const char *name = NULL;
    int code =
        field_read(reading, is_group ? &type_group_name : &type_user_name, field, node, &name);

    if (code < 0)
        return code;
    code = find_number(reading, is_group, name, target);
    if (code == 0)
        return 0;
    error_wrap(reading->error, code, "%s", field->name);
    return document_wrap(reading->document, node, reading->error, code);
}

static int read_user(const struct field_reading *reading, const struct field *field,
                     const struct document_node *node, void *target)
{
    return read_name(reading, field, node, false, target);
}

static int read_group(const struct field_reading *reading, const struct field *field,
                      const struct document_node *node, void *target)
{
    return read_name(reading, field, node, true, target);
}

const struct field_type configuration_user = {.wanted = "a user", .read = read_user};
const struct field_type configuration_group = {.wanted = "a group", .read = read_group};

static int read_numbers(const struct field_reading *reading, const struct field *field,
                        const struct document_node *node, const struct field_type *type,
                        const char *of, struct number_list *list)
{
    int code = field_require_list(reading, field, node, of, CONFIGURED_PRINCIPALS_MAX);

    for (size_t i = 0; i < node->count && code == 0; i++) {
        uint32_t *number = vector_append(list);

        code = number == NULL ? error_set_memory(reading->error)
                              : field_read(reading, type, field, node->items[i], number);
    }
    return code;
}

static int read_users(const struct field_reading *reading, const struct field *field,
                      const struct document_node *node, void *target)
{
    return read_numbers(reading, field, node, &configuration_user, "users", target);
}

static int read_groups(const struct field_reading *reading, const struct field *field,
                       const struct document_node *node, void *target)
{
    return read_numbers(reading, field, node, &configuration_group, "groups", target);
}

static const struct field_type type_users = {.read = read_users};
static const struct field_type type_groups = {.read = read_groups};

static const struct field principals_fields[] = {
    {"users", &type_users, .offset = offsetof(struct principals, users)},
    {"groups", &type_groups, .offset = offsetof(struct principals, groups)},
};

static const struct record principals_record = {
    .what = "a mapping of users and groups",
    .fields = principals_fields,
    .field_count = COUNT(principals_fields),
};

static int read_principals(const struct field_reading *reading, const struct field *field,
                           const struct document_node *node, void *target)
{
    struct principals *principals = target;

    if (node->kind == NODE_MAPPING)
        return field_read_record(reading, &principals_record, node, principals);
    if (node->kind == NODE_LIST)
        return read_users(reading, field, node, &principals->users);
    return document_error(reading->document, node, reading->error, BERTH_ERROR_SYNTAX,
                          "%s: expected a list of users, or a mapping of users and groups, got %s",
                          field->name, document_node_describe(node).text);
}

const struct field_type configuration_principals = {.read = read_principals};

bool configuration_number_list_has(const struct number_list *list, uint32_t number)
{
    const uint32_t *item;

    vector_for_each (item, list) {
        if (*item == number)
            return true;
    }
    return false;
}
