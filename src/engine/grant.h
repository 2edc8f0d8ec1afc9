/* SPDX-License-Identifier: Apache-2.0
 *
 * The short way from a decision to a lease and back, inline: on it rests what a claim costs. Only
 * for the engine's own files.
 */
#ifndef ENGINE_GRANT_H
#define ENGINE_GRANT_H

#include "engine/state.h"

#define SHORT_WAY __attribute__((always_inline)) static inline

/* Shared slots come up several times when several replicas are on them. */
SHORT_WAY void take_slot(struct scope *scope, const struct engine_request *request, uint32_t slot,
                         uint64_t id)
{
    struct policy_slot *view = &scope->slots[slot];

    if (scope->usage[slot].tenants == 0) {
        scope->usage[slot] = request->alone;
        scope->holders[slot] = id;
        if (lowest_set_has(&scope->empty, slot))
            lowest_set_remove(&scope->empty, slot);
    } else {
        usage_add(&scope->usage[slot], request);
    }
    if (request->what.sharing != SHARING_EXCLUSIVE)
        scope_refresh_sets(scope, slot);
    view->served++;
    view->last_served = ++scope->stamp;
    if (request->affinity != 0)
        view->affinity = request->affinity;
}

SHORT_WAY void give_slot(struct scope *scope, const struct held *held, uint32_t slot)
{
    struct usage *usage = &scope->usage[slot];

    if (usage->tenants == 1) {
        *usage = (struct usage){0};
        scope->holders[slot] = 0;
        if (scope->usable[slot])
            lowest_set_add(&scope->empty, slot);
    } else {
        usage_subtract(usage, held->request);
        if (scope->holders[slot] == held->entry.link.id)
            scope->holders[slot] = ledger_other_holder(scope, slot, held->entry.link.id);
    }
    if (held->request->what.sharing != SHARING_EXCLUSIVE)
        scope_refresh_sets(scope, slot);
}

/* Makes the slots a lease. Its owner is the caller's to set. Returns NULL without memory. */
SHORT_WAY struct held *lease_grant(struct engine_request *request, uint64_t id,
                                   const uint32_t *slots, uint32_t slot_count, uint32_t replicas)
{
    struct scope *scope = request->scope;
    struct engine *engine = request->engine;
    struct held *held = engine->spare_leases;

    if (held == NULL || slot_count > held->slot_capacity) {
        if (lease_prepare(engine, slot_count) < 0)
            return NULL;
        held = engine->spare_leases;
    }
    engine->spare_leases = (struct held *)(void *)held->entry.link.next;
    held->entry.link.id = id;
    held->request = request;
    held->slot_count = slot_count;
    held->replicas = replicas;
    held->claim = 0;
    held->granted = engine->now;
    held->inside = NULL;
    for (uint32_t i = 0; i < slot_count; i++) {
        held->slots[i] = slots[i];
        take_slot(scope, request, slots[i], id);
    }
    request->references++;
    list_append(&engine->leases, &held->in_engine);
    id_map_add(&engine->lease_ids, &held->entry.link);
    if (!request->plain)
        lease_begin_rest(held);
    return held;
}

/* Takes a lease out of everything. What is within it must have ended. */
SHORT_WAY void lease_remove(struct held *held)
{
    struct engine_request *request = held->request;
    struct scope *scope = request->scope;
    struct engine *engine = request->engine;

    if (held->touched)
        lease_end_rest(held);
    for (uint32_t i = 0; i < held->slot_count; i++)
        give_slot(scope, held, held->slots[i]);
    id_map_remove(&engine->lease_ids, &held->entry.link);
    list_remove(&held->in_engine);
    held->entry.link.id = 0;
    held->entry.link.next = engine->spare_leases == NULL ? NULL : &engine->spare_leases->entry.link;
    engine->spare_leases = held;
    if (request->references > 1)
        request->references--;
    else
        request_unreference(request);
}

#endif
