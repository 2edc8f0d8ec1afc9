/* SPDX-License-Identifier: Apache-2.0
 *
 * Executes a command, and describes why that failed.
 */
#ifndef LAUNCH_EXEC_COMMAND_H
#define LAUNCH_EXEC_COMMAND_H

#include <berth/error.h>

/* Becomes the command, which is searched in the PATH of its own environment. Both lists are ended
 * by NULL. Returns only on failure: ENOENT if there is no such command, or another errno if it
 * cannot be executed. `environ` is the command's environment then. */
int exec_command(char *const *arguments, char *const *environment);

/* Sets the error for that errno: BERTH_ERROR_NOT_FOUND for ENOENT, else _PERMISSION, _IO or
 * _MEMORY. Returns the code. */
int exec_command_error(const char *command, int number, struct berth_error *error);

#endif
