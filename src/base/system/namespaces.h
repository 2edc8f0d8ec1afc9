/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the owners of a process's namespaces, which containers are made of. The kernel records the
 * owner, and a process cannot create a namespace for another user.
 *
 * A user who creates a user namespace, as rootless containers do, can run processes in it under
 * other user ids, which the system assigns to the user (/etc/subuid). The kernel gives the owner
 * full control over these processes: the owner may signal and trace them.
 *
 * These functions never block, and any thread may call them. They return false when the process is
 * gone or may not be inspected.
 */
#ifndef BASE_SYSTEM_NAMESPACES_H
#define BASE_SYSTEM_NAMESPACES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Finds the owner of the process's user namespace. When namespaces are nested, it is the owner of
 * the outermost one below the caller's. Returns false when the process is in the caller's user
 * namespace, or in one that is not below it. */
bool namespace_user_owner(pid_t pid, uint32_t *ret_uid);

/* Returns whether the process is in another pid namespace than the caller. */
bool namespace_pid_is_other(pid_t pid);

/* Returns whether the process's pid namespace was created with root's rights, as docker does: it
 * belongs to the caller's user namespace. A user without root's rights can be in such a namespace
 * through a set-user-id program such as firejail. */
bool namespace_pid_is_owned_by_root(pid_t pid);

#endif
