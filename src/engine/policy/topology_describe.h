/* SPDX-License-Identifier: Apache-2.0
 *
 * How devices are connected, in words.
 */
#ifndef ENGINE_POLICY_TOPOLOGY_DESCRIBE_H
#define ENGINE_POLICY_TOPOLOGY_DESCRIBE_H

#include "base/text/text.h"
#include "model/policy.h"

/* Appends how the chosen ones of the node's devices, at least two, reach each other: "joined by 2
 * NVLink lanes"; "of 6 pairs 4 joined by NVLink (1 to 2 lanes), 2 across NUMA nodes". */
void topology_describe(const struct policy_node *node, uint64_t chosen, struct text *out);

#endif
