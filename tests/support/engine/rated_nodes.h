/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that policies rate, described device by device. The policies are called as the engine calls
 * them.
 */
#ifndef TESTS_RATED_NODES_H
#define TESTS_RATED_NODES_H

#include "support/unit.h"

#include "base/count.h"
#include "engine/policy/policies.h"
#include "support/engine/machines.h"

enum {
    RATED_DEVICES = 128,
    RATED_HOSTS = 16,
    RATED_TYPICAL = 48,
    THOUSANDTH = SHARE_WHOLE / 1000,
};

struct rated_nodes {
    struct machine machine;
    uint32_t left[RATED_DEVICES]; /* by slot */
    uint32_t held[RATED_DEVICES]; /* the same */
    bool held_known;
    uint64_t cpus_left[RATED_HOSTS]; /* by host */
    struct bitset candidates;        /* all slots unless a test changes it */
    struct bitset required;
    struct bitset avoided;
    struct bitset everything; /* all slots with a device */
    struct policy_typical typical[RATED_TYPICAL];
    size_t typical_count;
};

/* A node as a policy gets it, with all that it points to. */
struct rated_view {
    struct policy_node node;
    uint32_t slots[POLICY_NODE_MAX];
    uint32_t left[POLICY_NODE_MAX];
    uint32_t held[POLICY_NODE_MAX];
    uint8_t order[POLICY_NODE_MAX];
};

static inline void rated_init(struct rated_nodes *nodes)
{
    *nodes = (struct rated_nodes){0};
    assert_int_equal(bitset_init(&nodes->candidates, RATED_DEVICES), 0);
    assert_int_equal(bitset_init(&nodes->required, RATED_DEVICES), 0);
    assert_int_equal(bitset_init(&nodes->avoided, RATED_DEVICES), 0);
    assert_int_equal(bitset_init(&nodes->everything, RATED_DEVICES), 0);
    bitset_fill(&nodes->candidates);
}

static inline void rated_finish(struct rated_nodes *nodes)
{
    machine_finish(&nodes->machine);
    bitset_finish(&nodes->candidates);
    bitset_finish(&nodes->required);
    bitset_finish(&nodes->avoided);
    bitset_finish(&nodes->everything);
}

/* A setup function for cmocka: each test gets nodes of its own. */
static inline int rated_set_up(void **state)
{
    struct rated_nodes *nodes = malloc(sizeof(*nodes));

    assert_non_null(nodes);
    rated_init(nodes);
    *state = nodes;
    return 0;
}

static inline int rated_tear_down(void **state)
{
    rated_finish(*state);
    free(*state);
    return 0;
}

/* Adds a host with these CPUs, all free, and devices with these free shares, in thousandths. */
static inline void rated_add_host(struct rated_nodes *nodes, struct optional_number cpus,
                                  const uint32_t *left, size_t count)
{
    uint32_t number = (uint32_t)nodes->machine.hosts.count;
    struct host *host = vector_append(&nodes->machine.hosts);

    assert_non_null(host);
    assert_true(number < RATED_HOSTS);
    host->cpus = cpus;
    nodes->cpus_left[number] = cpus.known ? cpus.value : UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        size_t slot = nodes->machine.devices.count;
        struct device_id id = {
            .vendor = VENDOR_NVIDIA, .index = (uint32_t)slot, .mig = DEVICE_NO_MIG};

        assert_true(slot < RATED_DEVICES);
        machine_add(&nodes->machine, id)->host = number;
        nodes->left[slot] = left[i] * THOUSANDTH;
        bitset_add(&nodes->everything, slot);
    }
}

#define rated_host_with(nodes, cpus, ...)                                              \
    rated_add_host((nodes), optional_number_of(cpus), (const uint32_t[]){__VA_ARGS__}, \
                   COUNT(((const uint32_t[]){__VA_ARGS__})))
#define rated_host(nodes, ...)                                                            \
    rated_add_host((nodes), (struct optional_number){0}, (const uint32_t[]){__VA_ARGS__}, \
                   COUNT(((const uint32_t[]){__VA_ARGS__})))

/* Sets the NUMA node of every device: one digit of `numa` for each slot. */
static inline void rated_set_numa(struct rated_nodes *nodes, const char *numa)
{
    for (size_t slot = 0; slot < nodes->machine.devices.count; slot++)
        nodes->machine.devices.items[slot].numa = optional_number_of((uint64_t)(numa[slot] - '0'));
}

static inline void rated_link(struct rated_nodes *nodes, size_t one, size_t other,
                              enum link_kind kind)
{
    struct link *link = vector_append(&nodes->machine.links);

    assert_non_null(link);
    *link = (struct link){.between = {one, other}, .kind = kind};
}

/* Orders the candidates, avoided devices last. */
static inline void rated_order(struct rated_view *view)
{
    for (int avoided = 0; avoided < 2; avoided++) {
        for (uint32_t i = 0; i < view->node.count; i++) {
            if ((view->node.candidates >> i & 1) != 0 &&
                (int)(view->node.avoided >> i & 1) == avoided)
                view->order[view->node.order_count++] = (uint8_t)i;
        }
    }
}

