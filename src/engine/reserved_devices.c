/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices that are reserved for some users and groups (FAIRNESS.md section 6).
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/internal.h"

static bool has_number(const uint32_t *numbers, size_t count, uint32_t wanted)
{
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] == wanted)
            return true;
    }
    return false;
}

bool reserved_device_excludes(const struct engine_request *request, uint32_t slot)
{
    const struct slot_allowed *allowed = &request->engine->allowed[slot];

    if (!allowed->reserved || has_number(allowed->uids, allowed->uid_count, request->uid))
        return false;
    for (size_t i = 0; i < request->group_count; i++) {
        if (has_number(allowed->groups, allowed->group_count, request->groups[i]))
            return false;
    }
    return true;
}

static bool same_numbers(const uint32_t *one, size_t one_count, const uint32_t *other,
                         size_t other_count)
{
    return one_count == other_count &&
           (one_count == 0 || memcmp(one, other, one_count * sizeof(*one)) == 0);
}

static bool is_same_reservation(const struct slot_allowed *allowed, const struct allowed_users *who)
{
    if (who == NULL || !allowed->reserved)
        return (who != NULL) == allowed->reserved;
    return same_numbers(allowed->uids, allowed->uid_count, who->uids, who->uid_count) &&
           same_numbers(allowed->groups, allowed->group_count, who->groups, who->group_count);
}

static int copy_numbers(const uint32_t *numbers, size_t count, uint32_t **ret_copy)
{
    uint32_t *copy = calloc(count + 1, sizeof(*copy));

    if (copy == NULL)
        return BERTH_ERROR_MEMORY;
    if (count > 0)
        memcpy(copy, numbers, count * sizeof(*copy));
    *ret_copy = copy;
    return 0;
}

void reserved_devices_finish(struct slot_allowed *allowed)
{
    free(allowed->uids);
    free(allowed->groups);
    *allowed = (struct slot_allowed){0};
}

int engine_reserve_device(struct engine *engine, uint32_t slot, const struct allowed_users *who,
                          struct berth_error *error)
{
    struct slot_allowed allowed = {.reserved = who != NULL};

    if (slot >= engine->size)
        return error_set(error, BERTH_ERROR_INVALID, "expected a slot below %zu, got %u",
                         engine->size, slot);
    if (is_same_reservation(&engine->allowed[slot], who))
        return 0;
    if (who != NULL) {
        allowed.uid_count = who->uid_count;
        allowed.group_count = who->group_count;
        if (copy_numbers(who->uids, who->uid_count, &allowed.uids) < 0 ||
            copy_numbers(who->groups, who->group_count, &allowed.groups) < 0) {
            reserved_devices_finish(&allowed);
            return error_set_memory(error);
        }
    }
    reserved_devices_finish(&engine->allowed[slot]);
    engine->allowed[slot] = allowed;
    engine_recompile_requests(engine);
    engine_refuse_impossible(engine);
    schedule_all(engine);
    return 0;
}
