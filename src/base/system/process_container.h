/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the container of a running process (base/system/container.h). The id is a hint, never a
 * credential: a user who may create control groups can give them any name, and so choose the id.
 */
#ifndef BASE_SYSTEM_PROCESS_CONTAINER_H
#define BASE_SYSTEM_PROCESS_CONTAINER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text/text.h"

/* Appends the id or name of the process's container. Returns whether it is in one. The caller's own
 * container does not count. */
bool process_container(pid_t pid, struct text *out);

/* Does the same, but only for the first process of a container: its parent is not in it. */
bool process_container_begun(pid_t pid, struct text *out);

/* Finds the user who is responsible for the container of a process, whatever its uid in the
 * container: the owner of its user namespace, or root when the container's pid namespace was
 * created with root's rights. Returns false when only the process's own user is responsible. */
bool process_container_owner(pid_t pid, uint32_t *ret_uid);

#endif
