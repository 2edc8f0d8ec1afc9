/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the queue between two calls (promise 4): no claim waits that may start, the first claim of
 * each group has the reservation of the rules, and the engine can explain why each claim waits.
 */
#include <inttypes.h>
#include <string.h>

#include "promises/run.h"

static slot_set slots_of(const struct bitset *set)
{
    slot_set slots = 0;

    bitset_for_each (slot, set)
        slots |= slot < SLOTS_MAX ? (slot_set)1 << slot : 0;
    return slots;
}

/* Copies a claim's reservation from the engine to the model. */
static void ask_reservation(struct run *run, struct model_claim *claim, struct bitset *set)
{
    int64_t start = TIME_NEVER;

    bitset_clear(set);
    claim->reserved = engine_reservation(run->engine, claim->id, set, &start);
    claim->start = claim->reserved ? start : TIME_NEVER;
    claim->set = claim->reserved ? slots_of(set) : 0;
}

/* Checks that the set has a free device only if the devices in use are not enough. Checks only the
 * simple case: one replica of exclusive devices that may all be together. */
static void check_preference(struct run *run, const struct model_claim *claim, slot_set room,
                             uint32_t size)
{
    const struct asking *asking = claim->asking;
    struct occupancy now;
    slot_set free_now = 0;
    uint32_t taken;
    uint32_t kept;

    if (asking->sharing != SHARING_EXCLUSIVE || asking->avoided != 0 || asking->gpus.all ||
        (asking->replicas > 1 && asking->scheduling != SCHEDULING_BEST_EFFORT))
        return;
    model_occupancy(&run->model, claim->scope, &(struct moment){.at = run->model.now}, &now);
    for (unsigned slot = 0; slot < run->plan->planned; slot++) {
        if ((room >> slot & 1) == 0)
            continue;
        if (!model_may_be_together(&run->model, asking, (unsigned)__builtin_ctz(room), slot))
            return;
        free_now |= now.slots[slot].tenants == 0 ? (slot_set)1 << slot : 0;
    }
    taken = (uint32_t)__builtin_popcount(room & ~free_now);
    kept = (uint32_t)__builtin_popcount(claim->set & free_now);
    if (kept > (size > taken ? size - taken : 0))
        run_blame(run, 4,
                  "claim %" PRIu64 " reserves slots %#x, of which %#x are free now, but it could "
                  "use %#x, which are not free",
                  claim->id, claim->set, claim->set & free_now, room & ~free_now);
}

/* Returns the room at the start. If only opportunistic leases stand in the way, that is the room
 * once the leases that were given notice are gone. */
static slot_set room_for_set(const struct run *run, const struct model_claim *claim,
                             uint32_t room[SLOTS_MAX])
{
    struct occupancy occupancy;
    slot_set slots;

    if (claim->start > run->model.now)
        return model_room_at(&run->model, claim, claim->start, room);
    model_occupancy(&run->model, claim->scope,
                    &(struct moment){.at = run->model.now, .without_noticed = true}, &occupancy);
    slots = model_room(&run->model, claim->scope, claim->asking, &occupancy, room);
    if (model_largest(&run->model, claim->scope, claim->asking, slots, room, false) > 0)
        return slots;
    return model_room_at(&run->model, claim, claim->start, room);
}

/* Checks that the claim can be placed on its set at its start, and that the set is not too large.
 */
static void check_set(struct run *run, const struct model_claim *claim)
{
    const struct asking *asking = claim->asking;
    uint32_t replicas = asking->scheduling == SCHEDULING_BEST_EFFORT ? 1 : asking->replicas;
    uint32_t room[SLOTS_MAX];
    slot_set slots;
    uint32_t size;

    if (claim->start == TIME_NEVER) {
        slots = model_accepts(&run->model, claim->scope, asking);
        if (claim->set != slots)
            run_blame(run, 4, "claim %" PRIu64 " has no start and reserves slots %#x, expected %#x",
                      claim->id, claim->set, slots);
        return;
    }
    slots = room_for_set(run, claim, room);
    size = model_largest(&run->model, claim->scope, asking, claim->set & slots, room, false);
    if ((claim->set & ~slots) != 0 || size == 0)
        run_blame(run, 4,
                  "claim %" PRIu64 " reserves slots %#x at %" PRId64
                  ", but cannot be placed there at that time (room %#x)",
                  claim->id, claim->set, claim->start, slots);
    else if ((uint32_t)__builtin_popcount(claim->set) > size * replicas)
        run_blame(run, 4,
                  "claim %" PRIu64 " reserves slots %#x, too many for %" PRIu32
                  " replicas of %" PRIu32,
                  claim->id, claim->set, replicas, size);
    else if (claim->start > run->model.now)
        check_preference(run, claim, slots, size);
}

