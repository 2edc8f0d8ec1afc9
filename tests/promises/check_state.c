/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks after every step: no device has more leases than it can carry (promises 1, 2 and 14),
 * everything due has happened, and the engine shows the state that its events described.
 */
#include <inttypes.h>
#include <string.h>

#include "promises/run.h"

static void check_slot(struct run *run, uint64_t scope, unsigned slot,
                       const struct occupancy *occupancy)
{
    __typeof__(&occupancy->slots[0]) there = &occupancy->slots[slot];
    const struct device_plan *device = run->model.devices[slot].plan;
    int promise = scope == 0 ? 2 : 14;

    if (there->tenants > 1 && there->sharing == SHARING_EXCLUSIVE)
        run_blame(run, scope == 0 ? 1 : 14, "slot %u has %" PRIu32 " leases, one of them exclusive",
                  slot, there->tenants);
    if (there->mixed)
        run_blame(run, promise, "slot %u is shared in two modes or by two MPS control daemons",
                  slot);
    if (there->share > SHARE_WHOLE)
        run_blame(run, promise, "slot %u has %" PRIu64 " millionths in use", slot, there->share);
    if ((device->memory.known && there->memory > device->memory.value) ||
        (there->reserved > 0 && !device->memory.known))
        run_blame(run, promise, "slot %u has %" PRIu64 " bytes in use, more than its memory", slot,
                  there->memory);
}

/* Checks that a lease within another one, with its siblings, stays inside it. */
static void check_inside(struct run *run, const struct model_lease *lease)
{
    const struct model_lease *around = model_lease(&run->model, lease->scope);
    struct occupancy occupancy;

    if (around == NULL) {
        run_blame(run, 14, "lease %" PRIu64 " remains within lease %" PRIu64 ", which is gone",
                  lease->id, lease->scope);
        return;
    }
    if (around->state == LEASE_DRAINING && lease->state != LEASE_DRAINING)
        run_blame(run, 14, "lease %" PRIu64 " continues, but lease %" PRIu64 " around it ended",
                  lease->id, around->id);
    model_occupancy(&run->model, lease->scope, &(struct moment){.at = run->model.now}, &occupancy);
    for (uint32_t i = 0; i < lease->slot_count; i++) {
        uint32_t times = 0;

        for (uint32_t j = 0; j < around->slot_count; j++)
            times += around->slots[j] == lease->slots[i];
        if (occupancy.slots[lease->slots[i]].share >
            (uint64_t)times * asking_share(&run->model, around->scope, around->asking))
            run_blame(run, 14, "leases within lease %" PRIu64 " exceed its share of slot %" PRIu32,
                      around->id, lease->slots[i]);
        check_slot(run, lease->scope, lease->slots[i], &occupancy);
    }
}

void check_devices(struct run *run)
{
    struct occupancy occupancy;

    model_occupancy(&run->model, 0, &(struct moment){.at = run->model.now}, &occupancy);
    for (unsigned slot = 0; slot < run->plan->planned; slot++)
        check_slot(run, 0, slot, &occupancy);
    for (size_t i = 0; i < run->model.lease_count; i++) {
        if (run->model.leases[i].scope != 0)
            check_inside(run, &run->model.leases[i]);
    }
    run->tally->checks++;
}

/* ---- Time ---- */

static void earliest(int64_t *time, int64_t other)
{
    if (other < *time)
        *time = other;
}

void check_due(struct run *run)
{
    const struct model *model = &run->model;
    int64_t next = TIME_NEVER;

    for (size_t i = 0; i < model->lease_count; i++) {
        const struct model_lease *lease = &model->leases[i];

        if (lease->state == LEASE_HELD || lease->state == LEASE_NOTICED)
            earliest(&next, lease->expires);
        if (lease->state == LEASE_NOTICED)
            earliest(&next, lease->force_at);
        if (next <= model->now) {
            run_blame(run, lease->state == LEASE_NOTICED ? 10 : 4,
                      "lease %" PRIu64 " should have %s at %" PRId64, lease->id,
                      next == lease->expires ? "expired" : "been revoked", next);
            return;
        }
    }
    for (size_t i = 0; i < model->claim_count; i++) {
        const struct model_claim *claim = &model->claims[i];

        earliest(&next, claim->deadline);
        if (next <= model->now) {
            run_blame(run, 6, "claim %" PRIu64 " should have timed out at %" PRId64, claim->id,
                      next);
            return;
        }
    }
    if (engine_next_time(run->engine) > next || engine_next_time(run->engine) <= model->now)
        run_blame(run, 4, "the next event is due at %" PRId64 ", the engine says %" PRId64, next,
                  engine_next_time(run->engine));
}

void check_impossible(struct run *run)
{
    for (size_t i = 0; i < run->model.claim_count; i++) {
        const struct model_claim *claim = &run->model.claims[i];

        if (claim->scope != 0 && model_lease(&run->model, claim->scope) == NULL)
            run_blame(run, 14, "claim %" PRIu64 " waits within a lease that is gone", claim->id);
        else if (model_impossible(&run->model, claim->scope, claim->asking))
            run_blame(run, 7, "claim %" PRIu64 " waits, but is impossible", claim->id);
    }
}

/* ---- Views ---- */

struct looking {
    struct run *run;
    size_t next;
    const struct model_claim *order[CLAIMS_MAX];
    size_t count;
};

