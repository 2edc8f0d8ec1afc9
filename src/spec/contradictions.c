/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/contradictions.h"

#include <string.h>

/* The value of the field whose name is the first `length` bytes of `name`. */
static const struct document_node *value_of(const struct document_node *mapping, const char *name,
                                            size_t length)
{
    if (mapping->kind != NODE_MAPPING)
        return NULL;
    for (size_t i = 0; i + 1 < mapping->count; i += 2) {
        const struct document_node *key = mapping->items[i];

        if (key->length == length && memcmp(key->text, name, length) == 0)
            return mapping->items[i + 1];
    }
    return NULL;
}

static const struct document_node *walk_path(const struct document_node *node, const char *path)
{
    while (node != NULL && *path != '\0') {
        size_t length = strcspn(path, ".");

        node = value_of(node, path, length);
        path += length + (path[length] == '.');
    }
    return node;
}

const char *contradictions_path_within(const struct movable *movable, const char *path)
{
    size_t length = strlen(movable->path);

    return strncmp(path, movable->path, length) == 0 && path[length] == '.' ? path + length + 1
                                                                            : NULL;
}

const struct document_node *contradictions_movable_value(const struct document_node *root,
                                                         const struct movable *movable)
{
    const struct document_node *node = walk_path(root, movable->path);

    return node != NULL && !document_node_is_null(node) ? node
                                                        : walk_path(root, movable->elsewhere);
}

const struct document_node *contradictions_path_value(const struct document_node *root,
                                                      const struct movable *movable,
                                                      const char *path)
{
    const char *rest = contradictions_path_within(movable, path);

    return rest == NULL ? walk_path(root, path)
                        : walk_path(contradictions_movable_value(root, movable), rest);
}

static bool has_one_of(const struct document_node *node, const char *const *values)
{
    if (node->kind != NODE_SCALAR)
        return false;
    for (; *values != NULL; values++) {
        if (strcmp(node->text, *values) == 0)
            return true;
    }
    return false;
}

bool contradictions_condition_holds(const struct document_node *root, const struct movable *movable,
                                    const struct condition *condition)
{
    const struct document_node *node = contradictions_path_value(root, movable, condition->path);
    bool given = node != NULL && !document_node_is_null(node);

    switch (condition->test) {
    case CONDITION_NONE:
        return true;
    case CONDITION_GIVEN:
        return given;
    case CONDITION_LEFT_OUT:
        return !given;
    case CONDITION_EMPTY:
        return node != NULL && !given;
    case CONDITION_ONE_OF:
        return given && has_one_of(node, condition->values);
    case CONDITION_ANOTHER:
        return given && !has_one_of(node, condition->values);
    case CONDITION_NOT_GIVEN_AS:
        return !given || !has_one_of(node, condition->values);
    }
    return false;
}

static bool all_hold(const struct document_node *root, const struct movable *movable,
                     const struct contradiction *row)
{
    for (size_t i = 0; i < CONDITIONS_MAX && row->conditions[i].test != CONDITION_NONE; i++) {
        if (!contradictions_condition_holds(root, movable, &row->conditions[i]))
            return false;
    }
    return true;
}

/* The place of the field, or of the nearest record above it. */
static const struct document_node *position_of(const struct document_node *root,
                                               const struct movable *movable, const char *path)
{
    const struct document_node *node = contradictions_path_value(root, movable, path);

    if (node == NULL && contradictions_path_within(movable, path) != NULL)
        node = contradictions_movable_value(root, movable);
    return node == NULL ? root : node;
}

int contradictions_check(const struct field_reading *reading, const struct contradiction *rows,
                         const struct movable *movable, const struct document_node *root)
{
    for (const struct contradiction *row = rows; row->sentence != NULL; row++) {
        if (all_hold(root, movable, row))
            return document_error(reading->document, position_of(root, movable, row->at),
                                  reading->error, BERTH_ERROR_INVALID, "%s", row->sentence);
    }
    return 0;
}
