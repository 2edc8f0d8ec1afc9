/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/contradictions.h"

#include <string.h>

/* The value of the field whose name is the first `length` bytes of `name`. */
static const struct node *value_of(const struct node *mapping, const char *name, size_t length)
{
    if (mapping->kind != NODE_MAPPING)
        return NULL;
    for (size_t i = 0; i + 1 < mapping->count; i += 2) {
        const struct node *key = mapping->items[i];

        if (key->length == length && memcmp(key->text, name, length) == 0)
            return mapping->items[i + 1];
    }
    return NULL;
}

static const struct node *walk(const struct node *node, const char *path)
{
    while (node != NULL && *path != '\0') {
        size_t length = strcspn(path, ".");

        node = value_of(node, path, length);
        path += length + (path[length] == '.');
    }
    return node;
}

const char *path_within(const struct movable *movable, const char *path)
{
    size_t length = strlen(movable->path);

    return strncmp(path, movable->path, length) == 0 && path[length] == '.' ? path + length + 1
                                                                            : NULL;
}

const struct node *movable_value(const struct node *root, const struct movable *movable)
{
    const struct node *node = walk(root, movable->path);

    return node != NULL && !node_is_null(node) ? node : walk(root, movable->elsewhere);
}

const struct node *path_value(const struct node *root, const struct movable *movable,
                              const char *path)
{
    const char *rest = path_within(movable, path);

    return rest == NULL ? walk(root, path) : walk(movable_value(root, movable), rest);
}

static bool has_one_of(const struct node *node, const char *const *values)
{
    if (node->kind != NODE_SCALAR)
        return false;
    for (; *values != NULL; values++) {
        if (strcmp(node->text, *values) == 0)
            return true;
    }
    return false;
}

bool condition_holds(const struct node *root, const struct movable *movable,
                     const struct condition *condition)
{
    const struct node *node = path_value(root, movable, condition->path);
    bool given = node != NULL && !node_is_null(node);

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

static bool all_hold(const struct node *root, const struct movable *movable,
                     const struct contradiction *row)
{
    for (size_t i = 0; i < CONDITIONS_MAX && row->conditions[i].test != CONDITION_NONE; i++) {
        if (!condition_holds(root, movable, &row->conditions[i]))
            return false;
    }
    return true;
}

/* The place of the field, or of the nearest record above it. */
static const struct node *place_of(const struct node *root, const struct movable *movable,
                                   const char *path)
{
    const struct node *node = path_value(root, movable, path);

    if (node == NULL && path_within(movable, path) != NULL)
        node = movable_value(root, movable);
    return node == NULL ? root : node;
}

int contradictions_check(const struct reading *reading, const struct contradiction *rows,
                         const struct movable *movable, const struct node *root)
{
    for (const struct contradiction *row = rows; row->sentence != NULL; row++) {
        if (all_hold(root, movable, row))
            return document_error(reading->document, place_of(root, movable, row->at),
                                  reading->error, BERTH_ERROR_INVALID, "%s", row->sentence);
    }
    return 0;
}
