/* SPDX-License-Identifier: Apache-2.0
 *
 * Which devices a claim accepts, which have room for it, and whether all its replicas fit.
 */
#include <string.h>

#include "promises/model.h"

/* The part of a device that a scope has. */
struct part {
    bool there;
    bool shared; /* it can be shared only in the mode `sharing` */
    enum sharing sharing;
    uint64_t share;
    struct optional_number memory;
    bool has_memory;          /* `memory` can be reserved */
    const struct asking *mps; /* the request whose MPS control daemon serves it; NULL: none */
};

uint32_t asking_tenants(const struct model *model, const struct asking *asking)
{
    if (asking->sharing == SHARING_EXCLUSIVE)
        return 1;
    if (asking->sharing == SHARING_MPS)
        return model->rules.mps_tenants == 0 ? 8 : model->rules.mps_tenants;
    return model->rules.time_slice_tenants == 0 ? 4 : model->rules.time_slice_tenants;
}

static struct part part_of(const struct model *model, uint64_t scope, unsigned slot);

/* Returns the share that each device of a scope has: that of one replica of the scope's lease. */
static uint64_t whole_share(const struct model *model, uint64_t scope)
{
    const struct model_lease *lease = model_lease((struct model *)model, scope);

    return lease == NULL ? SHARE_WHOLE : asking_share(model, lease->scope, lease->asking);
}

uint32_t asking_share(const struct model *model, uint64_t scope, const struct asking *asking)
{
    if (model->shares[asking->number] != 0)
        return model->shares[asking->number];
    if (asking->sharing == SHARING_EXCLUSIVE)
        return (uint32_t)whole_share(model, scope);
    if (asking->share.known)
        return (uint32_t)asking->share.value;
    return (uint32_t)(whole_share(model, scope) / asking_tenants(model, asking));
}

void model_make(struct model *model, uint64_t scope, const struct asking *asking)
{
    if (asking->number != 0)
        model->shares[asking->number] = asking_share(model, scope, asking);
}

static bool lease_has(const struct model_lease *lease, unsigned slot)
{
    for (uint32_t i = 0; i < lease->slot_count; i++) {
        if (lease->slots[i] == slot)
            return true;
    }
    return false;
}

static struct part part_of(const struct model *model, uint64_t scope, unsigned slot)
{
    const struct model_device *device = &model->devices[slot];
    struct part part = {.share = SHARE_WHOLE, .memory = device->plan->memory, .has_memory = true};
    const struct model_lease *lease;

    if (scope == 0) {
        part.there = device->here && device->present;
        return part;
    }
    lease = model_lease((struct model *)model, scope);
    part = part_of(model, lease->scope, slot);
    part.there = part.there && lease_has(lease, slot);
    part.share = whole_share(model, scope);
    if (lease->asking->sharing == SHARING_EXCLUSIVE)
        return part;
    part.shared = true;
    part.sharing = lease->asking->sharing;
    part.mps = lease->asking->sharing == SHARING_MPS ? lease->asking : NULL;
    /* A lease that reserved no memory has none to reserve, but sees the memory of the device. */
    part.has_memory = lease->asking->memory.known;
    part.memory = part.has_memory ? lease->asking->memory : device->plan->memory;
    return part;
}

static bool is_at_least(struct optional_number figure, struct optional_number min)
{
    return !min.known || (figure.known && figure.value >= min.value);
}

static bool device_fits(const struct device_plan *device, const struct asking *asking)
{
    if (device->partitioned)
        return false;
    if (asking->vendor_rule == VENDOR_RULE_EXACT && asking->vendor != device->id.vendor)
        return false;
    if (asking->model != NULL &&
        (device->name == NULL || strcasestr(device->name, asking->model) == NULL))
        return false;
    if (!is_at_least(device->memory, asking->min_memory))
        return false;
    if (asking->min_cap.known && !capability_is_at_least(device->cap, asking->min_cap))
        return false;
    return asking->sharing != SHARING_MPS || device->id.vendor == VENDOR_NVIDIA;
}

