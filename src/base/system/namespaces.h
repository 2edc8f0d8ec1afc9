/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose the namespaces of a process are, which containers are made of. The kernel says so, and
 * nobody can make one that is somebody else's.
 *
 * Who makes a user namespace, as containers without root's rights do, has it run processes under
 * user ids that are not his own but lent to him. The kernel gives the owner all power over what is
 * in it: he may signal and trace it.
 *
 * None of these blocks, and any thread may call them. What may not be known, or is gone, is not so.
 */
#ifndef BASE_SYSTEM_NAMESPACES_H
#define BASE_SYSTEM_NAMESPACES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Who owns the process's user namespace; of some within each other, the outermost below ours.
 * Returns false where there is nothing to say: it is in ours, or in one that is not below ours. */
bool namespace_user_owner(pid_t pid, uint32_t *ret_uid);

/* Whether the process is in another pid namespace than we are. */
bool namespace_pid_is_other(pid_t pid);

/* Whether that was made with root's rights, as docker does: it belongs to our user namespace. Who
 * may run a set-user-id program that makes such (firejail) can be in one. */
bool namespace_pid_is_owned_by_root(pid_t pid);

#endif
