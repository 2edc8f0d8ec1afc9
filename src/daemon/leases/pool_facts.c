/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/pool_facts.h"

#include <string.h>

#include "daemon/devices/device_locks.h"
#include "daemon/leases/device_drain.h"
#include "daemon/leases/job.h"
#include "daemon/leases/lease_warnings.h"
#include "daemon/leases/pool.h"

/* The most that the numbers of an item take in a message. */
enum { DEVICE_BYTES = 480, PROCESS_BYTES = 104 };

/* The engine's blocks that messages have, too. */
#define WIRE_BLOCKS (BLOCK_SQUATTED | BLOCK_DIRTY | BLOCK_DRAINED | BLOCK_ELSEWHERE)
_Static_assert((int)SLOT_BLOCK_SQUATTED == (int)BLOCK_SQUATTED &&
                   (int)SLOT_BLOCK_DIRTY == (int)BLOCK_DIRTY &&
                   (int)SLOT_BLOCK_DRAINED == (int)BLOCK_DRAINED &&
                   (int)SLOT_BLOCK_ELSEWHERE == (int)BLOCK_ELSEWHERE,
               "one set serves both");

struct pool_snapshot pool_facts_counts(const struct pool *pool)
{
    return (struct pool_snapshot){
        .capacity = (uint32_t)engine_machine(pool->engine)->devices.count,
        .pending = (uint32_t)engine_pending(pool->engine),
        .time = pool_clock_now(&pool->clock),
    };
}

static enum slot_state state_of(const struct pool *pool, uint32_t slot,
                                const struct slot_view *view)
{
    const struct device *device = &engine_machine(pool->engine)->devices.items[slot];
    const struct job *job = view->lease == 0 ? NULL : job_of_lease(pool, view->lease);

    if (job != NULL && job_is_over(job))
        return SLOT_STATE_DRAINING;
    if (view->taken)
        return view->sharing == SHARING_EXCLUSIVE ? SLOT_STATE_LEASED : SLOT_STATE_SHARED;
    if (!view->present)
        return SLOT_STATE_GONE;
    if ((view->blocks & BLOCK_DRAINED) != 0)
        return SLOT_STATE_DRAINED;
    if (device->health == HEALTH_SICK)
        return SLOT_STATE_SICK;
    if ((view->blocks & BLOCK_ELSEWHERE) != 0)
        return SLOT_STATE_ELSEWHERE;
    if ((view->blocks & BLOCK_DIRTY) != 0)
        return SLOT_STATE_DRAINING;
    if ((view->blocks & BLOCK_SQUATTED) != 0)
        return SLOT_STATE_SQUATTED;
    /* A sleeping device is free: its holder wakes it. */
    return device->asleep ? SLOT_STATE_ASLEEP : SLOT_STATE_FREE;
}

static void fill_name_holder(const struct pool *pool, uint32_t slot, struct slot_info *item)
{
    struct device_lock_holder holder;

    if (!device_locks_find_holder(pool->device_locks, slot, &holder) || !holder.is_known)
        return;
    item->name_uid = optional_number_of(holder.uid);
    item->name_pid = optional_number_of((uint64_t)holder.pid);
}

void pool_facts_fill_slot(const struct pool *pool, uint32_t slot, struct slot_info *ret_item)
{
    const struct device_drain *drain = device_drain_of(pool, slot);
    struct slot_view view;

    engine_get_slot(pool->engine, slot, &view);
    *ret_item = (struct slot_info){
        .state = state_of(pool, slot, &view),
        .sharing = view.sharing,
        .tenants = view.tenants,
        .share_used = view.share_used,
        .memory_used = view.memory_used,
        .blocks = view.blocks & WIRE_BLOCKS,
        .reason = drain->reason,
        .reason_uid = drain->uid,
        .reason_time = drain->time,
    };
    fill_name_holder(pool, slot, ret_item);
}

static struct optional_number known_time(int64_t time)
{
    struct optional_number known = {0};

    if (time != TIME_NEVER)
        known = optional_number_of((uint64_t)time);
    return known;
}

int pool_facts_fill_lease(struct pool *pool, const struct job *job, const struct lease_view *view,
                          struct lease_info *ret_item)
{
    size_t count = view->slot_count < DEVICE_ID_LIST_MAX ? view->slot_count : DEVICE_ID_LIST_MAX;
    const struct machine *machine = engine_machine(pool->engine);
    const struct request *request = engine_request_what(view->request);

    *ret_item = (struct lease_info){
        .id = job->by_id.id,
        .parent = job->holder->parent,
        .uid = job->holder->account,
        .pid = job->hold == LEASE_HOLD_NOTHING ? 0 : (int32_t)job->holder->pid,
        .name = request->name,
        .command = job->holder->command,
        .replicas = view->replicas,
        .share = view->share,
        .memory = view->memory,
        .sharing = request->sharing,
        .priority = request->priority,
        .opportunistic = request->opportunistic,
        .draining = job_is_over(job),
        .granted = view->granted,
        .since = job->since,
        .expires = known_time(view->expires),
        .force_at = known_time(job->guard == NULL ? TIME_NEVER : job->guard->force_at),
        .end = job->end,
        .adopted = job->adopted,
        .idle = lease_warnings_idle_time(pool, job),
        .idle_warned = job->guard != NULL && job->guard->idle_warned,
        .preparing = job_is_preparing(job),
        .judged_time = job->guard == NULL ? 0 : job->guard->judged_time,
        .idle_time = job->guard == NULL ? 0 : job->guard->idle_time,
    };
    if (vector_reserve(&ret_item->devices, count) < 0)
        return BERTH_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++)
        ret_item->devices.items[i] = machine->devices.items[view->slots[i]].id;
    ret_item->devices.count = count;
    return 0;
}

static size_t length_of(const char *string)
{
    return string == NULL ? 0 : strlen(string);
}

size_t pool_facts_device_size(const struct device *device)
{
    size_t size = DEVICE_BYTES + length_of(device->name) + length_of(device->uuid) +
                  length_of(device->parent) + length_of(device->cpus) +
                  length_of(device->health_reason);
    const struct device_process *process;
    char *const *node;

    vector_for_each (node, &device->nodes)
        size += length_of(*node) + 4;
    vector_for_each (process, &device->processes)
        size += pool_facts_process_size(process);
    return size;
}

size_t pool_facts_process_size(const struct device_process *process)
{
    return PROCESS_BYTES + length_of(process->command) + length_of(process->container);
}
