/* SPDX-License-Identifier: Apache-2.0
 *
 * Scheduling "spread": places replicas as far apart as possible. A replica goes to the node, then
 * the NUMA node, with the fewest earlier replicas; among equals to the emptiest.
 */
#include "engine/placement/placement_search.h"

/* The rank of a NUMA node for the next replica. Smaller is better; earlier members decide first. */
struct replica_place {
    size_t avoided; /* avoided devices that it needs */
    size_t node_replicas;
    size_t domain_used; /* devices of earlier replicas in the NUMA node */
    size_t node_taken;  /* devices of the node without room */
    size_t domain_taken;
    size_t slot;
};

#define NO_GROUP SIZE_MAX

/* Returns whether both devices are on the same NUMA node. All unknown NUMA nodes of a node count as
 * one. */
static bool is_same_domain(const struct device *one, const struct device *other)
{
    return one->host == other->host && one->numa.known == other->numa.known &&
           (!one->numa.known || one->numa.value == other->numa.value);
}

static struct replica_place rate_place(const struct placement_search *search, size_t group,
                                       size_t first)
{
    const struct device *devices = search->machine->devices.items;
    size_t node = placement_group_node(group);
    const struct slot_numbers *slots = &search->groups.nodes[node];
    struct replica_place place = {.node_replicas = search->node_replicas[node], .slot = first};

    for (size_t i = 0; i < slots->count; i++) {
        size_t slot = slots->items[i];
        bool free_now = bitset_has(&search->free, slot);

        if (devices[slot].partitioned)
            continue;
        place.node_taken += !free_now;
        if (!is_same_domain(&devices[slot], &devices[first]))
            continue;
        place.domain_taken += !free_now;
        place.domain_used += bitset_has(&search->used, slot);
    }
    return place;
}

static int compare_numbers(size_t one, size_t other)
{
    return (one > other) - (one < other);
}

static bool is_better(const struct replica_place *one, const struct replica_place *other)
{
    int order = compare_numbers(one->avoided, other->avoided);

    if (order == 0)
        order = compare_numbers(one->node_replicas, other->node_replicas);
    if (order == 0)
        order = compare_numbers(one->domain_used, other->domain_used);
    if (order == 0)
        order = compare_numbers(one->node_taken, other->node_taken);
    if (order == 0)
        order = compare_numbers(one->domain_taken, other->domain_taken);
    if (order == 0)
        order = compare_numbers(one->slot, other->slot);
    return order < 0;
}

/* Keeps only the candidates on the NUMA node of `first`. Returns their number. */
static size_t keep_domain(struct placement_search *search, size_t first)
{
    const struct device *devices = search->machine->devices.items;

    bitset_for_each (slot, &search->candidates) {
        if (!is_same_domain(&devices[slot], &devices[first]))
            bitset_remove(&search->candidates, slot);
    }
    bitset_intersect(&search->plain, &search->candidates);
    bitset_intersect(&search->required, &search->candidates);
    return bitset_count(&search->candidates);
}

/* Returns whether the slot is the lowest candidate of its NUMA node. */
static bool is_first_of_domain(const struct placement_search *search, size_t slot)
{
    const struct device *devices = search->machine->devices.items;

    bitset_for_each (other, &search->candidates) {
        if (other == slot)
            return true;
        if (is_same_domain(&devices[other], &devices[slot]))
            return false;
    }
    return false;
}

/* Compares the NUMA nodes of one group that have enough devices. */
static void scan_numa_nodes(struct placement_search *search, size_t group, size_t count,
                            struct replica_place *best, size_t *best_group)
{
    const struct slot_numbers *slots = &search->groups.nodes[placement_group_node(group)];

    for (size_t i = 0; i < slots->count; i++) {
        size_t slot = slots->items[i];
        struct replica_place place;
        size_t plain;

        if (placement_search_gather_group(search, group) < count ||
            !bitset_has(&search->candidates, slot) || !is_first_of_domain(search, slot) ||
            keep_domain(search, slot) < count)
            continue;
        place = rate_place(search, group, slot);
        plain = bitset_count(&search->plain);
        place.avoided = count > plain ? count - plain : 0;
        if (*best_group == NO_GROUP || is_better(&place, best)) {
            *best = place;
            *best_group = group;
        }
    }
}

int placement_search_spread_replica(struct placement_search *search, size_t count)
{
    size_t best_group = NO_GROUP;
    struct replica_place best = {0};

    if (!bitset_is_empty(&search->must_left))
        return placement_search_place_replica(search, count);
    for (size_t i = 0; i < search->group_count; i++)
        scan_numa_nodes(search, search->order[i].group, count, &best, &best_group);
    if (best_group == NO_GROUP)
        return placement_search_place_replica(search, count);
    placement_search_gather_group(search, best_group);
    keep_domain(search, best.slot);
    return placement_search_assign(search, count);
}
