/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/local_users.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text/span.h"

enum { FILE_SIZE_MAX = 64 << 20 };

/* Sorts by name; the first line of several with the same name comes first. */
static int compare_users(const void *one, const void *other)
{
    const struct local_user *first = one;
    const struct local_user *second = other;
    int order = strcmp(first->name, second->name);

    if (order != 0)
        return order;
    return first->name < second->name ? -1 : 1;
}

static int compare_name(const void *name, const void *user)
{
    return strcmp(name, ((const struct local_user *)user)->name);
}

/* Reads a line, and ends its name with a zero byte. */
static bool read_line(char *line, size_t length, struct local_user *ret_user)
{
    char *colon = memchr(line, ':', length);
    const char *end = line + length;
    const char *next = colon == NULL ? NULL : memchr(colon + 1, ':', (size_t)(end - colon - 1));
    uint64_t number;
    struct span rest;

    if (next == NULL || strchr("+-#:", *line) != NULL)
        return false;
    rest = (struct span){next + 1, (size_t)(end - next - 1)};
    if (!span_read_number(&rest, &number) || number > UINT32_MAX || rest.length == 0 ||
        *rest.bytes != ':')
        return false;
    *colon = '\0';
    *ret_user = (struct local_user){line, (uint32_t)number};
    return true;
}

void local_users_parse(struct local_users *users, struct text *content)
{
    struct local_user user;
    struct local_user *item;
    size_t length;

    local_users_finish(users);
    users->content = *content;
    *content = (struct text){0};
    for (size_t at = 0; at < users->content.length; at += length + 1) {
        char *line = users->content.bytes + at;
        const char *newline = memchr(line, '\n', users->content.length - at);

        length = newline == NULL ? users->content.length - at : (size_t)(newline - line);
        if (length > 0 && read_line(line, length, &user) && (item = vector_append(users)) != NULL)
            *item = user;
    }
    if (users->count > 0)
        qsort(users->items, users->count, sizeof(*users->items), compare_users);
}

void local_users_read(struct local_users *users, const char *path)
{
    struct text content = {0};

    local_users_finish(users);
    if (file_read(path, FILE_SIZE_MAX, &content, NULL) == 0)
        local_users_parse(users, &content);
}

void local_users_finish(struct local_users *users)
{
    vector_finish(users);
    text_finish(&users->content);
    *users = (struct local_users){0};
}

bool local_users_find(const struct local_users *users, const char *name, uint32_t *ret_number)
{
    const struct local_user *found;

    if (users->count == 0)
        return false;
    found = bsearch(name, users->items, users->count, sizeof(*users->items), compare_name);
    if (found == NULL)
        return false;
    while (found > users->items && strcmp(found[-1].name, name) == 0)
        found--;
    *ret_number = found->number;
    return true;
}