/* Returns whether a device is reserved, but not for the request's user or groups. */
static bool reserved_device_excludes(const struct model_device *device, const struct asking *asking)
{
    bool mine = (device->people.users >> (asking->uid - FIRST_UID) & 1) != 0;

    for (uint32_t i = 0; i < asking->group_count; i++)
        mine |= (device->people.groups >> (asking->groups[i] - 1) & 1) != 0;
    return device->reserved && !mine;
}

/* Returns the devices that pass every condition. A request for `all` takes only a group of them. */
static slot_set accepts_each(const struct model *model, uint64_t scope, const struct asking *asking)
{
    slot_set accepted = 0;

    for (unsigned slot = 0; slot < model->plan->planned; slot++) {
        slot_set bit = (slot_set)1 << slot;
        struct part part = part_of(model, scope, slot);

        if (!part.there || !device_fits(model->devices[slot].plan, asking))
            continue;
        if ((asking->wanted != 0 && (asking->wanted & bit) == 0) ||
            (asking->masked && (asking->mask & bit) == 0))
            continue;
        if (part.shared && asking->sharing != SHARING_EXCLUSIVE && part.sharing != asking->sharing)
            continue;
        if (part.mps != NULL && asking->sharing == SHARING_MPS &&
            !model_is_one_mps(asking, part.mps))
            continue;
        if (asking->min_free.known && part.memory.known &&
            part.memory.value < asking->min_free.value)
            continue;
        if (scope == 0 && reserved_device_excludes(&model->devices[slot], asking))
            continue;
        if (asking_share(model, scope, asking) > part.share ||
            !is_at_least(part.memory, asking->memory) || (asking->memory.known && !part.has_memory))
            continue;
        accepted |= bit;
    }
    return accepted;
}

/* Returns the devices that may be in one replica with this one: those of the same host and, unless
 * `mixed`, the same vendor. */
static slot_set companions(const struct model *model, unsigned slot, bool mixed)
{
    const struct device_plan *one = model->devices[slot].plan;
    slot_set slots = 0;

    for (unsigned i = 0; i < model->plan->planned; i++) {
        const struct device_plan *other = model->devices[i].plan;

        if (other->host == one->host && (mixed || other->id.vendor == one->id.vendor))
            slots |= (slot_set)1 << i;
    }
    return slots;
}

/* Returns the devices that `all` means: the largest group that may be together. Among equal groups
 * it is the one with the lowest slot. */
static slot_set all_devices(const struct model *model, slot_set accepted, bool mixed)
{
    slot_set best = 0;

    for (unsigned slot = 0; slot < model->plan->planned; slot++) {
        slot_set group = accepted & companions(model, slot, mixed);

        if ((accepted >> slot & 1) != 0 && __builtin_popcount(group) > __builtin_popcount(best))
            best = group;
    }
    return best;
}

slot_set model_accepts(const struct model *model, uint64_t scope, const struct asking *asking)
{
    slot_set accepted = accepts_each(model, scope, asking);

    if (asking->gpus.all)
        accepted = all_devices(model, accepted, asking->vendor_rule == VENDOR_RULE_MIXED);
    return accepted;
}

/* Within a lease blocks do not matter: they prevent new grants, and this device is already granted.
 */
bool model_is_usable(const struct model *model, uint64_t scope, unsigned slot)
{
    const struct model_device *device = &model->devices[slot];

    return device->here && device->present && (device->blocks == 0 || scope != 0) &&
           device->health != HEALTH_SICK;
}

bool model_overstays(const struct model *model, const struct model_lease *lease)
{
    int64_t grace = model->rules.grace == 0 ? INT64_C(10000000000) : model->rules.grace;

    return lease->expires != TIME_NEVER && model->now - lease->expires >= 2 * grace;
}

static bool counts(const struct model *model, size_t index, const struct moment *moment)
{
    const struct model_lease *lease = &model->leases[index];
    bool helper = lease->asking->opportunistic;

    if (moment->left_out != NULL && moment->left_out[index])
        return false;
    if (helper &&
        (moment->without_helpers || (moment->without_noticed && lease->state != LEASE_HELD)))
        return false;
    if (lease->expires <= model->now)
        return !moment->without_late || model_overstays(model, lease);
    return moment->at <= model->now || lease->expires > moment->at;
}

