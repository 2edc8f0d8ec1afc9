/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/policy/pair_scores.h"

#include <berth/error.h>
#include <stdlib.h>
#include <string.h>

#include "engine/policy/connected_set.h"

/* More lanes between two devices count no more. */
#define LANES_MAX 600

#define NEAR_MEMORY 2
#define NEAR_CPUS   1

_Static_assert((NEAR_MEMORY + NEAR_CPUS) * (TOPOLOGY_MAX * (TOPOLOGY_MAX - 1) / 2) <
                   TOPOLOGY_LINK_WORTH,
               "links count before nearness");

/* No pair is worth more, but for the last of many links that somebody says it has. */
#define VALUE_MAX ((LANES_MAX + 1) * 100 * TOPOLOGY_LINK_WORTH)
_Static_assert(VALUE_MAX + LANES_MAX * 100 * (int64_t)TOPOLOGY_LINK_WORTH < 1 << 30, "values fit");

/* Of a fabric link for each lane. */
static const int32_t link_values[] = {
    [LINK_NVLINK] = 100, [LINK_XGMI] = 100, [LINK_PSB] = 60,  [LINK_PIX] = 50,
    [LINK_PXB] = 40,     [LINK_PHB] = 30,   [LINK_NODE] = 20, [LINK_SYS] = 10,
};

/* AMD's, the less the better. */
enum {
    WEIGHT_ONE_GPU = 10,
    WEIGHT_TWO_GPUS = 20,
    WEIGHT_FABRIC = 10,
    WEIGHT_PCIE = 40,
    WEIGHT_NO_LINK = 50,
    WEIGHT_ONE_NUMA = 10,
    WEIGHT_TWO_NUMA = 20,
};
_Static_assert((int)WEIGHT_TWO_GPUS + (int)WEIGHT_NO_LINK + (int)WEIGHT_TWO_NUMA ==
                   (int)TOPOLOGY_WEIGHT_MAX,
               "nothing weighs more");

struct making {
    const struct machine *machine;
    struct topology_pairs *nodes;
    size_t node_count;
    uint32_t *sizes;  /* by node: devices */
    uint32_t *starts; /* by node: where its slots begin in `slots` */
    uint32_t *places; /* by slot */
    uint32_t *slots;  /* node after node */
};

static const struct device *device_at(const struct making *making, size_t slot)
{
    return &making->machine->devices.items[slot];
}

static bool share_memory(const struct device *one, const struct device *other)
{
    return one->numa.known && other->numa.known && one->numa.value == other->numa.value;
}

static bool are_equal(const char *one, const char *other)
{
    return one != NULL && other != NULL && strcmp(one, other) == 0;
}

/* What is known but for links. */
static int32_t nearness(const struct device *one, const struct device *other)
{
    return (share_memory(one, other) ? NEAR_MEMORY : 0) +
           (are_equal(one->cpus, other->cpus) ? NEAR_CPUS : 0);
}

static int32_t weight_without_link(const struct device *one, const struct device *other)
{
    return (are_equal(one->parent, other->parent) ? WEIGHT_ONE_GPU : WEIGHT_TWO_GPUS) +
           WEIGHT_NO_LINK + (share_memory(one, other) ? WEIGHT_ONE_NUMA : WEIGHT_TWO_NUMA);
}

/* Sorts the slots by node. */
static void gather_slots(struct making *making)
{
    size_t count = making->machine->devices.count;
    uint32_t start = 0;

    for (size_t slot = 0; slot < count; slot++)
        making->places[slot] = making->sizes[device_at(making, slot)->host]++;
    for (size_t node = 0; node < making->node_count; node++) {
        making->starts[node] = start;
        start += making->sizes[node];
    }
    for (size_t slot = 0; slot < count; slot++)
        making->slots[making->starts[device_at(making, slot)->host] + making->places[slot]] =
            (uint32_t)slot;
}

/* Whether some devices of the node are known to be near other memory than the first. */
static bool differ_in_memory(const struct making *making, size_t node)
{
    const uint32_t *slots = making->slots + making->starts[node];

    for (uint32_t i = 1; i < making->sizes[node]; i++) {
        const struct device *device = device_at(making, slots[i]);
        const struct device *first = device_at(making, slots[0]);

        if (device->numa.known && first->numa.known && !share_memory(device, first))
            return true;
    }
    return false;
}

/* Of which nodes something is known that tells their pairs apart. */
static void judge_nodes(struct making *making)
{
    const struct link *link;

    vector_for_each (link, &making->machine->links) {
        struct topology_pairs *node = &making->nodes[device_at(making, link->between[0])->host];

        if (node == &making->nodes[device_at(making, link->between[1])->host])
            node->linked = true;
    }
    for (size_t i = 0; i < making->node_count; i++) {
        struct topology_pairs *node = &making->nodes[i];

        node->linked &= making->sizes[i] <= TOPOLOGY_MAX;
        if (making->sizes[i] <= TOPOLOGY_MAX && (node->linked || differ_in_memory(making, i)))
            node->count = making->sizes[i];
    }
}

