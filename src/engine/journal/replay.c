/* SPDX-License-Identifier: Apache-2.0
 *
 * Replays events: restores the state without any decision.
 */
#include <stdlib.h>

#include "base/error.h"
#include "engine/grant.h"
#include "engine/internal.h"
#include "engine/policy/policies.h"

/* Refuses an event that contradicts the state. */
static int refuse_event(const struct engine_event *event, const char *why,
                        struct berth_error *error)
{
    return error_set(error, BERTH_ERROR_INVALID, "cannot replay an event of type %d: %s",
                     (int)event->type, why);
}

static struct engine_request *request_of(struct engine *engine, uint64_t number)
{
    list_for_each (link, &engine->scopes) {
        struct scope *scope = container_of(link, struct scope, in_engine);

        list_for_each (other, &scope->requests) {
            struct engine_request *request = container_of(other, struct engine_request, in_scope);

            if (request->number == number)
                return request;
        }
    }
    list_for_each (link, &engine->orphans) {
        struct engine_request *request = container_of(link, struct engine_request, in_scope);

        if (request->number == number)
            return request;
    }
    return NULL;
}

static int replay_request(struct engine *engine, const struct engine_event *event,
                          struct berth_error *error)
{
    static const struct party nobody;
    const struct policy *policy = NULL;
    struct engine_request *request;
    int code;

    if (event->what == NULL || request_of(engine, event->request) != NULL)
        return refuse_event(event, "the request is missing or exists already", error);
    /* An older version may have had more policies. The default policy replaces an unknown one. */
    if (event->what->policy != NULL && policy_find(event->what->policy, &policy, NULL) != 0)
        policy = NULL;
    code = engine_request_create(engine, event->what, event->party != NULL ? event->party : &nobody,
                                 policy, event->request, event->share, &request, error);
    if (code == 0)
        request->restored = true;
    return code == BERTH_ERROR_NOT_FOUND ? refuse_event(event, "the lease is unknown", error)
                                         : code;
}

static int replay_forgotten(struct engine *engine, const struct engine_event *event,
                            struct berth_error *error)
{
    struct engine_request *request = request_of(engine, event->request);

    if (request == NULL || request->references != 1)
        return refuse_event(event, "the request is unknown or in use", error);
    engine_request_unreference(request);
    return 0;
}

/* Returns whether a new claim or lease cannot have this id. */
static bool is_used(struct engine *engine, uint64_t id)
{
    return id == 0 || engine_find_claim(engine, id) != NULL ||
           engine_find_lease(engine, id) != NULL;
}

static int replay_queued(struct engine *engine, const struct engine_event *event,
                         struct berth_error *error)
{
    struct engine_request *request = request_of(engine, event->request);
    struct claim *claim;

    if (request == NULL || request->scope == NULL || is_used(engine, event->claim))
        return refuse_event(event, "the request is unknown, or the claim exists already", error);
    claim = lifecycle_begin_claim(request, event->claim, event->time, event->deadline, NULL);
    if (claim == NULL)
        return error_set_memory(error);
    lane_append(claim);
    return 0;
}

/* Returns whether the slots have room for the lease. */
static bool slots_fit(const struct engine_request *request, const struct engine_event *event)
{
    const struct scope *scope = request->scope;
    struct engine *engine = scope->engine;
    bool fits = event->slot_count > 0 && event->replicas > 0 &&
                event->slot_count % event->replicas == 0 && event->replicas == request->replicas;

    for (uint32_t i = 0; fits && i < event->slot_count; i++) {
        uint32_t slot = event->slots[i];

        fits = slot < engine->machine.devices.count &&
               (scope->parent == NULL || bitset_has(&scope->members, slot));
        if (fits)
            engine->simulated[slot] = scope->ledger[slot].usage;
    }
    for (uint32_t i = 0; fits && i < event->slot_count; i++) {
        struct usage *usage = &engine->simulated[event->slots[i]];

        fits = usage->brief.tenants == 0 ||
               (usage->brief.sharing == request->what.sharing &&
                request->what.sharing != SHARING_EXCLUSIVE &&
                usage->brief.share + request->share <= scope->terms.share);
        ledger_add_usage(usage, request);
    }
    return fits;
}

