/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/handover.h"

#include <stdlib.h>

#include "base/error.h"
#include "daemon/devices/device_locks.h"
#include "daemon/devices/probe_poll.h"
#include "daemon/leases/pool.h"

/* Beside enum handover: the report that the slot waits for has begun. */
enum { ASKED = 1 << 7 };

int handover_init(struct pool *pool, struct berth_error *error)
{
    pool->handovers = calloc(engine_slots_max(pool->engine), sizeof(*pool->handovers));
    return pool->handovers == NULL ? error_set_memory(error) : 0;
}

void handover_finish(struct pool *pool)
{
    free(pool->handovers);
    pool->handovers = NULL;
}

static uint32_t slot_count(const struct pool *pool)
{
    return (uint32_t)engine_machine(pool->engine)->devices.count;
}

void handover_need(struct pool *pool, uint32_t slot, enum handover what)
{
    if (what == HANDOVER_LOOK) {
        pool->handovers[slot] &= (unsigned char)~ASKED;
        pool->unasked = true;
    }
    pool->handovers[slot] |= (unsigned char)what;
    engine_block(pool->engine, slot, BLOCK_DIRTY);
}

void handover_done(struct pool *pool, uint32_t slot, enum handover what)
{
    unsigned left = pool->handovers[slot] & ~(unsigned)what;

    if (what == HANDOVER_LOOK)
        left &= ~(unsigned)ASKED;
    pool->handovers[slot] = (unsigned char)left;
    if (left == 0)
        engine_unblock(pool->engine, slot, BLOCK_DIRTY);
}

void handover_begin(struct pool *pool, const struct job *job)
{
    struct lease_view view;

    if (job->holder->parent != 0 || !probe_poll_answers(pool->probe_poll) ||
        !engine_get_lease(pool->engine, job->by_lease.id, &view))
        return;
    for (uint32_t i = 0; i < view.slot_count; i++)
        handover_need(pool, view.slots[i], HANDOVER_LOOK);
}

void handover_restored(struct pool *pool)
{
    for (uint32_t slot = 0; slot < slot_count(pool); slot++) {
        struct slot_view view;

        engine_get_slot(pool->engine, slot, &view);
        if ((view.blocks & BLOCK_DIRTY) == 0)
            continue;
        if (probe_poll_answers(pool->probe_poll))
            handover_need(pool, slot, HANDOVER_LOOK);
        else
            engine_unblock(pool->engine, slot, BLOCK_DIRTY);
    }
}

bool handover_needs_report(const struct pool *pool, uint32_t slot)
{
    return (pool->handovers[slot] & ~(unsigned)ASKED) == HANDOVER_LOOK;
}

bool handover_is_pending(const struct pool *pool)
{
    for (uint32_t slot = 0; slot < slot_count(pool); slot++) {
        if ((pool->handovers[slot] & HANDOVER_LOOK) != 0)
            return true;
    }
    return false;
}

bool handover_is_unasked(const struct pool *pool)
{
    return pool->unasked;
}

bool handover_is_unasked_for(const struct pool *pool, uint32_t slot)
{
    return (pool->handovers[slot] & (HANDOVER_LOOK | ASKED)) == HANDOVER_LOOK;
}

void handover_ask(struct pool *pool, struct device_id_list *only)
{
    const struct device_list *devices = &engine_machine(pool->engine)->devices;
    bool all = true;

    for (uint32_t slot = 0; slot < devices->count; slot++) {
        struct device_id *id;

        if ((pool->handovers[slot] & (HANDOVER_LOOK | ASKED)) != HANDOVER_LOOK)
            continue;
        id = only == NULL ? NULL : vector_append(only);
        if (id != NULL)
            *id = devices->items[slot].id;
        if (only == NULL || id != NULL)
            pool->handovers[slot] |= ASKED;
        else
            all = false;
    }
    pool->unasked = !all;
}

/* Removes the reason `what` from all slots that have one of the bits `which`. Another pool that
 * asks for such a device may get it. */
static void end_looks(struct pool *pool, unsigned which, enum handover what)
{
    bool any = false;

    for (uint32_t slot = 0; slot < slot_count(pool); slot++) {
        if ((pool->handovers[slot] & which) == 0)
            continue;
        handover_done(pool, slot, what);
        any = true;
    }
    if (any && pool->device_locks != NULL)
        device_locks_update(pool->device_locks);
}

void handover_looked(struct pool *pool)
{
    end_looks(pool, ASKED, HANDOVER_LOOK);
}

void handover_unanswered(struct pool *pool)
{
    pool->unasked = false;
    end_looks(pool, HANDOVER_LINGERS, HANDOVER_LINGERS);
    end_looks(pool, HANDOVER_LOOK, HANDOVER_LOOK);
}
