/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks each grant on its own: its devices, its size, and its place in the queue.
 */
#include <inttypes.h>
#include <string.h>

#include "promises/run.h"

static uint32_t replicas_of(const struct asking *asking)
{
    return asking->scheduling == SCHEDULING_BEST_EFFORT ? 1 : asking->replicas;
}

/* Blames the promise that is broken by a grant of a slot without room. */
static void blame_slot(struct run *run, const struct model_claim *claim,
                       const struct engine_event *event, unsigned slot,
                       const struct occupancy *occupancy)
{
    const struct asking *asking = claim->asking;
    const struct model_device *device = &run->model.devices[slot];
    slot_set accepted = model_accepts(&run->model, claim->scope, asking);

    if ((accepted >> slot & 1) == 0 && claim->scope != 0)
        run_blame(run, 14,
                  "lease %" PRIu64 " within lease %" PRIu64 " was granted slot %u, which the outer "
                  "lease does not offer",
                  event->lease, claim->scope, slot);
    else if ((accepted >> slot & 1) == 0)
        run_blame(run, 3,
                  "lease %" PRIu64 " was granted slot %u, which its request does not accept",
                  event->lease, slot);
    else if (!model_is_usable(&run->model, claim->scope, slot))
        run_blame(run, 7, "lease %" PRIu64 " was granted slot %u, which is not usable",
                  event->lease, slot);
    else if (asking->min_free.known &&
             (!device->free_known || device->free < asking->min_free.value))
        run_blame(run, 11,
                  "lease %" PRIu64
                  " was granted slot %u, which has too little or unknown free memory",
                  event->lease, slot);
    else if (asking->sharing == SHARING_EXCLUSIVE ||
             occupancy->slots[slot].sharing == SHARING_EXCLUSIVE)
        run_blame(run, claim->scope == 0 ? 1 : 14,
                  "lease %" PRIu64 " was granted slot %u beside %" PRIu32 " other leases, but not "
                  "all of these leases are shared",
                  event->lease, slot, occupancy->slots[slot].tenants);
    else
        run_blame(run, claim->scope == 0 ? 2 : 14,
                  "lease %" PRIu64 " was granted slot %u, which has no room for another tenant",
                  event->lease, slot);
}

/* Checks that each slot has room for the replicas that use it. */
static void check_room(struct run *run, const struct model_claim *claim,
                       const struct engine_event *event)
{
    struct occupancy occupancy;
    uint32_t room[SLOTS_MAX];

    model_occupancy(&run->model, claim->scope, &(struct moment){.at = run->model.now}, &occupancy);
    model_room(&run->model, claim->scope, claim->asking, &occupancy, room);
    for (uint32_t i = 0; i < event->slot_count; i++) {
        unsigned slot = event->slots[i];

        if (slot >= run->plan->planned) {
            run_blame(run, 3, "lease %" PRIu64 " was granted slot %u, which does not exist",
                      event->lease, slot);
            return;
        }
        if (room[slot] == 0) {
            blame_slot(run, claim, event, slot, &occupancy);
            return;
        }
        room[slot]--;
    }
}

/* Checks that all replicas have the same, requested number of devices, and that the devices of one
 * replica are different and may be together. */
static void check_replicas(struct run *run, const struct model_claim *claim,
                           const struct engine_event *event)
{
    const struct asking *asking = claim->asking;
    uint32_t replicas = replicas_of(asking);
    uint32_t size = event->slot_count / replicas;
    slot_set all = UINT32_MAX;
    uint32_t min;
    uint32_t max;

    model_bounds(&run->model, claim->scope, asking, &all, &min, &max);
    if (event->replicas != replicas || event->slot_count != replicas * size || size < min ||
        size > max) {
        run_blame(run, 3,
                  "lease %" PRIu64 " has %" PRIu32 " slots for %" PRIu32
                  " replicas, expected %" PRIu32 " to %" PRIu32 " for each of %" PRIu32,
                  event->lease, event->slot_count, event->replicas, min, max, replicas);
        return;
    }
    for (uint32_t i = 0; i < event->slot_count; i++) {
        uint32_t first = i / size * size;

        if ((all >> event->slots[i] & 1) == 0)
            run_blame(run, 3,
                      "lease %" PRIu64 " of all devices has slot %" PRIu32
                      ", which is not in the largest group",
                      event->lease, event->slots[i]);
        for (uint32_t j = first; j < i; j++) {
            if (event->slots[j] == event->slots[i])
                run_blame(run, 3, "lease %" PRIu64 " has slot %" PRIu32 " twice in one replica",
                          event->lease, event->slots[i]);
            if (!model_may_be_together(&run->model, asking, event->slots[j], event->slots[i]))
                run_blame(run, 3,
                          "lease %" PRIu64 " has slots %" PRIu32 " and %" PRIu32
                          " of different vendors or hosts in one replica",
                          event->lease, event->slots[j], event->slots[i]);
        }
    }
}