static void check_reservation(struct run *run, const struct model_claim *claim, bool first)
{
    int64_t start;

    if (claim->reserved != first) {
        run_blame(run, 4, "claim %" PRIu64 " has %s reservation, but is %s first of its group",
                  claim->id, claim->reserved ? "a" : "no", first ? "the" : "not the");
        return;
    }
    if (!first)
        return;
    run->tally->reservations++;
    run->tally->starts_known += claim->start != TIME_NEVER;
    start = model_start(&run->model, claim);
    if (start != claim->start)
        run_blame(run, 4, "the start of claim %" PRIu64 " is %" PRId64 ", expected %" PRId64,
                  claim->id, claim->start, start);
    check_set(run, claim);
}

/* Clears the promised starts of a scope when one of its leases begins to overstay. */
static void excuse_overstayers(struct model *model, uint64_t scope)
{
    for (size_t i = 0; i < model->lease_count; i++) {
        struct model_lease *lease = &model->leases[i];

        if (lease->scope != scope || lease->overstayed || !model_overstays(model, lease))
            continue;
        lease->overstayed = true;
        model_excuse(model, scope);
    }
}

/* Returns whether a limit may hold an earlier claim. When it starts or stops to do so, reservations
 * may move. */
static bool is_behind_limits(const struct model *model, const struct model_claim *claim)
{
    for (size_t i = 0; i < model->claim_count; i++) {
        const struct model_claim *other = &model->claims[i];

        if (other->scope == claim->scope && model_before(model, other, claim) &&
            model_has_limit(model, other->scope, other->asking))
            return true;
    }
    return false;
}

/* Checks that the start is not later than promised. Events that may move a start have cleared the
 * promise with model_excuse(). */
static void check_promise(struct run *run, struct model_claim *claim)
{
    int64_t latest =
        claim->promised_start > run->model.now ? claim->promised_start : run->model.now;

    if (!claim->reserved || is_behind_limits(&run->model, claim)) {
        claim->promised = false;
        return;
    }
    run->tally->promises += claim->promised;
    if (claim->promised && claim->start > latest)
        run_blame(run, 4, "claim %" PRIu64 " was promised start %" PRId64 ", now it is %" PRId64,
                  claim->id, claim->promised_start, claim->start);
    if (!claim->promised || claim->start < claim->promised_start)
        claim->promised_start = claim->start;
    claim->promised = claim->start != TIME_NEVER;
}

static void check_why(struct run *run, const struct model_claim *claim)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct text why = {0};
    int64_t start = TIME_NEVER;

    if (engine_explain(run->engine, claim->id, &why, &start, &error) < 0)
        run_blame(run, 4, "cannot explain why claim %" PRIu64 " waits: %s", claim->id,
                  error.message);
    else if (why.length == 0 || strchr(text_string(&why), '\n') != NULL)
        run_blame(run, 4, "the reason why claim %" PRIu64 " waits is not one line: %s", claim->id,
                  text_string(&why));
    else if (claim->reserved && start != claim->start)
        run_blame(run, 4,
                  "claim %" PRIu64 " starts at %" PRId64 " by the explanation, but at %" PRId64
                  " by its reservation",
                  claim->id, start, claim->start);
    text_finish(&why);
}

static void check_waiting(struct run *run, struct model_claim *claim, struct model_groups *groups,
                          struct bitset *set)
{
    slot_set allowed = 0;
    uint32_t size;

    ask_reservation(run, claim, set);
    if (model_held_by_limit(&run->model, claim->scope, claim->asking)) {
        run->tally->limited++;
        if (claim->reserved)
            run_blame(run, 4, "claim %" PRIu64 " is held by a limit, but has a reservation",
                      claim->id);
        claim->promised = false;
        return;
    }
    size = model_may_start(&run->model, groups, claim, &allowed);
    if (size > 0)
        run_blame(run, claim->asking->opportunistic ? 10 : 4,
                  "claim %" PRIu64 " waits, but may start on %" PRIu32 " of slots %#x", claim->id,
                  size, allowed);
    if (claim->asking->opportunistic)
        return;
    check_reservation(run, claim, model_groups_add(&run->model, groups, claim));
    check_promise(run, claim);
}

static void check_scope(struct run *run, uint64_t scope, struct bitset *set)
{
    static struct model_groups groups;
    const struct model_claim *order[CLAIMS_MAX];
    size_t count = model_order(&run->model, scope, order);

    groups.count = 0;
    excuse_overstayers(&run->model, scope);
    for (size_t i = 0; i < count && run->verdict.promise == 0; i++) {
        check_waiting(run, model_claim(&run->model, order[i]->id), &groups, set);
        if ((run->tally->steps + i) % 4 == 0 && run->verdict.promise == 0)
            check_why(run, order[i]);
    }
    run->tally->checks++;
}

void check_queue(struct run *run)
{
    struct bitset set = {0};
    uint64_t last = UINT64_MAX;

    if (run->model.claim_count == 0)
        return;
    if (bitset_init(&set, engine_slots_max(run->engine)) < 0)
        need_memory(NULL);
    for (size_t i = 0; i < run->model.claim_count && run->verdict.promise == 0; i++) {
        bool seen = false;

        last = run->model.claims[i].scope;
        for (size_t j = 0; j < i; j++)
            seen |= run->model.claims[j].scope == last;
        if (!seen)
            check_scope(run, last, &set);
    }
    bitset_finish(&set);
}
