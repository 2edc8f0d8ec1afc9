/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the ancestors of a process. Each step reads a file, so the steps of each user are limited:
 * deep chains of one user's processes do not use up the time for the processes of others.
 */
#ifndef HARDWARE_PROC_PROC_ANCESTORS_H
#define HARDWARE_PROC_PROC_ANCESTORS_H

#include <stdint.h>

#include "base/system/subordinate_uids.h"
#include "base/vector.h"
#include "hardware/proc/proc_watch.h"
#include "hardware/sysfs/sysroot.h"
#include "model/machine/device.h"

struct user_steps {
    uint32_t uid;
    uint32_t count;
};

/* The steps of each user since `since`. Zeroed memory is an unused budget. If there are very many
 * users, the last ones share one entry. The caller frees it with vector_finish(). */
struct ancestor_budget {
    VECTOR_OF(struct user_steps);
    int64_t since;                               /* by clock_now() */
    const struct subordinate_uids *subordinates; /* the uids of a range share their steps; NULL */
};

/* A user's steps in a second. */
#define ANCESTOR_STEPS_MAX 4096

/* Sets the process's ancestors: `parent` first, then its parent, up to the first process of this
 * pid namespace. There are at most DEVICE_ANCESTORS_MAX, and fewer if the process's user has used
 * up the budget (NULL: no limit). `now` is clock_now(). Returns 0 or BERTH_ERROR_MEMORY. */
int proc_ancestors_find(const struct sysroot *root, const struct proc_watch *watch,
                        struct ancestor_budget *budget, uint64_t parent, int64_t now,
                        struct device_process *process);

#endif
