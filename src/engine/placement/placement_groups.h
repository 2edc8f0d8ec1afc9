/* SPDX-License-Identifier: Apache-2.0
 *
 * The slots of each node, and of each vendor on a node. So a search through many nodes reads only
 * the few words of each node's slots, not all slots for each node.
 */
#ifndef ENGINE_PLACEMENT_PLACEMENT_GROUPS_H
#define ENGINE_PLACEMENT_PLACEMENT_GROUPS_H

#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"
#include "model/machine/machine.h"

/* All devices of one node, or of one vendor on it: a set of slots, stored as some words of a
 * bitset. */
struct placement_group {
    size_t first;   /* the first word */
    size_t words;   /* number of words; 0: no devices */
    uint64_t *mask; /* the words */
};

struct slot_numbers {
    VECTOR_OF(uint32_t);
};

struct group_numbers {
    VECTOR_OF(size_t);
};

/* Groups of a node: one of all its devices, then one for each vendor. */
enum { GROUPS_OF_NODE = VENDOR_DRI + 2 };

struct placement_groups {
    size_t node_count;
    struct placement_group *items; /* GROUPS_OF_NODE for each node */
    struct slot_numbers *nodes;    /* by node: its slots, lowest first */
    size_t largest;                /* the most devices of a node */
    struct group_numbers whole;    /* the groups of whole nodes that have devices */
    struct group_numbers split;    /* the groups of vendors that have devices */
};

/* Starts with nodes without devices. Returns 0 or BERTH_ERROR_MEMORY; call
 * placement_groups_finish() in both cases. */
int placement_groups_init(struct placement_groups *groups, size_t node_count);
void placement_groups_finish(struct placement_groups *groups);

/* Adds the device of a slot, which may be present already. Returns 0 or BERTH_ERROR_MEMORY. After a
 * failure the slot may be in some groups, which is harmless while it has no device. */
int placement_groups_add(struct placement_groups *groups, const struct device *device,
                         uint32_t slot);

/* Return the group of all devices of a node, or of one vendor's devices on it. */
static inline size_t placement_group_of_node(size_t node)
{
    return node * GROUPS_OF_NODE;
}

static inline size_t placement_group_of_vendor(size_t node, enum vendor vendor)
{
    return node * GROUPS_OF_NODE + 1 + (size_t)vendor;
}

static inline size_t placement_group_node(size_t group)
{
    return group / GROUPS_OF_NODE;
}

#endif
