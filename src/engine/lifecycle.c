/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes, refuses and cancels claims; ends, extends and drains leases.
 */
#include <stdlib.h>

#include "base/error.h"
#include "engine/fast_path.h"
#include "engine/grant.h"
#include "engine/internal.h"

/* Keeps rare code out of the fast path. */
#define NOT_INLINE __attribute__((noinline))

/* ---- Claims ---- */

struct claim *lifecycle_begin_claim(struct engine_request *request, uint64_t id, int64_t arrived,
                                    int64_t deadline, const struct claim_owner *owner)
{
    struct engine *engine = request->engine;
    bool ready = request->waiting_count > 0 || lanes_reserve(request->scope) == 0;
    struct claim *claim = ready ? records_new_claim(engine) : NULL;

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
        records_set_timer(engine, &claim->entry, deadline);
    return claim;
}

void lifecycle_refuse_claim(struct claim *claim, enum refusal reason)
{
    struct engine_request *request = claim->request;
    struct engine *engine = request->engine;

    if (engine_wants_event(engine, EVENT_REFUSED))
        engine_notify(engine, (struct engine_event){.type = EVENT_REFUSED,
                                                    .claim = claim->entry.link.id,
                                                    .reason = reason});
    grant_remove_claim(claim);
    engine_request_unreference(request);
}

/* Checks that claims with the request are possible (FAIRNESS.md section 12). */
static int check_possible(struct engine_request *request, struct berth_error *error)
{
    if (request->scope == NULL)
        return error_set(error, BERTH_ERROR_NOT_FOUND,
                         "cannot claim within lease %llu: it has ended",
                         (unsigned long long)request->parent);
    if (request->engine->machine.devices.count == 0)
        return error_set(error, BERTH_ERROR_NO_DEVICE, "this pool has no devices");
    return request->possible ? 0 : explain_never(request, error);
}

/* Returns whether no lane comes after this one. A later claim may have lost a reservation to this
 * lane's claim, and so may bar fewer devices to other claims. */
static bool is_last_lane(const struct engine_request *request)
{
    const struct lane_list *lanes = &request->scope->lanes;

    return lanes->items[lanes->count - 1] == request;
}

static int enqueue_claim(struct engine_request *request, int64_t deadline,
                         const struct claim_owner *owner, uint64_t *ret_id,
                         struct berth_error *error)
{
    struct engine *engine = request->engine;
    struct scope *scope = request->scope;
    struct claim *claim =
        lifecycle_begin_claim(request, engine->last_id + 1, engine->now, deadline, owner);

    if (claim == NULL)
        return error_set_memory(error);
    engine->last_id++;
    lane_append(claim);
    *ret_id = claim->entry.link.id;
    if (engine_wants_event(engine, EVENT_QUEUED))
        engine_notify(engine, (struct engine_event){.type = EVENT_QUEUED,
                                                    .claim = claim->entry.link.id,
                                                    .request = request->number,
                                                    .deadline = deadline});
    if (!request->what.opportunistic &&
        (scope->opportunistic_leases > scope->opportunistic_leaving || !is_last_lane(request)))
        schedule_scope(scope);
    return CLAIM_WAITS;
}

int lifecycle_grant_chosen(struct engine_request *request, const struct claim_owner *owner,
                           uint64_t *ret_id, struct berth_error *error)
{
    struct engine *engine = request->engine;
    struct lease *held = grant_lease(request, engine->last_id + 1, engine->chosen,
                                     (uint32_t)engine->chosen_count, request->replicas, false);

    if (held == NULL)
        return error_set_memory(error);
    engine->last_id++;
    if (owner != NULL)
        engine_set_lease_owner(held, owner);
    *ret_id = held->entry.link.id;
    if (engine->notifies_at_once)
        engine_notify_granted(held, false);
    if (request->scope->lanes.count > 0 && schedule_grant_matters(request))
        schedule_scope(request->scope);
    return CLAIM_GRANTED;
}

/* Returns 1 if the request may start now, with the slots in engine->chosen; 0 if not; or an error.
 */
static int find_start(struct engine_request *request, struct berth_error *error)
{
    int code;

    /* No claim waits, and any empty slots will fit. */
    if (request->simple && request->scope->lanes.count == 0)
        return place_request_simple(request);
    code = check_possible(request, error);
    if (code == 0)
        code = schedule_evaluate(request);
    return code == BERTH_ERROR_MEMORY ? error_set_memory(error) : code == PLACE_LIMITED ? 0 : code;
}

NOT_INLINE static int claim_slowly(struct engine_request *request, int64_t deadline,
                                   const struct claim_owner *owner, uint64_t *ret_id,
                                   struct berth_error *error)
{
    int code;

    /* Earlier claims of the same lane come first. */
    if (request->waiting_count > 0)
        return enqueue_claim(request, deadline, owner, ret_id, error);
    code = find_start(request, error);
    if (code == 1)
        return lifecycle_grant_chosen(request, owner, ret_id, error);
    return code < 0 ? code : enqueue_claim(request, deadline, owner, ret_id, error);
}