static int make_room(struct making *making)
{
    for (size_t slot = 0; slot < making->machine->devices.count; slot++) {
        const struct device *device = device_at(making, slot);
        struct topology_pairs *node = &making->nodes[device->host];
        size_t cells = (size_t)node->count * node->count;

        if (node->count == 0)
            continue;
        if (node->values == NULL) {
            node->values = calloc(cells, sizeof(*node->values));
            node->units = calloc(node->count, sizeof(*node->units));
        }
        if (node->weights == NULL && device->id.vendor == VENDOR_AMD) {
            node->weights = calloc(cells, sizeof(*node->weights));
            if (node->weights == NULL)
                return BERTH_ERROR_MEMORY;
        }
        if (node->values == NULL || node->units == NULL)
            return BERTH_ERROR_MEMORY;
    }
    return 0;
}

/* Adds to both cells of a pair. */
static void add_to(int32_t *cells, uint32_t count, uint32_t one, uint32_t other, int32_t value)
{
    cells[one * count + other] += value;
    cells[other * count + one] += value;
}

/* Values the device with those of its node before it. */
static void value_device(struct making *making, size_t slot)
{
    const struct device *device = device_at(making, slot);
    struct topology_pairs *node = &making->nodes[device->host];
    uint32_t place = making->places[slot];

    if (node->count == 0)
        return;
    node->units[place] = (uint8_t)place;
    for (uint32_t before = 0; before < place; before++) {
        const struct device *other =
            device_at(making, making->slots[making->starts[device->host] + before]);

        add_to(node->values, node->count, place, before, nearness(device, other));
        if (node->weights != NULL)
            add_to(node->weights, node->count, place, before, -weight_without_link(device, other));
        if (are_equal(device->parent, other->parent))
            node->units[place] = node->units[before];
    }
}

static int32_t value_of(const struct link *link)
{
    int32_t lanes = 1; /* of a PCIe path, or where nobody knows how many */

    if (link_is_fabric(link->kind) && link->lanes > 0)
        lanes = link->lanes < LANES_MAX ? (int32_t)link->lanes : LANES_MAX;
    return link_values[link->kind] * lanes;
}

/* The fabric counts before PCIe, of which a pair may have both. */
static void lighten(int32_t *weights, uint32_t count, uint32_t one, uint32_t other,
                    const struct device *const devices[2], enum link_kind kind)
{
    int32_t link = link_is_fabric(kind) ? WEIGHT_FABRIC : WEIGHT_PCIE;
    int32_t weight = weight_without_link(devices[0], devices[1]) - WEIGHT_NO_LINK + link;
    int32_t more = -weight - weights[one * count + other];

    if (more > 0)
        add_to(weights, count, one, other, more);
}

static void value_link(struct making *making, const struct link *link)
{
    const struct device *devices[2] = {device_at(making, link->between[0]),
                                       device_at(making, link->between[1])};
    struct topology_pairs *node = &making->nodes[devices[0]->host];
    uint32_t one = making->places[link->between[0]];
    uint32_t other = making->places[link->between[1]];

    if (node->count == 0 || devices[0]->host != devices[1]->host || one == other)
        return;
    if (node->values[one * node->count + other] < VALUE_MAX)
        add_to(node->values, node->count, one, other, value_of(link) * TOPOLOGY_LINK_WORTH);
    if (node->weights != NULL)
        lighten(node->weights, node->count, one, other, devices, link->kind);
}

static int make(struct making *making)
{
    const struct link *link;

    gather_slots(making);
    judge_nodes(making);
    if (make_room(making) < 0)
        return BERTH_ERROR_MEMORY;
    for (size_t slot = 0; slot < making->machine->devices.count; slot++)
        value_device(making, slot);
    vector_for_each (link, &making->machine->links)
        value_link(making, link);
    return 0;
}

int topology_pairs_create(const struct machine *machine, struct topology_pairs **ret_nodes,
                          size_t *ret_count, uint32_t *ret_max)
{
    struct making making = {.machine = machine};
    int code = BERTH_ERROR_MEMORY;

    making.node_count = machine->hosts.count > 0 ? machine->hosts.count : 1;
    making.nodes = calloc(making.node_count, sizeof(*making.nodes));
    making.sizes = calloc(making.node_count, sizeof(*making.sizes));
    making.starts = calloc(making.node_count, sizeof(*making.starts));
    making.places = calloc(machine->devices.count + 1, sizeof(*making.places));
    making.slots = calloc(machine->devices.count + 1, sizeof(*making.slots));
    if (making.nodes != NULL && making.sizes != NULL && making.starts != NULL &&
        making.places != NULL && making.slots != NULL)
        code = make(&making);
    free(making.sizes);
    free(making.starts);
    free(making.places);
    free(making.slots);
    if (code < 0) {
        topology_pairs_destroy(making.nodes, making.node_count);
        return code;
    }
    *ret_max = 0;
    for (size_t i = 0; i < making.node_count; i++)
        *ret_max = making.nodes[i].count > *ret_max ? making.nodes[i].count : *ret_max;
    *ret_nodes = making.nodes;
    *ret_count = making.node_count;
    return 0;
}

void topology_pairs_destroy(struct topology_pairs *nodes, size_t count)
{
    for (size_t i = 0; i < count && nodes != NULL; i++) {
        free(nodes[i].values);
        free(nodes[i].weights);
        free(nodes[i].units);
    }
    free(nodes);
}
