/* SPDX-License-Identifier: Apache-2.0
 *
 * fgd, for comparison: fragmentation gradient descent, as in the openb study. Fragmentation is what
 * is free of a node's devices and of no use to a request that is expected, on average over those
 * requests; where it grows the least, the demand goes. What is of use is easier to add up.
 */
#include <string.h>

#include "engine/policies.h"
#include "engine/policy_fgd_tables.h"
#include "engine/policy_nodes.h"

/* A node as it is, or would be. */
struct state {
    const struct fgd_tables *tables;
    uint32_t count;
    uint32_t left[POLICY_NODE_MOST];
    uint32_t classes[POLICY_NODE_MOST];
    bool alike;     /* all are of one class */
    uint64_t taken; /* of the devices */
    uint64_t cpus;
    size_t cpus_step; /* among the amounts that are wanted with one device */
};

static void set_cpus(struct state *state, uint64_t cpus)
{
    state->cpus = cpus;
    state->cpus_step = fgd_tables_cpus(state->tables, cpus);
}

static void init_state(struct state *state, const struct policy_node *node)
{
    state->tables = node->tables;
    state->count = node->count;
    state->alike = true;
    state->taken = 0;
    memcpy(state->left, node->left, node->count * sizeof(*node->left));
    for (uint32_t device = 0; device < node->count; device++) {
        state->classes[device] = state->tables->class_of[node->slots[device]];
        state->alike = state->alike && state->classes[device] == state->classes[0];
    }
    set_cpus(state, node->cpus_left);
}

static void take_cpus(struct state *state, const struct policy_demand *demand)
{
    if (state->cpus != UINT64_MAX)
        set_cpus(state, state->cpus > demand->cpus ? state->cpus - demand->cpus : 0);
}

static void take_device(struct state *state, const struct policy_demand *demand, uint32_t device)
{
    uint32_t left = state->left[device];
    uint32_t taken = left < demand->share ? left : demand->share;

    state->left[device] -= taken;
    state->taken += taken;
}

/* Undoes take_device; the device had so much left. */
static void give_back(struct state *state, uint32_t device, uint32_t left)
{
    state->taken -= left - state->left[device];
    state->left[device] = left;
}

/* What the device is of use to requests for one device. */
static uint64_t use_alone(const struct state *state, uint32_t device, uint32_t left)
{
    const struct fgd_tables *tables = state->tables;

    return left * tables->weights[fgd_tables_place(tables, state->classes[device], state->cpus_step,
                                                   fgd_tables_share(tables, left))];
}

static uint64_t use_alone_of_all(const struct state *state)
{
    uint64_t use = 0;

    for (uint32_t device = 0; device < state->count; device++)
        use += use_alone(state, device, state->left[device]);
    return use;
}

static bool is_accepted(const struct state *state, uint32_t device, size_t several)
{
    const struct fgd_tables *tables = state->tables;

    return tables->accepted[state->classes[device] * tables->several_count + several];
}

/* What the devices are of use to one request for several. */
static uint64_t use_for_one(const struct state *state, size_t several)
{
    const struct fgd_several *wanted = &state->tables->several[several];
    uint64_t left = 0;
    uint32_t count = 0;

    if (state->alike && !is_accepted(state, 0, several))
        return 0;
    for (uint32_t device = 0; device < state->count; device++) {
        bool does = state->left[device] >= wanted->share &&
                    (state->alike || is_accepted(state, device, several));

        count += does;
        left += does ? state->left[device] : 0;
    }
    return count >= wanted->count ? left * wanted->weight : 0;
}

static uint64_t use_together(const struct state *state)
{
    const struct fgd_tables *tables = state->tables;
    uint64_t use = 0;

    if (state->count < 2)
        return 0;
    for (size_t i = 0; i < tables->several_count && tables->several[i].cpus <= state->cpus; i++)
        use += use_for_one(state, i);
    return use;
}

static uint64_t use_of(const struct state *state)
{
    return use_alone_of_all(state) + use_together(state);
}

/* The score if this is what was of use before, and this is what is now. */
static int64_t score_of(const struct state *state, uint64_t before, uint64_t now)
{
    return fgd_tables_score(state->tables,
                            (int64_t)(state->taken * state->tables->whole + now - before));
}

/* Tries every device, and takes the first with the best score. */
static uint32_t take_best(struct state *state, const struct policy_node *node,
                          const struct policy_demand *demand, uint64_t from, uint64_t before)
{
    uint64_t alone = use_alone_of_all(state);
    uint32_t best = POLICY_NODE_MOST;
    int64_t best_score = 0;

    for (uint32_t place = 0; place < node->order_count; place++) {
        uint32_t device = node->order[place];
        uint32_t left = state->left[device];
        uint64_t now;
        int64_t score;

        if ((from & policy_nodes_bit(device)) == 0)
            continue;
        now = alone - use_alone(state, device, left);
        take_device(state, demand, device);
        now += use_alone(state, device, state->left[device]) + use_together(state);
        score = score_of(state, before, now);
        give_back(state, device, left);
        if (best == POLICY_NODE_MOST || score > best_score) {
            best = device;
            best_score = score;
        }
    }
    take_device(state, demand, best);
    return best;
}

/* What becomes of the node if these devices are chosen. Returns what was of use before. */
static uint64_t imagine(struct state *state, const struct policy_node *node,
                        const struct policy_demand *demand, uint64_t chosen)
{
    uint64_t before;

    init_state(state, node);
    before = use_of(state);
    take_cpus(state, demand);
    policy_nodes_for_each (device, chosen)
        take_device(state, demand, device);
    return before;
}

static uint64_t choose(const struct policy_node *node, const struct policy_demand *demand,
                       uint64_t from, uint64_t chosen, uint32_t count)
{
    struct state state;
    uint64_t before;
    uint64_t taken = 0;

    if (policy_nodes_is_whole(demand))
        return policy_nodes_first(node, from, count);
    before = imagine(&state, node, demand, chosen);
    for (; count > 0; count--)
        taken |= policy_nodes_bit(take_best(&state, node, demand, from & ~taken, before));
    return taken;
}

static void rate(const struct policy *policy, const struct policy_node *node,
                 const struct policy_demand *demand, struct policy_offer *ret_offer)
{
    uint64_t chosen = policy_nodes_choose(node, demand, choose);
    struct state state;
    uint64_t before = imagine(&state, node, demand, chosen);

    (void)policy;
    policy_nodes_offer(chosen, score_of(&state, before, use_of(&state)), ret_offer);
}

const struct policy policy_fgd = {
    .name = "fgd",
    .summary = "where what is left stays of use to the requests that are expected (for comparison)",
    .prepare = fgd_tables_prepare,
    .forget = fgd_tables_forget,
    .rate = rate,
    .steady = true,
};
