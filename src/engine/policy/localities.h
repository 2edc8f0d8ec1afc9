/* SPDX-License-Identifier: Apache-2.0
 *
 * Where devices are within their node: places within places, from the widest on. Devices
 * whose NUMA node is not known are in one together; without links each is behind a switch alone.
 */
#ifndef ENGINE_POLICY_LOCALITIES_H
#define ENGINE_POLICY_LOCALITIES_H

#include "model/policy.h"

enum policy_places_level {
    PLACES_NUMA,     /* a NUMA node */
    PLACES_SWITCHES, /* several PCIe switches that are joined */
    PLACES_SWITCH,   /* one of them */
    PLACES_GPU,      /* one GPU with its partitions */
    PLACES_LEVELS,
};

/* As `prepare` and `forget` of a policy. */
int policy_places_prepare(const struct policy *policy, const struct policy_surroundings *around,
                          void **ret_tables);
void policy_places_forget(void *tables);

/* Those of some devices of the node that are in the same place as this one. The node's tables are
 * those of policy_places_prepare. */
uint64_t policy_places_mates(const struct policy_node *node, enum policy_places_level level,
                             uint64_t devices, uint32_t device);

/* In how many places they are. */
uint32_t policy_places_count(const struct policy_node *node, enum policy_places_level level,
                             uint64_t devices);

#endif
