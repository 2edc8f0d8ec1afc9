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

/* Finds the first file of this name in the directories of PATH that access() allows in this mode.
 * Returns false if there is none. */
static bool find_in_path(const char *name, int mode, char ret_file[PATH_MAX])
{
    const char *path = getenv("PATH");

    while (path != NULL) {
        size_t length = strcspn(path, ":");
        /* An empty entry of PATH means the working directory. */
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
    /* Searching with access() is much cheaper than failed attempts to execute. */
    if (is_name && find_in_path(arguments[0], X_OK, file))
        execve(file, arguments, environment);
    execvp(arguments[0], arguments);
    number = errno;
    /* execvp also returns EACCES for a directory of PATH that cannot be searched; a shell ignores
     * such a directory. */
    if (number == EACCES && is_name && !find_in_path(arguments[0], F_OK, file))
        return ENOENT;
    return number;
}

int exec_command_error(const char *command, int number, struct berth_error *error)
{
    struct quoted name = quote(command);

    if (number == ENOENT)
        return error_set(error, BERTH_ERROR_NOT_FOUND, "cannot run %s: no such command", name.text);
    /* The command exists but cannot be executed. error_set_errno() would take ENOTDIR for "not
     * found". */
    if (number == EACCES || number == EPERM || number == ENOMEM)
        return error_set_errno(error, number, "cannot run %s", name.text);
    return error_set(error, BERTH_ERROR_IO, "cannot run %s: %s", name.text, strerror(number));
}
