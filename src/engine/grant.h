/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes leases from decisions and removes them. Inline, because the cost of a claim depends on it.
 * Private to the engine.
 *
 * `fast_path` is a constant at compile time. If it is true, the request is on the fast path (one
 * slot of at most 64, and nothing else to do), and the compiler drops the code for all other cases.
 */
#ifndef ENGINE_GRANT_H
#define ENGINE_GRANT_H

#include "engine/internal.h"

#define ALWAYS_INLINE __attribute__((always_inline)) static inline

/* Tells the compiler that the condition holds. */
#define EXPECT_ALWAYS(condition)     \
    do {                             \
        if (!(condition))            \
            __builtin_unreachable(); \
    } while (0)

/* Adds a lease to a slot. Is called several times if several replicas share the slot. */
ALWAYS_INLINE void grant_take_slot(struct scope *scope, const struct engine_request *request,
                                   uint32_t slot, uint64_t id, uint32_t place, bool fast_path)
{
    struct ledger_slot *ledger = &scope->ledger[slot];

    if (fast_path) {
        ledger->usage.brief = request->alone.brief;
        lowest_set_remove(&scope->empty, slot);
    } else if (ledger->usage.brief.tenants == 0) {
        ledger->usage = request->alone;
        ledger->holder = id;
        if (lowest_set_has(&scope->empty, slot))
            lowest_set_remove(&scope->empty, slot);
    } else {
        ledger_add_usage(&ledger->usage, request);
    }
    if (!fast_path && request->what.sharing != SHARING_EXCLUSIVE)
        scope_refresh_sets(scope, slot);
    ledger->served++;
    ledger->last_served = engine_stamp(id, place);
    if (!fast_path && request->affinity != 0)
        ledger->affinity = request->affinity;
}

ALWAYS_INLINE void grant_release_slot(struct scope *scope, const struct lease *held, uint32_t slot,
                                      bool fast_path)
{
    struct ledger_slot *ledger = &scope->ledger[slot];

    if (fast_path || ledger->usage.brief.tenants == 1) {
        ledger->usage.brief = (struct usage_brief){0};
        if (!fast_path) {
            ledger->usage.memory = 0;
            ledger->usage.unreserved = 0;
            ledger->holder = 0;
        }
        if (ledger->usable)
            lowest_set_add(&scope->empty, slot);
    } else {
        ledger_subtract_usage(&ledger->usage, held->request);
        if (ledger->holder == held->entry.link.id)
            ledger->holder = ledger_other_holder(scope, slot, held->entry.link.id);
    }
    if (!fast_path && held->request->what.sharing != SHARING_EXCLUSIVE)
        scope_refresh_sets(scope, slot);
}

/* Removes a claim from all lists. The caller drops the claim's reference to its request. */
static inline void grant_remove_claim(struct claim *claim)
{
    struct engine *engine = claim->request->engine;

    lane_remove(claim);
    engine_clear_timer(engine, &claim->entry);
    id_map_remove(&engine->claim_ids, &claim->entry.link);
    records_recycle_claim(engine, claim);
}

/* Makes a lease of the slots. The caller sets its owner. Returns the lease; NULL: no memory. */
ALWAYS_INLINE struct lease *grant_lease(struct engine_request *request, uint64_t id,
                                        const uint32_t *slots, uint32_t slot_count,
                                        uint32_t replicas, bool fast_path)
{
    struct scope *scope = request->scope;
    struct engine *engine = request->engine;
    struct lease *held = engine->spare_leases;

    if (!fast_path && (held == NULL || slot_count > held->slot_capacity)) {
        if (records_prepare_lease(engine, slot_count) < 0)
            return NULL;
        held = engine->spare_leases;
    }
    EXPECT_ALWAYS(!fast_path || (slot_count == 1 && scope->empty.depth == 1));
    engine->spare_leases = (struct lease *)(void *)held->entry.link.next;
    held->entry.link.id = id;
    held->request = request;
    held->slot_count = slot_count;
    held->replicas = replicas;
    held->granted = engine->now;
    for (uint32_t i = 0; i < slot_count; i++) {
        held->slots[i] = slots[i];
        grant_take_slot(scope, request, slots[i], id, i, fast_path);
        if (!fast_path)
            engine_node_changed(engine, slots[i]);
    }
    if (!fast_path) {
        request->references++;
        held->touched |= LEASE_COUNTED;
    }
    list_append(&engine->leases, &held->in_engine);
    id_map_add(&engine->lease_ids, &held->entry.link);
    if (!fast_path && !request->plain)
        ledger_begin_lease(held);
    return held;
}

/* Removes a lease from all lists and frees its slots. Everything within it must have ended. With
 * `fast_path` its member `touched` must be 0. */
ALWAYS_INLINE void grant_remove_lease(struct lease *held, bool fast_path)
{
    struct engine_request *request = held->request;
    struct scope *scope = request->scope;
    struct engine *engine = request->engine;

    EXPECT_ALWAYS(!fast_path || (held->slot_count == 1 && scope->empty.depth == 1));
    if (!fast_path && (held->touched & LEASE_TOUCHED_REST) != 0)
        ledger_end_lease(held);
    for (uint32_t i = 0; i < held->slot_count; i++) {
        grant_release_slot(scope, held, held->slots[i], fast_path);
        if (!fast_path)
            engine_node_changed(engine, held->slots[i]);
    }
    id_map_remove(&engine->lease_ids, &held->entry.link);
    list_unlink(&held->in_engine);
    held->entry.link.next = engine->spare_leases == NULL ? NULL : &engine->spare_leases->entry.link;
    engine->spare_leases = held;
    if (!fast_path && held->touched != 0)
        ledger_reset_lease(held);
}

#endif
