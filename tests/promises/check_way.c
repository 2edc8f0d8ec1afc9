/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks preemption (promise 10): opportunistic leases are given notice only if that lets a claim
 * start, as few as possible, and the youngest first.
 */
#include <inttypes.h>

#include "promises/run.h"

/* Returns the number of devices for each replica with which the claim could be placed at that
 * moment if no other claim waited; 0: it could not be placed. */
static uint32_t placeable(const struct run *run, const struct model_claim *claim,
                          const struct moment *moment)
{
    struct occupancy occupancy;
    uint32_t room[SLOTS_MAX];
    slot_set slots;

    model_occupancy(&run->model, claim->scope, moment, &occupancy);
    slots = model_room(&run->model, claim->scope, claim->asking, &occupancy, room);
    return model_largest(&run->model, claim->scope, claim->asking, slots, room, true);
}

static bool could_start(const struct run *run, const struct model_claim *claim)
{
    return placeable(run, claim, &(struct moment){.at = run->model.now, .without_helpers = true}) >
           0;
}

static bool was_given_notice_now(const struct run *run, uint64_t lease)
{
    for (size_t i = 0; i < run->notice_count; i++) {
        if (run->notices[i] == lease)
            return true;
    }
    return false;
}

/* Returns whether a lease is opportunistic and already has notice or has ended. */
static bool is_going(const struct model_lease *lease)
{
    return lease->asking->opportunistic && lease->state != LEASE_HELD;
}

static bool holds_one_of(const struct model_lease *lease, slot_set slots)
{
    for (uint32_t i = 0; i < lease->slot_count; i++) {
        if ((slots >> lease->slots[i] & 1) != 0)
            return true;
    }
    return false;
}

/* Returns whether the events of this step happened at the present time. When the time advances in
 * one step, they may have happened before. */
static bool is_of_now(const struct run *run)
{
    return run->operation->kind != OPERATION_ADVANCE || run->operation->known != run->other_steps;
}

/* Checks that the notice to a lease helps a waiting claim. */
static void check_notice_helps(struct run *run, uint64_t id)
{
    const struct model_lease *lease = model_lease(&run->model, id);

    if (lease == NULL)
        return;
    for (size_t i = 0; i < run->model.claim_count; i++) {
        const struct model_claim *claim = &run->model.claims[i];

        if (claim->scope == lease->scope && !claim->asking->opportunistic &&
            holds_one_of(lease, model_accepts(&run->model, claim->scope, claim->asking)) &&
            could_start(run, claim))
            return;
    }
    run_blame(run, 10, "lease %" PRIu64 " was given notice, but that helps no claim to start", id);
}

/* Returns the oldest lease that must end for the claim, if leases end one by one: first those that
 * had notice before this step, then the youngest. Returns UINT64_MAX if no other lease must end. */
static uint64_t oldest_needed(const struct run *run, const struct model_claim *claim)
{
    const struct model *model = &run->model;
    slot_set accepted = model_accepts(model, claim->scope, claim->asking);
    bool left_out[LEASES_MAX] = {false};

    for (size_t i = 0; i < model->lease_count; i++)
        left_out[i] =
            is_going(&model->leases[i]) && !was_given_notice_now(run, model->leases[i].id);
    for (size_t i = model->lease_count; i-- > 0;) {
        const struct model_lease *lease = &model->leases[i];

        if (placeable(run, claim, &(struct moment){.at = model->now, .left_out = left_out}) > 0)
            return UINT64_MAX;
        if (lease->scope != claim->scope || !lease->asking->opportunistic ||
            !holds_one_of(lease, accepted))
            continue;
        left_out[i] = true;
        if (placeable(run, claim, &(struct moment){.at = model->now, .left_out = left_out}) > 0)
            return lease->id;
    }
    return UINT64_MAX;
}

/* Checks for a claim that waits alone that each notice was needed, and that no lease older than
 * necessary got one. */
static void check_notices_needed(struct run *run, const struct model_claim *claim)
{
    const struct model *model = &run->model;
    uint64_t oldest = oldest_needed(run, claim);

    for (size_t i = 0; i < model->lease_count; i++) {
        const struct model_lease *lease = &model->leases[i];
        bool left_out[LEASES_MAX] = {false};

        if (!was_given_notice_now(run, lease->id) || lease->scope != claim->scope)
            continue;
        for (size_t j = 0; j < model->lease_count; j++)
            left_out[j] = j != i && is_going(&model->leases[j]);
        if (placeable(run, claim, &(struct moment){.at = model->now, .left_out = left_out}) > 0)
            run_blame(run, 10,
                      "lease %" PRIu64 " was given notice for claim %" PRIu64
                      ", which can start without it",
                      lease->id, claim->id);
        if (oldest != UINT64_MAX && lease->id < oldest)
            run_blame(run, 10,
                      "lease %" PRIu64 " was given notice, but the leases from %" PRIu64
                      " on are enough for claim %" PRIu64,
                      lease->id, oldest, claim->id);
    }
}

