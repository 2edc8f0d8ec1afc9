/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/policy/topology_describe.h"

#include "base/count.h"

/* By kind; the last is for pairs of which nothing is known. */
static const char *const phrases[] = {
    [LINK_NVLINK] = "by NVLink",
    [LINK_XGMI] = "by XGMI",
    [LINK_PSB] = "on one board",
    [LINK_PIX] = "through one PCIe switch",
    [LINK_PXB] = "through several PCIe switches",
    [LINK_PHB] = "through one host bridge",
    [LINK_NODE] = "within one NUMA node",
    [LINK_SYS] = "across NUMA nodes",
    "in a way that is not known",
};
enum { UNKNOWN = LINK_SYS + 1 };
_Static_assert(COUNT(phrases) == UNKNOWN + 1, "one for each kind");

static const char *const fabrics[] = {[LINK_NVLINK] = "NVLink", [LINK_XGMI] = "XGMI"};

/* The pairs that reach each other by links of one kind. */
struct tally {
    uint32_t pairs;
    uint32_t lanes_min; /* 0: of some it is not known */
    uint32_t lanes_max;
};

/* The chosen slots, and the best link of each pair of them. */
struct pair_links {
    size_t slots[POLICY_NODE_MAX];
    size_t count;
    struct {
        uint8_t kind;
        uint32_t lanes;
    } best[POLICY_NODE_MAX][POLICY_NODE_MAX]; /* the lower place first */
};

static size_t find_slot(const struct pair_links *links_found, size_t slot)
{
    size_t place = 0;

    while (place < links_found->count && links_found->slots[place] != slot)
        place++;
    return place;
}

/* Kinds are listed from the best on. */
static void find_best_links(const struct policy_node *node, uint64_t chosen,
                            struct pair_links *links_found)
{
    const struct link *link;

    links_found->count = 0;
    for (; chosen != 0; chosen &= chosen - 1)
        links_found->slots[links_found->count++] = node->slots[__builtin_ctzll(chosen)];
    for (size_t one = 0; one < links_found->count; one++) {
        for (size_t other = one + 1; other < links_found->count; other++) {
            links_found->best[one][other].kind = UNKNOWN;
            links_found->best[one][other].lanes = 0;
        }
    }
    vector_for_each (link, &node->machine->links) {
        size_t one = find_slot(links_found, link->between[0]);
        size_t other = find_slot(links_found, link->between[1]);

        if (one >= other || other == links_found->count ||
            (int)link->kind >= links_found->best[one][other].kind)
            continue;
        links_found->best[one][other].kind = (uint8_t)link->kind;
        links_found->best[one][other].lanes = link_is_fabric(link->kind) ? link->lanes : 0;
    }
}

static void count_pairs(const struct pair_links *links_found, struct tally tallies[UNKNOWN + 1])
{
    for (size_t one = 0; one < links_found->count; one++) {
        for (size_t other = one + 1; other < links_found->count; other++) {
            struct tally *tally = &tallies[links_found->best[one][other].kind];
            uint32_t lanes = links_found->best[one][other].lanes;

            if (tally->pairs++ == 0 || lanes < tally->lanes_min)
                tally->lanes_min = lanes;
            if (lanes > tally->lanes_max)
                tally->lanes_max = lanes;
        }
    }
}

static void append_lanes(uint32_t lanes, struct text *out)
{
    text_append_format(out, "%u %s", lanes, lanes == 1 ? "lane" : "lanes");
}

/* The only kind, or one of several. */
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
    append_lanes(tally->lanes_max, out);
    text_append_char(out, ')');
}

void topology_describe(const struct policy_node *node, uint64_t chosen, struct text *out)
{
    struct tally tallies[UNKNOWN + 1] = {0};
    struct pair_links links_found;
    size_t pairs;
    bool first = true;

    find_best_links(node, chosen, &links_found);
    count_pairs(&links_found, tallies);
    pairs = links_found.count * (links_found.count - 1) / 2;
    for (int kind = 0; kind <= UNKNOWN; kind++) {
        const struct tally *tally = &tallies[kind];
        bool only = tally->pairs == pairs;

        if (tally->pairs == 0)
            continue;
        if (only)
            text_append(out, pairs == 1 ? "joined " : "every pair joined ");
        else if (first)
            text_append_format(out, "of %zu pairs %u joined ", pairs, tally->pairs);
        else
            text_append_format(out, ", %u ", tally->pairs);
        append_kind(tally, kind, only, out);
        first = false;
    }
}
