/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/processes.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/process_container.h"
#include "base/system/process_stat.h"
#include "base/text/quantity.h"
#include "daemon/jobs.h"
#include "daemon/membership.h"

/* How far up its ancestors a process is followed, and how many steps one report may cost. */
enum { ANCESTORS_MAX = 64, STEPS_MAX = 4096 };

/* What a report is joined with. */
struct joining {
    struct use_list uses;
    struct peer_list peers;
    size_t steps; /* up to ancestors that are left */
};

static void joining_finish(struct joining *joining)
{
    use_list_finish(&joining->uses);
    vector_finish(&joining->peers);
}

/* The container that was adopted with the job's holder; NULL: none. */
static char *adopted_container(const struct job *job)
{
    struct text container = {0};
    char *taken = NULL;

    if (job->adopted && process_container_begun(job->holder->pid, &container))
        taken = text_detach(&container);
    text_finish(&container);
    return taken;
}

static void find_uses(const struct pool *pool, struct use_list *uses)
{
    list_for_each (link, &pool->jobs) {
        const struct job *job = container_of(link, struct job, in_pool);
        struct lease_view view;

        if (job->by_lease.id == 0 || !engine_get_lease(pool->engine, job->by_lease.id, &view))
            continue;
        for (uint32_t i = 0; i < view.slot_count; i++) {
            struct use *use = vector_append(uses);

            if (use == NULL)
                return;
            *use = (struct use){
                .slot = view.slots[i],
                .uid = job->holder->uid,
                .lease = job->by_id.id,
                .pid = job->hold == LEASE_HOLD_NOTHING ? 0 : job->holder->pid,
                .container = adopted_container(job),
            };
        }
    }
}

/* ---- The rules ---- */

/* The lease that the process, or the nearest ancestor of it, holds the device by; 0: none. The
 * last of several is within the others. */
static uint64_t lease_by_ancestors(struct joining *joining, uint32_t slot, pid_t pid)
{
    const struct use_list *uses = &joining->uses;

    for (int i = 0; i < ANCESTORS_MAX && pid > 1 && joining->steps > 0; i++) {
        for (size_t use = uses->count; use-- > 0;) {
            if (uses->items[use].slot == slot && uses->items[use].pid == pid)
                return uses->items[use].lease;
        }
        joining->steps--;
        pid = process_stat_parent(pid);
    }
    return 0;
}

/* Whether a lease of this number is over, and what is said of the process counts for it. */
static bool is_over(const struct pool *pool, uint64_t lease, const struct device_process *process)
{
    const struct ended *ended = ended_find(pool, lease);

    return ended != NULL && membership_is_trusted(process, ended->uid);
}

/* Only the probe reads an environment: a process that its driver holds may keep whoever does. */
static uint64_t lease_by_mark(const struct pool *pool, const struct use_list *uses, uint32_t slot,
                              const struct device_process *process)
{
    uint64_t lease = process->said_lease;

    if (process->said_socket == NULL || strcmp(process->said_socket, pool->settings.socket) != 0)
        return 0;
    return membership_may_be(uses, slot, lease, process) || is_over(pool, lease, process) ? lease
                                                                                          : 0;
}

/* What was known of the process at the last look: it was of a lease that goes on, or has ended
 * since; 0: it was of none. */
static uint64_t lease_before(const struct pool *pool, const struct use_list *uses, uint32_t slot,
                             const struct device_process *process, uint64_t known)
{
    if (known == 0)
        return 0;
    return membership_may_be(uses, slot, known, process) || job_of_id(pool, known) == NULL ? known
                                                                                           : 0;
}

/* The lease that the process had at the last look. */
static uint64_t known_lease(const struct pool *pool, uint32_t slot,
                            const struct device_process *process)
{
    const struct device *device = &engine_machine(pool->engine)->devices.items[slot];
    const struct device_process *before = device_process_find(&device->processes, process->pid);

    /* When it began is told with an error of a second. */
    return before != NULL && llabs(before->started - process->started) <= 2 * DURATION_SECOND
               ? before->lease
               : 0;
}

