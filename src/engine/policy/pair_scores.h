/* SPDX-License-Identifier: Apache-2.0
 *
 * The scores of all pairs of devices of a node, by the rules of the vendors' own allocators
 * (docs/PLACEMENT.md, "topology").
 */
#ifndef ENGINE_POLICY_PAIR_SCORES_H
#define ENGINE_POLICY_PAIR_SCORES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/machine/machine.h"

/* The factor of a link's value. It is so large that nearness to memory and CPUs decides only
 * between sets with equal links. */
enum { PAIR_LINK_WORTH = 8192 };

/* AMD's weight of two devices with nothing in common, the largest weight. */
enum { PAIR_WEIGHT_MAX = 90 };

/* The pairs of one node. Devices are numbered in the order of their slots. */
struct pair_scores {
    uint32_t count;   /* devices; 0: no pair is better than another */
    bool linked;      /* some links are known */
    int32_t *values;  /* count x count, higher is better: NVIDIA's pair score of the links, times
                         PAIR_LINK_WORTH, plus nearness; unknown links are worth 0 */
    int32_t *weights; /* count x count, higher is better: AMD's pair weight, negated; NULL: no
                         device is AMD's */
    uint8_t *units;   /* by device, below CONNECTED_MAX: devices of one unit are partitions of one
                         GPU */
};

/* Computes the pairs of all nodes: one node for each host of the machine, at least one. Nodes with
 * more than CONNECTED_MAX devices have no pairs. `ret_max` gets the devices of the largest node
 * with pairs. The caller destroys the result. Returns 0 or BERTH_ERROR_MEMORY. */
int pair_scores_create(const struct machine *machine, struct pair_scores **ret_nodes,
                       size_t *ret_count, uint32_t *ret_max);
void pair_scores_destroy(struct pair_scores *nodes, size_t count);

#endif
