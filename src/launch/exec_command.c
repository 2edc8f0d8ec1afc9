/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/exec_command.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text/quote.h"

/* The first file of this name in the directories of PATH that can be accessed in this way. Returns
 * whether there is one. */
static bool find_in_path(const char *name, int mode, char ret_file[PATH_MAX])
{
    const char *path = getenv("PATH");

    while (path != NULL) {
        size_t length = strcspn(path, ":");
        /* An empty part is the working directory. */
        int size = snprintf(ret_file, PATH_MAX, "%.*s%s%s", (int)length, path,
                            length == 0 ? "" : "/", name);

        if (size > 0 && size < PATH_MAX && access(ret_file, mode) == 0)
            return true;
        path = path[length] == ':' ? path + length + 1 : NULL;
    }
    return false;
}

int exec_command(char *const *arguments, char *const *environment)
{
    bool is_name = strchr(arguments[0], '/') == NULL;
    char file[PATH_MAX];
    int number;

    environ = (char **)environment;
    /* Looking for it first costs much less than trying to execute what is not there. */
    if (is_name && find_in_path(arguments[0], X_OK, file))
        execve(file, arguments, environment);
    execvp(arguments[0], arguments);
    number = errno;
    /* It says so for a directory that we may not look into, too; shells do not. */
    if (number == EACCES && is_name && !find_in_path(arguments[0], F_OK, file))
        return ENOENT;
    return number;
}

int exec_command_error(const char *command, int number, struct berth_error *error)
{
    struct quoted name = quote(command);

    if (number == ENOENT)
        return error_set(error, BERTH_ERROR_NOT_FOUND, "expected to run %s, got no such command",
                         name.text);
    /* Found, but not what can be run: ENOTDIR is not what error_set_errno takes it for. */
    if (number == EACCES || number == EPERM || number == ENOMEM)
        return error_set_errno(error, number, "expected to run %s", name.text);
    return error_set(error, BERTH_ERROR_IO, "expected to run %s: %s", name.text, strerror(number));
}
