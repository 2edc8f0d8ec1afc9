/* SPDX-License-Identifier: Apache-2.0
 *
 * bestfit, for comparison: the node that has the least left over, of CPUs and devices together, as
 * in the openb study.
 */
#include "engine/policy/node_rating.h"
#include "engine/policy/policies.h"

static uint64_t beyond(uint64_t number, uint64_t taken)
{
    return number > taken ? number - taken : 0;
}

static double cpus_over(const struct policy_node *node, const struct policy_demand *demand)
{
    if (!node->cpus.known)
        return 0;
    return (double)beyond(node->cpus_left, demand->cpus) / NODE_RATING_CPUS;
}

static double devices_over(const struct policy_node *node, const struct policy_demand *demand)
{
    return (double)beyond(node_rating_left(node), node_rating_taken(demand)) / NODE_RATING_DEVICES;
}

static void rate(const struct policy *policy, const struct policy_node *node,
                 const struct policy_demand *demand, struct policy_offer *ret_offer)
{
    double over = (cpus_over(node, demand) + devices_over(node, demand)) / 2;

    (void)policy;
    node_rating_offer(node_rating_choose_default(node, demand), node_rating_hundredths(1 - over),
                      ret_offer);
}

const struct policy policy_bestfit = {
    .name = "bestfit",
    .summary = "the nodes that have the least left over (for comparison)",
    .rate = rate,
    .cacheable = true,
};
