/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/policy/pair_scores.h"

#include <berth/error.h>
#include <stdlib.h>
#include <string.h>

#include "engine/policy/connected_set.h"

/* The most lanes that count between two devices. */
#define LANES_MAX 600

#define NEAR_MEMORY 2
#define NEAR_CPUS   1

_Static_assert((NEAR_MEMORY + NEAR_CPUS) * (CONNECTED_MAX * (CONNECTED_MAX - 1) / 2) <
                   PAIR_LINK_WORTH,
               "links outweigh nearness");

/* A pair gets no more links once it is worth this much. */
#define VALUE_MAX ((LANES_MAX + 1) * 100 * PAIR_LINK_WORTH)
_Static_assert(VALUE_MAX + LANES_MAX * 100 * (int64_t)PAIR_LINK_WORTH < 1 << 30, "values fit");

/* The values of links by kind; for NVLink and XGMI the value of each lane. */
static const int32_t link_values[] = {
    [LINK_NVLINK] = 100, [LINK_XGMI] = 100, [LINK_PSB] = 60,  [LINK_PIX] = 50,
    [LINK_PXB] = 40,     [LINK_PHB] = 30,   [LINK_NODE] = 20, [LINK_SYS] = 10,
};

/* AMD's weights; lower is better. */
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
                   (int)PAIR_WEIGHT_MAX,
               "the largest weight");

struct pair_builder {
    const struct machine *machine;
    struct pair_scores *nodes;
    size_t node_count;
    uint32_t *sizes;  /* by node: devices */
    uint32_t *starts; /* by node: index of its first slot in `slots` */
    uint32_t *places; /* by slot: its number within the node */
    uint32_t *slots;  /* all slots, sorted by node */
};

static const struct device *device_at(const struct pair_builder *builder, size_t slot)
{
    return &builder->machine->devices.items[slot];
}

static bool share_memory(const struct device *one, const struct device *other)
{
    return one->numa.known && other->numa.known && one->numa.value == other->numa.value;
}

static bool are_equal(const char *one, const char *other)
{
    return one != NULL && other != NULL && strcmp(one, other) == 0;
}

/* Returns the value of a pair of devices without links. */
static int32_t nearness_of(const struct device *one, const struct device *other)
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
static void gather_slots(struct pair_builder *builder)
{
    size_t count = builder->machine->devices.count;
    uint32_t start = 0;

    for (size_t slot = 0; slot < count; slot++)
        builder->places[slot] = builder->sizes[device_at(builder, slot)->host]++;
    for (size_t node = 0; node < builder->node_count; node++) {
        builder->starts[node] = start;
        start += builder->sizes[node];
    }
    for (size_t slot = 0; slot < count; slot++)
        builder->slots[builder->starts[device_at(builder, slot)->host] + builder->places[slot]] =
            (uint32_t)slot;
}

/* Returns whether at least one device of the node is known to be on another NUMA node than the
 * first. */
static bool differ_in_memory(const struct pair_builder *builder, size_t node)
{
    const uint32_t *slots = builder->slots + builder->starts[node];

    for (uint32_t i = 1; i < builder->sizes[node]; i++) {
        const struct device *device = device_at(builder, slots[i]);
        const struct device *first = device_at(builder, slots[0]);

        if (device->numa.known && first->numa.known && !share_memory(device, first))
            return true;
    }
    return false;
}

/* Sets `count` of the nodes that have known links or several NUMA nodes. */
static void find_scored_nodes(struct pair_builder *builder)
{
    const struct link *link;

    vector_for_each (link, &builder->machine->links) {
        struct pair_scores *node = &builder->nodes[device_at(builder, link->between[0])->host];

        if (node == &builder->nodes[device_at(builder, link->between[1])->host])
            node->linked = true;
    }
    for (size_t i = 0; i < builder->node_count; i++) {
        struct pair_scores *node = &builder->nodes[i];

        node->linked &= builder->sizes[i] <= CONNECTED_MAX;
        if (builder->sizes[i] <= CONNECTED_MAX && (node->linked || differ_in_memory(builder, i)))
            node->count = builder->sizes[i];
    }
}