/* Checks that the grant has the largest possible size. That size is known only for a new claim, and
 * for an ordinary claim without earlier blocked claims. */
static void check_size(struct run *run, const struct model_claim *claim,
                       const struct engine_event *event)
{
    uint32_t size = event->slot_count / replicas_of(claim->asking);
    struct model_groups groups;
    struct occupancy occupancy;
    uint32_t room[SLOTS_MAX];
    slot_set slots;
    uint32_t largest;

    model_occupancy(&run->model, claim->scope, &(struct moment){.at = run->model.now}, &occupancy);
    slots = model_room(&run->model, claim->scope, claim->asking, &occupancy, room);
    if (claim->id == 0) {
        slots &= run->expected_allowed;
    } else {
        model_groups_before(&run->model, claim, &groups);
        if (claim->asking->opportunistic || groups.count > 0)
            return;
    }
    largest = model_largest(&run->model, claim->scope, claim->asking, slots, room, true);
    if (size != largest)
        run_blame(run, 3,
                  "lease %" PRIu64 " has %" PRIu32 " devices for each replica, but %" PRIu32
                  " were possible",
                  event->lease, size, largest);
}

static void check_limits(struct run *run, const struct model_claim *claim,
                         const struct engine_event *event)
{
    uint32_t size = event->slot_count / replicas_of(claim->asking);

    if (!model_within_limits(&run->model, claim->scope, claim->asking, size))
        run_blame(run, 4, "lease %" PRIu64 " of user %" PRIu32 " is above a limit", event->lease,
                  claim->asking->uid);
}

static void check_numbers(struct run *run, const struct model_claim *claim,
                          const struct engine_event *event)
{
    const struct asking *asking = claim->asking;
    int64_t expires = TIME_NEVER;

    if (asking->time.known && asking->time.value < (uint64_t)(TIME_NEVER - event->time))
        expires = event->time + (int64_t)asking->time.value;
    if (event->expires != expires)
        run_blame(run, 4, "lease %" PRIu64 " ends at %" PRId64 ", expected %" PRId64, event->lease,
                  event->expires, expires);
    if (event->lease <= run->last_id)
        run_blame(run, 9, "the id of lease %" PRIu64 " is not above %" PRIu64, event->lease,
                  run->last_id);
    for (uint32_t i = 0; i < event->slot_count; i++) {
        struct model_device *device = &run->model.devices[event->slots[i]];

        if (device->last_lease >= event->lease && device->last_lease != event->lease)
            run_blame(run, 9,
                      "slot %" PRIu32 " had lease %" PRIu64 " before lease %" PRIu64
                      ": ids must rise",
                      event->slots[i], device->last_lease, event->lease);
        device->last_lease = event->lease;
    }
}

/* Makes up the failure that the test of the shrinker looks for. */
static void check_fault(struct run *run, const struct engine_event *event)
{
    for (uint32_t i = 0; i < event->slot_count && run->fault_at > 0; i++) {
        if (event->slots[i] == 1 && ++run->fault_seen == run->fault_at)
            run_blame(run, 99, "slot 1 was granted %u times", run->fault_at);
    }
}

