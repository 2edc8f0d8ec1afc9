/* SPDX-License-Identifier: Apache-2.0
 *
 * How much users and groups hold and may hold, and which requests can never be granted.
 */
#include "promises/model.h"

static bool is_in_group(const struct asking *asking, uint32_t group)
{
    for (uint32_t i = 0; i < asking->group_count; i++) {
        if (asking->groups[i] == group)
            return true;
    }
    return false;
}

static uint64_t lease_holds(const struct model *model, const struct model_lease *lease)
{
    return (uint64_t)lease->slot_count * asking_share(model, lease->scope, lease->asking);
}

uint64_t model_user_holds(const struct model *model, uint32_t uid)
{
    uint64_t held = 0;

    for (size_t i = 0; i < model->lease_count; i++) {
        const struct model_lease *lease = &model->leases[i];

        if (lease->scope == 0 && lease->asking->uid == uid)
            held += lease_holds(model, lease);
    }
    return held;
}

uint64_t model_group_holds(const struct model *model, uint32_t group)
{
    uint64_t held = 0;

    for (size_t i = 0; i < model->lease_count; i++) {
        const struct model_lease *lease = &model->leases[i];

        if (lease->scope == 0 && is_in_group(lease->asking, group))
            held += lease_holds(model, lease);
    }
    return held;
}

static uint64_t limit_of_user(const struct model *model, uint32_t uid)
{
    return model->user_limits[uid - FIRST_UID];
}

static uint64_t limit_of_group(const struct model *model, uint32_t group)
{
    return model->group_limits[group - 1];
}

static uint64_t cost(const struct model *model, const struct asking *asking, uint32_t size)
{
    uint64_t replicas = asking->scheduling == SCHEDULING_BEST_EFFORT ? 1 : asking->replicas;

    return replicas * size * asking_share(model, 0, asking);
}

/* Returns whether `more` is still within a limit. A limit that was lowered may be exceeded already.
 */
static bool leaves(uint64_t limit, uint64_t held, uint64_t more)
{
    return limit == UINT64_MAX || held + more <= limit;
}

bool model_within_limits(const struct model *model, uint64_t scope, const struct asking *asking,
                         uint32_t size)
{
    uint64_t more = cost(model, asking, size);

    if (scope != 0)
        return true;
    if (limit_of_user(model, asking->uid) != UINT64_MAX &&
        !leaves(limit_of_user(model, asking->uid), model_user_holds(model, asking->uid), more))
        return false;
    for (uint32_t i = 0; i < asking->group_count; i++) {
        uint32_t group = asking->groups[i];

        if (limit_of_group(model, group) != UINT64_MAX &&
            !leaves(limit_of_group(model, group), model_group_holds(model, group), more))
            return false;
    }
    return true;
}

bool model_has_limit(const struct model *model, uint64_t scope, const struct asking *asking)
{
    bool limited = limit_of_user(model, asking->uid) != UINT64_MAX;

    for (uint32_t i = 0; i < asking->group_count; i++)
        limited |= limit_of_group(model, asking->groups[i]) != UINT64_MAX;
    return scope == 0 && limited;
}

static uint32_t smallest(const struct model *model, uint64_t scope, const struct asking *asking)
{
    slot_set slots = UINT32_MAX;
    uint32_t min;
    uint32_t max;

    model_bounds(model, scope, asking, &slots, &min, &max);
    return min;
}

bool model_held_by_limit(const struct model *model, uint64_t scope, const struct asking *asking)
{
    return !model_within_limits(model, scope, asking, smallest(model, scope, asking));
}

bool model_impossible(const struct model *model, uint64_t scope, const struct asking *asking)
{
    uint32_t room[SLOTS_MAX];
    slot_set slots = model_room_at_best(model, scope, asking, room);
    uint64_t min = cost(model, asking, smallest(model, scope, asking));

    if (model_largest(model, scope, asking, slots, room, false) == 0)
        return true;
    if (scope != 0)
        return false;
    if (!leaves(limit_of_user(model, asking->uid), 0, min))
        return true;
    for (uint32_t i = 0; i < asking->group_count; i++) {
        if (!leaves(limit_of_group(model, asking->groups[i]), 0, min))
            return true;
    }
    return false;
}
