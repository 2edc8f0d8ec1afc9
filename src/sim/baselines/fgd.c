/* SPDX-License-Identifier: Apache-2.0
 *
 * fgd: fragmentation gradient descent, as in the openb study. A node's fragmentation is the free
 * part of its devices that an expected request cannot use, averaged over the expected requests. The
 * demand goes to the node where fragmentation grows the least. The code adds up the usable part,
 * which is simpler.
 */
#include "engine/policy/node_rating.h"
#include "sim/baselines/baselines.h"
#include "sim/baselines/fgd_tables.h"

/* The state of a node, now or after a trial. */
struct fgd_state {
    const struct fgd_tables *tables;
    uint32_t count;
    uint32_t left[POLICY_NODE_MAX];
    uint32_t share_steps[POLICY_NODE_MAX]; /* of `left`: see fgd_tables_share */
    uint32_t classes[POLICY_NODE_MAX];
    bool alike;         /* all devices are of one class */
    uint64_t free_ones; /* devices that are entirely free */
    uint64_t chosen;    /* devices given to the demand */
    uint64_t taken;     /* millionths of devices given to it */
    uint64_t cpus;
    size_t cpus_step;
    uint64_t use_before; /* the usable part before the demand */
};

static void set_cpus(struct fgd_state *state, uint64_t cpus)
{
    state->cpus = cpus;
    state->cpus_step = fgd_tables_cpus(state->tables, cpus);
}

static void set_left(struct fgd_state *state, uint32_t device, uint32_t left)
{
    uint64_t bit = node_rating_bit(device);

    state->left[device] = left;
    state->share_steps[device] = (uint32_t)fgd_tables_share(state->tables, left);
    state->free_ones = left >= SHARE_WHOLE ? state->free_ones | bit : state->free_ones & ~bit;
}

/* Returns the device's usable part for requests for one device. */
static uint64_t use_alone(const struct fgd_state *state, uint32_t device)
{
    return state->left[device] * *fgd_tables_alone(state->tables, state->classes[device],
                                                   state->cpus_step, state->share_steps[device]);
}

static uint64_t use_alone_of_all(const struct fgd_state *state)
{
    uint64_t use = 0;

    for (uint32_t device = 0; device < state->count; device++)
        use += use_alone(state, device);
    return use;
}

static bool is_accepted(const struct fgd_state *state, uint32_t device, size_t several)
{
    const struct fgd_tables *tables = state->tables;

    return tables->accepted[state->classes[device] * tables->several_count + several];
}

/* Returns the usable part of all devices for one request for several devices. */
static uint64_t use_for_one(const struct fgd_state *state, size_t several)
{
    const struct fgd_several *request = &state->tables->several[several];
    uint64_t left = 0;
    uint32_t count = 0;

    for (uint32_t device = 0; device < state->count; device++) {
        bool does = state->left[device] >= request->share && is_accepted(state, device, several);

        count += does;
        left += does ? state->left[device] : 0;
    }
    return count >= request->count ? left * request->weight : 0;
}

/* Returns the usable part of all devices for all requests for several devices. */
static uint64_t use_together(const struct fgd_state *state)
{
    const struct fgd_tables *tables = state->tables;
    uint64_t use = 0;

    if (state->count < 2)
        return 0;
    if (state->alike && !tables->parts) {
        uint32_t count = node_rating_size(state->free_ones);

        return (uint64_t)count * SHARE_WHOLE *
               *fgd_tables_together(tables, state->classes[0], state->cpus_step, count);
    }
    for (size_t i = 0; i < tables->several_count && tables->several[i].cpus <= state->cpus; i++)
        use += use_for_one(state, i);
    return use;
}

static void init_state(struct fgd_state *state, const struct policy_node *node)
{
    state->tables = node->tables;
    state->count = node->count;
    state->alike = true;
    state->free_ones = state->chosen = state->taken = 0;
    for (uint32_t device = 0; device < node->count; device++) {
        set_left(state, device, node->left[device]);
        state->classes[device] = state->tables->class_of[node->slots[device]];
        state->alike = state->alike && state->classes[device] == state->classes[0];
    }
    set_cpus(state, node->cpus_left);
    state->use_before = use_alone_of_all(state) + use_together(state);
}

