/* SPDX-License-Identifier: Apache-2.0
 *
 * topology: the best-connected devices of a node, chosen so that the remaining free devices are
 * well connected too. The chosen sets are those of the vendors' own allocators. Among nodes it
 * takes the one with the best set, then the one with the fewest devices left.
 */
#include <stdlib.h>

#include "base/count.h"
#include "engine/policy/connected_set.h"
#include "engine/policy/node_rating.h"
#include "engine/policy/pair_scores.h"
#include "engine/policy/policies.h"

_Static_assert((int)CONNECTED_MAX == (int)POLICY_NODE_MAX,
               "connected_set handles every rated node");

struct topology_tables {
    struct pair_scores *nodes;
    size_t node_count;
    struct connected_scratch *scratch; /* NULL: no pair of any node is known */
};

static void forget_tables(void *given)
{
    struct topology_tables *tables = given;

    if (tables == NULL)
        return;
    pair_scores_destroy(tables->nodes, tables->node_count);
    connected_set_scratch_destroy(tables->scratch);
    free(tables);
}

static int prepare_tables(const struct policy *policy, const struct policy_environment *around,
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
            forget_tables(tables);
            return BERTH_ERROR_MEMORY;
        }
    }
    *ret_tables = tables;
    return 0;
}

/* Returns the pairs of the node; NULL: no pair is better than another. */
static const struct pair_scores *pairs_of(const struct policy_node *node)
{
    const struct topology_tables *tables = node->tables;

    if (tables == NULL || node->host >= tables->node_count ||
        tables->nodes[node->host].count != node->count)
        return NULL;
    return &tables->nodes[node->host];
}

/* Returns whether all candidates are AMD's, so that AMD's rule applies. */
static bool is_amd(const struct policy_node *node)
{
    node_rating_for_each (device, node->candidates) {
        if (node->machine->devices.items[node->slots[device]].id.vendor != VENDOR_AMD)
            return false;
    }
    return true;
}

/* Chooses in the node's order, because no pair is better than another. */
static uint64_t take_in_order(const struct policy_node *node, uint32_t count)
{
    return node->required | node_rating_first(node, node->candidates & ~node->required,
                                              count - node_rating_size(node->required));
}

static void rate_node(const struct policy *policy, const struct policy_node *node,
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
    /* Both rules use one scale, so that nodes of different vendors can be compared. */
    value = amd ? (pair_count * PAIR_WEIGHT_MAX + answer.value) * PAIR_LINK_WORTH : answer.value;
    *ret_offer = (struct policy_offer){
        .chosen = answer.chosen,
        .cost = -value * CONNECTED_MAX + (pairs->linked ? node->order_count - demand->count : 0),
        .score = amd ? -answer.value : answer.value / PAIR_LINK_WORTH,
        .proven = answer.proven,
    };
}

/* By kind of link; the last is for pairs without a known link. */
static const char *const phrases[] = {
    [LINK_NVLINK] = "by NVLink",
    [LINK_XGMI] = "by XGMI",
    [LINK_PSB] = "on one board",
    [LINK_PIX] = "through one PCIe switch",
    [LINK_PXB] = "through several PCIe switches",
    [LINK_PHB] = "through one host bridge",
    [LINK_NODE] = "within one NUMA node",
    [LINK_SYS] = "across NUMA nodes",
    "in an unknown way",
};
enum { UNKNOWN = LINK_SYS + 1 };
_Static_assert(COUNT(phrases) == UNKNOWN + 1, "one for each kind");

static const char *const fabrics[] = {[LINK_NVLINK] = "NVLink", [LINK_XGMI] = "XGMI"};

/* A count of the pairs whose best link is of one kind. */
struct tally {
    uint32_t pairs;
    uint32_t lanes_min; /* 0: unknown for at least one pair */
    uint32_t lanes_max;
};

/* The chosen slots, and the best link of each pair. */
struct pair_links {
    size_t slots[POLICY_NODE_MAX];
    size_t count;
    struct {
        uint8_t kind;
        uint32_t lanes;
    } best[POLICY_NODE_MAX][POLICY_NODE_MAX]; /* the lower place first */
};

static size_t find_slot(const struct pair_links *found, size_t slot)
{
    size_t place = 0;

    while (place < found->count && found->slots[place] != slot)
        place++;
    return place;
}

/* Finds the best link of each pair. enum link_kind starts with the best kind. */
static void find_best_links(const struct policy_node *node, uint64_t chosen,
                            struct pair_links *found)
{
    const struct link *link;

