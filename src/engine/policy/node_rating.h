/* SPDX-License-Identifier: Apache-2.0
 *
 * What policies that rate nodes have in common.
 */
#ifndef ENGINE_POLICY_NODE_RATING_H
#define ENGINE_POLICY_NODE_RATING_H

#include "model/policy.h"
#include "model/request.h"

/* The device as a mask; none for POLICY_NODE_MAX. */
static inline uint64_t node_rating_bit(uint32_t device)
{
    return device < POLICY_NODE_MAX ? UINT64_C(1) << device : 0;
}

static inline uint32_t node_rating_size(uint64_t devices)
{
    return (uint32_t)__builtin_popcountll(devices);
}

/* The lowest of some devices, at or above `from`; POLICY_NODE_MAX when there is none. */
static inline uint32_t node_rating_next(uint64_t devices, uint32_t from)
{
    uint64_t rest = from < POLICY_NODE_MAX ? devices >> from : 0;

    return rest == 0 ? POLICY_NODE_MAX : from + (uint32_t)__builtin_ctzll(rest);
}

/* Runs `device`, a uint32_t declared here, over some devices in rising order. */
#define node_rating_for_each(device, devices)                                        \
    for (uint32_t device = node_rating_next((devices), 0); device < POLICY_NODE_MAX; \
         device = node_rating_next((devices), device + 1))

/* Whether the demand is for devices alone. */
static inline bool node_rating_is_whole(const struct policy_demand *demand)
{
    return demand->share >= SHARE_WHOLE;
}

/* What nobody has of all its devices, in millionths of one. */
uint64_t node_rating_left(const struct policy_node *node);

/* The devices of which nobody has anything. */
uint64_t node_rating_free(const struct policy_node *node);

/* What the demand takes of the devices together, in millionths of one. */
uint64_t node_rating_taken(const struct policy_demand *demand);

/* The first `count` of some candidates, in the node's order; there are as many. */
uint64_t node_rating_first(const struct policy_node *node, uint64_t from, uint32_t count);

/* The first of some candidates, of which there is one at least. */
uint32_t node_rating_foremost(const struct policy_node *node, uint64_t from);

/* Of some candidates, at least one, the one that has the least left; of equals the first in the
 * node's order. */
uint32_t node_rating_fullest(const struct policy_node *node, uint64_t from);

/* Takes `count` of some candidates, of which there are more, beside what was chosen already. */
typedef uint64_t node_rating_picker(const struct policy_node *node,
                                    const struct policy_demand *demand, uint64_t from,
                                    uint64_t chosen, uint32_t count, void *context);

/* Chooses what a demand is to have: the required devices, then those that are taken, of what need
 * not be avoided first. */
uint64_t node_rating_choose(const struct policy_node *node, const struct policy_demand *demand,
                            node_rating_picker *take, void *context);

/* What the openb study measures against: the thousandths of CPUs, and the millionths of devices, of
 * the largest node it has. */
enum { NODE_RATING_CPUS = 128000, NODE_RATING_DEVICES = 8 * SHARE_WHOLE };

/* Chooses as the policies of the openb study do: whole devices in order, for shares the fullest. */
uint64_t node_rating_choose_default(const struct policy_node *node,
                                    const struct policy_demand *demand);

/* An offer by a score of the openb study, the higher the better. */
void node_rating_offer(uint64_t chosen, int64_t score, struct policy_offer *ret_offer);

/* The score of a fraction of 1, which may be far from it: in hundredths, cut to a whole number. */
int64_t node_rating_hundredths(double fraction);

#endif
