/* SPDX-License-Identifier: Apache-2.0
 *
 * topology: the devices of a node that are best connected with each other, chosen so that those
 * that stay free are well connected too; the sets are those of the vendors' own allocators. Of
 * several nodes the one whose set is best, then the one with the fewest devices left.
 */
#include <stdlib.h>

#include "engine/policy/connected_set.h"
#include "engine/policy/node_rating.h"
#include "engine/policy/pair_scores.h"
#include "engine/policy/policies.h"
#include "engine/policy/topology_describe.h"

_Static_assert((int)CONNECTED_MAX == (int)POLICY_NODE_MAX, "every node that is rated can be");

struct topology_tables {
    struct pair_scores *nodes;
    size_t node_count;
    struct connected_scratch *scratch; /* NULL: nothing is known of any node */
};

static void forget(void *given)
{
    struct topology_tables *tables = given;

    if (tables == NULL)
        return;
    pair_scores_destroy(tables->nodes, tables->node_count);
    connected_set_scratch_destroy(tables->scratch);
    free(tables);
}

static int prepare(const struct policy *policy, const struct policy_environment *around,
                   void **ret_tables)
{
    struct topology_tables *tables = calloc(1, sizeof(*tables));
    uint32_t max = 0;

    (void)policy;
    if (tables == NULL)
        return BERTH_ERROR_MEMORY;
    if (pair_scores_create(around->machine, &tables->nodes, &tables->node_count, &max) < 0) {
        free(tables);
        return BERTH_ERROR_MEMORY;
    }
    if (max > 0) {
        tables->scratch = connected_set_scratch_create(max);
        if (tables->scratch == NULL) {
            forget(tables);
            return BERTH_ERROR_MEMORY;
        }
    }
    *ret_tables = tables;
    return 0;
}

/* What is known of the node; NULL: nothing that tells its devices apart. */
static const struct pair_scores *pairs_of(const struct policy_node *node)
{
    const struct topology_tables *tables = node->tables;

    if (tables == NULL || node->host >= tables->node_count ||
        tables->nodes[node->host].count != node->count)
        return NULL;
    return &tables->nodes[node->host];
}

/* Whether AMD's rule is for all that may be chosen. */
static bool is_amd(const struct policy_node *node)
{
    node_rating_for_each (device, node->candidates) {
        if (node->machine->devices.items[node->slots[device]].id.vendor != VENDOR_AMD)
            return false;
    }
    return true;
}

/* Where nothing tells devices apart. */
static uint64_t take_in_order(const struct policy_node *node, uint32_t count)
{
    return node->required | node_rating_first(node, node->candidates & ~node->required,
                                              count - node_rating_size(node->required));
}

static void rate(const struct policy *policy, const struct policy_node *node,
                 const struct policy_demand *demand, struct policy_offer *ret_offer)
{
    const struct pair_scores *pairs = pairs_of(node);
    bool amd = pairs != NULL && pairs->weights != NULL && is_amd(node);
    int64_t pair_count = (int64_t)demand->count * (demand->count - 1) / 2;
    struct connected_answer answer;
    int64_t value;

    (void)policy;
    if (pairs == NULL || demand->count == 0) {
        *ret_offer = (struct policy_offer){
            .chosen = take_in_order(node, demand->count),
            .proven = true,
        };
        return;
    }
    connected_set_choose(
        &(struct connected_question){
            .rule = amd ? CONNECTED_FILL : CONNECTED_PARTITION,
            .count = node->count,
            .values = amd ? pairs->weights : pairs->values,
            .units = pairs->units,
            .candidates = node->candidates,
            .required = node->required,
            .avoided = node->avoided & node->candidates,
            .order = node->order,
            .wanted = demand->count,
        },
        ((const struct topology_tables *)node->tables)->scratch, &answer);
    /* On one scale, so that nodes of different vendors can be compared. */
    value = amd ? (pair_count * PAIR_WEIGHT_MAX + answer.value) * PAIR_LINK_WORTH : answer.value;
    *ret_offer = (struct policy_offer){
        .chosen = answer.chosen,
        .cost = -value * CONNECTED_MAX + (pairs->linked ? node->order_count - demand->count : 0),
        .score = amd ? -answer.value : answer.value / PAIR_LINK_WORTH,
        .proven = answer.proven,
    };
}

static void explain(const struct policy *policy, const struct policy_node *node,
                    const struct policy_demand *demand, const struct policy_offer *offer,
                    struct text *out)
{
    const struct pair_scores *pairs = pairs_of(node);

    (void)policy;
    if (pairs == NULL) {
        text_append(out, "the lowest slots, as no links are known");
        return;
    }
    if (demand->count > 1)
        topology_describe(node, offer->chosen, out);
    else if (pairs->weights != NULL && is_amd(node))
        text_append(out, "of the GPU with the fewest free devices");
    else
        text_append(out, "the first, as one needs no links");
    if (node->order_count > demand->count && demand->count > 1)
        text_append_format(out, "; %s of %u free devices", offer->proven ? "best" : "best found",
                           node->order_count);
}

const struct policy policy_topology = {
    .name = "topology",
    .summary = "the best connected devices",
    .prepare = prepare,
    .forget = forget,
    .rate = rate,
    .explain = explain,
    .cacheable = true,
};