static void take_cpus(struct fgd_state *state, const struct policy_demand *demand)
{
    if (state->cpus != UINT64_MAX)
        set_cpus(state, state->cpus > demand->cpus ? state->cpus - demand->cpus : 0);
}

static void take_device(struct fgd_state *state, const struct policy_demand *demand,
                        uint32_t device)
{
    uint32_t left = state->left[device];
    uint32_t taken = left < demand->share ? left : demand->share;

    set_left(state, device, left - taken);
    state->chosen |= node_rating_bit(device);
    state->taken += taken;
}

/* Returns by how much fragmentation has fallen. `use` is the usable part now. */
static int64_t fall_of(const struct fgd_state *state, uint64_t use)
{
    return (int64_t)(state->taken * state->tables->whole + use - state->use_before);
}

/* Returns the result that fall_of() would have if the device were taken as well. `alone` is
 * use_alone_of_all() now. */
static int64_t fall_with(struct fgd_state *state, const struct policy_demand *demand,
                         uint32_t device, uint64_t alone)
{
    uint32_t left = state->left[device];
    uint32_t step = state->share_steps[device];
    uint64_t free_ones = state->free_ones;
    uint64_t taken = state->taken;
    uint64_t use = alone - use_alone(state, device);
    int64_t fall;

    take_device(state, demand, device);
    fall = fall_of(state, use + use_alone(state, device) + use_together(state));
    state->left[device] = left;
    state->share_steps[device] = step;
    state->free_ones = free_ones;
    state->chosen &= ~node_rating_bit(device);
    state->taken = taken;
    return fall;
}

/* Takes the first device with the best score. */
static void take_best(struct fgd_state *state, const struct policy_node *node,
                      const struct policy_demand *demand, uint64_t from)
{
    uint64_t alone = use_alone_of_all(state);
    int64_t falls[POLICY_NODE_MAX] = {0};
    int64_t max = INT64_MIN;
    int64_t min; /* the smallest fall with that score */

    node_rating_for_each (device, from) {
        falls[device] = fall_with(state, demand, device, alone);
        max = falls[device] > max ? falls[device] : max;
    }
    min = state->tables->steps[fgd_tables_score(state->tables, max)];
    for (uint32_t place = 0; place < node->order_count; place++) {
        uint32_t device = node->order[place];

        if ((from & node_rating_bit(device)) != 0 && falls[device] >= min) {
            take_device(state, demand, device);
            break;
        }
    }
}

static uint64_t choose_devices(const struct policy_node *node, const struct policy_demand *demand,
                               uint64_t from, uint64_t chosen, uint32_t count, void *context)
{
    struct fgd_state *state = context;

    (void)chosen;
    if (node_rating_is_whole(demand))
        return node_rating_first(node, from, count);
    for (; count > 0; count--)
        take_best(state, node, demand, from & ~state->chosen);
    return state->chosen & from;
}

static void rate_fgd(const struct policy *policy, const struct policy_node *node,
                     const struct policy_demand *demand, struct policy_offer *ret_offer)
{
    uint64_t required = demand->count > 0 ? node->required : 0;
    struct fgd_state state;
    uint64_t chosen;
    uint64_t use;

    (void)policy;
    init_state(&state, node);
    take_cpus(&state, demand);
    node_rating_for_each (device, required)
        take_device(&state, demand, device);
    chosen = node_rating_choose(node, demand, choose_devices, &state);
    node_rating_for_each (device, chosen & ~state.chosen)
        take_device(&state, demand, device);
    use = use_alone_of_all(&state) + use_together(&state);
    baseline_offer(chosen, fgd_tables_score(state.tables, fall_of(&state, use)), ret_offer);
}

const struct policy baseline_fgd = {
    .name = "fgd",
    .summary = "the nodes where fragmentation grows the least",
    .prepare = fgd_tables_prepare,
    .forget = fgd_tables_forget,
    .rate = rate_fgd,
    .cacheable = true,
};
