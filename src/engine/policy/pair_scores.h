/* SPDX-License-Identifier: Apache-2.0
 *
 * What two devices of a node are worth to each other, for all pairs, as the vendors' own allocators
 * value them.
 */
#ifndef ENGINE_POLICY_PAIR_SCORES_H
#define ENGINE_POLICY_PAIR_SCORES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/machine.h"

/* A link's value counts as often, beside which nearness to memory and CPUs counts only where the
 * links of whole sets are equal. */
enum { PAIR_LINK_WORTH = 8192 };

/* By AMD's rule two devices that have nothing in common weigh so much; none weigh more. */
enum { PAIR_WEIGHT_MAX = 90 };

/* One node; its devices are known by their places among them, lowest slot first. */
struct pair_scores {
    uint32_t count;   /* devices; 0: nothing is known that makes one pair better than another */
    bool linked;      /* links are known */
    int32_t *values;  /* count x count, the more the better: NVIDIA's pair score by links, times
                         PAIR_LINK_WORTH, and what nearness adds; links that are not known are
                         worth nothing */
    int32_t *weights; /* the same by AMD's pair weight with its sign turned, so that more is better;
                         NULL: no device is AMD's */
    uint8_t *units;   /* of each device, below CONNECTED_MAX: devices with the same are parts of one
                         GPU */
};

/* The pairs of all nodes, as many as the machine has hosts, at least one. Of nodes with more than
 * CONNECTED_MAX devices nothing is known. `ret_max` gets the devices of the largest of which
 * something is. Returns 0 or BERTH_ERROR_MEMORY. */
int pair_scores_create(const struct machine *machine, struct pair_scores **ret_nodes,
                       size_t *ret_count, uint32_t *ret_max);
void pair_scores_destroy(struct pair_scores *nodes, size_t count);

#endif
