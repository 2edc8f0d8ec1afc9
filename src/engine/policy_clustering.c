/* SPDX-License-Identifier: Apache-2.0
 *
 * clustering, for comparison: like to like, by the points of the openb study. Requests for shares
 * are one kind, those for so many whole devices one kind for each number; of what has devices alone
 * without being known to have how many, all is one kind.
 */
#include "engine/policies.h"
#include "engine/policy_nodes.h"

/* What holders a node has. */
struct holders {
    bool alike;
    bool others;
};

static bool holds_like(const struct policy_node *node, const struct policy_demand *demand,
                       uint32_t device)
{
    bool shared = node->widths != NULL ? node->widths[device] == 0 : node->left[device] > 0;

    if (shared || !policy_nodes_is_whole(demand))
        return shared == !policy_nodes_is_whole(demand);
    return node->widths == NULL || node->widths[device] == demand->count;
}

static struct holders find_holders(const struct policy_node *node,
                                   const struct policy_demand *demand)
{
    struct holders holders = {0};

    for (uint32_t device = 0; device < node->count; device++) {
        if (node->left[device] >= SHARE_WHOLE)
            continue;
        if (holds_like(node, demand, device))
            holders.alike = true;
        else
            holders.others = true;
    }
    return holders;
}

static int64_t points_of(const struct policy_node *node, const struct policy_demand *demand)
{
    struct holders holders = find_holders(node, demand);
    int64_t taken = POLICY_NODES_DEVICES - (int64_t)policy_nodes_left(node);
    int64_t points = 25 * taken / POLICY_NODES_DEVICES;

    if (holders.alike)
        return points + (holders.others ? 50 : 75);
    return points + (holders.others ? 0 : 25);
}

static void rate(const struct policy *policy, const struct policy_node *node,
                 const struct policy_demand *demand, struct policy_offer *ret_offer)
{
    (void)policy;
    policy_nodes_offer(policy_nodes_choose_usual(node, demand),
                       demand->count > 0 ? points_of(node, demand) : 0, ret_offer);
}

const struct policy policy_clustering = {
    .name = "clustering",
    .summary = "the nodes that hold requests of the same kind (for comparison)",
    .rate = rate,
    .steady = true,
};
