/* SPDX-License-Identifier: Apache-2.0
 *
 * Queries that do not change the engine.
 */
#include "engine/internal.h"

const struct machine *engine_machine(const struct engine *engine)
{
    return &engine->machine;
}

size_t engine_slots_max(const struct engine *engine)
{
    return engine->size;
}

size_t engine_pending(const struct engine *engine)
{
    size_t pending = 0;

    list_for_each (link, &engine->scopes)
        pending += container_of(link, struct scope, in_engine)->pending;
    return pending;
}

bool engine_is_full(const struct engine *engine)
{
    return engine_scope_is_full(&engine->root);
}

static struct lease_view view_lease(const struct lease *held)
{
    return (struct lease_view){
        .id = held->entry.link.id,
        .claim = held->claim,
        .parent = held->request->parent,
        .request = held->request,
        .slots = held->slots,
        .slot_count = held->slot_count,
        .replicas = held->replicas,
        .share = held->request->share,
        .memory = held->request->what.memory,
        .state = held->state,
        .granted = held->granted,
        .expires = held->expires,
        .force_at = held->force_at,
        .owner = held->owner,
    };
}

bool engine_get_lease(const struct engine *engine, uint64_t lease, struct lease_view *ret_view)
{
    const struct lease *held = engine_find_lease(engine, lease);

    if (held == NULL)
        return false;
    *ret_view = view_lease(held);
    return true;
}

const struct claim_owner *engine_lease_owner(const struct engine *engine, uint64_t lease)
{
    const struct lease *held = engine_find_lease(engine, lease);

    return held == NULL ? NULL : &held->owner;
}

void engine_each_lease(const struct engine *engine,
                       void (*visit)(void *context, const struct lease_view *view), void *context)
{
    list_for_each (link, &engine->leases) {
        struct lease_view view = view_lease(container_of(link, struct lease, in_engine));

        visit(context, &view);
    }
}

static struct claim_view view_claim(const struct claim *claim)
{
    return (struct claim_view){
        .id = claim->entry.link.id,
        .parent = claim->request->parent,
        .request = claim->request,
        .arrived = claim->arrived,
        .deadline = claim->entry.at,
        .class_now = lanes_claim_class(claim),
        .owner = claim->owner,
    };
}

bool engine_get_claim(const struct engine *engine, uint64_t claim, struct claim_view *ret_view)
{
    const struct id_link *link = id_map_find(&engine->claim_ids, claim);

    if (link == NULL)
        return false;
    *ret_view = view_claim((const struct claim *)(const void *)link);
    return true;
}

void engine_each_claim(const struct engine *engine,
                       void (*visit)(void *context, const struct claim_view *view), void *context)
{
    list_for_each (link, &engine->scopes) {
        struct scope *scope = container_of(link, struct scope, in_engine);
        const struct claim *claim;

        lanes_rewind(scope);
        while ((claim = lanes_next(scope)) != NULL) {
            struct claim_view view = view_claim(claim);

            visit(context, &view);
        }
    }
}

void engine_get_slot(const struct engine *engine, uint32_t slot, struct slot_view *ret_view)
{
    const struct usage *usage = &engine->root.ledger[slot].usage;

    *ret_view = (struct slot_view){
        .present = engine->status[slot].present,
        .blocks = engine->status[slot].blocks,
        .taken = usage->brief.tenants > 0,
        .sharing =
            usage->brief.tenants > 0 ? (enum sharing)usage->brief.sharing : SHARING_EXCLUSIVE,
        .tenants = usage->brief.tenants,
        .share_used = usage->brief.share,
        .memory_used = usage->memory,
        .uid = mps_domain_uid(engine, usage->domain),
        .lease = engine_slot_holder(&engine->root.ledger[slot]),
    };
}
