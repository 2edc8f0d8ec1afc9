/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/policy_places.h"

#include <berth/error.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "engine/policy_nodes.h"

/* A number for the place of a device at each level: of devices of one node, those with the same
 * number are together. */
struct place {
    uint64_t at[PLACES_LEVELS];
};

/* The lowest slot that the links so far join to this one. */
static uint64_t root_of(struct place *places, enum policy_places_level level, uint64_t slot)
{
    while (places[slot].at[level] != slot) {
        places[slot].at[level] = places[places[slot].at[level]].at[level];
        slot = places[slot].at[level];
    }
    return slot;
}

static void join(struct place *places, enum policy_places_level level, const struct link *link)
{
    uint64_t one = root_of(places, level, link->between[0]);
    uint64_t other = root_of(places, level, link->between[1]);

    if (one < other)
        places[other].at[level] = one;
    else
        places[one].at[level] = other;
}

static void join_by_links(struct place *places, const struct machine *machine)
{
    for (size_t i = 0; i < machine->links.count; i++) {
        const struct link *link = &machine->links.items[i];

        if (link->kind == LINK_PSB || link->kind == LINK_PIX)
            join(places, PLACES_SWITCH, link);
        if (link->kind == LINK_PSB || link->kind == LINK_PIX || link->kind == LINK_PXB)
            join(places, PLACES_SWITCHES, link);
    }
    for (size_t slot = 0; slot < machine->devices.count; slot++) {
        places[slot].at[PLACES_SWITCH] = root_of(places, PLACES_SWITCH, slot);
        places[slot].at[PLACES_SWITCHES] = root_of(places, PLACES_SWITCHES, slot);
    }
}

int policy_places_prepare(const struct policy *policy, const struct policy_surroundings *around,
                          void **ret_tables)
{
    const struct device_list *devices = &around->machine->devices;
    struct place *places = calloc(devices->count + 1, sizeof(*places));

    (void)policy;
    if (places == NULL)
        return BERTH_ERROR_MEMORY;
    for (size_t slot = 0; slot < devices->count; slot++) {
        const struct device *device = &devices->items[slot];
        const char *gpu = device->parent;

        places[slot] = (struct place){{
            [PLACES_NUMA] = device->numa.known ? device->numa.value : UINT64_MAX,
            [PLACES_SWITCHES] = slot,
            [PLACES_SWITCH] = slot,
            [PLACES_GPU] = gpu != NULL ? hash_bytes(gpu, strlen(gpu)) : hash_mix(slot),
        }};
    }
    join_by_links(places, around->machine);
    *ret_tables = places;
    return 0;
}

void policy_places_forget(void *tables)
{
    free(tables);
}

uint64_t policy_places_mates(const struct policy_node *node, enum policy_places_level level,
                             uint64_t devices, uint32_t device)
{
    const struct place *places = node->tables;
    uint64_t place = places[node->slots[device]].at[level];
    uint64_t mates = 0;

    policy_nodes_for_each(other, devices)
    {
        if (places[node->slots[other]].at[level] == place)
            mates |= policy_nodes_bit(other);
    }
    return mates;
}
