/* SPDX-License-Identifier: Apache-2.0
 *
 * frag: keeps the free capacity useful to the expected requests. The worth of a node is
 *
 *     scarcity x (usable x served(CPUs for each usable GPU) + whole)
 *
 * and frag takes the node whose worth falls the least. docs/PLACEMENT.md explains each term and its
 * effect on traces. frag_tables.c computes the terms. All numbers are integers, so that equal nodes
 * compare equal on every machine.
 */
#include <stdlib.h>

#include "engine/policy/frag_tables.h"
#include "engine/policy/node_rating.h"
#include "engine/policy/policies.h"
#include "model/request.h"

/* The properties of a node that determine its worth. */
struct frag_state {
    int64_t usable; /* sum over its devices, in FRAG_UNIT */
    int64_t cpus;
    bool whole; /* all its devices are free */
};

/* Returns a node's CPUs, at most FRAG_CPUS_MAX. */
static int64_t bounded_cpus(const struct frag_tables *tables, uint64_t cpus)
{
    if (cpus == UINT64_MAX) /* unknown: assume the usual number */
        return tables->common_cpus;
    return cpus < FRAG_CPUS_MAX ? (int64_t)cpus : FRAG_CPUS_MAX;
}

static int64_t compute_worth(const struct frag_tables *tables, const struct policy_node *node,
                             const struct frag_state *state)
{
    int64_t sum = 0;

    if (state->usable > 0) {
        int64_t band = state->cpus * FRAG_BANDS_OF_CPU * FRAG_UNIT / state->usable;
        const struct frag_band *served = &tables->bands[band < FRAG_BANDS ? band : FRAG_BANDS - 1];

        sum = (served->usable * state->usable + served->cpus * state->cpus) >> FRAG_FRACTION;
    }
    if (state->whole) {
        int64_t ratio = state->cpus * FRAG_RATIO / tables->common_cpus;

        ratio = ratio < FRAG_RATIO_MAX ? ratio : FRAG_RATIO_MAX;
        sum += tables->whole * node->count * ratio / FRAG_RATIO * ratio / FRAG_RATIO * ratio /
               FRAG_RATIO;
    }
    return sum * tables->scarcity[node->host];
}

/* Returns the usable part of a device of which `left` is free. */
static int64_t usable_of(const struct frag_tables *tables, uint32_t left)
{
    return tables->usable[left < SHARE_WHOLE ? left / FRAG_MILLIONTHS : FRAG_PARTS];
}

static struct frag_state state_of(const struct frag_tables *tables, const struct policy_node *node)
{
    struct frag_state state = {.cpus = bounded_cpus(tables, node->cpus_left), .whole = true};

    for (uint32_t i = 0; i < node->count; i++) {
        state.usable += usable_of(tables, node->left[i]);
        state.whole = state.whole && node->left[i] >= SHARE_WHOLE;
    }
    return state;
}

/* Returns by how much the device's usable part falls when the share is taken. */
static int64_t loss_of(const struct frag_tables *tables, const struct policy_node *node,
                       uint32_t device, uint32_t share)
{
    uint32_t left = node->left[device];

    return usable_of(tables, left) - usable_of(tables, left > share ? left - share : 0);
}

/* Returns the best device not chosen yet: not avoided, then the smallest loss, then first in the
 * node's order. */
static uint32_t find_best_device(const struct frag_tables *tables, const struct policy_node *node,
                                 uint32_t share, uint64_t chosen)
{
    uint32_t best = POLICY_NODE_MAX;
    int64_t min = 0;

    for (uint32_t i = 0; i < node->order_count; i++) {
        uint32_t device = node->order[i];
        int64_t loss;

        if ((chosen >> device & 1) != 0)
            continue;
        if (best != POLICY_NODE_MAX && (node->avoided >> device & 1) != 0 &&
            (node->avoided >> best & 1) == 0)
            break; /* avoided devices are last in the order */
        loss = loss_of(tables, node, device, share);
        if (best == POLICY_NODE_MAX || loss < min) {
            best = device;
            min = loss;
        }
    }
    return best;
}

static void rate_node(const struct policy *policy, const struct policy_node *node,
                      const struct policy_demand *demand, struct policy_offer *ret_offer)
{
    const struct frag_tables *tables = node->tables;
    struct frag_state before = state_of(tables, node);
    struct frag_state after = before;
    uint64_t chosen = node->required;

    (void)policy;
    for (uint32_t count = (uint32_t)__builtin_popcountll(chosen); count < demand->count; count++)
        chosen |= node_rating_bit(find_best_device(tables, node, demand->share, chosen));
    for (uint64_t rest = chosen; rest != 0; rest &= rest - 1)
        after.usable -= loss_of(tables, node, (uint32_t)__builtin_ctzll(rest), demand->share);
    after.cpus -= demand->cpus < (uint64_t)after.cpus ? (int64_t)demand->cpus : after.cpus;
    after.whole = before.whole && demand->count == 0;
    ret_offer->chosen = chosen;
    ret_offer->cost = compute_worth(tables, node, &before) - compute_worth(tables, node, &after);
    ret_offer->score = -(ret_offer->cost / FRAG_UNIT / FRAG_SCARCITY);
    ret_offer->proven = true;
}

/* The score is the loss of the node's worth, negated, in thousandths of a device. */
static void explain_offer(const struct policy *policy, const struct policy_node *node,
                          const struct policy_demand *demand, const struct policy_offer *offer,
                          struct text *out)
{
    bool begun = false;

    (void)policy;
    for (uint64_t rest = offer->chosen; rest != 0; rest &= rest - 1)
        begun = begun || node->left[__builtin_ctzll(rest)] >= SHARE_WHOLE;
    text_append_format(out, "%s; costs expected requests %lld.%03lld devices",
                       !begun               ? "beside other leases"
                       : demand->count == 1 ? "on a free device"
                                            : "on free devices",
                       (long long)(-offer->score / FRAG_PARTS),
                       (long long)(-offer->score % FRAG_PARTS));
}

static int prepare_tables(const struct policy *policy, const struct policy_environment *around,
                          void **ret_tables)
{
    struct frag_tables *tables;
    int code = frag_tables_create(around, &tables);

    (void)policy;
    if (code == 0)
        *ret_tables = tables;
    return code;
}

static void forget_tables(void *tables)
{
    frag_tables_destroy(tables);
}

/* For nodes that are too large to rate: devices in use come first. */
static int compare_use(const struct policy *policy, const struct policy_question *question,
                       size_t one, size_t other)
{
    (void)policy;
    if (question->slots == NULL)
        return 0;
    return (question->slots[one].tenants == 0) - (question->slots[other].tenants == 0);
}

const struct policy policy_frag = {
    .name = "frag",
    .summary = "the devices that leave the most for expected requests",
    .compare = compare_use,
    .prepare = prepare_tables,
    .forget = forget_tables,
    .rate = rate_node,
    .explain = explain_offer,
    .cacheable = true,
};