/* By itself. */
static void join(const struct pool *pool, struct joining *joining, uint32_t slot,
                 struct device_process *process)
{
    process->lease =
        process->pid > INT32_MAX ? 0 : lease_by_ancestors(joining, slot, (pid_t)process->pid);
    if (process->lease == 0)
        process->lease = lease_by_mark(pool, &joining->uses, slot, process);
}

/* By others, where it is of none by itself. */
static void join_others(const struct pool *pool, const struct joining *joining, uint32_t slot,
                        struct device_process *process, uint64_t known)
{
    const struct use_list *uses = &joining->uses;

    if (process->lease == 0)
        process->lease = membership_by_container(uses, &joining->peers, slot, process);
    if (process->lease == 0)
        process->lease = membership_by_only_lease(uses, slot, process);
    if (process->lease == 0)
        process->lease = membership_by_reservation(uses, slot, process);
    if (process->lease == 0)
        process->lease = lease_before(pool, uses, slot, process, known);
}

/* ---- Reports ---- */

/* What was said for us alone. */
static void forget_said(struct device_process *process)
{
    process->said_lease = 0;
    free(process->said_socket);
    process->said_socket = NULL;
    process->owner = (struct optional_number){0};
}

/* The slot of a device in a report; the number of slots: it has none, or nobody is on it. */
static size_t find_slot(const struct pool *pool, const struct device *device)
{
    const struct device_list *known = &engine_machine(pool->engine)->devices;

    return device->processes.count == 0 ? known->count : device_list_find(known, device->id);
}

static bool has_processes(const struct device_list *devices)
{
    const struct device *device;

    vector_for_each (device, devices) {
        if (device->processes.count > 0)
            return true;
    }
    return false;
}

void processes_join(struct pool *pool, struct device_list *found)
{
    size_t slot_count = engine_machine(pool->engine)->devices.count;
    struct joining joining = {.steps = STEPS_MAX};
    struct device_process *process;
    struct device *device;

    if (!has_processes(found))
        return;
    find_uses(pool, &joining.uses);
    vector_for_each (device, found) {
        size_t slot = find_slot(pool, device);

        vector_for_each (process, &device->processes) {
            process->lease = 0;
            if (slot < slot_count)
                join(pool, &joining, (uint32_t)slot, process);
        }
    }
    membership_find_peers(found, &joining.peers);
    vector_for_each (device, found) {
        size_t slot = find_slot(pool, device);

        vector_for_each (process, &device->processes) {
            if (slot < slot_count)
                join_others(pool, &joining, (uint32_t)slot, process,
                            known_lease(pool, (uint32_t)slot, process));
            forget_said(process);
        }
    }
    joining_finish(&joining);
}

void processes_join_again(struct pool *pool, uint32_t slot)
{
    struct device_process_list *processes = engine_device_processes(pool->engine, slot);
    struct joining joining = {.steps = STEPS_MAX};
    struct device_process *process;

    find_uses(pool, &joining.uses);
    membership_find_peers(&engine_machine(pool->engine)->devices, &joining.peers);
    vector_for_each (process, processes) {
        uint64_t known = process->lease;

        process_learn_owner(process);
        join(pool, &joining, slot, process);
        join_others(pool, &joining, slot, process, known);
        forget_said(process);
    }
    joining_finish(&joining);
}

void process_learn_owner(struct device_process *process)
{
    uint32_t uid;

    if (process->pid <= INT32_MAX && process_container_owner((pid_t)process->pid, &uid))
        process->owner = optional_number_of(uid);
}

bool process_is_below(pid_t pid, pid_t ancestor)
{
    for (int i = 0; i < ANCESTORS_MAX && pid > 0; i++) {
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
