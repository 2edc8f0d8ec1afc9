/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes below this one, which must be a child subreaper: then nobody leaves its tree.
 */
#ifndef LAUNCH_DESCENDANTS_H
#define LAUNCH_DESCENDANTS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/vector.h"

struct pid_list {
    VECTOR_OF(pid_t);
};

bool launch_pid_list_has(const struct pid_list *list, pid_t pid);
/* Takes it out, if it is in. */
void launch_pid_list_remove(struct pid_list *list, pid_t pid);

/* Sends a signal to every process below us, except those children of ours that are to be spared
 * and what is below them; 0 sends none. Returns how many processes there are. Never hits a
 * stranger that has got the number of one of ours. What appears meanwhile, or is not to be seen for
 * want of memory or descriptors, may be missed. */
size_t descendants_signal(int signal, const struct pid_list *spared);

/* Appends our children. Fails with BERTH_ERROR_MEMORY. */
int descendants_list_children(struct pid_list *children);

#endif
