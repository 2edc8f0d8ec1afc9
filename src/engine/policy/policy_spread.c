/* SPDX-License-Identifier: Apache-2.0
 *
 * spread: the emptiest node. Within it spread takes one device after the other, each from the NUMA
 * node, switch and GPU where this demand has the fewest devices, then from the emptiest of these.
 */
#include <string.h>

#include "engine/policy/compare_devices.h"
#include "engine/policy/localities.h"
#include "engine/policy/node_rating.h"
#include "engine/policy/policies.h"

/* The state of the node while devices are chosen. */
struct spread_state {
    const struct policy_node *node;
    uint32_t left[POLICY_NODE_MAX];
    uint64_t counted; /* devices that can be leased */
    uint64_t chosen;
};

/* A place with candidates for the next device: a NUMA node, switch or GPU. */
struct spread_locality {
    uint64_t from;   /* its candidates; 0: no place */
    uint64_t within; /* all its devices */
    uint32_t chosen; /* number of devices that this demand has there */
    uint64_t left;
};

/* Returns the devices that can be leased. A device that is split into partitions cannot. */
static uint64_t counted_devices(const struct policy_node *node)
{
    uint64_t counted = 0;

    for (uint32_t device = 0; device < node->count; device++)
        counted |= (uint64_t)!node->machine->devices.items[node->slots[device]].partitioned
                   << device;
    return counted;
}

static struct spread_locality place_of(const struct spread_state *state, enum locality_level level,
                                       const struct spread_locality *around, uint32_t device)
{
    struct spread_locality place = {
        .from = localities_mates(state->node, level, around->from, device),
        .within = localities_mates(state->node, level, around->within, device),
    };

    place.chosen = node_rating_size(place.within & state->chosen);
    node_rating_for_each (mate, place.within)
        place.left += state->left[mate];
    return place;
}

static bool is_better(const struct spread_locality *one, const struct spread_locality *other)
{
    if (other->from == 0 || one->chosen != other->chosen)
        return other->from == 0 || one->chosen < other->chosen;
    return one->left * node_rating_size(other->within) >
           other->left * node_rating_size(one->within);
}

static struct spread_locality find_best_place(const struct spread_state *state,
                                              enum locality_level level,
                                              const struct spread_locality *around)
{
    struct spread_locality best = {0};

    for (uint64_t rest = around->from; rest != 0;) {
        uint32_t device = node_rating_foremost(state->node, rest);
        struct spread_locality place = place_of(state, level, around, device);

        if (is_better(&place, &best))
            best = place;
        rest &= ~place.from;
    }
    return best;
}

/* Returns the candidate with the most left. */
static uint32_t find_emptiest(const struct spread_state *state, uint64_t from)
{
    const struct policy_node *node = state->node;
    uint32_t best = POLICY_NODE_MAX;

    for (uint32_t place = 0; place < node->order_count; place++) {
        uint32_t device = node->order[place];

        if ((from & node_rating_bit(device)) != 0 &&
            (best == POLICY_NODE_MAX || state->left[device] > state->left[best]))
            best = device;
    }
    return best;
}

static uint32_t find_next_device(const struct spread_state *state, uint64_t from)
{
    struct spread_locality place = {.from = from, .within = state->counted | from};

    for (int level = LOCALITY_NUMA; level < LOCALITY_LEVELS; level++)
        place = find_best_place(state, (enum locality_level)level, &place);
    return find_emptiest(state, place.from);
}

static void take_devices(struct spread_state *state, uint32_t share, uint64_t devices)
{
    node_rating_for_each (device, devices)
        state->left[device] -= state->left[device] < share ? state->left[device] : share;
    state->chosen |= devices;
}

static uint64_t choose_devices(const struct policy_node *node, const struct policy_demand *demand,
                               uint64_t from, uint64_t chosen, uint32_t count, void *context)
{
    struct spread_state state = {.node = node, .counted = counted_devices(node)};
    uint64_t taken = 0;

    (void)context;
    memcpy(state.left, node->left, node->count * sizeof(*node->left));
    take_devices(&state, demand->share, chosen);
    for (; count > 0; count--) {
        uint64_t next = node_rating_bit(find_next_device(&state, from & ~taken));

        take_devices(&state, demand->share, next);
        taken |= next;
    }
    return taken;
}

/* Fractions are integers with this many fraction bits. They resolve a millionth of a device and a
 * millionth of the CPUs. */
enum { DEVICES_BITS = 32, CPUS_BITS = 20 };

/* Returns the allocated part of the node's devices. */
static int64_t devices_taken(const struct policy_node *node)
{
    uint64_t counted = counted_devices(node);
    uint64_t whole = (uint64_t)node_rating_size(counted) * SHARE_WHOLE;
    uint64_t left = 0;

    node_rating_for_each (device, counted)
        left += node->left[device];
    return whole == 0 ? 0 : (int64_t)(((whole - left) << DEVICES_BITS) / whole);
}

/* Returns the allocated part of the node's CPUs; 0 if their number is unknown. */
static int64_t cpus_taken(const struct policy_node *node)
{
    uint64_t whole = node->cpus.known ? node->cpus.value : 0;
    uint64_t left = node->cpus_left < whole ? node->cpus_left : whole;

    while (whole >> (64 - CPUS_BITS) != 0) { /* avoids overflow; no host has so many */
        whole >>= 1;
        left >>= 1;
    }
    return whole == 0 ? 0 : (int64_t)(((whole - left) << CPUS_BITS) / whole);
}

static void rate_node(const struct policy *policy, const struct policy_node *node,
                      const struct policy_demand *demand, struct policy_offer *ret_offer)
{
    int64_t taken = devices_taken(node);

    (void)policy;
    *ret_offer = (struct policy_offer){
        .chosen = node_rating_choose(node, demand, choose_devices, NULL),
        .cost = demand->count > 0 ? taken : cpus_taken(node) << (DEVICES_BITS + 1) | taken,
        .score = 100 - (taken * 100 >> DEVICES_BITS),
        .proven = true,
    };
}

static void explain_offer(const struct policy *policy, const struct policy_node *node,
                          const struct policy_demand *demand, const struct policy_offer *offer,
                          struct text *out)
{
    uint32_t places = localities_count(node, LOCALITY_NUMA, offer->chosen);

    (void)policy;
    (void)demand;
    text_append_format(out, "%lld %% of its node is free", (long long)offer->score);
    if (places > 1)
        text_append_format(out, ", on %u NUMA nodes", places);
}

/* For nodes that are too large to rate: devices with fewer leases come first. */
static int compare_tenants(const struct policy *policy, const struct policy_question *question,
                           size_t one, size_t other)
{
    (void)policy;
    return compare_devices_tenants(question, one, other);
}

const struct policy policy_spread = {
    .name = "spread",
    .summary = "the emptiest nodes, then NUMA nodes, switches and devices",
    .compare = compare_tenants,
    .prepare = localities_prepare,
    .forget = localities_forget,
    .rate = rate_node,
    .explain = explain_offer,
    .cacheable = true,
};
