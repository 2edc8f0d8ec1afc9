/* SPDX-License-Identifier: Apache-2.0
 *
 * Places replicas. A replica takes its devices from one group: the devices of one vendor on one
 * node, or all devices of a node if vendors may mix. A device has room for one exclusive claim or
 * for several shared claims.
 */
#include <assert.h>

#include "engine/placement/placement_search.h"

static size_t divide_up(size_t number, size_t divisor)
{
    assert(divisor > 0);
    return (number + divisor - 1) / divisor;
}

/* Keeps only the `due` roomiest devices in `required`, among equals the lowest. Later replicas take
 * the others. */
static void put_off_required(struct placement_search *search, size_t due)
{
    for (size_t left = bitset_count(&search->required); left > due; left--) {
        size_t last = bitset_next(&search->required, 0);

        bitset_for_each (slot, &search->required) {
            if (search->room[slot] <= search->room[last])
                last = slot;
        }
        bitset_remove(&search->required, last);
    }
}

/* Returns how many candidates that are not required have room for at least `room` replicas. */
static size_t count_roomy(const struct placement_search *search, uint32_t room)
{
    size_t count = 0;

    bitset_for_each (slot, &search->candidates)
        count += search->room[slot] >= room && !bitset_has(&search->required, slot);
    return count;
}

/* Requires the roomiest candidates, so that the policy chooses only among equally roomy ones. For
 * replicas of equal size this finds a solution whenever one exists. */
static void prefer_roomy(struct placement_search *search, size_t count)
{
    size_t open = count - bitset_count(&search->required);
    uint32_t level = 1;

    if (open == 0)
        return;
    while (count_roomy(search, level + 1) >= open)
        level++;
    bitset_for_each (slot, &search->candidates) {
        if (bitset_has(&search->required, slot))
            continue;
        if (search->room[slot] > level)
            bitset_add(&search->required, slot);
        if (search->room[slot] < level)
            bitset_remove(&search->candidates, slot);
    }
}

/* Returns how many avoided candidates a replica needs. */
static size_t avoided_needed(const struct placement_search *search, size_t count)
{
    return count > search->plain_count ? count - search->plain_count : 0;
}

/* Returns whether only the slot number orders the devices of a node. */
static bool is_plain(const struct placement_search *search)
{
    return (search->query.policy->rate != NULL || search->query.policy->compare == NULL) &&
           search->query.affinity == 0 && !search->query.ranked;
}

/* Returns the candidate that the policy prefers. */
static size_t find_best_candidate(const struct placement_search *search, size_t count)
{
    struct policy_question question = placement_search_question(search, count);
    size_t best = search->size;

    if (is_plain(search))
        return bitset_next(avoided_needed(search, count) > 0 ? &search->candidates : &search->plain,
                           search->gathered->first * 64);
    for (size_t i = 0; i < search->gathered->words; i++) {
        size_t word = search->gathered->first + i;

        for (uint64_t rest = search->candidates.words[word]; rest != 0; rest &= rest - 1) {
            size_t slot = word * 64 + (size_t)__builtin_ctzll(rest);

            if (best == search->size ||
                policy_compare(search->query.policy, &question, slot, best) < 0)
                best = slot;
        }
    }
    return best;
}

/* Returns the bid of the gathered group. If its node is not rated, its best device is the bid. */
static struct bid bid_of(const struct placement_search *search, size_t node, size_t count)
{
    struct policy_offer offer;

    if (placement_search_is_rated(search, node))
        return placement_search_rate_node(search, node, count, &offer);
    return (struct bid){
        .avoided = (uint32_t)avoided_needed(search, count),
        .slot = (uint32_t)find_best_candidate(search, count),
    };
}

/* Returns whether a bid is better than the best bid of earlier groups. */
static bool is_better_bid(const struct placement_search *search, const struct bid *bid,
                          const struct bid *best, size_t count)
{
    struct policy_question question = placement_search_question(search, count);

    if (bid->avoided != best->avoided || best->avoided == UINT32_MAX)
        return bid->avoided < best->avoided;
    if (search->query.policy->rate != NULL || is_plain(search))
        return node_view_is_better_bid(bid, best, is_plain(search) ? NULL : &question);
    return policy_compare(search->query.policy, &question, bid->slot, best->slot) < 0;
}