static int allocate_scores(struct pair_builder *builder)
{
    for (size_t slot = 0; slot < builder->machine->devices.count; slot++) {
        const struct device *device = device_at(builder, slot);
        struct pair_scores *node = &builder->nodes[device->host];
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

static void add_to_pair(int32_t *cells, uint32_t count, uint32_t one, uint32_t other, int32_t value)
{
    cells[one * count + other] += value;
    cells[other * count + one] += value;
}

/* Adds the scores of a device with each earlier device of its node. */
static void value_device(struct pair_builder *builder, size_t slot)
{
    const struct device *device = device_at(builder, slot);
    struct pair_scores *node = &builder->nodes[device->host];
    uint32_t place = builder->places[slot];

    if (node->count == 0)
        return;
    node->units[place] = (uint8_t)place;
    for (uint32_t before = 0; before < place; before++) {
        const struct device *other =
            device_at(builder, builder->slots[builder->starts[device->host] + before]);

        add_to_pair(node->values, node->count, place, before, nearness_of(device, other));
        if (node->weights != NULL)
            add_to_pair(node->weights, node->count, place, before,
                        -weight_without_link(device, other));
        if (are_equal(device->parent, other->parent))
            node->units[place] = node->units[before];
    }
}

static int32_t value_of(const struct link *link)
{
    int32_t lanes = 1; /* for PCIe, or if the number is unknown */

    if (link_is_fabric(link->kind) && link->lanes > 0)
        lanes = link->lanes < LANES_MAX ? (int32_t)link->lanes : LANES_MAX;
    return link_values[link->kind] * lanes;
}

/* Applies a link to the pair's weight. A pair may have a fabric link and PCIe; the fabric counts.
 */
static void lower_weight(int32_t *weights, uint32_t count, uint32_t one, uint32_t other,
                         const struct device *const devices[2], enum link_kind kind)
{
    int32_t link = link_is_fabric(kind) ? WEIGHT_FABRIC : WEIGHT_PCIE;
    int32_t weight = weight_without_link(devices[0], devices[1]) - WEIGHT_NO_LINK + link;
    int32_t more = -weight - weights[one * count + other];

    if (more > 0)
        add_to_pair(weights, count, one, other, more);
}

static void value_link(struct pair_builder *builder, const struct link *link)
{
    const struct device *devices[2] = {device_at(builder, link->between[0]),
                                       device_at(builder, link->between[1])};
    struct pair_scores *node = &builder->nodes[devices[0]->host];
    uint32_t one = builder->places[link->between[0]];
    uint32_t other = builder->places[link->between[1]];

    if (node->count == 0 || devices[0]->host != devices[1]->host || one == other)
        return;
    if (node->values[one * node->count + other] < VALUE_MAX)
        add_to_pair(node->values, node->count, one, other, value_of(link) * PAIR_LINK_WORTH);
    if (node->weights != NULL)
        lower_weight(node->weights, node->count, one, other, devices, link->kind);
}

static int fill_scores(struct pair_builder *builder)
{
    const struct link *link;

    gather_slots(builder);
    find_scored_nodes(builder);
    if (allocate_scores(builder) < 0)
        return BERTH_ERROR_MEMORY;
    for (size_t slot = 0; slot < builder->machine->devices.count; slot++)
        value_device(builder, slot);
    vector_for_each (link, &builder->machine->links)
        value_link(builder, link);
    return 0;
}

int pair_scores_create(const struct machine *machine, struct pair_scores **ret_nodes,
                       size_t *ret_count, uint32_t *ret_max)
{
    struct pair_builder builder = {.machine = machine};
    int code = BERTH_ERROR_MEMORY;

    builder.node_count = machine->hosts.count > 0 ? machine->hosts.count : 1;
    builder.nodes = calloc(builder.node_count, sizeof(*builder.nodes));
    builder.sizes = calloc(builder.node_count, sizeof(*builder.sizes));
    builder.starts = calloc(builder.node_count, sizeof(*builder.starts));
    builder.places = calloc(machine->devices.count + 1, sizeof(*builder.places));
    builder.slots = calloc(machine->devices.count + 1, sizeof(*builder.slots));
    if (builder.nodes != NULL && builder.sizes != NULL && builder.starts != NULL &&
        builder.places != NULL && builder.slots != NULL)
        code = fill_scores(&builder);
    free(builder.sizes);
    free(builder.starts);
    free(builder.places);
    free(builder.slots);
    if (code < 0) {
        pair_scores_destroy(builder.nodes, builder.node_count);
        return code;
    }
    *ret_max = 0;
    for (size_t i = 0; i < builder.node_count; i++)
        *ret_max = builder.nodes[i].count > *ret_max ? builder.nodes[i].count : *ret_max;
    *ret_nodes = builder.nodes;
    *ret_count = builder.node_count;
    return 0;
}

void pair_scores_destroy(struct pair_scores *nodes, size_t count)
{
    for (size_t i = 0; i < count && nodes != NULL; i++) {
        free(nodes[i].values);
        free(nodes[i].weights);
        free(nodes[i].units);
    }
    free(nodes);
}
