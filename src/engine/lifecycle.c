/* SPDX-License-Identifier: Apache-2.0
 *
 * How claims come and go, and how leases end.
 */
#include <stdlib.h>

#include "base/error.h"
#include "engine/fast_path.h"
#include "engine/grant.h"
#include "engine/internal.h"

/* Keeps what is rare from burdening what is frequent. */
#define NOT_INLINE __attribute__((noinline))

/* ---- Claims ---- */

struct claim *claim_begin(struct engine_request *request, uint64_t id, int64_t arrived,
                          int64_t deadline, const struct claim_owner *owner)
{
    struct engine *engine = request->engine;
    bool ready = request->waiting_count > 0 || lanes_reserve(request->scope) == 0;
    struct claim *claim = ready ? claim_new(engine) : NULL;

    if (claim == NULL)
        return NULL;
    claim->entry.link.id = id;
    claim->entry.is_lease = false;
    claim->arrived = arrived;
    claim->request = request;
    claim->owner = owner != NULL ? *owner : (struct claim_owner){0};
    request->references++;
    id_map_add(&engine->claim_ids, &claim->entry.link);
    claim->entry.at = TIME_NEVER;
    if (deadline != TIME_NEVER)
        timer_set(engine, &claim->entry, deadline);
    return claim;
}

void refuse_claim(struct claim *claim, enum refusal reason)
{
    struct engine_request *request = claim->request;
    struct engine *engine = request->engine;

    if (is_wanted(engine, EVENT_REFUSED))
        tell(engine, (struct engine_event){
                         .type = EVENT_REFUSED, .claim = claim->entry.link.id, .reason = reason});
    claim_remove(claim);
    request_unreference(request);
}

/* Why the request cannot be claimed with at all. Returns 0 when it can. */
static int check_possible(struct engine_request *request, struct berth_error *error)
{
    if (request->scope == NULL)
        return error_set(error, BERTH_ERROR_NOT_FOUND,
                         "wanted a lease to claim within, found that lease %llu has ended",
                         (unsigned long long)request->parent);
    if (request->engine->machine.devices.count == 0)
        return error_set(error, BERTH_ERROR_NO_DEVICE, "wanted devices, found none here");
    return request->possible ? 0 : explain_never(request, error);
}

/* Whether nobody waits who comes after the lane: one that does may have lost a reservation to it,
 * and so no longer keep others from devices. */
static bool is_last(const struct engine_request *request)
{
    const struct lane_list *lanes = &request->scope->lanes;

    return lanes->items[lanes->count - 1] == request;
}

static int enqueue(struct engine_request *request, int64_t deadline,
                   const struct claim_owner *owner, uint64_t *ret_id, struct berth_error *error)
{
    struct engine *engine = request->engine;
    struct scope *scope = request->scope;
    struct claim *claim = claim_begin(request, engine->last_id + 1, engine->now, deadline, owner);

    if (claim == NULL)
        return error_set_memory(error);
    engine->last_id++;
    lane_append(claim);
    *ret_id = claim->entry.link.id;
    if (is_wanted(engine, EVENT_QUEUED))
        tell(engine, (struct engine_event){.type = EVENT_QUEUED,
                                           .claim = claim->entry.link.id,
                                           .request = request->number,
                                           .deadline = deadline});
    if (!request->what.opportunistic &&
        (scope->helpers > scope->helpers_noticed || !is_last(request)))
        settle(scope);
    return CLAIM_WAITS;
}

int grant_chosen(struct engine_request *request, const struct claim_owner *owner, uint64_t *ret_id,
                 struct berth_error *error)
{
    struct engine *engine = request->engine;
    struct held *held = lease_grant(request, engine->last_id + 1, engine->chosen,
                                    (uint32_t)engine->chosen_count, request->replicas, false);

    if (held == NULL)
        return error_set_memory(error);
    engine->last_id++;
    if (owner != NULL)
        lease_set_owner(held, owner);
    *ret_id = held->entry.link.id;
    if (engine->tells_at_once)
        tell_granted(held, false);
    if (request->scope->lanes.count > 0 && grant_may_matter(request))
        settle(request->scope);
    return CLAIM_GRANTED;
}

/* Whether the request may start now: 1 with the slots chosen, 0 or an error. */
static int find_start(struct engine_request *request, struct berth_error *error)
{
    int code;

    /* The short way: nobody waits and any empty slot does. */
    if (request->simple && request->scope->lanes.count == 0)
        return place_simple(request);
    code = check_possible(request, error);
    if (code == 0)
        code = evaluate(request);
    return code == BERTH_ERROR_MEMORY ? error_set_memory(error) : code == PLACE_LIMITED ? 0 : code;
}

NOT_INLINE static int claim_slowly(struct engine_request *request, int64_t deadline,
                                   const struct claim_owner *owner, uint64_t *ret_id,
                                   struct berth_error *error)
{
    int code;

    /* Who wants the same and waits already comes first. */
    if (request->waiting_count > 0)
        return enqueue(request, deadline, owner, ret_id, error);
    code = find_start(request, error);
    if (code == 1)
        return grant_chosen(request, owner, ret_id, error);
    return code < 0 ? code : enqueue(request, deadline, owner, ret_id, error);
}