NOT_INLINE static int try_slowly(struct engine_request *request, uint64_t *ret_lease,
                                 struct berth_error *error)
{
    int code = find_start(request, error);

    return code == 1 ? lifecycle_grant_chosen(request, NULL, ret_lease, error) : code;
}

int engine_claim(struct engine *engine, struct engine_request *request, int64_t deadline,
                 const struct claim_owner *owner, uint64_t *ret_id, struct berth_error *error)
{
    if (owner == NULL && fast_path_try(engine, request, ret_id))
        return CLAIM_GRANTED;
    return claim_slowly(request, deadline, owner, ret_id, error);
}

int engine_try(struct engine *engine, struct engine_request *request, uint64_t *ret_lease,
               struct berth_error *error)
{
    if (fast_path_try(engine, request, ret_lease))
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
    struct claim *claim = engine_find_claim(engine, claim_id);
    struct engine_request *request;
    struct scope *scope;
    bool helps;

    if (claim == NULL)
        return error_set(error, BERTH_ERROR_NOT_FOUND, "no claim %llu is waiting",
                         (unsigned long long)claim_id);
    request = claim->request;
    scope = request->scope;
    /* A claim behind another one of its lane bars only slots that the other bars too. But without
     * it, a later claim may get devices of opportunistic leases. */
    helps = (list_first(&request->waiting) == &claim->in_lane &&
             (request->waiting_count == 1 || scope->lanes.count > 1)) ||
            scope->opportunistic_leases > scope->opportunistic_leaving;
    lifecycle_refuse_claim(claim, REFUSAL_CANCELLED);
    if (helps)
        schedule_scope(scope);
    return 0;
}

void lifecycle_count_pick(struct scope *scope, uint32_t slot, uint64_t id, uint32_t place)
{
    scope->slots[slot].picks++;
    scope->ledger[slot].served++;
    scope->ledger[slot].last_served = engine_stamp(id, place);
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
        lifecycle_count_pick(scope, engine->chosen[i], engine->last_id, (uint32_t)i);
        if (i < capacity)
            ret_slots[i] = engine->chosen[i];
    }
    if (engine_wants_event(engine, EVENT_PICKED))
        engine_notify(engine, (struct engine_event){.type = EVENT_PICKED,
                                                    .lease = engine->last_id,
                                                    .request = request->number,
                                                    .slots = engine->chosen,
                                                    .slot_count = (uint32_t)engine->chosen_count});
    schedule_moved(scope);
    return count;
}

/* ---- Leases ---- */

/* Uses engine->granted, whose other members are always 0, so that they need not be cleared. */
void engine_notify_granted(const struct lease *held, bool waited)
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
    engine->sink.notify(engine->sink.context, event);
}

void lifecycle_set_lease_state(struct lease *held, enum lease_state state)
{
    struct scope *scope = held->request->scope;

    scope->opportunistic_leaving -= preempt_is_leaving(held);
    held->touched |= LEASE_TOUCHED_REST;
    held->state = state;
    scope->opportunistic_leaving += preempt_is_leaving(held);
}

/* Returns when the lease overstays: twice the grace after its limit (FAIRNESS.md section 3). After
 * the limit the holder has one grace, and ending the lease by force takes time too. */
static int64_t overstays_from(const struct lease *held)
{
    int64_t grace = held->request->engine->settings.grace;

    return grace > (TIME_NEVER - 1 - held->expires) / 2 ? TIME_NEVER - 1
                                                        : held->expires + 2 * grace;
}

bool lifecycle_lease_overstays(const struct lease *held)
{
    return overstays_from(held) <= held->request->engine->now;
}

void lifecycle_update_lease_timer(struct lease *held)
{
    int64_t now = held->request->engine->now;
    int64_t at = held->expires;

    /* The next event is the overstay, which changes reservations. */
    if (held->state != LEASE_HELD && held->state != LEASE_NOTICED && at != TIME_NEVER && at <= now)
        at = lifecycle_lease_overstays(held) ? TIME_NEVER : overstays_from(held);
    if (held->state == LEASE_NOTICED && held->force_at < at)
        at = held->force_at;
    records_set_timer(held->request->engine, &held->entry, at);
}

void lifecycle_give_notice(struct lease *held)
{
    struct engine *engine = held->request->engine;

    held->force_at = engine->settings.grace > TIME_NEVER - 1 - engine->now
                         ? TIME_NEVER - 1
                         : engine->now + engine->settings.grace;
    lifecycle_set_lease_state(held, LEASE_NOTICED);
    lifecycle_update_lease_timer(held);
    if (engine_wants_event(engine, EVENT_NOTICE))
        engine_notify(engine, (struct engine_event){.type = EVENT_NOTICE,
                                                    .lease = held->entry.link.id,
                                                    .expires = held->force_at});
}