/* Checks for a claim with a reservation: if it could start without the opportunistic leases, enough
 * of these leases have notice. */
static void check_first(struct run *run, const struct model_claim *claim)
{
    if (could_start(run, claim) &&
        placeable(run, claim, &(struct moment){.at = run->model.now, .without_noticed = true}) == 0)
        run_blame(run, 10,
                  "claim %" PRIu64 " could start without opportunistic leases, but too few were "
                  "given notice",
                  claim->id);
}

/* ---- Claims that are all alike: the number that could start can be counted ---- */

static bool is_alike(const struct run *run, const struct model_claim *claim, slot_set accepted)
{
    const struct asking *asking = claim->asking;
    unsigned lowest = accepted == 0 ? 0 : (unsigned)__builtin_ctz(accepted);

    for (unsigned slot = 0; slot < run->plan->planned; slot++) {
        if ((accepted >> slot & 1) != 0 &&
            !model_may_be_together(&run->model, asking, lowest, slot))
            return false;
    }
    return asking->sharing == SHARING_EXCLUSIVE && !asking->gpus.all &&
           asking->gpus.min == asking->gpus.max && asking_claims(asking) == asking->replicas &&
           !asking->min_free.known && model_accepts(&run->model, claim->scope, asking) == accepted;
}

static uint32_t count_room(const struct run *run, const struct model_claim *claim,
                           const struct moment *moment)
{
    struct occupancy occupancy;
    uint32_t room[SLOTS_MAX];

    model_occupancy(&run->model, claim->scope, moment, &occupancy);
    return (uint32_t)__builtin_popcount(
        model_room(&run->model, claim->scope, claim->asking, &occupancy, room));
}

static void check_alike(struct run *run, const struct model_claim *const order[], size_t count)
{
    const struct moment without_helpers = {.at = run->model.now, .without_helpers = true};
    const struct moment without_noticed = {.at = run->model.now, .without_noticed = true};
    slot_set accepted;
    uint32_t wanted = 0;

    if (count < 2)
        return;
    accepted = model_accepts(&run->model, order[0]->scope, order[0]->asking);
    /* The devices of one claim may bring the next claim to a limit. */
    for (size_t i = 0; i < count; i++) {
        if (!is_alike(run, order[i], accepted) ||
            model_has_limit(&run->model, order[i]->scope, order[i]->asking))
            return;
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t size = order[i]->asking->gpus.min;

        if (wanted + size > count_room(run, order[0], &without_helpers))
            break;
        wanted += size;
    }
    if (wanted > count_room(run, order[0], &without_noticed))
        run_blame(run, 10,
                  "claims for %" PRIu32 " devices could start without opportunistic leases, "
                  "but too few were given notice",
                  wanted);
}

static void check_scope(struct run *run, uint64_t scope)
{
    const struct model_claim *order[CLAIMS_MAX];
    size_t count = model_order(&run->model, scope, order);
    const struct model_claim *only = NULL;
    size_t ordinary = 0;

    for (size_t i = 0; i < count && !order[i]->asking->opportunistic; i++) {
        ordinary++;
        if (order[i]->reserved && run->verdict.promise == 0)
            check_first(run, order[i]);
        only = order[i];
    }
    if (ordinary == 1 && only->reserved && !run->granted_since && run->verdict.promise == 0 &&
        is_of_now(run))
        check_notices_needed(run, only);
    if (run->verdict.promise == 0)
        check_alike(run, order, ordinary);
}

void check_giving_way(struct run *run)
{
    bool helpers = false;

    for (size_t i = 0; i < run->notice_count && !run->granted_since; i++) {
        if (is_of_now(run))
            check_notice_helps(run, run->notices[i]);
    }
    for (size_t i = 0; i < run->model.lease_count; i++)
        helpers |= run->model.leases[i].asking->opportunistic;
    if (!helpers)
        return;
    check_scope(run, 0);
    for (size_t i = 0; i < run->model.lease_count && run->verdict.promise == 0; i++)
        check_scope(run, run->model.leases[i].id);
    run->tally->checks++;
}
