/* SPDX-License-Identifier: Apache-2.0
 *
 * One node as a policy that rates nodes sees it.
 */
#ifndef ENGINE_PLACEMENT_NODE_VIEW_H
#define ENGINE_PLACEMENT_NODE_VIEW_H

#include "engine/placement/placement_groups.h"
#include "model/policy.h"
#include "model/request.h"

/* What leases take of a host. */
struct host_usage {
    uint64_t cpus;
    uint64_t memory;
};

/* A node with what it points to. */
struct node_view {
    struct policy_node node;
    uint32_t left[POLICY_NODE_MAX];
    uint32_t held[POLICY_NODE_MAX];
    uint8_t order[POLICY_NODE_MAX];
};

/* Whether the node has few enough devices to be rated. */
static inline bool node_view_is_possible(const struct placement_groups *groups, size_t node)
{
    return groups->nodes[node].count <= POLICY_NODE_MAX;
}

/* Begins a view of a node: all but left, the masks and the order. `taken` is what is taken of the
 * host; NULL: nothing. */
void node_view_begin(struct node_view *view, const struct machine *machine,
                     const struct placement_groups *groups, size_t node,
                     const struct host_usage *taken, const void *tables);

/* Ends it, with the masks set: puts the candidates in order. Of the question, which may be NULL,
 * only slots, ranked and affinity count. */
void node_view_end(struct node_view *view, const struct policy_question *question);

/* What the request wants of a node. */
struct policy_demand node_view_demand(const struct request *request, uint32_t count, uint32_t share,
                                      uint64_t draw);

/* An offer among those of several nodes. */
struct bid {
    uint32_t avoided; /* devices that would rather not be had; UINT32_MAX: no offer */
    uint32_t slot;    /* the first of the node's that it would take, of none the node's first */
    int64_t cost;
};

/* What the policy offers of this node, and the bid that it is. */
struct bid node_view_rate(const struct node_view *view, const struct policy *policy,
                          const struct policy_demand *demand, struct policy_offer *ret_offer);

/* Whether one bid beats another that came with an earlier node; ranks and affinity are compared by
 * the question, which may be NULL. */
bool node_view_is_better_bid(const struct bid *one, const struct bid *other,
                             const struct policy_question *question);

#endif
