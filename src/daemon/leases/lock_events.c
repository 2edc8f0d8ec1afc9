/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/lock_events.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/clients/quota.h"
#include "daemon/devices/device_locks.h"
#include "daemon/devices/probe_poll.h"
#include "daemon/leases/engine_events.h"
#include "daemon/leases/handover.h"
#include "daemon/leases/pool.h"

static bool is_leased(void *context, uint32_t slot)
{
    const struct pool *pool = context;
    struct slot_view view;

    engine_get_slot(pool->engine, slot, &view);
    /* A device in handover is not free for another pool either. */
    return view.taken || (view.blocks & BLOCK_DIRTY) != 0;
}

static bool is_of_lease(const struct pool *pool, const struct job *job, uint32_t slot)
{
    struct lease_view view;

    if (!engine_get_lease(pool->engine, job->by_lease.id, &view))
        return false;
    for (uint32_t i = 0; i < view.slot_count; i++) {
        if (view.slots[i] == slot)
            return true;
    }
    return false;
}

/* Returns whether a search or a report is due that shows whether an ended lease left processes on
 * the device. */
static bool is_ending(void *context, uint32_t slot)
{
    const struct pool *pool = context;

    list_for_each (link, &pool->looks) {
        const struct lease_watch *guard = container_of(link, const struct lease_watch, in_looks);

        if (is_of_lease(pool, guard->job, slot))
            return true;
    }
    return handover_needs_report(pool, slot);
}

/* Returns whether a free device could be granted now, so that one without our lock must be blocked.
 * engine_pending() alone is not enough: it does not count opportunistic claims. */
static bool is_wanted(void *context)
{
    const struct pool *pool = context;

    if (engine_pending(pool->engine) > 0 || !list_is_empty(&pool->deferred_claims))
        return true;
    list_for_each (link, &pool->jobs) {
        if (container_of(link, struct job, in_pool)->by_lease.id == 0)
            return true;
    }
    list_for_each (link, &pool->watchers) {
        if (container_of(link, struct watcher, in_pool)->cached != NULL)
            return true;
    }
    return false;
}

static bool is_used_by(void *context, uint32_t slot, uint32_t uid)
{
    const struct pool *pool = context;
    const struct device_process *process;

    vector_for_each (process, engine_device_processes(pool->engine, slot)) {
        if (process->uid.known && process->uid.value == uid)
            return true;
    }
    return false;
}

/* Unblocks a device that another pool used. The next grant waits for a report of its processes. */
static void unblock_slot(void *context, uint32_t slot)
{
    struct pool *pool = context;
    struct slot_view view;

    engine_get_slot(pool->engine, slot, &view);
    if ((view.blocks & BLOCK_ELSEWHERE) == 0)
        return;
    if (probe_poll_answers(pool->probe_poll))
        handover_need(pool, slot, HANDOVER_LOOK);
    engine_unblock(pool->engine, slot, BLOCK_ELSEWHERE);
}

static void block_slot(void *context, uint32_t slot)
{
    struct pool *pool = context;

    engine_block(pool->engine, slot, BLOCK_ELSEWHERE);
}

/* Returns whether a line about the holder of a name may be written: a user can pass a name from one
 * process to another all day. */
static bool may_log_holder(struct pool *pool, const struct device_lock_holder *holder)
{
    struct quota *quota;
    bool may_log;

    /* Users' own pools exchange locks often. */
    if (pool->settings.own)
        return false;
    if (holder == NULL || !holder->is_known)
        return true;
    if (quota_open(&pool->clients, accounts_find(&pool->accounts, holder->uid), &quota) < 0)
        return false;
    may_log = quota_may_log(quota);
    quota_close(quota);
    return may_log;
}

static void log_holder(void *context, uint32_t slot, const struct device_lock_holder *holder)
{
    struct pool *pool = context;
    struct device_id id = engine_machine(pool->engine)->devices.items[slot].id;

    followers_note(pool->followers, WIRE_NEWS_LOAD);
    if (!may_log_holder(pool, holder))
        return;
    log_begin(&pool->log, pool_clock_now(&pool->clock), "name");
    text_append(log_value(&pool->log, "what"), holder == NULL ? "ours" : "taken");
    device_id_append(id, log_value(&pool->log, "device"));
    if (holder != NULL && holder->is_known) {
        log_number(&pool->log, "uid", holder->uid);
        log_number(&pool->log, "pid", (uint64_t)holder->pid);
    }
    if (holder != NULL)
        text_append(log_value(&pool->log, "blocks"), holder->blocks ? "yes" : "no");
    log_end(&pool->log);
}

static void continue_claims(void *context)
{
    struct pool *pool = context;

    pool->handlers.continue_claims(pool);
}

static void settle_events(void *context)
{
    engine_events_settle(context);
}

int lock_events_init(struct pool *pool, struct berth_error *error)
{
    const struct device_list *devices = &engine_machine(pool->engine)->devices;
    bool is_inventory = pool->settings.inventory != NULL;
    char scope[sizeof("0123456789abcdef")];
    int code;

    snprintf(scope, sizeof(scope), "%016" PRIx64, pool->inventory_key);
    code = device_locks_create(
        &pool->device_locks,
        &(struct device_locks_settings){
            .loop = &pool->loop,
            .scope = is_inventory ? scope : NULL,
            .uid = pool->owner,
            .keeps_all = !pool->settings.own,
            .max = is_inventory ? devices->count : engine_slots_max(pool->engine),
            .events =
                {
                    .context = pool,
                    .is_leased = is_leased,
                    .is_ending = is_ending,
                    .is_wanted = is_wanted,
                    .is_used_by = is_used_by,
                    .unblock = unblock_slot,
                    .block = block_slot,
                    .holder_changed = log_holder,
                    .answered = continue_claims,
                    .changed = settle_events,
                },
        },
        error);
    for (uint32_t slot = 0; code == 0 && slot < devices->count; slot++)
        device_locks_add(pool->device_locks, slot, &devices->items[slot]);
    return code;
}
