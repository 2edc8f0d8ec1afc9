/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/become.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/quote.h"

/* Whether a directory of PATH has something of this name that we can see. */
static bool is_in_path(const char *name)
{
    const char *path = getenv("PATH");

    while (path != NULL) {
        size_t length = strcspn(path, ":");
        char file[PATH_MAX];
        /* An empty part is the working directory. */
        int size = snprintf(file, sizeof(file), "%.*s%s%s", (int)length, path,
                            length == 0 ? "" : "/", name);

        if (size > 0 && (size_t)size < sizeof(file) && access(file, F_OK) == 0)
            return true;
        path = path[length] == ':' ? path + length + 1 : NULL;
    }
    return false;
}

int become(char *const *arguments, char *const *environment)
{
    int number;

    environ = (char **)environment;
    execvp(arguments[0], arguments);
    number = errno;
    /* It says so for a directory that we may not look into, too; shells do not. */
    if (number == EACCES && strchr(arguments[0], '/') == NULL && !is_in_path(arguments[0]))
        return ENOENT;
    return number;
}

int become_error(const char *command, int number, struct berth_error *error)
{
    struct quoted name = quote(command);

    if (number == ENOENT)
        return error_set(error, BERTH_ERROR_NOT_FOUND, "wanted to run %s, found no such command",
                         name.text);
    /* Found, but not what can be run: ENOTDIR is not what error_set_errno takes it for. */
    if (number == EACCES || number == EPERM || number == ENOMEM)
        return error_set_errno(error, number, "wanted to run %s", name.text);
    return error_set(error, BERTH_ERROR_IO, "wanted to run %s: %s", name.text, strerror(number));
}
