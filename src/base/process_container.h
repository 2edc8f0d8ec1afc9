/* SPDX-License-Identifier: Apache-2.0
 *
 * In which container a running process is (base/container.h). Who may make control groups can give
 * them any name, and so be in a container of any id: it is a hint, never a credential.
 */
#ifndef BASE_PROCESS_CONTAINER_H
#define BASE_PROCESS_CONTAINER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/text.h"

/* Appends the id or name of the process's container. Returns whether it is in one. */
bool process_container(pid_t pid, struct text *out);

/* The same of the container that began with the process: its parent is not in it. */
bool process_container_begun(pid_t pid, struct text *out);

#endif
