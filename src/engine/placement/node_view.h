/* SPDX-License-Identifier: Apache-2.0
 *
 * A policy's view of one node, for policies that rate nodes.
 */
#ifndef ENGINE_PLACEMENT_NODE_VIEW_H
#define ENGINE_PLACEMENT_NODE_VIEW_H

#include "engine/placement/placement_groups.h"
#include "model/policy.h"
#include "model/request.h"

/* The part of a host that leases take. */
struct host_usage {
    uint64_t cpus;
    uint64_t memory;
};

/* A node with the arrays it points to. */
struct node_view {
    struct policy_node node;
    uint32_t left[POLICY_NODE_MAX];
    uint32_t held[POLICY_NODE_MAX];
    uint8_t order[POLICY_NODE_MAX];
};

/* Returns whether the node has few enough devices to be rated. */
static inline bool node_view_is_possible(const struct placement_groups *groups, size_t node)
{
    return groups->nodes[node].count <= POLICY_NODE_MAX;
}

/* Starts a view: fills in all but `left`, the masks and the order. `taken` is the used part of the
 * host; NULL: none. */
void node_view_begin(struct node_view *view, const struct machine *machine,
                     const struct placement_groups *groups, size_t node,
                     const struct host_usage *taken, const void *tables);

/* Completes a view whose masks are set: sorts the candidates. Uses only slots, ranked and affinity
 * of the question, which may be NULL. */
void node_view_end(struct node_view *view, const struct policy_question *question);

/* Returns a replica's demand on a node. */
struct policy_demand node_view_demand(const struct request *request, uint32_t count, uint32_t share,
                                      uint64_t draw);

/* One node's offer, in a form that can be compared with the offers of other nodes. */
struct bid {
    uint32_t avoided; /* avoided devices in it; UINT32_MAX: no offer */
    uint32_t slot;    /* the first chosen slot in the node's order; if none, the node's first */
    int64_t cost;
};

/* Returns the policy's offer on this node, as an offer and as a bid. */
struct bid node_view_rate(const struct node_view *view, const struct policy *policy,
                          const struct policy_demand *demand, struct policy_offer *ret_offer);

/* Returns whether one bid is better than another. Compares rank and affinity by the question; NULL:
 * ignores them. */
bool node_view_is_better_bid(const struct bid *one, const struct bid *other,
                             const struct policy_question *question);

#endif