NOT_INLINE static int try_slowly(struct engine_request *request, uint64_t *ret_lease,
                                 struct berth_error *error)
{
    int code = find_start(request, error);

    return code == 1 ? grant_chosen(request, NULL, ret_lease, error) : code;
}

int engine_claim(struct engine *engine, struct engine_request *request, int64_t deadline,
                 const struct claim_owner *owner, uint64_t *ret_id, struct berth_error *error)
{
    if (owner == NULL && swift_try(engine, request, ret_id))
        return CLAIM_GRANTED;
    return claim_slowly(request, deadline, owner, ret_id, error);
}

int engine_try(struct engine *engine, struct engine_request *request, uint64_t *ret_lease,
               struct berth_error *error)
{
    if (swift_try(engine, request, ret_lease))
        return CLAIM_GRANTED;
    return try_slowly(request, ret_lease, error);
}

int engine_would_grant(struct engine *engine, struct engine_request *request,
                       struct berth_error *error)
{
    (void)engine;
    return find_start(request, error);
}

int engine_cancel(struct engine *engine, uint64_t claim_id, struct berth_error *error)
{
    struct claim *claim = claim_of(engine, claim_id);
    struct engine_request *request;
    struct scope *scope;
    bool helps;

    if (claim == NULL)
        return error_set(error, BERTH_ERROR_NOT_FOUND,
                         "wanted a waiting claim, found no claim %llu",
                         (unsigned long long)claim_id);
    request = claim->request;
    scope = request->scope;
    /* Behind another claim of its lane it bars nothing that the other does not bar too. But a later
     * one may be given way now. */
    helps = (list_first(&request->waiting) == &claim->in_lane &&
             (request->waiting_count == 1 || scope->lanes.count > 1)) ||
            scope->helpers > scope->helpers_noticed;
    refuse_claim(claim, REFUSAL_CANCELLED);
    if (helps)
        settle(scope);
    return 0;
}

void count_pick(struct scope *scope, uint32_t slot, uint64_t id, uint32_t place)
{
    scope->slots[slot].picks++;
    scope->ledger[slot].served++;
    scope->ledger[slot].last_served = stamp_of(id, place);
}

int engine_pick(struct engine *engine, struct engine_request *request, uint32_t *ret_slots,
                size_t capacity, struct berth_error *error)
{
    int code = find_start(request, error);
    struct scope *scope = request->scope;
    int count = (int)engine->chosen_count;

    if (code != 1)
        return code;
    engine->last_id++;
    for (size_t i = 0; i < engine->chosen_count; i++) {
        count_pick(scope, engine->chosen[i], engine->last_id, (uint32_t)i);
        if (i < capacity)
            ret_slots[i] = engine->chosen[i];
    }
    if (is_wanted(engine, EVENT_PICKED))
        tell(engine, (struct engine_event){.type = EVENT_PICKED,
                                           .lease = engine->last_id,
                                           .request = request->number,
                                           .slots = engine->chosen,
                                           .slot_count = (uint32_t)engine->chosen_count});
    settle_moved(scope);
    return count;
}

/* ---- Leases ---- */

/* Only what a grant says is ever set in `granted`, so the rest need not be cleared each time. */
void tell_granted(const struct held *held, bool waited)
{
    struct engine *engine = held->request->engine;
    struct engine_event *event = &engine->granted;

    event->type = EVENT_GRANTED;
    event->time = engine->now;
    event->claim = held->claim;
    event->lease = held->entry.link.id;
    event->request = held->request->number;
    event->slots = held->slots;
    event->slot_count = held->slot_count;
    event->replicas = held->replicas;
    event->expires = held->expires;
    event->waited = waited;
    engine->sink.tell(engine->sink.context, event);
}

void lease_set_state(struct held *held, enum lease_state state)
{
    struct scope *scope = held->request->scope;

    scope->helpers_noticed -= lease_is_going(held);
    held->touched |= LEASE_TOUCHED_REST;
    held->state = state;
    scope->helpers_noticed += lease_is_going(held);
}

/* Whoever is over its limit is asked to go, and forced when the grace is over. That takes its time
 * too. */
static int64_t overstays_from(const struct held *held)
{
    int64_t grace = held->request->engine->settings.grace;

    return grace > (TIME_NEVER - 1 - held->expires) / 2 ? TIME_NEVER - 1
                                                        : held->expires + 2 * grace;
}

bool lease_overstays(const struct held *held)
{
    return overstays_from(held) <= held->request->engine->now;
}

void lease_update_timer(struct held *held)
{
    int64_t now = held->request->engine->now;
    int64_t at = held->expires;

    /* From then on those who wait for it see it otherwise. */
    if (held->state != LEASE_HELD && held->state != LEASE_NOTICED && at != TIME_NEVER && at <= now)
        at = lease_overstays(held) ? TIME_NEVER : overstays_from(held);
    if (held->state == LEASE_NOTICED && held->force_at < at)
        at = held->force_at;
    timer_set(held->request->engine, &held->entry, at);
}

