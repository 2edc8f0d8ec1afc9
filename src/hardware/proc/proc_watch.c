/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/proc/proc_watch.h"

#include <stdatomic.h>

#define PID_BITS 32

void proc_watch_finish_avoided(struct avoided *avoided)
{
    vector_finish(&avoided->processes);
    vector_finish(&avoided->users);
}

static void set_touched(const struct proc_watch *watch, uint64_t pid)
{
    uint64_t accesses;

    if (watch == NULL || watch->touched == NULL)
        return;
    accesses = atomic_load_explicit(watch->touched, memory_order_relaxed) >> PID_BITS;
    atomic_store_explicit(watch->touched, (accesses + 1) << PID_BITS | (uint32_t)pid,
                          memory_order_relaxed);
}

void proc_watch_touch(const struct proc_watch *watch, uint64_t pid)
{
    set_touched(watch, pid);
}

void proc_watch_leave(const struct proc_watch *watch)
{
    set_touched(watch, 0);
}

const struct avoided_process *proc_watch_find_avoided(const struct proc_watch *watch, uint64_t pid)
{
    const struct avoided_process *process;

    if (watch == NULL || watch->avoided == NULL)
        return NULL;
    vector_for_each (process, &watch->avoided->processes) {
        if (process->pid == pid)
            return process;
    }
    return NULL;
}

bool proc_watch_avoids_users(const struct proc_watch *watch)
{
    return watch != NULL && watch->avoided != NULL &&
           (watch->avoided->everybody || watch->avoided->users.count > 0);
}

bool proc_watch_avoids_user(const struct proc_watch *watch, uint32_t uid)
{
    const struct avoided_user *user;

    if (!proc_watch_avoids_users(watch))
        return false;
    vector_for_each (user, &watch->avoided->users) {
        if (uid >= user->first && uid <= user->last)
            return true;
    }
    return watch->avoided->everybody;
}
