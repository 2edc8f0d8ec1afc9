/* SPDX-License-Identifier: Apache-2.0
 *
 * The policies that compare single devices: first, round-robin, least-loaded, best-available,
 * best-compute and weighted (docs/PLACEMENT.md).
 *
 * A comparison is negative if `one` is better than `other`. An unknown value comes after all known
 * values, and two unknown values are equal: a value that was never measured does not count as 0.
 */
#include "engine/policy/compare_devices.h"

#include "engine/policy/policies.h"

static int compare_lower(uint64_t one, uint64_t other)
{
    return (one > other) - (one < other);
}

static int compare_lower_known(struct optional_number one, struct optional_number other)
{
    if (!one.known || !other.known)
        return other.known - one.known;
    return compare_lower(one.value, other.value);
}

static int compare_higher_known(struct optional_number one, struct optional_number other)
{
    if (!one.known || !other.known)
        return other.known - one.known;
    return compare_lower(other.value, one.value);
}

/* Returns a figure that cannot be negative. A negative figure counts as unknown. */
static struct optional_number number_of(struct figure figure)
{
    if (!figure.known || figure.value < 0)
        return (struct optional_number){0};
    return optional_number_of((uint64_t)figure.value);
}

static const struct device *device_at(const struct policy_question *question, size_t slot)
{
    return &question->machine->devices.items[slot];
}

/* Returns the history of a slot. Without history all slots are equal. */
static struct policy_slot slot_at(const struct policy_question *question, size_t slot)
{
    static const struct policy_slot nothing = {0};

    return question->slots == NULL ? nothing : question->slots[slot];
}

int compare_devices_tenants(const struct policy_question *question, size_t one, size_t other)
{
    return compare_lower(slot_at(question, one).tenants, slot_at(question, other).tenants);
}

/* first: the order of the slots decides, so it compares nothing. */
const struct policy policy_first = {
    .name = "first",
    .summary = "the lowest slots",
};

/* round-robin orders slots by the time of their last turn. A pointer that moves around would give
 * the successor of a busy slot two turns. Here every slot moves up by one, and a slot that comes
 * back is served once and is then the last. Slots served by one grant may have the same time. Then
 * the slot served less often goes first; without this, the lowest slot would be in every grant of
 * several devices. */
static int compare_turns(const struct policy *policy, const struct policy_question *question,
                         size_t one, size_t other)
{
    struct policy_slot first = slot_at(question, one);
    struct policy_slot second = slot_at(question, other);
    int order = compare_lower(first.last_served, second.last_served);

    (void)policy;
    return order != 0 ? order : compare_lower(first.served, second.served);
}

const struct policy policy_round_robin = {
    .name = "round-robin",
    .summary = "the slots served longest ago",
    .compare = compare_turns,
};

/* Returns the work of a slot: work that programs reported, leases, and recent picks. Programs may
 * report any number, so the sum saturates. */
static uint64_t work_of(struct policy_slot slot)
{
    uint64_t work;

    if (__builtin_add_overflow(slot.queued, slot.active, &work) ||
        __builtin_add_overflow(work, (uint64_t)slot.tenants + slot.picks, &work))
        return UINT64_MAX;
    return work;
}

/* least-loaded compares work before utilization, because a utilization is always measured late. */
static int compare_work(const struct policy *policy, const struct policy_question *question,
                        size_t one, size_t other)
{
    int order = compare_lower(work_of(slot_at(question, one)), work_of(slot_at(question, other)));

    (void)policy;
    if (order != 0)
        return order;
    return compare_lower_known(number_of(device_at(question, one)->load.utilization),
                               number_of(device_at(question, other)->load.utilization));
}

const struct policy policy_least_loaded = {
    .name = "least-loaded",
    .summary = "the slots with the least work, then the lowest utilization",
    .compare = compare_work,
};

static uint64_t users_of(struct policy_slot slot)
{
    return (uint64_t)slot.tenants + slot.picks;
}

static int compare_free_memory(const struct policy *policy, const struct policy_question *question,
                               size_t one, size_t other)
{
    int order = compare_higher_known(number_of(device_at(question, one)->load.memory_free),
                                     number_of(device_at(question, other)->load.memory_free));

    (void)policy;
    if (order != 0)
        return order;
    return compare_lower(users_of(slot_at(question, one)), users_of(slot_at(question, other)));
}

const struct policy policy_best_available = {
    .name = "best-available",
    .summary = "the slots with the most free memory, then the fewest leases",
    .compare = compare_free_memory,
};

/* Returns a number that is higher for a higher capability. */
static struct optional_number rank_of(struct capability capability)
{
    if (!capability.known)
        return (struct optional_number){0};
    return optional_number_of((uint64_t)capability.major << 16 | capability.minor);
}

static int compare_capability(const struct policy *policy, const struct policy_question *question,
                              size_t one, size_t other)
{
    const struct device *first = device_at(question, one);
    const struct device *second = device_at(question, other);
    int order = compare_higher_known(rank_of(first->cap), rank_of(second->cap));

    (void)policy;
    return order != 0 ? order : compare_higher_known(first->memory_total, second->memory_total);
}

const struct policy policy_best_compute = {
    .name = "best-compute",
    .summary = "the slots with the highest compute capability, then the most memory",
    .compare = compare_capability,
};

/* Wide enough for every product of a count and a weight, so that fractions compare exactly. */
__extension__ typedef unsigned __int128 wide;

static wide weight_of(struct policy_slot slot)
{
    return slot.weight == 0 ? 1 : slot.weight;
}

/* weighted prefers the slots with the smallest (turns + 1) / weight. So a slot never falls a whole
 * turn behind its share, and the shares are exact whenever they are whole turns. It counts all
 * turns from the start: a slot that was away catches up. */
static int compare_weighted_turns(const struct policy *policy,
                                  const struct policy_question *question, size_t one, size_t other)
{
    struct policy_slot first = slot_at(question, one);
    struct policy_slot second = slot_at(question, other);
    wide left = ((wide)first.served + 1) * weight_of(second);
    wide right = ((wide)second.served + 1) * weight_of(first);

    (void)policy;
    return (left > right) - (left < right);
}

const struct policy policy_weighted = {
    .name = "weighted",
    .summary = "the slots with the fewest turns for their weight",
    .compare = compare_weighted_turns,
};
