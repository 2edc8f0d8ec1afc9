/* SPDX-License-Identifier: Apache-2.0 */
#include "view/user_names.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

enum { BUFFER_MIN = 1024, BUFFER_MAX = 1024 * 1024 };

/* Returns an allocated copy of the name in the user database, or NULL when there is no name or no
 * memory. */
static char *look_up_name(uint32_t uid)
{
    char *name = NULL;

    for (size_t size = BUFFER_MIN; size <= BUFFER_MAX; size *= 2) {
        struct passwd entry;
        struct passwd *found = NULL;
        char *buffer = malloc(size);
        int number = buffer == NULL ? ENOMEM : getpwuid_r(uid, &entry, buffer, size, &found);

        if (number == 0 && found != NULL && found->pw_name[0] != '\0')
            name = strdup(found->pw_name);
        free(buffer);
        if (number != ERANGE)
            break;
    }
    return name;
}

static char *name_or_number(uint32_t uid)
{
    char digits[16];
    char *name = look_up_name(uid);

    if (name != NULL)
        return name;
    snprintf(digits, sizeof(digits), "%u", uid);
    return strdup(digits);
}

const char *user_names_find(struct user_names *names, uint32_t uid)
{
    static const char nobody[] = "?";
    struct user_name *item;

    vector_for_each (item, names) {
        if (item->uid == uid)
            return item->name;
    }
    free(names->last.name);
    names->last = (struct user_name){.uid = uid, .name = name_or_number(uid)};
    if (names->last.name == NULL)
        return nobody;
    item = vector_append(names);
    if (item == NULL)
        return names->last.name;
    *item = names->last;
    names->last = (struct user_name){0};
    return item->name;
}

const char *user_names_find_optional(struct user_names *names, struct optional_number uid)
{
    return uid.known && uid.value < UINT32_MAX ? user_names_find(names, (uint32_t)uid.value) : NULL;
}

void user_names_finish(struct user_names *names)
{
    struct user_name *item;

    vector_for_each (item, names)
        free(item->name);
    free(names->last.name);
    vector_finish(names);
    *names = (struct user_names){0};
}
