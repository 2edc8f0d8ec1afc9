/* SPDX-License-Identifier: Apache-2.0
 *
 * Grants outside the queue (FAIRNESS.md section 7), and grants that are withdrawn (section 8).
 */
#include "base/error.h"
#include "engine/grant.h"
#include "engine/internal.h"

/* ---- Grants outside the queue ---- */

static struct device_id_text device_name(const struct engine *engine, uint32_t slot)
{
    return device_id_format(engine->machine.devices.items[slot].id);
}

static int check_count(const struct engine_request *request, size_t count,
                       struct berth_error *error)
{
    if (request->replicas > 1)
        return error_set(error, BERTH_ERROR_INVALID,
                         "expected a request for 1 replica, got %u replicas", request->replicas);
    if (count == 0 || count < request->min || count > request->max)
        return error_set(error, BERTH_ERROR_INVALID, "expected %zu to %zu devices, got %zu",
                         request->min, request->max, count);
    return 0;
}

/* Checks that the request accepts the slot, and that it is in the group of the slot `first`. */
static int check_slot(const struct engine_request *request, uint32_t slot, uint32_t first,
                      struct berth_error *error)
{
    struct engine *engine = request->engine;
    const char *reason;

    if (slot >= engine->machine.devices.count)
        return error_set(error, BERTH_ERROR_INVALID, "expected a slot below %zu, got %u",
                         engine->machine.devices.count, slot);
    if (!bitset_has(&request->accepts, slot)) {
        reason = filter_reason(engine_request_verdict(request, slot));
        return error_set(
            error, BERTH_ERROR_INVALID, "cannot use %s: it %s", device_name(engine, slot).text,
            reason != NULL ? reason : "is not one of the devices that \"all\" means here");
    }
    if (placement_search_group(&engine->search, &request->what, slot) !=
        placement_search_group(&engine->search, &request->what, first))
        return error_set(error, BERTH_ERROR_INVALID,
                         "%s and %s: expected devices of one host and vendor",
                         device_name(engine, first).text, device_name(engine, slot).text);
    return 0;
}

static int check_room(const struct engine_request *request, uint32_t slot,
                      struct berth_error *error)
{
    const struct ledger_slot *ledger = &request->scope->ledger[slot];

    if (ledger_room_beside(request, slot, &ledger->usage) > 0)
        return 0;
    return error_set(error, BERTH_ERROR_BUSY, "cannot use %s: no room beside lease %llu",
                     device_name(request->engine, slot).text,
                     (unsigned long long)engine_slot_holder(ledger));
}

/* Copies the slots to engine->chosen, the lowest first as in any decision. */
static int choose_slots(const struct engine_request *request, const uint32_t *slots, size_t count,
                        struct berth_error *error)
{
    struct engine *engine = request->engine;

    bitset_clear(&engine->from);
    for (size_t i = 0; i < count; i++) {
        if (bitset_has(&engine->from, slots[i]))
            return error_set(error, BERTH_ERROR_INVALID,
                             "%s: expected each device once, got it twice",
                             device_name(engine, slots[i]).text);
        bitset_add(&engine->from, slots[i]);
    }
    engine->chosen_count = 0;
    bitset_for_each (slot, &engine->from)
        engine->chosen[engine->chosen_count++] = (uint32_t)slot;
    return 0;
}

int engine_grant_slots(struct engine *engine, struct engine_request *request, const uint32_t *slots,
                       size_t count, uint64_t *ret_lease, struct berth_error *error)
{
    int code = 0;

    (void)engine;
    if (request->scope == NULL)
        return lifecycle_lease_not_found(request->parent, error);
    for (size_t i = 0; i < count && code == 0; i++)
        code = check_slot(request, slots[i], slots[0], error);
    if (code == 0)
        code = check_count(request, count, error);
    if (code == 0)
        code = choose_slots(request, slots, count, error);
    for (size_t i = 0; i < count && code == 0; i++)
        code = check_room(request, slots[i], error);
    if (code == 0)
        code = lifecycle_grant_chosen(request, NULL, ret_lease, error);
    return code < 0 ? code : 0;
}

/* ---- Withdrawn grants ---- */

struct claim *direct_grant_requeue(struct lease *held, int64_t arrived, int64_t deadline)
{
    struct claim *claim = lifecycle_begin_claim(held->request, engine_lease_claim_id(held), arrived,
                                                deadline, &held->owner);

    if (claim == NULL)
        return NULL;
    lifecycle_end_inner_scope(held);
    grant_remove_lease(held, false);
    lane_insert(claim);
    return claim;
}

int engine_return(struct engine *engine, uint64_t lease, int64_t arrived, int64_t deadline,
                  struct berth_error *error)
{
    struct lease *held = engine_find_lease(engine, lease);
    struct engine_event event = {
        .type = EVENT_RETURNED,
        .time = arrived > engine->now ? engine->now
                : arrived < 0         ? 0
                                      : arrived,
        .lease = lease,
        .deadline = deadline,
    };
    struct claim *claim;
    struct scope *scope;

    if (held == NULL || held->state == LEASE_DRAINING)
        return lifecycle_lease_not_found(lease, error);
    scope = held->request->scope;
    claim = direct_grant_requeue(held, event.time, deadline);
    if (claim == NULL)
        return error_set_memory(error);
    event.claim = claim->entry.link.id;
    event.request = claim->request->number;
    /* The event's time is the claim's arrival, so engine_notify() cannot be used. */
    if (engine_wants_event(engine, EVENT_RETURNED))
        engine->sink.notify(engine->sink.context, &event);
    engine_refuse_impossible(engine);
    schedule_scope(scope);
    return 0;
}
