/* SPDX-License-Identifier: Apache-2.0
 *
 * packing, for comparison: devices in use before free ones, nodes in use before empty ones, by the
 * points of the openb study.
 */
#include "engine/policy/node_rating.h"
#include "engine/policy/policies.h"

static int64_t larger(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

/* What the chosen devices have left on average: of one, in tenths. */
static int64_t tenths_left(const struct policy_node *node, uint64_t chosen)
{
    uint64_t left = 0;

    node_rating_for_each (device, chosen)
        left += node->left[device];
    return (int64_t)(left / node_rating_size(chosen) * 10 / SHARE_WHOLE);
}

static int64_t points_of(const struct policy_node *node, uint64_t chosen)
{
    uint64_t free_ones = node_rating_free(node);
    int64_t begun = node_rating_size(chosen & free_ones);
    int64_t size = node->count;

    if (chosen == 0)
        return 0;
    if (node_rating_size(free_ones) == node->count)
        return larger(33 - size, size);
    if (begun > 0)
        return larger(50 - begun, 33);
    return larger(100 - tenths_left(node, chosen), 50);
}

static void rate(const struct policy *policy, const struct policy_node *node,
                 const struct policy_demand *demand, struct policy_offer *ret_offer)
{
    uint64_t chosen = node_rating_choose_default(node, demand);

    (void)policy;
    node_rating_offer(chosen, points_of(node, chosen), ret_offer);
}

const struct policy policy_packing = {
    .name = "packing",
    .summary = "devices in use, then nodes in use (for comparison)",
    .rate = rate,
    .cacheable = true,
};