static int replay_granted(struct engine *engine, const struct engine_event *event,
                          struct berth_error *error)
{
    struct engine_request *request = request_of(engine, event->request);
    struct claim *claim = event->waited ? engine_find_claim(engine, event->claim) : NULL;
    struct lease *held;

    if (request == NULL || request->scope == NULL || is_used(engine, event->lease) ||
        (event->waited && (claim == NULL || claim->request != request)))
        return refuse_event(event, "the claim is unknown, or the lease exists already", error);
    if (!slots_fit(request, event))
        return refuse_event(event, "its devices are taken", error);
    held =
        grant_lease(request, event->lease, event->slots, event->slot_count, event->replicas, false);
    if (held == NULL)
        return error_set_memory(error);
    held->touched |= LEASE_TOUCHED_ORIGIN | LEASE_TOUCHED_REST;
    held->claim = event->claim;
    held->granted = event->time;
    request->scope->limited -= held->expires != TIME_NEVER;
    held->expires = event->expires;
    request->scope->limited += held->expires != TIME_NEVER;
    reservation_forget_endings(request->scope);
    lifecycle_update_lease_timer(held);
    if (claim == NULL)
        return 0;
    grant_remove_claim(claim);
    request->references--; /* the claim's; the lease has its own */
    return 0;
}

static int replay_refused(struct engine *engine, const struct engine_event *event,
                          struct berth_error *error)
{
    struct claim *claim = engine_find_claim(engine, event->claim);

    if (claim == NULL)
        return refuse_event(event, "the claim is unknown", error);
    lifecycle_refuse_claim(claim, event->reason);
    return 0;
}

static int replay_lease(struct engine *engine, const struct engine_event *event,
                        struct berth_error *error)
{
    struct lease *held = engine_find_lease(engine, event->lease);

    if (held == NULL)
        return refuse_event(event, "the lease is unknown", error);
    switch (event->type) {
    case EVENT_NOTICE:
        held->force_at = event->expires;
        lifecycle_set_lease_state(held, LEASE_NOTICED);
        break;
    case EVENT_REVOKED:
        lifecycle_set_lease_state(held, LEASE_REVOKED);
        break;
    case EVENT_EXPIRED:
        lifecycle_set_lease_state(held, LEASE_EXPIRED);
        break;
    case EVENT_DRAINING:
        lifecycle_end_inner_scope(held);
        lifecycle_set_lease_state(held, LEASE_DRAINING);
        break;
    case EVENT_EXTENDED:
        held->touched |= LEASE_TOUCHED_ORIGIN | LEASE_TOUCHED_REST;
        held->request->scope->limited -= held->expires != TIME_NEVER;
        held->expires = event->expires;
        held->request->scope->limited += held->expires != TIME_NEVER;
        reservation_forget_endings(held->request->scope);
        break;
    default:
        lifecycle_end_inner_scope(held);
        grant_remove_lease(held, false);
        return 0;
    }
    lifecycle_update_lease_timer(held);
    return 0;
}

static int replay_returned(struct engine *engine, const struct engine_event *event,
                           struct berth_error *error)
{
    struct lease *held = engine_find_lease(engine, event->lease);

    if (held == NULL || held->state == LEASE_DRAINING || held->request->number != event->request ||
        engine_lease_claim_id(held) != event->claim ||
        engine_find_claim(engine, event->claim) != NULL)
        return refuse_event(event, "the lease is unknown, or belongs to another claim or request",
                            error);
    if (direct_grant_requeue(held, event->time, event->deadline) == NULL)
        return error_set_memory(error);
    return 0;
}

static int replay_device(struct engine *engine, const struct engine_event *event,
                         struct berth_error *error)
{
    bool presence;

    if (event->slot >= engine->machine.devices.count)
        return refuse_event(event, "the slot is unknown", error);
    presence = engine->status[event->slot].present != event->present;
    engine->status[event->slot].blocks = event->blocks;
    engine->status[event->slot].present = event->present;
    engine->machine.devices.items[event->slot].health = (enum health)event->health;
    list_for_each (link, &engine->scopes)
        scope_refresh(container_of(link, struct scope, in_engine), event->slot);
    if (presence)
        engine_recompile_requests(engine);
    return 0;
}

static int replay_picked(struct engine *engine, const struct engine_event *event,
                         struct berth_error *error)
{
    struct engine_request *request = request_of(engine, event->request);

