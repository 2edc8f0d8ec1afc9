/* SPDX-License-Identifier: Apache-2.0
 *
 * The places of devices within their node, in levels from the widest to the narrowest. All devices
 * with an unknown NUMA node count as being on one NUMA node. A device without links has a switch of
 * its own.
 */
#ifndef ENGINE_POLICY_LOCALITIES_H
#define ENGINE_POLICY_LOCALITIES_H

#include "model/policy.h"

enum locality_level {
    LOCALITY_NUMA,     /* a NUMA node */
    LOCALITY_SWITCHES, /* connected PCIe switches */
    LOCALITY_SWITCH,   /* one PCIe switch */
    LOCALITY_GPU,      /* one GPU with its partitions */
    LOCALITY_LEVELS,
};

/* The functions `prepare` and `forget` of a policy that uses localities. */
int localities_prepare(const struct policy *policy, const struct policy_environment *around,
                       void **ret_tables);
void localities_forget(void *tables);

/* Returns the members of `devices` in the same place as `device`. The node's tables must be those
 * of localities_prepare(). */
uint64_t localities_mates(const struct policy_node *node, enum locality_level level,
                          uint64_t devices, uint32_t device);

/* Returns the number of places that have members of `devices`. */
uint32_t localities_count(const struct policy_node *node, enum locality_level level,
                          uint64_t devices);

#endif