static void look_at_lease(void *context, const struct lease_view *view)
{
    struct looking *looking = context;
    struct run *run = looking->run;
    const struct model_lease *lease;

    if (looking->next >= run->model.lease_count ||
        run->model.leases[looking->next].id != view->id) {
        run_blame(run, 9, "the engine shows lease %" PRIu64 ", which does not exist", view->id);
        return;
    }
    lease = &run->model.leases[looking->next++];
    if (view->state != lease->state || view->parent != lease->scope ||
        view->expires != lease->expires || view->force_at != lease->force_at ||
        view->granted != lease->granted || view->claim != lease->claim)
        run_blame(run, 9,
                  "lease %" PRIu64 " is shown in state %d with end %" PRId64
                  ", expected %d and %" PRId64,
                  view->id, view->state, view->expires, lease->state, lease->expires);
    if (view->slot_count != lease->slot_count ||
        memcmp(view->slots, lease->slots, lease->slot_count * sizeof(*lease->slots)) != 0)
        run_blame(run, 9, "lease %" PRIu64 " is shown with wrong slots", view->id);
    if (view->share != asking_share(&run->model, lease->scope, lease->asking))
        run_blame(run, 2, "lease %" PRIu64 " is shown with share %" PRIu32 ", expected %" PRIu32,
                  view->id, view->share, asking_share(&run->model, lease->scope, lease->asking));
}

/* Checks the next claim that the engine shows: the claims of the pool come first, in their order,
 * then those within leases, lease by lease. */
static void look_at_claim(void *context, const struct claim_view *view)
{
    struct looking *looking = context;
    struct run *run = looking->run;
    const struct model_claim *claim = model_claim(&run->model, view->id);
    enum priority class;

    if (claim == NULL) {
        run_blame(run, 6, "the engine shows claim %" PRIu64 ", which does not wait", view->id);
        return;
    }
    if (looking->next < looking->count && claim != looking->order[looking->next]) {
        run_blame(run, 4, "claim %" PRIu64 " is shown as number %zu, expected claim %" PRIu64,
                  view->id, looking->next + 1, looking->order[looking->next]->id);
        return;
    }
    looking->next++;
    class = claim->asking->opportunistic ? PRIORITY_UNSAID : model_class(&run->model, claim);
    if (view->class_now != class || view->arrived != claim->arrived ||
        view->deadline != claim->deadline || view->parent != claim->scope)
        run_blame(run, 4,
                  "claim %" PRIu64 " is shown in class %d, arrived %" PRId64
                  ", expected class %d, %" PRId64,
                  view->id, view->class_now, view->arrived, class, claim->arrived);
}

/* Returns the oldest lease on a slot; 0: none. */
static uint64_t first_lease_on(const struct model *model, uint32_t slot)
{
    for (size_t i = 0; i < model->lease_count; i++) {
        const struct model_lease *lease = &model->leases[i];

        for (uint32_t j = 0; j < lease->slot_count && lease->scope == 0; j++) {
            if (lease->slots[j] == slot)
                return lease->id;
        }
    }
    return 0;
}

static void look_at_slot(struct run *run, uint32_t slot, const struct occupancy *occupancy)
{
    __typeof__(&occupancy->slots[0]) there = &occupancy->slots[slot];
    const struct model_device *device = &run->model.devices[slot];
    struct slot_view view;

    engine_get_slot(run->engine, slot, &view);
    if (view.present != device->present || view.blocks != device->blocks)
        run_blame(run, 9, "slot %" PRIu32 " is shown present %d with blocks %" PRIu32, slot,
                  view.present, view.blocks);
    if (view.lease != first_lease_on(&run->model, slot))
        run_blame(run, 9, "slot %" PRIu32 " is shown with lease %" PRIu64 ", expected %" PRIu64,
                  slot, view.lease, first_lease_on(&run->model, slot));
    if (view.taken != (there->tenants > 0) || view.tenants != there->tenants ||
        view.memory_used != there->memory || view.share_used != there->share ||
        (there->tenants > 0 && view.sharing != there->sharing))
        run_blame(run, 2,
                  "slot %" PRIu32 " is shown with %" PRIu32 " tenants and share %" PRIu32
                  ", expected %" PRIu32 " and %" PRIu64,
                  slot, view.tenants, view.share_used, there->tenants, there->share);
}

static void check_pending(struct run *run)
{
    size_t pending = 0;

    for (size_t i = 0; i < run->model.claim_count; i++)
        pending += !run->model.claims[i].asking->opportunistic;
    if (engine_pending(run->engine) != pending)
        run_blame(run, 6, "the engine counts %zu pending claims, expected %zu",
                  engine_pending(run->engine), pending);
}

void check_views(struct run *run)
{
    struct looking looking = {.run = run};
    struct occupancy occupancy;

    check_pending(run);
    engine_each_lease(run->engine, look_at_lease, &looking);
    if (looking.next != run->model.lease_count)
        run_blame(run, 9, "%zu leases are shown, expected %zu", looking.next,
                  run->model.lease_count);
    looking.next = 0;
    looking.count = model_order(&run->model, 0, looking.order);
    engine_each_claim(run->engine, look_at_claim, &looking);
    if (looking.next != run->model.claim_count)
        run_blame(run, 6, "%zu waiting claims are shown, expected %zu", looking.next,
                  run->model.claim_count);
    model_occupancy(&run->model, 0, &(struct moment){.at = run->model.now}, &occupancy);
    for (uint32_t slot = 0; slot < run->plan->planned; slot++) {
        if (run->model.devices[slot].here)
            look_at_slot(run, slot, &occupancy);
    }
}
