/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices that only some people may have.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/internal.h"

static bool has(const uint32_t *numbers, size_t count, uint32_t wanted)
{
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] == wanted)
            return true;
    }
    return false;
}

bool is_for_others(const struct engine_request *request, uint32_t slot)
{
    const struct slot_people *people = &request->engine->people[slot];

    if (!people->reserved || has(people->uids, people->uid_count, request->uid))
        return false;
    for (size_t i = 0; i < request->group_count; i++) {
        if (has(people->groups, people->group_count, request->groups[i]))
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

static bool is_same(const struct slot_people *people, const struct device_people *who)
{
    if (who == NULL || !people->reserved)
        return (who != NULL) == people->reserved;
    return same_numbers(people->uids, people->uid_count, who->uids, who->uid_count) &&
           same_numbers(people->groups, people->group_count, who->groups, who->group_count);
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

void people_finish(struct slot_people *people)
{
    free(people->uids);
    free(people->groups);
    *people = (struct slot_people){0};
}

int engine_reserve_device(struct engine *engine, uint32_t slot, const struct device_people *who,
                          struct berth_error *error)
{
    struct slot_people people = {.reserved = who != NULL};

    if (slot >= engine->size)
        return error_set(error, BERTH_ERROR_INVALID, "wanted a slot below %zu, found %u",
                         engine->size, slot);
    if (is_same(&engine->people[slot], who))
        return 0;
    if (who != NULL) {
        people.uid_count = who->uid_count;
        people.group_count = who->group_count;
        if (copy_numbers(who->uids, who->uid_count, &people.uids) < 0 ||
            copy_numbers(who->groups, who->group_count, &people.groups) < 0) {
            people_finish(&people);
            return error_set_memory(error);
        }
    }
    people_finish(&engine->people[slot]);
    engine->people[slot] = people;
    recompile_requests(engine);
    refuse_impossible(engine);
    settle_all(engine);
    return 0;
}
