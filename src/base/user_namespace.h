/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose the user namespace of a process is. Who makes one, as containers without root's rights do,
 * has it run processes under user ids that are not his own but lent to him. The kernel gives the
 * owner all power over what is in it: he may signal it, read its environment and trace it. Nobody
 * can make a namespace that is somebody else's.
 */
#ifndef BASE_USER_NAMESPACE_H
#define BASE_USER_NAMESPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Who owns the process's user namespace; of some within each other, the outermost below ours.
 * Returns false where there is nothing to say: it is in ours, in one that is not below ours, we may
 * not know, or it is gone. Never blocks; any thread may call it. */
bool user_namespace_owner(pid_t pid, uint32_t *ret_uid);

#endif
