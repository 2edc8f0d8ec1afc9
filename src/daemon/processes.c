/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/processes.h"

#include <stdlib.h>
#include <string.h>

#include "base/process_stat.h"
#include "base/quantity.h"
#include "daemon/jobs.h"

/* How far up its ancestors a process is followed, and how many steps one report may cost. */
enum { ANCESTORS_MOST = 64, STEPS_MOST = 4096 };

/* A process that holds a device, and by which lease. */
struct use {
    uint32_t slot;
    pid_t pid;      /* 0: no process holds it */
    uint64_t lease; /* its id for people */
    uint32_t uid;
};

struct uses {
    VECTOR_OF(struct use);
    bool known;
    size_t steps; /* that are left */
};

static void find_uses(const struct pool *pool, struct uses *uses)
{
    uses->known = true;
    list_for_each (link, &pool->jobs) {
        const struct job *job = container_of(link, struct job, in_pool);
        struct lease_view view;

        if (job->by_lease.id == 0 || !engine_lease(pool->engine, job->by_lease.id, &view))
            continue;
        for (uint32_t i = 0; i < view.slot_count; i++) {
            struct use *use = vector_append(uses);

            if (use == NULL)
                return;
            *use = (struct use){
                .slot = view.slots[i],
                .pid = job->hold == WIRE_HOLD_NOTHING ? 0 : job->holder->pid,
                .lease = job->by_id.id,
                .uid = job->holder->uid,
            };
        }
    }
}

/* The lease that the process, or the nearest ancestor of it, holds the device by; 0: none. The
 * last of several is within the others. */
static uint64_t lease_by_ancestors(struct uses *uses, size_t slot, pid_t pid)
{
    for (int i = 0; i < ANCESTORS_MOST && pid > 1 && uses->steps > 0; i++) {
        for (size_t use = uses->count; use-- > 0;) {
            if (uses->items[use].slot == slot && uses->items[use].pid == pid)
                return uses->items[use].lease;
        }
        uses->steps--;
        pid = process_stat_parent(pid);
    }
    return 0;
}

/* The lease that no process holds and that is of the process's user; 0: none. */
static uint64_t lease_by_user(const struct uses *uses, size_t slot, struct optional_number uid)
{
    const struct use *use;

    vector_for_each (use, uses) {
        if (use->slot == slot && use->pid == 0 && uid.known && uid.value == use->uid)
            return use->lease;
    }
    return 0;
}

/* Whether a lease of this number is on the device, and is of this user. */
static bool is_there(const struct uses *uses, size_t slot, uint64_t lease,
                     struct optional_number uid)
{
    const struct use *use;

    vector_for_each (use, uses) {
        if (use->slot == slot && use->lease == lease && uid.known && uid.value == use->uid)
            return true;
    }
    return false;
}

/* Whether a lease of this user and number is over. */
static bool is_over(const struct pool *pool, uint64_t lease, struct optional_number uid)
{
    const struct ended *ended = ended_find(pool, lease);

    return ended != NULL && uid.known && ended->uid == uid.value;
}

/* Anybody can write anything into an environment: it counts for leases of the same user. Only the
 * probe reads it: a process that its driver holds may keep whoever does. */
static uint64_t lease_by_mark(const struct pool *pool, const struct uses *uses, size_t slot,
                              const struct device_process *process)
{
    uint64_t lease = process->said_lease;

    if (process->said_socket == NULL || strcmp(process->said_socket, pool->settings.socket) != 0)
        return 0;
    return is_there(uses, slot, lease, process->uid) || is_over(pool, lease, process->uid) ? lease
                                                                                           : 0;
}

/* What was known of the process at the last look. */
static uint64_t lease_before(const struct pool *pool, size_t slot,
                             const struct device_process *process)
{
    const struct device *device = &engine_machine(pool->engine)->devices.items[slot];
    const struct device_process *before = device_process_find(&device->processes, process->pid);

    /* When it began is told with an error of a second. */
    return before != NULL && llabs(before->started - process->started) <= 2 * DURATION_SECOND
               ? before->lease
               : 0;
}

static void join(struct pool *pool, struct uses *uses, size_t slot, struct device_process *process)
{
    uint64_t before = lease_before(pool, slot, process);

    if (!uses->known)
        find_uses(pool, uses);
    process->lease =
        process->pid > INT32_MAX ? 0 : lease_by_ancestors(uses, slot, (pid_t)process->pid);
    if (process->lease == 0)
        process->lease = lease_by_mark(pool, uses, slot, process);
    if (process->lease == 0)
        process->lease = lease_by_user(uses, slot, process->uid);
    /* It was of a lease that goes on, or has ended since. */
    if (process->lease == 0 && before != 0 &&
        (is_there(uses, slot, before, process->uid) || job_of_id(pool, before) == NULL))
        process->lease = before;
}

/* What the environment says is for us alone. */
static void forget_said(struct device_process *process)
{
    process->said_lease = 0;
    free(process->said_socket);
    process->said_socket = NULL;
}

void processes_join(struct pool *pool, struct device_list *found)
{
    const struct device_list *known = &engine_machine(pool->engine)->devices;
    struct uses uses = {.steps = STEPS_MOST};
    struct device *device;

    vector_for_each (device, found) {
        size_t slot =
            device->processes.count == 0 ? known->count : device_list_find(known, device->id);
        struct device_process *process;

        vector_for_each (process, &device->processes) {
            if (slot < known->count)
                join(pool, &uses, slot, process);
            forget_said(process);
        }
    }
    vector_finish(&uses);
}

void processes_join_again(struct pool *pool, uint32_t slot)
{
    struct uses uses = {.steps = STEPS_MOST};
    struct device_process *process;

    vector_for_each (process, engine_device_processes(pool->engine, slot))
        join(pool, &uses, slot, process);
    vector_finish(&uses);
}

bool process_is_below(pid_t pid, pid_t ancestor)
{
    for (int i = 0; i < ANCESTORS_MOST && pid > 0; i++) {
        if (pid == ancestor)
            return true;
        pid = process_stat_parent(pid);
    }
    return false;
}

bool process_lingers(const struct pool *pool, const struct device_process *process)
{
    return process->lease != 0 && job_of_id(pool, process->lease) == NULL;
}
