/* SPDX-License-Identifier: Apache-2.0
 *
 * Becoming a command, and saying why not.
 */
#ifndef LAUNCH_EXEC_COMMAND_H
#define LAUNCH_EXEC_COMMAND_H

#include <berth/error.h>

/* Becomes the command, found by the PATH of its own environment. Both lists are ended by NULL.
 * Returns only on failure: an errno, where ENOENT says that there is no such command and everything
 * else that it cannot be executed; the process's environment is the command's then. */
int exec_command(char *const *arguments, char *const *environment);

/* That errno as an error: BERTH_ERROR_NOT_FOUND for ENOENT, else _PERMISSION, _IO or _MEMORY.
 * Returns the code. */
int exec_command_error(const char *command, int number, struct berth_error *error);

#endif
