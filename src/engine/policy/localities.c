/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/policy/localities.h"

#include <berth/error.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "engine/policy/node_rating.h"

/* The number of a device's place at each level. Devices of one node with the same number are in the
 * same place. */
struct device_locality {
    uint64_t at[LOCALITY_LEVELS];
};

/* Returns the lowest slot joined to this one so far. */
static uint64_t root_of(struct device_locality *places, enum locality_level level, uint64_t slot)
{
    while (places[slot].at[level] != slot) {
        places[slot].at[level] = places[places[slot].at[level]].at[level];
        slot = places[slot].at[level];
    }
    return slot;
}

static void join_slots(struct device_locality *places, enum locality_level level, uint64_t one,
                       uint64_t other)
{
    one = root_of(places, level, one);
    other = root_of(places, level, other);
    if (one < other)
        places[other].at[level] = one;
    else
        places[one].at[level] = other;
}

static void join_by_links(struct device_locality *places, const struct link_list *links)
{
    for (size_t i = 0; i < links->count; i++) {
        const struct link *link = &links->items[i];
        bool one_switch = link->kind == LINK_PSB || link->kind == LINK_PIX;

        if (one_switch)
            join_slots(places, LOCALITY_SWITCH, link->between[0], link->between[1]);
        if (one_switch || link->kind == LINK_PXB)
            join_slots(places, LOCALITY_SWITCHES, link->between[0], link->between[1]);
    }
}

/* A partition and the number of its GPU. */
struct partition {
    uint64_t gpu;
    size_t slot;
};

static int compare_partitions(const void *one, const void *other)
{
    uint64_t first = ((const struct partition *)one)->gpu;
    uint64_t second = ((const struct partition *)other)->gpu;

    return (first > second) - (first < second);
}

/* Joins the partitions of each GPU: they are behind one switch even if no link says so. */
static int join_partitions(struct device_locality *places, const struct device_list *devices)
{
    struct partition *partitions = calloc(devices->count + 1, sizeof(*partitions));
    size_t count = 0;

    if (partitions == NULL)
        return BERTH_ERROR_MEMORY;
    for (size_t slot = 0; slot < devices->count; slot++) {
        if (devices->items[slot].parent != NULL)
            partitions[count++] =
                (struct partition){.gpu = places[slot].at[LOCALITY_GPU], .slot = slot};
    }
    qsort(partitions, count, sizeof(*partitions), compare_partitions);
    for (size_t i = 1; i < count; i++) {
        if (partitions[i].gpu != partitions[i - 1].gpu)
            continue;
        join_slots(places, LOCALITY_SWITCH, partitions[i].slot, partitions[i - 1].slot);
        join_slots(places, LOCALITY_SWITCHES, partitions[i].slot, partitions[i - 1].slot);
    }
    free(partitions);
    return 0;
}

static struct device_locality make_locality(const struct device *device, size_t slot)
{
    const char *gpu = device->parent;
    uint64_t host = hash_mix(device->host);

    return (struct device_locality){{
        [LOCALITY_NUMA] = device->numa.known ? device->numa.value : UINT64_MAX,
        [LOCALITY_SWITCHES] = slot,
        [LOCALITY_SWITCH] = slot,
        [LOCALITY_GPU] = gpu != NULL ? hash_bytes(gpu, strlen(gpu)) ^ host : hash_mix(slot),
    }};
}

int localities_prepare(const struct policy *policy, const struct policy_environment *around,
                       void **ret_tables)
{
    const struct device_list *devices = &around->machine->devices;
    struct device_locality *places = calloc(devices->count + 1, sizeof(*places));

    (void)policy;
    if (places == NULL)
        return BERTH_ERROR_MEMORY;
    for (size_t slot = 0; slot < devices->count; slot++)
        places[slot] = make_locality(&devices->items[slot], slot);
    if (join_partitions(places, devices) < 0) {
        free(places);
        return BERTH_ERROR_MEMORY;
    }
    join_by_links(places, &around->machine->links);
    for (size_t slot = 0; slot < devices->count; slot++) {
        places[slot].at[LOCALITY_SWITCH] = root_of(places, LOCALITY_SWITCH, slot);
        places[slot].at[LOCALITY_SWITCHES] = root_of(places, LOCALITY_SWITCHES, slot);
    }
    *ret_tables = places;
    return 0;
}

void localities_forget(void *tables)
{
    free(tables);
}

uint64_t localities_mates(const struct policy_node *node, enum locality_level level,
                          uint64_t devices, uint32_t device)
{
    const struct device_locality *places = node->tables;
    uint64_t place = places[node->slots[device]].at[level];
    uint64_t mates = 0;

    node_rating_for_each (other, devices) {
        if (places[node->slots[other]].at[level] == place)
            mates |= node_rating_bit(other);
    }
    return mates;
}

uint32_t localities_count(const struct policy_node *node, enum locality_level level,
                          uint64_t devices)
{
    uint32_t count = 0;

    for (; devices != 0; count++)
        devices &= ~localities_mates(node, level, devices, node_rating_next(devices, 0));
    return count;
}