/* Returns whether a policy to which both devices are equal must take `one` before `other`. */
static bool is_preferred(const struct run *run, const struct asking *asking, unsigned one,
                         unsigned other)
{
    uint32_t first = run->model.devices[one].rank - 1; /* rank 0 (none) becomes the highest */
    uint32_t second = run->model.devices[other].rank - 1;
    bool avoided = (asking->avoided >> one & 1) != 0;

    if (avoided != ((asking->avoided >> other & 1) != 0))
        return !avoided;
    return first != second ? first < second : one < other;
}

/* Returns whether all devices are equal to the policy that decides. */
static bool is_by_slot(const struct run *run, const struct asking *asking)
{
    const char *policy = asking->policy != NULL ? asking->policy : run->model.rules.policy;

    if (policy != NULL)
        return strcmp(policy, "first") == 0;
    return asking->sharing == SHARING_EXCLUSIVE && asking->gpus.max == 1 && !asking->gpus.all;
}

void check_choice(struct run *run, const struct model_claim *claim,
                  const struct engine_event *event)
{
    const struct asking *asking = claim->asking;
    slot_set left = run->expected_allowed;
    unsigned lowest;

    if (claim->id != 0 || left == 0 || !is_by_slot(run, asking) || asking->affinity != NULL ||
        run->plan->affinity_by_user || event->replicas > 1)
        return;
    lowest = (unsigned)__builtin_ctz(left);
    for (unsigned slot = 0; slot < run->plan->planned; slot++) {
        if ((left >> slot & 1) != 0 && event->slot_count > 1 &&
            !model_may_be_together(&run->model, asking, lowest, slot))
            return;
    }
    for (uint32_t i = 0; i < event->slot_count; i++)
        left &= ~((slot_set)1 << event->slots[i]);
    for (uint32_t i = 0; i < event->slot_count; i++) {
        for (unsigned slot = 0; slot < run->plan->planned; slot++) {
            if ((left >> slot & 1) == 0)
                continue;
            run->tally->ranked += run->model.devices[event->slots[i]].rank != 0;
            if (is_preferred(run, asking, slot, event->slots[i]))
                run_blame(run, 12,
                          "lease %" PRIu64 " was granted slot %" PRIu32
                          ", but slot %u is preferred",
                          event->lease, event->slots[i], slot);
        }
    }
}

void check_gift(struct run *run, const struct model_claim *claim, const struct engine_event *event)
{
    slot_set slots = 0;

    for (uint32_t i = 0; i < event->slot_count; i++)
        slots |= (slot_set)1 << (event->slots[i] & 31);
    if (slots != run->operation->slots || event->replicas != 1 ||
        event->slot_count != (uint32_t)__builtin_popcount(slots))
        run_blame(run, 3, "lease %" PRIu64 " was given slots %#x, expected %#x", event->lease,
                  slots, run->operation->slots);
    switch (model_judge_gift(&run->model, claim->scope, claim->asking, slots)) {
    case BERTH_ERROR_BUSY:
        run_blame(run, claim->scope == 0 ? 1 : 14,
                  "lease %" PRIu64 " was given slots %#x, one of which has no room", event->lease,
                  slots);
        break;
    case BERTH_ERROR_INVALID:
        run_blame(run, 3, "lease %" PRIu64 " was given slots %#x, which its request rules out",
                  event->lease, slots);
        break;
    default:
        check_numbers(run, claim, event);
        break;
    }
    run->tally->checks++;
}

void check_grant(struct run *run, const struct model_claim *claim, const struct engine_event *event)
{
    check_fault(run, event);
    if (event->slot_count == 0 || event->slot_count > LEASE_SLOTS_MAX) {
        run_blame(run, 3, "lease %" PRIu64 " has %" PRIu32 " slots", event->lease,
                  event->slot_count);
        return;
    }
    check_room(run, claim, event);
    if (claim->id == 0 && run->expected_size == 0)
        run_blame(run, 4, "lease %" PRIu64 " was granted at once, but its claim must wait",
                  event->lease);
    if (run->verdict.promise == 0)
        check_replicas(run, claim, event);
    if (run->verdict.promise != 0)
        return;
    check_limits(run, claim, event);
    check_size(run, claim, event);
    check_choice(run, claim, event);
    check_grant_order(run, claim, event);
    check_numbers(run, claim, event);
    run->tally->checks++;
}
