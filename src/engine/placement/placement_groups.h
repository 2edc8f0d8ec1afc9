/* SPDX-License-Identifier: Apache-2.0
 *
 * Where devices are: which slots each node has, and which of them each vendor. Laid out once, so
 * that a search through many nodes looks at the few words of each node's slots and not at all slots
 * for each node.
 */
#ifndef ENGINE_PLACEMENT_PLACEMENT_GROUPS_H
#define ENGINE_PLACEMENT_PLACEMENT_GROUPS_H

#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"
#include "model/machine.h"

/* All devices of one node, or those of one vendor on it: a set of slots, as the words of a bitset
 * from the one that has its first slot on. */
struct placement_group {
    size_t first;   /* word */
    size_t words;   /* 0: it has no devices */
    uint64_t *mask; /* of each word: the slots that are in it */
};

struct slot_numbers {
    VECTOR_OF(uint32_t);
};

struct group_numbers {
    VECTOR_OF(size_t);
};

/* The groups of a node: all of it, then one for each vendor. */
enum { GROUPS_OF_NODE = VENDOR_DRI + 2 };

struct placement_groups {
    size_t node_count;
    struct placement_group *items; /* GROUPS_OF_NODE for each node */
    struct slot_numbers *nodes;    /* by node: its slots, lowest first */
    size_t largest;                /* devices that a node has at most */
    struct group_numbers whole;    /* the groups of all of a node that have devices */
    struct group_numbers split;    /* those of a vendor */
};

/* Lays out no devices on so many nodes. Returns 0 or BERTH_ERROR_MEMORY; placement_groups_finish is
 * to be called in both cases. */
int placement_groups_init(struct placement_groups *groups, size_t node_count);
void placement_groups_finish(struct placement_groups *groups);

/* Adds the device of a slot; one that is there already stays. Returns 0 or BERTH_ERROR_MEMORY, with
 * nothing added that counts. */
int placement_groups_add(struct placement_groups *groups, const struct device *device,
                         uint32_t slot);

/* The group of all devices of a node, and of one vendor's on it. */
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
