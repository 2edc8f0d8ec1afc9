/* SPDX-License-Identifier: Apache-2.0
 *
 * A replica takes its devices from one group: the devices of one vendor on one node, or all of a
 * node where vendors may mix. A device has room for one exclusive claim or several shared ones.
 */
#include <assert.h>

#include "engine/placement/placement_search.h"

static size_t rounded_up(size_t number, size_t divisor)
{
    assert(divisor > 0);
    return (number + divisor - 1) / divisor;
}

/* Leaves all required devices but the `due` roomiest to later replicas, of equals the highest. */
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

/* How many candidates that are not required have room for at least so many. */
static size_t count_roomy(const struct placement_search *search, uint32_t room)
{
    size_t count = 0;

    bitset_for_each (slot, &search->candidates)
        count += search->room[slot] >= room && !bitset_has(&search->required, slot);
    return count;
}

/* Leaves to the policy only a choice among equally roomy devices, the roomiest first: with equal
 * rows to fill, that finds a way whenever there is one. */
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

/* The avoided devices that a replica needs of the candidates. */
static size_t avoided_needed(const struct placement_search *search, size_t count)
{
    return count > search->plain_count ? count - search->plain_count : 0;
}

/* Whether only the slot counts, beside what a policy rates. */
static bool is_plain(const struct placement_search *search)
{
    return (search->query.policy->rate != NULL || search->query.policy->compare == NULL) &&
           search->query.affinity == 0 && !search->query.ranked;
}

/* The lowest of the gathered slots in the set. */
static size_t lowest_in(const struct placement_search *search, const struct bitset *set)
{
    return bitset_next(set, search->gathered->first * 64);
}

/* The candidate that the policy likes best. */
static size_t best_candidate(const struct placement_search *search, size_t count)
{
    struct policy_question question = placement_search_question(search, count);
    size_t best = search->size;

    if (is_plain(search))
        return lowest_in(search,
                         avoided_needed(search, count) > 0 ? &search->candidates : &search->plain);
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

/* What the gathered group has to offer, by its best device where its node is not rated. */
static struct bid bid_of(const struct placement_search *search, size_t node, size_t count)
{
    struct policy_offer offer;

    if (placement_search_is_rated(search, node))
        return placement_search_rate_node(search, node, count, &offer);
    return (struct bid){
        .avoided = (uint32_t)avoided_needed(search, count),
        .slot = (uint32_t)best_candidate(search, count),
    };
}

/* Whether a bid is better than the best of earlier groups. */
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

/* Finds the group for the next replica: with the fewest avoided devices, then the one that the
 * policy rates best or whose best device it prefers, but one that holds a required device before
 * all others. Leaves it in `candidates`. */
static bool find_group(struct placement_search *search, size_t count)
{
    bool must = !bitset_is_empty(&search->must_left);
    bool first_will_do = search->query.policy->rate == NULL && is_plain(search);
    struct bid best = {.avoided = UINT32_MAX};
    size_t best_group = 0;

    for (size_t i = 0; i < search->group_count; i++) {
        size_t group = search->order[i].group;
        struct bid bid;

        /* No lower slots come any more. */
        if (first_will_do && best.avoided == 0 && search->order[i].lowest > best.slot)
            break;
        if (placement_search_gather_group(search, group) < count ||
            (must && bitset_is_empty(&search->required)))
            continue;
        /* A policy may not be asked for fewer devices than it is required to choose. */
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

/* Places the replicas one after the other, all or nothing. Finds a way whenever there is one if
 * each device has room for one. Returns as placement_search_place. */
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

/* Whether the candidates have room for `rows` replicas of `count` devices: each device can serve
 * each of them once. */
static bool have_room_for(const struct placement_search *search, size_t rows, size_t count)
{
    size_t uses = 0;

    bitset_for_each (slot, &search->candidates)
        uses += search->room[slot] < rows ? search->room[slot] : rows;
    return uses >= rows * count;
}

/* How many such replicas they have room for, up to `limit`; what has room for more has room for
 * fewer. */
static size_t rows_of_candidates(const struct placement_search *search, size_t count, size_t limit)
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

/* Places `rows` replicas, for which there is room, in the group. Only the required
 * devices for which later ones have no place come first, so that the roomy ones are not left over.
 * Returns 1 or BERTH_ERROR_MEMORY. */
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

/* Does what place_in_turn does in the way that finds every possibility where devices are shared:
 * says beforehand how many replicas each group serves, at least those that its required devices
 * need. */
static int place_balanced(struct placement_search *search, const struct bitset *from, size_t count)
{
    size_t replicas = search->query.replicas;
    size_t later = 0; /* replicas that the groups to come need */

    if (placement_search_start(search, from) < 0)
        return BERTH_ERROR_MEMORY;
    for (size_t i = 0; i < search->group_count; i++) {
        placement_search_gather_group(search, search->order[i].group);
        later += rounded_up(bitset_count(&search->required), count);
    }
    for (size_t i = 0; i < search->group_count; i++) {
        size_t needed;
        size_t rows;

        placement_search_gather_group(search, search->order[i].group);
        needed = rounded_up(bitset_count(&search->required), count);
        later -= needed;
        rows = rows_of_candidates(search, count, replicas > later ? replicas - later : 0);
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
        return 0; /* seen at a glance, where trying would take long */
    code = place_in_turn(search, from, count);
    if (code == 0 && search->query.request->sharing != SHARING_EXCLUSIVE)
        code = place_balanced(search, from, count);
    return code;
}

/* Lowers the count to what there is room for at all. Returns 0 or BERTH_ERROR_MEMORY. */
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
