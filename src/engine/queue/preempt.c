/* SPDX-License-Identifier: Apache-2.0
 *
 * Preemption (FAIRNESS.md section 5): chooses the opportunistic leases that get notice, so that
 * waiting claims can start. It simulates a ledger on which leases end and claims start one after
 * the other.
 */
#include <string.h>

#include "engine/internal.h"

bool preempt_is_leaving(const struct lease *held)
{
    return held->request->what.opportunistic && held->state != LEASE_HELD;
}

/* Counts towards the limit the amount by which the starting claims exceed the ending leases
 * (FAIRNESS.md section 5). */
static void simulate_account_use(struct account *account)
{
    uint64_t more = account->started > account->gone ? account->started - account->gone : 0;

    account->used += more - account->simulated;
    account->simulated = more;
}

static void simulate_refund(const struct lease *held, uint64_t sign)
{
    const struct engine_request *request = held->request;

    for (size_t i = 0; i < request->account_count; i++) {
        request->accounts[i]->gone += sign * request->share * held->slot_count;
        simulate_account_use(request->accounts[i]);
    }
}

static void simulate_end(struct engine *engine, const struct lease *held)
{
    simulate_refund(held, 1);
    for (uint32_t i = 0; i < held->slot_count; i++)
        ledger_subtract_usage(&engine->simulated[held->slots[i]], held->request);
    ledger_subtract_hosts(engine->simulated_hosts, held->request, held->slots, held->slot_count);
}

static void simulate_restore(struct engine *engine, const struct lease *held)
{
    simulate_refund(held, UINT64_MAX);
    for (uint32_t i = 0; i < held->slot_count; i++)
        ledger_add_usage(&engine->simulated[held->slots[i]], held->request);
    ledger_add_hosts(engine->simulated_hosts, held->request, held->slots, held->slot_count);
}

/* Starts with the current ledger, without the opportunistic leases that already have notice. */
static void simulate_begin(struct scope *scope)
{
    struct engine *engine = scope->engine;

    for (size_t slot = 0; slot < engine->machine.devices.count; slot++)
        engine->simulated[slot] = scope->ledger[slot].usage;
    memcpy(engine->simulated_hosts, scope->host_usage,
           engine->host_count * sizeof(*engine->simulated_hosts));
    list_for_each (link, &engine->leases) {
        struct lease *held = container_of(link, struct lease, in_engine);

        held->chosen = false;
        if (held->request->scope == scope && preempt_is_leaving(held))
            simulate_end(engine, held);
    }
}

static int place_simulated(const struct engine_request *request, struct blocked_claims *walk)
{
    struct engine *engine = request->engine;

    bitset_fill(&engine->legal);
    if (blocked_bar_slots(walk, request, &engine->legal) < 0)
        return BERTH_ERROR_MEMORY;
    return place_request(request, &engine->legal, engine->simulated, engine->simulated_hosts, NULL);
}

/* Returns whether the lease holds a slot that the request may use. */
static bool is_in_the_way(const struct lease *held, const struct engine_request *request,
                          struct blocked_claims *walk)
{
    struct engine *engine = request->engine;

    bitset_copy(&engine->legal, &request->accepts);
    /* Cannot fail: with opportunistic leases all sets were computed at once (blocked.c). */
    (void)blocked_bar_slots(walk, request, &engine->legal);
    for (uint32_t i = 0; i < held->slot_count; i++) {
        if (bitset_has(&engine->legal, held->slots[i]))
            return true;
    }
    return false;
}

static bool may_be_chosen(const struct lease *held, const struct scope *scope)
{
    return held->request->scope == scope && held->request->what.opportunistic &&
           held->state == LEASE_HELD && !held->chosen;
}

/* Drops the candidates that turn out to be unnecessary (FAIRNESS.md section 5), the oldest first.
 */
