/* SPDX-License-Identifier: Apache-2.0
 *
 * random, for comparison: any node that has room and any of its devices, all as likely. Chance is
 * the demand's draw, so that a decision can be made again.
 */
#include "base/hash.h"
#include "engine/policy/node_rating.h"
#include "engine/policy/policies.h"

static uint64_t lot_of(const struct policy_demand *demand, uint64_t number)
{
    return hash_mix(hash_mix(demand->draw) ^ number);
}

/* Devices and nodes do not draw the same lots. */
static uint64_t lot_of_device(const struct policy_node *node, const struct policy_demand *demand,
                              uint32_t device)
{
    return lot_of(demand, (uint64_t)node->slots[device] << 1);
}

/* Of two groups of devices of one host each has a lot of its own. */
static uint64_t lot_of_node(const struct policy_node *node, const struct policy_demand *demand)
{
    uint64_t lowest = node->host;

    if (node->candidates != 0)
        lowest = node->slots[node_rating_next(node->candidates, 0)];
    return lot_of(demand, lowest << 1 | 1);
}

static uint64_t choose(const struct policy_node *node, const struct policy_demand *demand,
                       uint64_t from, uint64_t chosen, uint32_t count, void *context)
{
    uint64_t taken = 0;

    (void)context;
    (void)chosen;
    for (; count > 0; count--) {
        uint32_t best = node_rating_next(from & ~taken, 0);

        node_rating_for_each (device, from & ~taken) {
            if (lot_of_device(node, demand, device) < lot_of_device(node, demand, best))
                best = device;
        }
        taken |= node_rating_bit(best);
    }
    return taken;
}

static void rate(const struct policy *policy, const struct policy_node *node,
                 const struct policy_demand *demand, struct policy_offer *ret_offer)
{
    (void)policy;
    *ret_offer = (struct policy_offer){
        .chosen = node_rating_choose(node, demand, choose, NULL),
        .cost = (int64_t)(lot_of_node(node, demand) >> 1),
        .proven = true,
    };
}

const struct policy policy_random = {
    .name = "random",
    .summary = "any that have room, by chance (for comparison)",
    .rate = rate,
};
