/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists and signals the descendants of this process. It must be a child subreaper, so that no
 * descendant leaves its tree.
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
/* Removes the pid, if it is in the list. */
void launch_pid_list_remove(struct pid_list *list, pid_t pid);

/* Sends the signal to every descendant, except the children in `spared` and their descendants.
 * Returns their number; signal 0 only counts them. Never signals another process that has
 * reused a descendant's pid. May miss processes that start meanwhile, or all if memory or
 * descriptors run out. */
size_t descendants_signal(int signal, const struct pid_list *spared);

/* Appends the children of this process. Fails with BERTH_ERROR_MEMORY or _IO. */
int descendants_list_children(struct pid_list *children);

#endif
