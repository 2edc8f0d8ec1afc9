/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which claims may start (FAIRNESS.md sections 3 and 4): walks through the lanes, for
 * waiting claims and for a new claim.
 */
#include "engine/grant.h"
#include "engine/internal.h"

/* Returns the slots that have room for any claim. */
static struct bitset *slots_with_room(struct scope *scope)
{
    struct engine *engine = scope->engine;
    size_t words = (engine->size + 63) / 64;

    for (size_t i = 0; i < words; i++)
        engine->legal.words[i] = scope->empty.levels[0][i] | scope->part.words[i];
    return &engine->legal;
}

/* Returns whether no slot with room is barred to the request. */
static bool is_all_legal(const struct engine_request *request, const struct blocked_claims *walk)
{
    return !walk->barring && (!request->what.opportunistic || request->scope->pending == 0);
}

/* Returns whether the request cannot fit, by a quick check: without a search, and without the sets
 * of reservations. */
static bool is_hopeless(const struct engine_request *request, const struct blocked_claims *walk)
{
    struct bitset *open;

    if (!request->counted)
        return false;
    open = slots_with_room(request->scope);
    blocked_bar_closed_slots(walk, request, open);
    return !reservation_counted_fits(request, open);
}

/* Finds slots that the earlier claims of the walk do not bar to the request (FAIRNESS.md section
 * 4). Returns like place_request(). */
static int find_slots(const struct engine_request *request, struct blocked_claims *walk)
{
    struct scope *scope = request->scope;
    struct bitset *legal;
    size_t max;

    if (is_all_legal(request, walk))
        return request->simple ? place_request_simple(request)
                               : place_request(request, NULL, NULL, scope->host_usage, NULL);
    if (ledger_is_limited(request, &max))
        return PLACE_LIMITED;
    if (is_hopeless(request, walk))
        return 0;
    legal = slots_with_room(scope);
    if (blocked_bar_slots(walk, request, legal) < 0)
        return BERTH_ERROR_MEMORY;
    if (request->counted && !reservation_counted_fits(request, legal))
        return 0;
    return place_request(request, legal, NULL, scope->host_usage, NULL);
}

/* Returns whether every slot with room is barred, so that no later claim may start. */
static bool is_all_barred(const struct scope *scope, const struct blocked_claims *walk)
{
    size_t words = (scope->engine->size + 63) / 64;

    for (size_t i = 0; i < words; i++) {
        if (((scope->empty.levels[0][i] | scope->part.words[i]) & ~walk->closed.words[i]) != 0)
            return false;
    }
    return true;
}

bool schedule_grant_matters(const struct engine_request *request)
{
    return request->account_count > 0 || request->scope->limited > 0 ||
           request->scope->opportunistic_leases > 0;
}

/* Grants the chosen slots to the first claim of a lane. Returns 1 or BERTH_ERROR_MEMORY. */
static int grant_first_claim(struct engine_request *request)
{
    struct engine *engine = request->engine;
    struct claim *claim = container_of(list_first(&request->waiting), struct claim, in_lane);
    struct lease *held = grant_lease(request, engine->last_id + 1, engine->chosen,
                                     (uint32_t)engine->chosen_count, request->replicas, false);

    if (held == NULL)
        return BERTH_ERROR_MEMORY;
    engine->last_id++;
    held->claim = claim->entry.link.id;
    engine_set_lease_owner(held, &claim->owner);
    grant_remove_claim(claim);
    request->references--; /* the claim's; the lease has its own */
    if (engine_wants_event(engine, EVENT_GRANTED))
        engine_notify_granted(held, true);
    return 1;
}

/* Grants in order all claims that may start (FAIRNESS.md section 4). Returns 0 or
 * BERTH_ERROR_MEMORY. */
static int grant_due(struct scope *scope)
{
    struct blocked_claims *walk = &scope->engine->walk;
    size_t place = 0;

    blocked_reset(walk);
    while (place < scope->lanes.count && !engine_scope_is_full(scope)) {
        struct engine_request *request = scope->lanes.items[place];
        int code;

        if (engine_family_has_failed(request, walk)) {
            place++;
            continue;
        }
        code = find_slots(request, walk);
        if (code == 1) {
            bool again = walk->barring && schedule_grant_matters(request);

            code = grant_first_claim(request);
            /* The lane may have moved back, so the same place is next. The grant may have brought a
             * blocked claim to its limit or moved its reservation, and then a claim that was passed
             * over may start. So the walk starts again (FAIRNESS.md section 4). */
            if (code == 1 && again) {
                blocked_reset(walk);
                place = 0;
            }
        } else if (code == 0) {
            /* Not for PLACE_LIMITED: a claim that is held by a limit restricts no other claim
             * (FAIRNESS.md section 3). */
            engine_family_fail(request, walk);
            code = blocked_add(walk, request) < 0 ? BERTH_ERROR_MEMORY : 0;
        }
        if (code < 0)
            return code;
        if (code == 1)
            continue;
        place++;
        if (walk->barring && is_all_barred(scope, walk))
            break;
    }
    return 0;
}

void schedule_scope(struct scope *scope)
{
    bool again = !scope->engine->paused;

    while (again && scope->lanes.count > 0) {
        if (grant_due(scope) < 0) {
            scope->engine->retry = true;
            return;
        }
        again = scope->pending > 0 && scope->opportunistic_leases > scope->opportunistic_leaving &&
                preempt_leases(scope);
    }
}

void schedule_moved(struct scope *scope)
{
    if (scope->limited > 0 || scope->opportunistic_leases > 0)
        schedule_scope(scope);
}

void schedule_all(struct engine *engine)
{
    list_for_each (link, &engine->scopes)
        schedule_scope(container_of(link, struct scope, in_engine));
}

int schedule_evaluate(struct engine_request *request)
{
    struct scope *scope = request->scope;
    struct blocked_claims *walk = &scope->engine->walk;
    size_t before;
    size_t max;

    /* Earlier claims of the same lane come first, and they cannot start. */
    if (request->waiting_count > 0 || engine_scope_is_full(scope))
        return 0;
    blocked_reset(walk);
    before = lanes_before(request);
    for (size_t place = 0; place < before; place++) {
        const struct engine_request *other = scope->lanes.items[place];

        if (engine_family_is_blocked(other, walk) || ledger_is_limited(other, &max))
            continue;
        if (blocked_add(walk, other) < 0)
            return BERTH_ERROR_MEMORY;
        if (is_all_barred(scope, walk))
            return 0;
    }
    return find_slots(request, walk);
}