/* Finds the group for the next replica and gathers it. A group with a required device comes first,
 * then the group that needs the fewest avoided devices, then the one that the policy rates best or
 * whose best device it prefers. Returns whether there is one. */
static bool find_group(struct placement_search *search, size_t count)
{
    bool must = !bitset_is_empty(&search->must_left);
    bool lowest_is_best = search->query.policy->rate == NULL && is_plain(search);
    struct bid best = {.avoided = UINT32_MAX};
    size_t best_group = 0;

    for (size_t i = 0; i < search->group_count; i++) {
        size_t group = search->order[i].group;
        struct bid bid;

        /* All later groups start at higher slots. */
        if (lowest_is_best && best.avoided == 0 && search->order[i].lowest > best.slot)
            break;
        if (placement_search_gather_group(search, group) < count ||
            (must && bitset_is_empty(&search->required)))
            continue;
        /* A policy must be able to choose all required devices. */
        if (must)
            put_off_required(search, count);
        bid = bid_of(search, placement_group_node(group), count);
        if (!is_better_bid(search, &bid, &best, count))
            continue;
        best_group = group;
        best = bid;
    }
    return best.avoided != UINT32_MAX && placement_search_gather_group(search, best_group) > 0;
}

int placement_search_place_replica(struct placement_search *search, size_t count)
{
    if (!find_group(search, count))
        return 0;
    put_off_required(search, count);
    return placement_search_assign(search, count);
}

/* Places the replicas one after the other, all or none. Finds a solution whenever one exists if
 * each device has room for one replica. Returns like placement_search_place(). */
static int place_in_turn(struct placement_search *search, const struct bitset *from, size_t count)
{
    bool spread =
        search->query.request->scheduling == SCHEDULING_SPREAD && search->query.replicas > 1;
    int code = placement_search_start(search, from) < 0 ? BERTH_ERROR_MEMORY : 1;

    for (size_t replica = 0; replica < search->query.replicas && code == 1; replica++)
        code = spread ? placement_search_spread_replica(search, count)
                      : placement_search_place_replica(search, count);
    return code == 1 ? bitset_is_empty(&search->must_left) : code;
}

/* Returns whether the candidates have room for `rows` replicas of `count` devices. A replica uses a
 * device at most once. */
static bool have_room_for(const struct placement_search *search, size_t rows, size_t count)
{
    size_t uses = 0;

    bitset_for_each (slot, &search->candidates)
        uses += search->room[slot] < rows ? search->room[slot] : rows;
    return uses >= rows * count;
}

/* Returns how many replicas of `count` devices fit on the candidates, up to `limit`, by binary
 * search. */
static size_t count_rows(const struct placement_search *search, size_t count, size_t limit)
{
    size_t fits = 0;

    while (fits < limit) {
        size_t middle = limit - (limit - fits) / 2;

        if (have_room_for(search, middle, count))
            fits = middle;
        else
            limit = middle - 1;
    }
    return fits;
}

/* Places `rows` replicas in the group, which has room for them. A replica takes only those required
 * devices that do not fit into later replicas, so that roomy devices are used first. Returns 1 or
 * BERTH_ERROR_MEMORY. */
static int place_rows(struct placement_search *search, size_t group, size_t rows, size_t count)
{
    int code = 1;

    for (; rows > 0 && code == 1; rows--) {
        size_t later = (rows - 1) * count;
        size_t required;

        placement_search_gather_group(search, group);
        required = bitset_count(&search->required);
        put_off_required(search, required > later ? required - later : 0);
        prefer_roomy(search, count);
        code = placement_search_assign(search, count);
    }
    return code;
}

/* Does the same as place_in_turn() for shared devices, and finds a solution whenever one exists: it
 * fixes the number of replicas of each group first, at least as many as its required devices need.
 */