/* Fills the view of a host that a policy gets for a demand. */
static inline void rated_show(const struct rated_nodes *nodes, const void *tables, uint32_t host,
                              const struct policy_demand *demand, struct rated_view *ret_view)
{
    struct policy_node *node = &ret_view->node;

    *node = (struct policy_node){
        .machine = &nodes->machine,
        .tables = tables,
        .host = host,
        .slots = ret_view->slots,
        .left = ret_view->left,
        .held = nodes->held_known ? ret_view->held : NULL,
        .order = ret_view->order,
        .cpus = nodes->machine.hosts.items[host].cpus,
        .cpus_left = nodes->cpus_left[host],
        .memory_left = UINT64_MAX,
    };
    for (uint32_t slot = 0; slot < nodes->machine.devices.count; slot++) {
        uint32_t place = node->count;
        uint64_t bit;

        if (nodes->machine.devices.items[slot].host != host)
            continue;
        bit = UINT64_C(1) << place;
        node->count++;
        ret_view->slots[place] = slot;
        ret_view->left[place] = nodes->left[slot];
        ret_view->held[place] = nodes->held[slot];
        node->avoided |= bitset_has(&nodes->avoided, slot) ? bit : 0;
        if (demand->count == 0 || nodes->left[slot] < demand->share ||
            !bitset_has(&nodes->candidates, slot))
            continue;
        node->candidates |= bit;
        node->required |= bitset_has(&nodes->required, slot) ? bit : 0;
    }
    rated_order(ret_view);
}

static inline void *rated_prepare(const struct rated_nodes *nodes, const struct policy *policy)
{
    struct policy_environment around = {
        .machine = &nodes->machine,
        .typical = nodes->typical,
        .typical_count = nodes->typical_count,
    };
    void *tables = NULL;

    if (policy->prepare != NULL)
        assert_int_equal(policy->prepare(policy, &around, &tables), 0);
    return tables;
}

static inline void rated_forget(const struct policy *policy, void *tables)
{
    if (policy->forget != NULL)
        policy->forget(tables);
}

/* Returns the policy's offer on one host. */
static inline struct policy_offer rated_offer(const struct rated_nodes *nodes,
                                              const struct policy *policy, uint32_t host,
                                              const struct policy_demand *demand)
{
    void *tables = rated_prepare(nodes, policy);
    struct policy_offer offer = {0};
    struct rated_view view;

    rated_show(nodes, tables, host, demand, &view);
    policy->rate(policy, &view.node, demand, &offer);
    rated_forget(policy, tables);
    return offer;
}

/* Returns whether the host has room for the demand. */
static inline bool rated_has_room(const struct rated_nodes *nodes, uint32_t host,
                                  const struct policy_demand *demand)
{
    struct rated_view view;

    rated_show(nodes, NULL, host, demand, &view);
    return view.node.order_count >= demand->count && nodes->cpus_left[host] >= demand->cpus;
}

/* Returns the host with the cheapest offer, and its slots as a mask. Returns the number of hosts if
 * none has room. */
static inline uint32_t rated_best(const struct rated_nodes *nodes, const struct policy *policy,
                                  const struct policy_demand *demand, uint64_t *ret_slots)
{
    uint32_t best = (uint32_t)nodes->machine.hosts.count;
    int64_t best_cost = 0;

    for (uint32_t host = 0; host < nodes->machine.hosts.count; host++) {
        struct policy_offer offer;
        struct rated_view view;

        if (!rated_has_room(nodes, host, demand))
            continue;
        offer = rated_offer(nodes, policy, host, demand);
        if (best < nodes->machine.hosts.count && offer.cost >= best_cost)
            continue;
        best = host;
        best_cost = offer.cost;
        *ret_slots = 0;
        rated_show(nodes, NULL, host, demand, &view);
        for (uint32_t i = 0; i < view.node.count; i++)
            *ret_slots |= (offer.chosen >> i & 1) << view.slots[i];
    }
    return best;
}

/* Checks that the demand gets exactly these slots. The list ends with -1. */
static inline void rated_check(const struct rated_nodes *nodes, const struct policy *policy,
                               struct policy_demand demand, const int *slots)
{
    uint64_t wanted = 0;
    uint64_t found = 0;

    for (; *slots >= 0; slots++)
        wanted |= UINT64_C(1) << *slots;
    assert_true(rated_best(nodes, policy, &demand, &found) < nodes->machine.hosts.count);
    assert_int_equal(found, wanted);
}

#define rated_takes(nodes, policy, demand, ...) \
    rated_check((nodes), (policy), (demand), (const int[]){__VA_ARGS__, -1})

/* Checks that a demand without devices goes to this host. */
static inline void rated_goes_to(const struct rated_nodes *nodes, const struct policy *policy,
                                 struct policy_demand demand, uint32_t host)
{
    uint64_t slots = 0;

    assert_int_equal(rated_best(nodes, policy, &demand, &slots), host);
    assert_int_equal(slots, 0);
}

static inline struct policy_demand rated_share(uint32_t thousandths)
{
    return (struct policy_demand){.count = 1, .share = thousandths * THOUSANDTH};
}

static inline struct policy_demand rated_whole(uint32_t count)
{
    return (struct policy_demand){.count = count, .share = SHARE_WHOLE};
}

#endif
