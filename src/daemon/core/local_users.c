/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/local_users.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>

bool local_users_find_user(const char *name, uint32_t *ret_uid)
{
    FILE *file = fopen("/etc/passwd", "re");
    const struct passwd *entry = NULL;

    if (file == NULL)
        return false;
    do {
        entry = fgetpwent(file);
    } while (entry != NULL && strcmp(entry->pw_name, name) != 0);
    if (entry != NULL)
        *ret_uid = entry->pw_uid;
    fclose(file);
    return entry != NULL;
}