void give_notice(struct held *held)
{
    struct engine *engine = held->request->engine;

    held->force_at = engine->settings.grace > TIME_NEVER - 1 - engine->now
                         ? TIME_NEVER - 1
                         : engine->now + engine->settings.grace;
    lease_set_state(held, LEASE_NOTICED);
    lease_update_timer(held);
    if (is_wanted(engine, EVENT_NOTICE))
        tell(engine, (struct engine_event){.type = EVENT_NOTICE,
                                           .lease = held->entry.link.id,
                                           .expires = held->force_at});
}

static void tell_released(const struct held *held)
{
    struct engine *engine = held->request->engine;

    if (is_wanted(engine, EVENT_RELEASED))
        tell(engine, (struct engine_event){.type = EVENT_RELEASED, .lease = held->entry.link.id});
}

void end_inside(struct held *held)
{
    struct scope *inside = held->inside;
    struct engine *engine = held->request->engine;

    if (inside == NULL)
        return;
    held->inside = NULL;
    while (inside->lanes.count > 0) {
        struct engine_request *request = inside->lanes.items[0];

        refuse_claim(container_of(list_first(&request->waiting), struct claim, in_lane),
                     REFUSAL_PARENT_ENDED);
    }
    list_for_each (link, &engine->leases) {
        struct held *sub = container_of(link, struct held, in_engine);

        if (sub->request->scope != inside)
            continue;
        end_inside(sub);
        /* What was within it may have been the next. */
        link_next = sub->in_engine.next;
        tell_released(sub);
        lease_remove(sub, false);
    }
    list_for_each (link, &inside->requests) {
        struct engine_request *request = container_of(link, struct engine_request, in_scope);

        /* It is of no use any more, however long its opener keeps it. */
        if (is_wanted(engine, EVENT_FORGOTTEN))
            tell(engine,
                 (struct engine_event){.type = EVENT_FORGOTTEN, .request = request->number});
        list_remove(&request->in_scope);
        request->scope = NULL;
        request->possible = false;
        request->simple = request->plain = request->swift = false;
        list_append(&engine->orphans, &request->in_scope);
    }
    scope_finish(inside);
    free(inside);
}

int no_lease(uint64_t id, struct berth_error *error)
{
    return error_set(error, BERTH_ERROR_NOT_FOUND,
                     "wanted a lease that is held, found no lease %llu", (unsigned long long)id);
}

NOT_INLINE static void end_lease(struct held *held)
{
    struct scope *scope = held->request->scope;

    if (held->inside != NULL)
        end_inside(held);
    tell_released(held);
    lease_remove(held, false);
    settle(scope);
}

int engine_release(struct engine *engine, uint64_t lease, struct berth_error *error)
{
    struct held *held;

    if (swift_release(engine, lease))
        return 0;
    held = lease_of(engine, lease);
    if (held == NULL || held->state == LEASE_DRAINING)
        return no_lease(lease, error);
    end_lease(held);
    return 0;
}

int engine_vacated(struct engine *engine, uint64_t lease, struct berth_error *error)
{
    struct held *held = lease_of(engine, lease);

    if (held == NULL)
        return no_lease(lease, error);
    end_lease(held);
    return 0;
}

int engine_drain_lease(struct engine *engine, uint64_t lease, struct berth_error *error)
{
    struct held *held = lease_of(engine, lease);

    if (held == NULL || held->state == LEASE_DRAINING)
        return no_lease(lease, error);
    end_inside(held);
    lease_set_state(held, LEASE_DRAINING);
    lease_update_timer(held);
    if (is_wanted(engine, EVENT_DRAINING))
        tell(engine, (struct engine_event){.type = EVENT_DRAINING, .lease = lease});
    settle_moved(held->request->scope);
    return 0;
}

int engine_extend(struct engine *engine, uint64_t lease, int64_t expires, struct berth_error *error)
{
    struct held *held = lease_of(engine, lease);

    if (held == NULL || held->state == LEASE_DRAINING)
        return no_lease(lease, error);
    if ((held->state != LEASE_HELD && held->state != LEASE_NOTICED) || expires <= engine->now)
        return error_set(error, BERTH_ERROR_INVALID,
                         expires <= engine->now
                             ? "lease %llu: wanted a time limit to come, found one that is over"
                             : "lease %llu: wanted one that runs, found that it is over",
                         (unsigned long long)lease);
    held->touched |= LEASE_TOUCHED_REST;
    held->request->scope->limited -= held->expires != TIME_NEVER;
    held->expires = expires;
    held->request->scope->limited += held->expires != TIME_NEVER;
    endings_forget(held->request->scope);
    for (uint32_t i = 0; i < held->slot_count; i++)
        node_changed(engine, held->slots[i]);
    lease_update_timer(held);
    if (is_wanted(engine, EVENT_EXTENDED))
        tell(engine,
             (struct engine_event){.type = EVENT_EXTENDED, .lease = lease, .expires = expires});
    settle(held->request->scope);
    return 0;
}
