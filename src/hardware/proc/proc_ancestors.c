/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/proc/proc_ancestors.h"

#include <berth/error.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/process_status.h"
#include "base/text/quantity.h"
#include "base/text/text.h"

enum { STATUS_MAX = 16384, USERS_MAX = 4096 };

/* Returns the user's count in this second; NULL if memory ran out. */
static uint32_t *count_of(struct ancestor_budget *budget, uint32_t uid, int64_t now)
{
    struct user_steps *steps;

    if (budget->subordinates != NULL)
        uid = subordinate_uids_owner(budget->subordinates, uid);
    if (now - budget->since >= DURATION_SECOND) {
        budget->count = 0;
        budget->since = now;
    }
    vector_for_each (steps, budget) {
        if (steps->uid == uid)
            return &steps->count;
    }
    if (budget->count >= USERS_MAX)
        return &budget->items[USERS_MAX - 1].count;
    steps = vector_append(budget);
    if (steps == NULL)
        return NULL;
    steps->uid = uid;
    return &steps->count;
}

/* Returns the parent's pid, or 0. /proc/PID/stat has it too, but is not readable during execve().
 */
static uint64_t read_parent(const struct sysroot *root, const struct proc_watch *watch,
                            uint64_t pid)
{
    struct text status = {0};
    uint64_t parent;

    proc_watch_touch(watch, pid);
    sysroot_read_text(root, STATUS_MAX, &status, "/proc/%llu/status", (unsigned long long)pid);
    proc_watch_leave(watch);
    parent = (uint64_t)process_status_parent((struct span){text_string(&status), status.length});
    text_finish(&status);
    return parent;
}

int proc_ancestors_find(const struct sysroot *root, const struct proc_watch *watch,
                        struct ancestor_budget *budget, uint64_t parent, int64_t now,
                        struct device_process *process)
{
    uint32_t unlimited = 0;
    uint32_t *steps =
        budget == NULL ? &unlimited : count_of(budget, (uint32_t)process->uid.value, now);
    uint32_t found[DEVICE_ANCESTORS_MAX];
    uint32_t count = 0;
    uint32_t *copy;

    if (steps == NULL)
        return BERTH_ERROR_MEMORY;
    while (parent != 0 && count < DEVICE_ANCESTORS_MAX) {
        found[count++] = (uint32_t)parent;
        if (parent == 1 || count == DEVICE_ANCESTORS_MAX || *steps >= ANCESTOR_STEPS_MAX)
            break;
        (*steps)++;
        parent = read_parent(root, watch, parent);
    }
    free((void *)process->ancestors);
    process->ancestors = NULL;
    process->ancestor_count = 0;
    if (count == 0)
        return 0;
    copy = malloc(count * sizeof(*copy));
    if (copy == NULL)
        return BERTH_ERROR_MEMORY;
    memcpy(copy, found, count * sizeof(*copy));
    process->ancestors = copy;
    process->ancestor_count = count;
    return 0;
}
