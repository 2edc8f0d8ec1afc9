/* SPDX-License-Identifier: Apache-2.0
 *
 * dotprod, for comparison: the node with the smallest product of what is free and what is wanted,
 * as in the openb study.
 */
#include "engine/policy/node_rating.h"
#include "engine/policy/policies.h"

static double cpus_product(const struct policy_node *node, const struct policy_demand *demand)
{
    if (!node->cpus.known)
        return 0;
    return (double)node->cpus_left / NODE_RATING_CPUS * ((double)demand->cpus / NODE_RATING_CPUS);
}

static double devices_product(const struct policy_node *node, const struct policy_demand *demand)
{
    return (double)node_rating_left(node) / NODE_RATING_DEVICES *
           ((double)node_rating_taken(demand) / NODE_RATING_DEVICES);
}

static void rate(const struct policy *policy, const struct policy_node *node,
                 const struct policy_demand *demand, struct policy_offer *ret_offer)
{
    double product = (cpus_product(node, demand) + devices_product(node, demand)) / 2;

    (void)policy;
    node_rating_offer(node_rating_choose_default(node, demand), node_rating_hundredths(1 - product),
                      ret_offer);
}

const struct policy policy_dotprod = {
    .name = "dotprod",
    .summary = "the nodes where what is free and what is wanted have the smallest product (for "
               "comparison)",
    .rate = rate,
    .cacheable = true,
};