void model_occupancy(const struct model *model, uint64_t scope, const struct moment *moment,
                     struct occupancy *ret_occupancy)
{
    memset(ret_occupancy, 0, sizeof(*ret_occupancy));
    for (size_t index = 0; index < model->lease_count; index++) {
        const struct model_lease *lease = &model->leases[index];
        const struct asking *asking = lease->asking;

        if (lease->scope != scope || !counts(model, index, moment))
            continue;
        for (uint32_t i = 0; i < lease->slot_count; i++) {
            __typeof__(&ret_occupancy->slots[0]) slot = &ret_occupancy->slots[lease->slots[i]];

            if (slot->tenants > 0 &&
                (slot->sharing != asking->sharing ||
                 (asking->sharing == SHARING_MPS && !model_is_one_mps(asking, slot->last))))
                slot->mixed = true;
            slot->tenants++;
            slot->share += asking_share(model, scope, asking);
            slot->memory += asking_memory(asking);
            slot->reserved += asking->memory.known ? asking->memory.value : 0;
            slot->open += asking->sharing != SHARING_EXCLUSIVE && asking_memory(asking) == 0;
            slot->sharing = asking->sharing;
            slot->last = asking;
        }
    }
}

/* Returns how many replicas of the claim fit on a slot beside its leases. */
static uint32_t room_beside(const struct model *model, uint64_t scope, const struct asking *asking,
                            unsigned slot, const struct occupancy *occupancy)
{
    __typeof__(&occupancy->slots[0]) there = &occupancy->slots[slot];
    struct part part = part_of(model, scope, slot);
    uint64_t share = asking_share(model, scope, asking);
    uint64_t room;

    if (asking->sharing == SHARING_EXCLUSIVE)
        return there->tenants == 0 ? 1 : 0;
    if (there->tenants > 0 &&
        (there->mixed || there->sharing != asking->sharing ||
         (asking->sharing == SHARING_MPS && !model_is_one_mps(asking, there->last))))
        return 0;
    if (there->tenants >= asking_tenants(model, asking) || there->share >= part.share)
        return 0;
    room = asking_tenants(model, asking) - there->tenants;
    if ((part.share - there->share) / share < room)
        room = (part.share - there->share) / share;
    if (model_memory_room(asking, part.memory, there->memory) < room)
        room = model_memory_room(asking, part.memory, there->memory);
    return (uint32_t)room;
}

slot_set model_room(const struct model *model, uint64_t scope, const struct asking *asking,
                    const struct occupancy *occupancy, uint32_t room[SLOTS_MAX])
{
    slot_set accepted = model_accepts(model, scope, asking);
    slot_set found = 0;

    for (unsigned slot = 0; slot < SLOTS_MAX; slot++) {
        const struct model_device *device = &model->devices[slot];

        room[slot] = 0;
        if ((accepted >> slot & 1) == 0 || !model_is_usable(model, scope, slot))
            continue;
        if (asking->min_free.known &&
            (!device->free_known || device->free < asking->min_free.value))
            continue;
        room[slot] = room_beside(model, scope, asking, slot, occupancy);
        if (model_sample_room(device, asking, occupancy, slot) < room[slot])
            room[slot] = model_sample_room(device, asking, occupancy, slot);
        found |= room[slot] > 0 ? (slot_set)1 << slot : 0;
    }
    return found;
}

slot_set model_room_at_best(const struct model *model, uint64_t scope, const struct asking *asking,
                            uint32_t room[SLOTS_MAX])
{
    const struct occupancy empty = {0};
    slot_set accepted = model_accepts(model, scope, asking);

    for (unsigned slot = 0; slot < SLOTS_MAX; slot++)
        room[slot] =
            (accepted >> slot & 1) == 0 ? 0 : room_beside(model, scope, asking, slot, &empty);
    return accepted;
}

