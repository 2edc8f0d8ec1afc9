/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of claims, the groups of blocked claims, their reservations, and which claims may
 * start.
 */
#include <stdlib.h>
#include <string.h>

#include "promises/model.h"

int64_t model_age_step(const struct model *model)
{
    return model->rules.age_step == 0 ? INT64_C(3600000000000) : model->rules.age_step;
}

enum priority model_class(const struct model *model, const struct model_claim *claim)
{
    int64_t step = model_age_step(model);
    int64_t class = claim->asking->priority == PRIORITY_UNSAID ? PRIORITY_NORMAL
                                                               : (int64_t)claim->asking->priority;

    class += (model->now - claim->arrived) / step;
    return class > PRIORITY_HIGH ? PRIORITY_HIGH : (enum priority) class;
}

int64_t model_next_ageing(const struct model *model)
{
    int64_t step = model_age_step(model);
    int64_t next = TIME_NEVER;

    for (size_t i = 0; i < model->claim_count; i++) {
        const struct model_claim *claim = &model->claims[i];
        int64_t at = claim->arrived + ((model->now - claim->arrived) / step + 1) * step;

        if (!claim->asking->opportunistic && model_class(model, claim) != PRIORITY_HIGH &&
            at < next)
            next = at;
    }
    return next;
}

bool model_before(const struct model *model, const struct model_claim *one,
                  const struct model_claim *other)
{
    if (one->asking->opportunistic != other->asking->opportunistic)
        return other->asking->opportunistic;
    if (!one->asking->opportunistic && model_class(model, one) != model_class(model, other))
        return model_class(model, one) > model_class(model, other);
    /* Arrival: ids grow, and a claim that has none yet comes last. */
    return one->id != 0 && (other->id == 0 || one->id < other->id);
}

size_t model_order(const struct model *model, uint64_t scope,
                   const struct model_claim *ret_claims[CLAIMS_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < model->claim_count; i++) {
        const struct model_claim *claim = &model->claims[i];
        size_t place = count;

        if (claim->scope != scope)
            continue;
        while (place > 0 && model_before(model, claim, ret_claims[place - 1])) {
            ret_claims[place] = ret_claims[place - 1];
            place--;
        }
        ret_claims[place] = claim;
        count++;
    }
    return count;
}

static void merge_groups(struct model_group *into, struct model_group *from)
{
    into->region |= from->region;
    for (size_t i = 0; i < from->first_count; i++)
        into->firsts[into->first_count++] = from->firsts[i];
}

bool model_groups_add(const struct model *model, struct model_groups *groups,
                      const struct model_claim *claim)
{
    slot_set accepted = model_accepts(model, claim->scope, claim->asking);
    struct model_group *joined = NULL;

    for (size_t i = 0; i < groups->count;) {
        struct model_group *group = &groups->groups[i];

        if ((group->region & accepted) == 0) {
            i++;
        } else if (joined == NULL) {
            joined = group;
            i++;
        } else {
            merge_groups(joined, group);
            *group = groups->groups[--groups->count];
        }
    }
    if (joined != NULL) {
        joined->region |= accepted;
        return false;
    }
    if (groups->count == MODEL_GROUPS_MAX)
        abort();
    joined = &groups->groups[groups->count++];
    joined->region = accepted;
    joined->first_count = 1;
    joined->firsts[0] = claim;
    return true;
}

void model_groups_before(const struct model *model, const struct model_claim *claim,
                         struct model_groups *ret_groups)
{
    const struct model_claim *order[CLAIMS_MAX];
    size_t count = model_order(model, claim->scope, order);

    ret_groups->count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct model_claim *other = order[i];

        if (other->asking->opportunistic || !model_before(model, other, claim))
            break;
        if (other->id != claim->id && !model_held_by_limit(model, other->scope, other->asking))
            model_groups_add(model, ret_groups, other);
    }
}

/* ---- Reservations ---- */

slot_set model_room_at(const struct model *model, const struct model_claim *claim, int64_t at,
                       uint32_t room[SLOTS_MAX])
{
    struct occupancy occupancy;

    model_occupancy(model, claim->scope,
                    &(struct moment){.at = at, .without_helpers = true, .without_late = true},
                    &occupancy);
    return model_room(model, claim->scope, claim->asking, &occupancy, room);
}

