/* SPDX-License-Identifier: Apache-2.0
 *
 * In which container a running process is (base/system/container.h). Who may make control groups
 * can give them any name, and so be in a container of any id: it is a hint, never a credential.
 */
#ifndef BASE_SYSTEM_PROCESS_CONTAINER_H
#define BASE_SYSTEM_PROCESS_CONTAINER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text/text.h"

/* Appends the id or name of the process's container. Returns whether it is in one. That which we
 * are in ourselves is the machine for us, and does not count. */
bool process_container(pid_t pid, struct text *out);

/* The same of the container that began with the process: its parent is not in it. */
bool process_container_begun(pid_t pid, struct text *out);

/* Who answers for what the process does in a container, whatever its uid there: the owner of its
 * user namespace; root, where it is in a container whose pid namespace is root's. Returns false
 * where nobody but its own user does. */
bool process_container_owner(pid_t pid, uint32_t *ret_uid);

#endif