static int place_balanced(struct placement_search *search, const struct bitset *from, size_t count)
{
    size_t replicas = search->query.replicas;
    size_t later = 0; /* replicas that later groups need */

    if (placement_search_start(search, from) < 0)
        return BERTH_ERROR_MEMORY;
    for (size_t i = 0; i < search->group_count; i++) {
        placement_search_gather_group(search, search->order[i].group);
        later += divide_up(bitset_count(&search->required), count);
    }
    for (size_t i = 0; i < search->group_count; i++) {
        size_t needed;
        size_t rows;

        placement_search_gather_group(search, search->order[i].group);
        needed = divide_up(bitset_count(&search->required), count);
        later -= needed;
        rows = count_rows(search, count, replicas > later ? replicas - later : 0);
        if (rows > search->node_room[placement_group_node(search->order[i].group)])
            rows = search->node_room[placement_group_node(search->order[i].group)];
        if (rows < needed)
            return 0;
        replicas -= rows;
        if (place_rows(search, search->order[i].group, rows, count) < 0)
            return BERTH_ERROR_MEMORY;
    }
    return replicas == 0 && bitset_is_empty(&search->must_left);
}

int placement_search_place(struct placement_search *search, const struct bitset *from, size_t count)
{
    int code;

    if (search->query.must != NULL &&
        bitset_count(search->query.must) > search->query.replicas * count)
        return 0;
    if (search->query.replicas > 1 &&
        search->query.replicas * count > placement_search_room(search, from))
        return 0; /* avoids a long search without a solution */
    code = place_in_turn(search, from, count);
    if (code == 0 && search->query.request->sharing != SHARING_EXCLUSIVE)
        code = place_balanced(search, from, count);
    return code;
}

/* Lowers the count to the largest possible one. Returns 0 or BERTH_ERROR_MEMORY. */
static int bound_count(struct placement_search *search, const struct bitset *from, size_t *count)
{
    size_t group = 0;
    int64_t largest = placement_search_largest_group(search, from, &group);
    size_t room = placement_search_room(search, from) / search->query.replicas;

    if (largest < 0)
        return BERTH_ERROR_MEMORY;
    if ((size_t)largest < *count)
        *count = (size_t)largest;
    if (room < *count)
        *count = room;
    return 0;
}

int placement_search_place_largest(struct placement_search *search, const struct bitset *from,
                                   size_t min, size_t max)
{
    int code = 0;

    if ((search->query.replicas > 1 || min < max) && bound_count(search, from, &max) < 0)
        return BERTH_ERROR_MEMORY;
    for (size_t count = max; count >= min && code == 0; count--)
        code = placement_search_place(search, from, count);
    if (code != 1)
        placement_search_reset(search);
    return code;
}

int placement_search_bounds(struct placement_search *search, const struct bitset *possible,
                            uint32_t *tenants, size_t *ret_min, size_t *ret_max)
{
    const struct device_count *gpus = &search->query.request->gpus;
    size_t group = 0;
    int64_t largest;

    search->query.source = tenants;
    largest = placement_search_largest_group(search, possible, &group);
    if (largest < 0)
        return BERTH_ERROR_MEMORY;
    *ret_min = gpus->all ? (size_t)largest : gpus->min;
    *ret_max = gpus->all || gpus->max > (size_t)largest ? (size_t)largest : gpus->max;
    if (*ret_min == 0)
        *ret_min = 1;
    for (size_t slot = 0; slot < search->machine->devices.count && gpus->all && largest > 0;
         slot++) {
        if (placement_search_group(search, search->query.request, slot) != group)
            tenants[slot] = 0;
    }
    return 0;
}

int placement_search_could_ever(struct placement_search *search, const struct bitset *possible,
                                size_t min, size_t max)
{
    bool any = search->query.must == NULL || bitset_is_empty(search->query.must);
    int code = 0;

    if (any && search->query.replicas == 1)
        return placement_search_has_group(search, min);
    for (size_t count = min; count <= max && code == 0; count++) {
        code = placement_search_place(search, possible, count);
        if (any)
            break;
    }
    placement_search_reset(search);
    return code;
}
