/* SPDX-License-Identifier: Apache-2.0
 *
 * clustering, for comparison: like to like, by the points of the openb study. Requests for shares
 * are one kind, those for so many whole devices one kind for each number; of what has devices alone
 * without being known to have how many, all is one kind.
 */
#include "engine/policy/node_rating.h"
#include "engine/policy/policies.h"

/* What holders a node has. */
struct holders {
    bool alike;
    bool others;
};

/* By whom a device is held, as policy_node has it; where that is not shown, guessed. */
static uint32_t held_by(const struct policy_node *node, uint32_t device, uint32_t guess)
{
    if (node->held != NULL)
        return node->held[device];
    if (node->left[device] >= SHARE_WHOLE)
        return 0;
    return node->left[device] > 0 ? POLICY_SHARED : guess;
}

static struct holders find_holders(const struct policy_node *node,
                                   const struct policy_demand *demand)
{
    uint32_t kind = node_rating_is_whole(demand) ? demand->count : POLICY_SHARED;
    uint32_t guess = node_rating_is_whole(demand) ? demand->count : 1;
    struct holders holders = {0};

    for (uint32_t device = 0; device < node->count; device++) {
        uint32_t held = held_by(node, device, guess);

        if (held == kind)
            holders.alike = true;
        else if (held != 0)
            holders.others = true;
    }
    return holders;
}

static int64_t points_of(const struct policy_node *node, const struct policy_demand *demand)
{
    struct holders holders = find_holders(node, demand);
    int64_t taken = NODE_RATING_DEVICES - (int64_t)node_rating_left(node);
    int64_t points = 25 * taken / NODE_RATING_DEVICES;

    if (holders.alike)
        return points + (holders.others ? 50 : 75);
    return points + (holders.others ? 0 : 25);
}

static void rate(const struct policy *policy, const struct policy_node *node,
                 const struct policy_demand *demand, struct policy_offer *ret_offer)
{
    (void)policy;
    node_rating_offer(node_rating_choose_default(node, demand),
                      demand->count > 0 ? points_of(node, demand) : 0, ret_offer);
}

const struct policy policy_clustering = {
    .name = "clustering",
    .summary = "the nodes that hold requests of the same kind (for comparison)",
    .rate = rate,
    .cacheable = true,
    .sees_held = true,
};