static void notify_released(const struct lease *held)
{
    struct engine *engine = held->request->engine;

    if (engine_wants_event(engine, EVENT_RELEASED))
        engine_notify(engine,
                      (struct engine_event){.type = EVENT_RELEASED, .lease = held->entry.link.id});
}

void lifecycle_end_inner_scope(struct lease *held)
{
    struct scope *inner_scope = held->inner_scope;
    struct engine *engine = held->request->engine;
    const struct list_link *next = engine->leases.ends.next;

    if (inner_scope == NULL)
        return;
    held->inner_scope = NULL;
    while (inner_scope->lanes.count > 0) {
        struct engine_request *request = inner_scope->lanes.items[0];

        lifecycle_refuse_claim(container_of(list_first(&request->waiting), struct claim, in_lane),
                               REFUSAL_PARENT_ENDED);
    }
    while (next != &engine->leases.ends) {
        struct lease *sub = container_of(next, struct lease, in_engine);

        /* The leases within the sub-lease end first: one of them may be the next in the list. */
        if (sub->request->scope == inner_scope)
            lifecycle_end_inner_scope(sub);
        next = sub->in_engine.next;
        if (sub->request->scope != inner_scope)
            continue;
        notify_released(sub);
        grant_remove_lease(sub, false);
    }
    list_for_each (link, &inner_scope->requests) {
        struct engine_request *request = container_of(link, struct engine_request, in_scope);

        /* The request is useless from now on, even while its opener keeps it. */
        if (engine_wants_event(engine, EVENT_FORGOTTEN))
            engine_notify(
                engine, (struct engine_event){.type = EVENT_FORGOTTEN, .request = request->number});
        list_remove(&request->in_scope);
        request->scope = NULL;
        request->possible = false;
        request->simple = request->plain = request->fast_path = false;
        list_append(&engine->orphans, &request->in_scope);
    }
    scope_finish(inner_scope);
    free(inner_scope);
}

int lifecycle_lease_not_found(uint64_t id, struct berth_error *error)
{
    return error_set(error, BERTH_ERROR_NOT_FOUND, "no lease %llu is held", (unsigned long long)id);
}

NOT_INLINE static void end_lease(struct lease *held)
{
    struct scope *scope = held->request->scope;

    if (held->inner_scope != NULL)
        lifecycle_end_inner_scope(held);
    notify_released(held);
    grant_remove_lease(held, false);
    schedule_scope(scope);
}

int engine_release(struct engine *engine, uint64_t lease, struct berth_error *error)
{
    struct lease *held;

    if (fast_path_release(engine, lease))
        return 0;
    held = engine_find_lease(engine, lease);
    if (held == NULL || held->state == LEASE_DRAINING)
        return lifecycle_lease_not_found(lease, error);
    end_lease(held);
    return 0;
}

int engine_vacated(struct engine *engine, uint64_t lease, struct berth_error *error)
{
    struct lease *held = engine_find_lease(engine, lease);

    if (held == NULL)
        return lifecycle_lease_not_found(lease, error);
    end_lease(held);
    return 0;
}

int engine_drain_lease(struct engine *engine, uint64_t lease, struct berth_error *error)
{
    struct lease *held = engine_find_lease(engine, lease);

    if (held == NULL || held->state == LEASE_DRAINING)
        return lifecycle_lease_not_found(lease, error);
    lifecycle_end_inner_scope(held);
    lifecycle_set_lease_state(held, LEASE_DRAINING);
    lifecycle_update_lease_timer(held);
    if (engine_wants_event(engine, EVENT_DRAINING))
        engine_notify(engine, (struct engine_event){.type = EVENT_DRAINING, .lease = lease});
    schedule_moved(held->request->scope);
    return 0;
}

int engine_extend(struct engine *engine, uint64_t lease, int64_t expires, struct berth_error *error)
{
    struct lease *held = engine_find_lease(engine, lease);

    if (held == NULL || held->state == LEASE_DRAINING)
        return lifecycle_lease_not_found(lease, error);
    if ((held->state != LEASE_HELD && held->state != LEASE_NOTICED) || expires <= engine->now)
        return error_set(
            error, BERTH_ERROR_INVALID,
            expires <= engine->now
                ? "lease %llu: expected a time limit in the future, got one in the past"
                : "cannot extend lease %llu: its time is over",
            (unsigned long long)lease);
    held->touched |= LEASE_TOUCHED_REST;
    held->request->scope->limited -= held->expires != TIME_NEVER;
    held->expires = expires;
    held->request->scope->limited += held->expires != TIME_NEVER;
    reservation_forget_endings(held->request->scope);
    for (uint32_t i = 0; i < held->slot_count; i++)
        engine_node_changed(engine, held->slots[i]);
    lifecycle_update_lease_timer(held);
    if (engine_wants_event(engine, EVENT_EXTENDED))
        engine_notify(engine, (struct engine_event){
                                  .type = EVENT_EXTENDED, .lease = lease, .expires = expires});
    schedule_scope(held->request->scope);
    return 0;
}