    found->count = 0;
    for (; chosen != 0; chosen &= chosen - 1)
        found->slots[found->count++] = node->slots[__builtin_ctzll(chosen)];
    for (size_t one = 0; one < found->count; one++) {
        for (size_t other = one + 1; other < found->count; other++) {
            found->best[one][other].kind = UNKNOWN;
            found->best[one][other].lanes = 0;
        }
    }
    vector_for_each (link, &node->machine->links) {
        size_t one = find_slot(found, link->between[0]);
        size_t other = find_slot(found, link->between[1]);

        if (one >= other || other == found->count ||
            (int)link->kind >= found->best[one][other].kind)
            continue;
        found->best[one][other].kind = (uint8_t)link->kind;
        found->best[one][other].lanes = link_is_fabric(link->kind) ? link->lanes : 0;
    }
}

static void count_pairs(const struct pair_links *found, struct tally tallies[UNKNOWN + 1])
{
    for (size_t one = 0; one < found->count; one++) {
        for (size_t other = one + 1; other < found->count; other++) {
            struct tally *tally = &tallies[found->best[one][other].kind];
            uint32_t lanes = found->best[one][other].lanes;

            if (tally->pairs++ == 0 || lanes < tally->lanes_min)
                tally->lanes_min = lanes;
            if (lanes > tally->lanes_max)
                tally->lanes_max = lanes;
        }
    }
}

/* Appends one kind of link. If `only`, all pairs have it. */
static void append_kind(const struct tally *tally, int kind, bool only, struct text *out)
{
    bool has_lanes = kind < (int)COUNT(fabrics) && tally->lanes_min > 0;

    if (only && has_lanes && tally->lanes_min == tally->lanes_max) {
        text_append_format(out, "by %u %s %s", tally->lanes_min, fabrics[kind],
                           tally->lanes_min == 1 ? "lane" : "lanes");
        return;
    }
    text_append(out, phrases[kind]);
    if (!has_lanes)
        return;
    text_append(out, " (");
    if (tally->lanes_min < tally->lanes_max)
        text_append_format(out, "%u to ", tally->lanes_min);
    text_append_format(out, "%u %s)", tally->lanes_max, tally->lanes_max == 1 ? "lane" : "lanes");
}

/* Appends how the chosen devices, at least two, are connected: "connected by 2 NVLink lanes"; "of 6
 * pairs 4 connected by NVLink (1 to 2 lanes), 2 across NUMA nodes". */
static void describe_links(const struct policy_node *node, uint64_t chosen, struct text *out)
{
    struct tally tallies[UNKNOWN + 1] = {0};
    struct pair_links found;
    size_t pairs;
    bool first = true;

    find_best_links(node, chosen, &found);
    count_pairs(&found, tallies);
    pairs = found.count * (found.count - 1) / 2;
    for (int kind = 0; kind <= UNKNOWN; kind++) {
        const struct tally *tally = &tallies[kind];
        bool only = tally->pairs == pairs;

        if (tally->pairs == 0)
            continue;
        if (only)
            text_append(out, pairs == 1 ? "connected " : "every pair connected ");
        else if (first)
            text_append_format(out, "of %zu pairs %u connected ", pairs, tally->pairs);
        else
            text_append_format(out, ", %u ", tally->pairs);
        append_kind(tally, kind, only, out);
        first = false;
    }
}

static void explain_offer(const struct policy *policy, const struct policy_node *node,
                          const struct policy_demand *demand, const struct policy_offer *offer,
                          struct text *out)
{
    const struct pair_scores *pairs = pairs_of(node);

    (void)policy;
    if (pairs == NULL) {
        text_append(out, "the lowest slots, because no links are known");
        return;
    }
    if (demand->count > 1)
        describe_links(node, offer->chosen, out);
    else if (pairs->weights != NULL && is_amd(node))
        text_append(out, "from the GPU with the fewest free devices");
    else
        text_append(out, "the first, because one device needs no links");
    if (node->order_count > demand->count && demand->count > 1)
        text_append_format(out, "; %s of %u free devices", offer->proven ? "best" : "best found",
                           node->order_count);
}

const struct policy policy_topology = {
    .name = "topology",
    .summary = "the best-connected devices",
    .prepare = prepare_tables,
    .forget = forget_tables,
    .rate = rate_node,
    .explain = explain_offer,
    .cacheable = true,
};