static bool placeable_at(const struct model *model, const struct model_claim *claim, int64_t at)
{
    uint32_t room[SLOTS_MAX];
    slot_set slots = model_room_at(model, claim, at, room);

    return model_largest(model, claim->scope, claim->asking, slots, room, false) > 0;
}

/* Returns the next time after `after` at which a lease of the scope reaches its limit. */
static int64_t next_end(const struct model *model, uint64_t scope, int64_t after)
{
    int64_t next = TIME_NEVER;

    for (size_t i = 0; i < model->lease_count; i++) {
        const struct model_lease *lease = &model->leases[i];

        if (lease->scope == scope && lease->expires > after && lease->expires < next)
            next = lease->expires;
    }
    return next;
}

int64_t model_start(const struct model *model, const struct model_claim *claim)
{
    for (int64_t at = model->now; at != TIME_NEVER; at = next_end(model, claim->scope, at)) {
        if (placeable_at(model, claim, at))
            return at;
    }
    return TIME_NEVER;
}

/* ---- Which claims may start ---- */

/* Returns whether a claim that starts now is certain to end by `start`. */
static bool ends_before(const struct model *model, const struct asking *asking, int64_t start)
{
    return asking->time.known && start > model->now &&
           asking->time.value <= (uint64_t)(start - model->now);
}

slot_set model_bars(const struct model *model, const struct model_groups *groups,
                    const struct model_claim *claim)
{
    slot_set barred = 0;

    for (size_t i = 0; i < groups->count; i++) {
        const struct model_group *group = &groups->groups[i];

        for (size_t j = 0; j < group->first_count; j++) {
            if (group->firsts[j]->start == TIME_NEVER)
                barred |= group->region;
            else if (!ends_before(model, claim->asking, group->firsts[j]->start))
                barred |= group->firsts[j]->set;
        }
    }
    return barred;
}

/* Returns the slots that an opportunistic claim must not use. */
static slot_set taken_by_others(const struct model *model, const struct model_claim *claim)
{
    slot_set taken = 0;

    for (size_t i = 0; i < model->claim_count; i++) {
        const struct model_claim *other = &model->claims[i];

        if (other->scope != claim->scope || other->id == claim->id)
            continue;
        if (!other->asking->opportunistic ||
            (model_before(model, other, claim) &&
             !model_held_by_limit(model, other->scope, other->asking)))
            taken |= model_accepts(model, other->scope, other->asking);
    }
    return taken;
}

slot_set model_open_to(const struct model *model, const struct model_groups *groups,
                       const struct model_claim *claim)
{
    return claim->asking->opportunistic ? ~taken_by_others(model, claim)
                                        : ~model_bars(model, groups, claim);
}

uint32_t model_may_start(const struct model *model, const struct model_groups *groups,
                         const struct model_claim *claim, slot_set *ret_allowed)
{
    struct occupancy occupancy;
    uint32_t room[SLOTS_MAX];

    if (model_held_by_limit(model, claim->scope, claim->asking))
        return 0;
    model_occupancy(model, claim->scope, &(struct moment){.at = model->now}, &occupancy);
    *ret_allowed = model_room(model, claim->scope, claim->asking, &occupancy, room) &
                   model_open_to(model, groups, claim);
    return model_largest(model, claim->scope, claim->asking, *ret_allowed, room, true);
}

int model_predict(const struct model *model, const struct model_claim *claim, uint32_t *ret_size,
                  slot_set *ret_allowed)
{
    struct model_groups groups;
    bool any = false;

    *ret_size = 0;
    *ret_allowed = 0;
    for (unsigned slot = 0; slot < model->plan->planned; slot++)
        any |= model->devices[slot].here;
    if (!any)
        return BERTH_ERROR_NO_DEVICE;
    if (model_impossible(model, claim->scope, claim->asking))
        return BERTH_ERROR_IMPOSSIBLE;
    model_groups_before(model, claim, &groups);
    *ret_size = model_may_start(model, &groups, claim, ret_allowed);
    return *ret_size > 0 ? CLAIM_GRANTED : CLAIM_WAITS;
}