void model_bounds(const struct model *model, uint64_t scope, const struct asking *asking,
                  slot_set *slots, uint32_t *ret_min, uint32_t *ret_max)
{
    slot_set accepted;

    *ret_min = asking->gpus.min;
    *ret_max = asking->gpus.max;
    if (!asking->gpus.all)
        return;
    accepted = model_accepts(model, scope, asking);
    *slots &= accepted;
    *ret_min = *ret_max = accepted == 0 ? 1 : (uint32_t)__builtin_popcount(accepted);
}

/* Returns how many replicas of this size fit on these devices, at most `max`. r replicas fit if the
 * devices have r x size places, where each device counts at most r. Proof: deal out the places
 * device by device, to one replica after the other; no replica gets a device twice. */
static uint32_t replicas_on(slot_set slots, const uint32_t room[SLOTS_MAX], uint32_t size,
                            uint32_t max)
{
    for (uint32_t replicas = max; replicas > 0; replicas--) {
        uint64_t places = 0;

        for (unsigned slot = 0; slot < SLOTS_MAX; slot++) {
            if ((slots >> slot & 1) != 0)
                places += room[slot] < replicas ? room[slot] : replicas;
        }
        if (places >= (uint64_t)replicas * size)
            return replicas;
    }
    return 0;
}

bool model_fits(const struct model *model, const struct asking *asking, slot_set slots,
                const uint32_t room[SLOTS_MAX], uint32_t size)
{
    uint32_t wanted = asking->scheduling == SCHEDULING_BEST_EFFORT ? 1 : asking->replicas;
    uint32_t placed = 0;

    for (unsigned slot = 0; slot < model->plan->planned && placed < wanted; slot++) {
        slot_set group = slots & companions(model, slot, asking->vendor_rule == VENDOR_RULE_MIXED);

        if ((slots >> slot & 1) != 0) {
            placed += replicas_on(group, room, size, wanted - placed);
            slots &= ~group;
        }
    }
    return placed == wanted;
}

uint32_t model_largest(const struct model *model, uint64_t scope, const struct asking *asking,
                       slot_set slots, const uint32_t room[SLOTS_MAX], bool within_limits)
{
    uint32_t min;
    uint32_t max;

    model_bounds(model, scope, asking, &slots, &min, &max);
    for (uint32_t size = max < SLOTS_MAX ? max : SLOTS_MAX; size >= min && size > 0; size--) {
        if ((!within_limits || model_within_limits(model, scope, asking, size)) &&
            model_fits(model, asking, slots, room, size))
            return size;
    }
    return 0;
}

bool model_may_be_together(const struct model *model, const struct asking *asking, unsigned one,
                           unsigned other)
{
    return (companions(model, one, asking->vendor_rule == VENDOR_RULE_MIXED) >> other & 1) != 0;
}

int model_judge_gift(const struct model *model, uint64_t scope, const struct asking *asking,
                     slot_set slots)
{
    uint32_t count = (uint32_t)__builtin_popcount(slots);
    slot_set accepted = model_accepts(model, scope, asking);
    struct occupancy occupancy;
    slot_set all = UINT32_MAX;
    uint32_t min;
    uint32_t max;

    model_bounds(model, scope, asking, &all, &min, &max);
    if ((asking->replicas > 1 && asking->scheduling != SCHEDULING_BEST_EFFORT) ||
        (slots & ~accepted) != 0 || count < min || count > max)
        return BERTH_ERROR_INVALID;
    if ((slots & ~companions(model, (unsigned)__builtin_ctz(slots),
                             asking->vendor_rule == VENDOR_RULE_MIXED)) != 0)
        return BERTH_ERROR_INVALID;
    model_occupancy(model, scope, &(struct moment){.at = model->now}, &occupancy);
    for (unsigned slot = 0; slot < model->plan->planned; slot++) {
        if ((slots >> slot & 1) != 0 && room_beside(model, scope, asking, slot, &occupancy) == 0)
            return BERTH_ERROR_BUSY;
    }
    return 0;
}
