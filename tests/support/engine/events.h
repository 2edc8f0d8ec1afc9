/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares two events, for unit tests and fuzz targets.
 */
#ifndef TESTS_EVENTS_H
#define TESTS_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/event.h"

static inline bool same_list(const uint32_t *one, size_t count, const uint32_t *other,
                             size_t other_count)
{
    return count == other_count && (count == 0 || memcmp(one, other, count * sizeof(*one)) == 0);
}

static inline bool party_equals(const struct party *one, const struct party *other)
{
    if (one == NULL || other == NULL)
        return one == other;
    if (one->mask == NULL || other->mask == NULL) {
        if (one->mask != other->mask)
            return false;
    } else if (!device_id_list_equals(one->mask, other->mask)) {
        return false;
    }
    return one->uid == other->uid && one->parent == other->parent &&
           same_list(one->groups, one->group_count, other->groups, other->group_count);
}

static inline bool event_numbers_equal(const struct engine_event *one,
                                       const struct engine_event *other)
{
    return one->type == other->type && one->time == other->time && one->claim == other->claim &&
           one->lease == other->lease && one->request == other->request &&
           one->replicas == other->replicas && one->expires == other->expires &&
           one->deadline == other->deadline && one->reason == other->reason &&
           one->slot == other->slot && one->blocks == other->blocks &&
           one->health == other->health && one->present == other->present &&
           one->waited == other->waited && one->stamp == other->stamp &&
           one->served == other->served && one->affinity == other->affinity &&
           one->share == other->share;
}

static inline bool event_equals(const struct engine_event *one, const struct engine_event *other)
{
    if (one->what == NULL || other->what == NULL) {
        if (one->what != other->what)
            return false;
    } else if (!request_equals(one->what, other->what)) {
        return false;
    }
    return event_numbers_equal(one, other) && party_equals(one->party, other->party) &&
           same_list(one->slots, one->slot_count, other->slots, other->slot_count);
}

#endif
