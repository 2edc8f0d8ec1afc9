/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/policy/node_rating.h"

uint64_t node_rating_left(const struct policy_node *node)
{
    uint64_t left = 0;

    for (uint32_t device = 0; device < node->count; device++)
        left += node->left[device];
    return left;
}

uint64_t node_rating_free(const struct policy_node *node)
{
    uint64_t devices = 0;

    for (uint32_t device = 0; device < node->count; device++)
        devices |= (uint64_t)(node->left[device] >= SHARE_WHOLE) << device;
    return devices;
}

uint64_t node_rating_first(const struct policy_node *node, uint64_t from, uint32_t count)
{
    uint64_t chosen = 0;

    for (uint32_t place = 0; place < node->order_count && count > 0; place++) {
        uint64_t bit = node_rating_bit(node->order[place]) & from;

        chosen |= bit;
        count -= bit != 0;
    }
    return chosen;
}

uint32_t node_rating_foremost(const struct policy_node *node, uint64_t from)
{
    return node_rating_next(node_rating_first(node, from, 1), 0);
}

uint32_t node_rating_fullest(const struct policy_node *node, uint64_t from)
{
    uint32_t fullest = POLICY_NODE_MAX;

    for (uint32_t place = 0; place < node->order_count; place++) {
        uint32_t device = node->order[place];

        if ((from & node_rating_bit(device)) != 0 &&
            (fullest == POLICY_NODE_MAX || node->left[device] < node->left[fullest]))
            fullest = device;
    }
    return fullest;
}

uint64_t node_rating_choose(const struct policy_node *node, const struct policy_demand *demand,
                            node_rating_picker *take, void *context)
{
    const uint64_t turns[] = {node->candidates & ~node->avoided, node->candidates & node->avoided};
    uint64_t chosen = demand->count > 0 ? node->required : 0;
    uint32_t missing = demand->count - node_rating_size(chosen);

    for (int turn = 0; turn < 2 && missing > 0; turn++) {
        uint64_t from = turns[turn] & ~chosen;

        /* If all are needed, there is no choice. */
        chosen |= node_rating_size(from) > missing
                      ? take(node, demand, from, chosen, missing, context)
                      : from;
        missing = demand->count - node_rating_size(chosen);
    }
    return chosen;
}
