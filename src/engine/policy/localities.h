/* SPDX-License-Identifier: Apache-2.0
 *
 * Where devices are within their node: places within places, from the widest on. Devices
 * whose NUMA node is not known are in one together; without links each is behind a switch alone.
 */
#ifndef ENGINE_POLICY_LOCALITIES_H
#define ENGINE_POLICY_LOCALITIES_H

#include "model/policy.h"

enum locality_level {
    LOCALITY_NUMA,     /* a NUMA node */
    LOCALITY_SWITCHES, /* several PCIe switches that are joined */
    LOCALITY_SWITCH,   /* one of them */
    LOCALITY_GPU,      /* one GPU with its partitions */
    LOCALITY_LEVELS,
};

/* As `prepare` and `forget` of a policy. */
int localities_prepare(const struct policy *policy, const struct policy_environment *around,
                       void **ret_tables);
void localities_forget(void *tables);

/* Those of some devices of the node that are in the same place as this one. The node's tables are
 * those of localities_prepare. */
uint64_t localities_mates(const struct policy_node *node, enum locality_level level,
                          uint64_t devices, uint32_t device);

/* In how many places they are. */
uint32_t localities_count(const struct policy_node *node, enum locality_level level,
                          uint64_t devices);

#endif