    if (request == NULL || request->scope == NULL)
        return refuse_event(event, "the request is unknown", error);
    for (uint32_t i = 0; i < event->slot_count; i++) {
        if (event->slots[i] >= engine->machine.devices.count)
            return refuse_event(event, "the slot is unknown", error);
    }
    for (uint32_t i = 0; i < event->slot_count; i++)
        lifecycle_count_pick(request->scope, event->slots[i], event->lease, i);
    return 0;
}

static int replay_slot(struct engine *engine, const struct engine_event *event,
                       struct berth_error *error)
{
    struct lease *parent = event->lease == 0 ? NULL : engine_find_lease(engine, event->lease);
    struct scope *scope;
    struct ledger_slot *slot;

    if (event->slot >= engine->machine.devices.count || (event->lease != 0 && parent == NULL))
        return refuse_event(event, "the slot or the lease is unknown", error);
    /* There may be no scope within the lease yet. */
    scope = event->lease == 0 ? &engine->root : scope_within(parent);
    if (scope == NULL)
        return error_set_memory(error);
    slot = &scope->ledger[event->slot];
    slot->last_served = event->stamp;
    slot->served = event->served;
    slot->affinity = event->affinity;
    return 0;
}

static int replay_counters(struct engine *engine, const struct engine_event *event,
                           struct berth_error *error)
{
    (void)error;
    if (event->lease > engine->last_id)
        engine->last_id = event->lease;
    if (event->request > engine->last_request)
        engine->last_request = event->request;
    return 0;
}

typedef int replay_function(struct engine *engine, const struct engine_event *event,
                            struct berth_error *error);

static replay_function *const functions[EVENT_TYPES] = {
    [EVENT_REQUEST] = replay_request,   [EVENT_FORGOTTEN] = replay_forgotten,
    [EVENT_QUEUED] = replay_queued,     [EVENT_GRANTED] = replay_granted,
    [EVENT_REFUSED] = replay_refused,   [EVENT_NOTICE] = replay_lease,
    [EVENT_REVOKED] = replay_lease,     [EVENT_EXPIRED] = replay_lease,
    [EVENT_DRAINING] = replay_lease,    [EVENT_RELEASED] = replay_lease,
    [EVENT_EXTENDED] = replay_lease,    [EVENT_DEVICE] = replay_device,
    [EVENT_PICKED] = replay_picked,     [EVENT_SLOT] = replay_slot,
    [EVENT_COUNTERS] = replay_counters, [EVENT_RETURNED] = replay_returned,
};

/* Moves the time forward to that of an event. Returns whether it changed. */
static bool move_time(struct engine *engine, int64_t now)
{
    if (now <= engine->now)
        return false;
    engine->now = now;
    list_for_each (link, &engine->scopes) {
        struct scope *scope = container_of(link, struct scope, in_engine);

        if (scope->next_age <= now)
            lanes_order(scope);
    }
    return true;
}

static void move_time_back(struct engine *engine, int64_t now)
{
    engine->now = now;
    list_for_each (link, &engine->scopes)
        lanes_order(container_of(link, struct scope, in_engine));
}

int engine_replay(struct engine *engine, const struct engine_event *event,
                  struct berth_error *error)
{
    struct event_sink sink = engine->sink;
    uint64_t highest = event->claim > event->lease ? event->claim : event->lease;
    int64_t before = engine->now;
    bool moved;
    int code;

    if (event->type <= 0 || event->type >= EVENT_TYPES)
        return refuse_event(event, "unknown type", error);
    if (event->time < 0)
        return refuse_event(event, "its time is negative", error);
    moved = move_time(engine, event->time);
    engine->sink = (struct event_sink){0};
    code = functions[event->type](engine, event, error);
    engine->sink = sink;
    if (code < 0 && moved)
        move_time_back(engine, before);
    if (code == 0 && highest > engine->last_id)
        engine->last_id = highest;
    return code;
}

void engine_close_restored(struct engine *engine)
{
    list_for_each (link, &engine->scopes) {
        struct scope *scope = container_of(link, struct scope, in_engine);

        list_for_each (other, &scope->requests) {
            struct engine_request *request = container_of(other, struct engine_request, in_scope);

            if (!request->restored)
                continue;
            request->restored = false;
            engine_request_unreference(request);
        }
    }
}