static int spare_unneeded(const struct engine_request *request, struct blocked_claims *walk,
                          const struct lease *oldest)
{
    struct engine *engine = request->engine;

    list_for_each (link, &engine->leases) {
        struct lease *held = container_of(link, struct lease, in_engine);
        int code;

        if (held->entry.link.id < oldest->entry.link.id || !held->candidate)
            continue;
        simulate_restore(engine, held);
        code = place_simulated(request, walk);
        if (code < 0)
            return code;
        if (code == 1)
            held->candidate = false;
        else
            simulate_end(engine, held);
    }
    return place_simulated(request, walk);
}

/* Ends the choice for one claim: the remaining candidates are chosen if the claim starts, else
 * restored. */
static void end_choice(struct engine *engine, bool starts)
{
    list_for_each (link, &engine->leases) {
        struct lease *held = container_of(link, struct lease, in_engine);

        if (!held->candidate)
            continue;
        held->candidate = false;
        held->chosen = starts;
        if (!starts)
            simulate_restore(engine, held);
    }
}

/* Chooses leases that let the claim start: none, or the youngest (FAIRNESS.md section 5). Those
 * with notice are already gone in the simulation. Returns like place_request(). */
static int choose_leases(const struct engine_request *request, struct blocked_claims *walk)
{
    struct engine *engine = request->engine;
    struct list_link *link = engine->leases.ends.previous;
    int code = place_simulated(request, walk);

    for (; code == 0 && link != &engine->leases.ends; link = link->previous) {
        struct lease *held = container_of(link, struct lease, in_engine);

        if (!may_be_chosen(held, request->scope) || !is_in_the_way(held, request, walk))
            continue;
        held->candidate = true;
        simulate_end(engine, held);
        code = place_simulated(request, walk);
        if (code == 1)
            code = spare_unneeded(request, walk, held);
    }
    end_choice(engine, code == 1);
    return code;
}

/* Starts the claim on the chosen slots in the simulation. Limits count it until the simulation
 * ends. */
static void simulate_grant(const struct engine_request *request)
{
    struct engine *engine = request->engine;

    for (size_t i = 0; i < engine->chosen_count; i++)
        ledger_add_usage(&engine->simulated[engine->chosen[i]], request);
    ledger_add_hosts(engine->simulated_hosts, request, engine->chosen, engine->chosen_count);
    for (size_t i = 0; i < request->account_count; i++) {
        request->accounts[i]->started += (uint64_t)request->share * engine->chosen_count;
        simulate_account_use(request->accounts[i]);
    }
}

static void simulate_finish(struct engine *engine)
{
    list_for_each (link, &engine->accounts) {
        struct account *account = container_of(link, struct account, in_engine);

        account->started = account->gone = 0;
        simulate_account_use(account);
    }
}

/* Chooses leases for all waiting claims in order. Returns 0 or BERTH_ERROR_MEMORY. */
static int choose_for_all(struct scope *scope)
{
    struct blocked_claims *walk = &scope->engine->walk;
    struct claim *claim;

    blocked_reset(walk);
    simulate_begin(scope);
    lanes_rewind(scope);
    while ((claim = lanes_next(scope)) != NULL) {
        struct engine_request *request = claim->request;
        int code;

        if (request->what.opportunistic)
            break;
        code = choose_leases(request, walk);
        if (code == 1) {
            simulate_grant(request);
            continue;
        }
        engine_lane_skip(request);
        if (code == 0)
            code = blocked_add(walk, request);
        if (code < 0)
            return code;
    }
    return 0;
}

bool preempt_leases(struct scope *scope)
{
    struct engine *engine = scope->engine;
    int code = choose_for_all(scope);
    bool given = false;

    simulate_finish(engine);
    if (code < 0) {
        engine->retry = true;
        return false;
    }
    list_for_each (link, &engine->leases) {
        struct lease *held = container_of(link, struct lease, in_engine);

        if (held->request->scope == scope && held->chosen && held->state == LEASE_HELD) {
            lifecycle_give_notice(held);
            given = true;
        }
        held->chosen = false;
    }
    return given;
}
