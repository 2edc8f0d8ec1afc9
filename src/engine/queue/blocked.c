/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocked claims: their groups and reservations, and the slots that they bar to later claims
 * (FAIRNESS.md sections 3 and 4).
 */
#include <stdlib.h>

#include "engine/internal.h"

int blocked_init(struct blocked_claims *walk, size_t size)
{
    *walk = (struct blocked_claims){0};
    if (bitset_init(&walk->closed, size) < 0 || bitset_init(&walk->opportunistic_closed, size) < 0)
        return BERTH_ERROR_MEMORY;
    return 0;
}

void blocked_finish(struct blocked_claims *walk)
{
    for (size_t i = 0; i < walk->ready; i++) {
        bitset_finish(&walk->items[i].set);
        bitset_finish(&walk->items[i].region);
    }
    vector_finish(walk);
    bitset_finish(&walk->closed);
    bitset_finish(&walk->opportunistic_closed);
}

void blocked_reset(struct blocked_claims *walk)
{
    walk->number++;
    walk->count = 0;
    if (!walk->barring)
        return;
    walk->barring = false;
    bitset_clear(&walk->closed);
    bitset_clear(&walk->opportunistic_closed);
}

/* Makes room for one more head, with its sets. */
static int reserve_head(struct blocked_claims *walk)
{
    struct blocked_head *head;

    if (walk->count < walk->ready)
        return 0;
    if (vector_reserve(walk, walk->count + 1) < 0)
        return BERTH_ERROR_MEMORY;
    head = &walk->items[walk->count];
    if (bitset_init(&head->set, walk->closed.size) < 0)
        return BERTH_ERROR_MEMORY;
    if (bitset_init(&head->region, walk->closed.size) < 0) {
        bitset_finish(&head->set);
        return BERTH_ERROR_MEMORY;
    }
    walk->ready++;
    return 0;
}

/* Adds a claim to the groups with an unknown start. Groups with a known start that accept one of
 * its slots join them, and so their whole regions are barred (FAIRNESS.md section 4). */
static void close_groups(struct blocked_claims *walk, const struct bitset *accepts)
{
    for (size_t i = 0; i < walk->count; i++) {
        size_t group = walk->items[i].group;

        if (walk->items[i].closed || !bitset_intersects(&walk->items[i].region, accepts))
            continue;
        for (size_t j = 0; j < walk->count; j++) {
            if (walk->items[j].group != group)
                continue;
            walk->items[j].closed = true;
            bitset_unite(&walk->closed, &walk->items[j].region);
        }
    }
    bitset_unite(&walk->closed, accepts);
}

/* Adds a claim to all groups that accept one of its slots, and makes these one group (FAIRNESS.md
 * section 3). Returns whether there are any. */
static bool join_groups(struct blocked_claims *walk, const struct bitset *accepts)
{
    struct blocked_head *joined = NULL;

    for (size_t i = 0; i < walk->count; i++) {
        struct blocked_head *head = &walk->items[i];
        size_t group = head->group;

        if (head->closed || !bitset_intersects(&head->region, accepts))
            continue;
        if (joined == NULL)
            joined = head;
        for (size_t j = 0; j < walk->count; j++) {
            if (walk->items[j].group == group)
                walk->items[j].group = joined->group;
        }
    }
    if (joined != NULL)
        bitset_unite(&joined->region, accepts);
    return joined != NULL;
}

/* Computes the set of a reservation when it is first needed. Nothing that the set depends on
 * changes before then. Returns 0 or BERTH_ERROR_MEMORY. */
static int place_head(struct blocked_head *head)
{
    int code = head->placed ? 0 : reservation_place(head->request, head->start, &head->set);

    head->placed = code == 0;
    return code;
}

/* Makes the blocked claim the first of a new group, which has a reservation (FAIRNESS.md section
 * 3). Returns like blocked_add(). */
static int add_group(struct blocked_claims *walk, const struct engine_request *request)
{
    const struct scope *scope = request->scope;
    struct blocked_head *head;
    int code = 0;

    /* Without time limits and opportunistic leases the start is unknown. */
    if (scope->limited > 0 || scope->opportunistic_leases > 0) {
        if (reserve_head(walk) < 0)
            return BERTH_ERROR_MEMORY;
        head = &walk->items[walk->count];
        code = reservation_start(request, &head->start);
        if (code < 0)
            return code;
    }
    if (code == 0) {
        bitset_unite(&walk->closed, &request->accepts);
        return BLOCKED_START_UNKNOWN;
    }
    head->request = request;
    head->group = walk->count;
    head->closed = false;
    head->placed = false;
    bitset_copy(&head->region, &request->accepts);
    walk->count++;
    /* Preemption uses the same scratch memory later, so the set must be computed now. */
    return scope->opportunistic_leases > 0 && place_head(head) < 0 ? BERTH_ERROR_MEMORY
                                                                   : BLOCKED_START_KNOWN;
}

int blocked_add(struct blocked_claims *walk, const struct engine_request *request)
{
    if (engine_family_is_blocked(request, walk))
        return 0;
    engine_family_block(request, walk);
    walk->barring = true;
    if (request->what.opportunistic) {
        bitset_unite(&walk->opportunistic_closed, &request->accepts);
        return 0;
    }
    if (bitset_intersects(&walk->closed, &request->accepts)) {
        close_groups(walk, &request->accepts);
        return 0;
    }
    if (join_groups(walk, &request->accepts))
        return 0;
    return add_group(walk, request);
}

/* Returns whether a claim that starts now is certain to end by the start of a reservation, and so
 * cannot delay it (FAIRNESS.md section 4). */
static bool ends_before(const struct engine_request *request, int64_t start)
{
    int64_t now = request->scope->engine->now;

    return request->what.time.known && start >= now &&
           request->what.time.value <= (uint64_t)(start - now);
}

void blocked_bar_closed_slots(const struct blocked_claims *walk,
                              const struct engine_request *request, struct bitset *set)
{
    bitset_subtract(set, &walk->closed);
    if (!request->what.opportunistic)
        return;
    /* An opportunistic claim gets no slot that a waiting ordinary claim or an earlier opportunistic
     * claim accepts (FAIRNESS.md section 4). */
    if (request->scope->wanted_all > 0)
        bitset_clear(set);
    bitset_subtract(set, &request->scope->contested);
    bitset_subtract(set, &walk->opportunistic_closed);
}

int blocked_bar_slots(struct blocked_claims *walk, const struct engine_request *request,
                      struct bitset *set)
{
    blocked_bar_closed_slots(walk, request, set);
    for (size_t i = 0; i < walk->count; i++) {
        struct blocked_head *head = &walk->items[i];

        if (head->closed || ends_before(request, head->start))
            continue;
        if (place_head(head) < 0)
            return BERTH_ERROR_MEMORY;
        bitset_subtract(set, &head->set);
    }
    return 0;
}
