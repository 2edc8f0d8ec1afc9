/* SPDX-License-Identifier: Apache-2.0
 *
 * First come, first served (promises 4 and 10): checks that a grant delays no earlier claim.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "promises/run.h"

static slot_set slots_of(const struct engine_event *event)
{
    slot_set slots = 0;

    for (uint32_t i = 0; i < event->slot_count; i++)
        slots |= (slot_set)1 << event->slots[i];
    return slots;
}

/* Appends the lease of the event to the model's list. The caller removes it again. */
static void suppose_granted(struct model *model, const struct model_claim *claim,
                            const struct engine_event *event)
{
    struct model_lease *lease = &model->leases[model->lease_count++];

    *lease = (struct model_lease){
        .id = event->lease,
        .scope = claim->scope,
        .asking = claim->asking,
        .slot_count = event->slot_count,
        .granted = event->time,
        .expires = event->expires,
        .force_at = TIME_NEVER,
    };
    memcpy(lease->slots, event->slots, event->slot_count * sizeof(*event->slots));
}

static unsigned lowest(slot_set slots)
{
    return (unsigned)__builtin_ctz(slots);
}

/* Checks that the grant does not delay `first`, an earlier claim whose reservation starts at
 * `start`. */
static void check_start_kept(struct run *run, const struct model_claim *claim,
                             const struct engine_event *event, const struct model_claim *first,
                             int64_t start)
{
    int64_t afterwards;

    suppose_granted(&run->model, claim, event);
    afterwards = model_start(&run->model, first);
    run->model.lease_count--;
    if (afterwards <= start)
        return;
    if (start == run->model.now)
        run_blame(run, 4,
                  "claim %" PRIu64 " was granted slot %u, so earlier claim %" PRIu64
                  " (first of its group) cannot start now",
                  claim->id, lowest(slots_of(event)), first->id);
    else
        run_blame(run, 4,
                  "claim %" PRIu64 " was granted slot %u, which moves the start of earlier "
                  "claim %" PRIu64 " (first of its group) from %" PRId64 " to %" PRId64,
                  claim->id, lowest(slots_of(event)), first->id, start, afterwards);
}

/* Returns a first claim of the group whose start is unknown; NULL: none. With such a claim, the
 * group bars its whole region. */
static const struct model_claim *first_without_start(const struct run *run,
                                                     const struct model_group *group)
{
    for (size_t i = 0; i < group->first_count; i++) {
        if (model_start(&run->model, group->firsts[i]) == TIME_NEVER)
            return group->firsts[i];
    }
    return NULL;
}

static void check_group(struct run *run, const struct model_claim *claim,
                        const struct engine_event *event, const struct model_group *group)
{
    slot_set common = slots_of(event) & group->region;
    const struct model_claim *first;

    if (common == 0)
        return;
    first = first_without_start(run, group);
    if (first != NULL) {
        run_blame(run, 4,
                  "claim %" PRIu64 " was granted slot %u, which the group of earlier claim "
                  "%" PRIu64 " (blocked, first of its group, start unknown) accepts",
                  claim->id, lowest(common), first->id);
        return;
    }
    for (size_t i = 0; i < group->first_count && group->firsts[i] != NULL; i++)
        check_start_kept(run, claim, event, group->firsts[i],
                         model_start(&run->model, group->firsts[i]));
    run->tally->overtakes++;
}

static void check_helper(struct run *run, const struct model_claim *claim,
                         const struct engine_event *event)
{
    const struct model *model = &run->model;

    for (size_t i = 0; i < model->claim_count; i++) {
        const struct model_claim *other = &model->claims[i];
        slot_set common;

        if (other->scope != claim->scope || other->id == claim->id)
            continue;
        if (other->asking->opportunistic &&
            (!model_before(model, other, claim) ||
             model_held_by_limit(model, other->scope, other->asking)))
            continue;
        common = slots_of(event) & model_accepts(model, other->scope, other->asking);
        if (common != 0)
            run_blame(run, 10,
                      "opportunistic claim %" PRIu64 " was granted slot %u, which waiting "
                      "claim %" PRIu64 " accepts",
                      claim->id, lowest(common), other->id);
    }
}

void check_grant_order(struct run *run, const struct model_claim *claim,
                       const struct engine_event *event)
{
    static struct model_groups groups;

    if (claim->asking->opportunistic) {
        check_helper(run, claim, event);
        return;
    }
    model_groups_before(&run->model, claim, &groups);
    for (size_t i = 0; i < groups.count; i++)
        check_group(run, claim, event, &groups.groups[i]);
}
