/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers for policies that rate nodes. A set of devices is a mask: bit i is the node's device i.
 */
#ifndef ENGINE_POLICY_NODE_RATING_H
#define ENGINE_POLICY_NODE_RATING_H

#include "model/policy.h"
#include "model/request.h"

/* Returns the set of one device; the empty set for POLICY_NODE_MAX. */
static inline uint64_t node_rating_bit(uint32_t device)
{
    return device < POLICY_NODE_MAX ? UINT64_C(1) << device : 0;
}

static inline uint32_t node_rating_size(uint64_t devices)
{
    return (uint32_t)__builtin_popcountll(devices);
}

/* Returns the lowest member at or above `from`; POLICY_NODE_MAX if there is none. */
static inline uint32_t node_rating_next(uint64_t devices, uint32_t from)
{
    uint64_t rest = from < POLICY_NODE_MAX ? devices >> from : 0;

    return rest == 0 ? POLICY_NODE_MAX : from + (uint32_t)__builtin_ctzll(rest);
}

/* Loops over the members in rising order. Declares `device`, a uint32_t. */
#define node_rating_for_each(device, devices)                                        \
    for (uint32_t device = node_rating_next((devices), 0); device < POLICY_NODE_MAX; \
         device = node_rating_next((devices), device + 1))

/* Returns whether the demand is for whole devices. */
static inline bool node_rating_is_whole(const struct policy_demand *demand)
{
    return demand->share >= SHARE_WHOLE;
}

/* Returns the free part of all its devices together, in millionths of a device. */
uint64_t node_rating_left(const struct policy_node *node);

/* Returns the devices that are entirely free. */
uint64_t node_rating_free(const struct policy_node *node);

/* Returns the first `count` of the candidates `from` in the node's order. `from` must have at least
 * `count`. */
uint64_t node_rating_first(const struct policy_node *node, uint64_t from, uint32_t count);

/* Returns the first of the candidates `from` in the node's order. `from` must not be empty. */
uint32_t node_rating_foremost(const struct policy_node *node, uint64_t from);

/* Returns the candidate with the least left, among equals the first in the node's order. `from`
 * must not be empty. */
uint32_t node_rating_fullest(const struct policy_node *node, uint64_t from);

/* Returns `count` of the candidates `from`, which has more. `chosen` are devices chosen before. */
typedef uint64_t node_rating_picker(const struct policy_node *node,
                                    const struct policy_demand *demand, uint64_t from,
                                    uint64_t chosen, uint32_t count, void *context);

/* Chooses devices for a demand: the required devices, then those that `take` returns. Avoided
 * devices are offered to `take` only if the others are too few. */
uint64_t node_rating_choose(const struct policy_node *node, const struct policy_demand *demand,
                            node_rating_picker *take, void *context);

#endif
