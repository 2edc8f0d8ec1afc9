/* SPDX-License-Identifier: Apache-2.0
 *
 * Properties of every policy that rates nodes, both of the engine and of the simulator, on made-up
 * nodes.
 */
#include "support/engine/rated_nodes.h"

#include "engine/policy/node_rating.h"
#include "sim/baselines/baselines.h"
#include "support/failing_allocator.h"
#include "support/random.h"
#include "support/steps.h"

/* Returns the policies that rate, ended by NULL. */
static const struct policy *const *rating_policies(void)
{
    static const struct policy *rating[32];
    size_t count = 0;

    for (const struct policy *const *policy = policies; *policy != NULL; policy++) {
        if ((*policy)->rate != NULL)
            rating[count++] = *policy;
    }
    for (const struct policy *const *policy = baselines; *policy != NULL; policy++)
        rating[count++] = *policy;
    assert_true(count < COUNT(rating));
    return rating;
}

#define for_each_rating(policy) \
    for (const struct policy *const *policy = rating_policies(); *policy != NULL; policy++)

static void make_links(struct rated_nodes *nodes, size_t first, struct test_random *random)
{
    size_t count = nodes->machine.devices.count;

    for (size_t one = first; one < count; one++) {
        for (size_t other = one + 1; other < count; other++) {
            if (test_random_below(random, 4) == 0)
                rated_link(nodes, one, other, (enum link_kind)test_random_below(random, 8));
        }
    }
}

static void make_host(struct rated_nodes *nodes, struct test_random *random)
{
    static const char *const parents[] = {"GPU-a", "GPU-b"};
    size_t first = nodes->machine.devices.count;
    uint32_t count = 1 + (uint32_t)test_random_below(random, test_random_below(random, 8) ? 8 : 64);
    struct optional_number cpus = {.known = test_random_below(random, 3) > 0,
                                   .value = test_random_any_length(random)};
    bool numa = test_random_below(random, 2) == 0;
    uint32_t left[POLICY_NODE_MAX];

    for (uint32_t i = 0; i < count; i++)
        left[i] = 250 * (uint32_t)test_random_below(random, 5);
    rated_add_host(nodes, cpus, left, count);
    for (size_t slot = first; slot < nodes->machine.devices.count; slot++) {
        struct device *device = &nodes->machine.devices.items[slot];

        if (numa && test_random_below(random, 8) > 0)
            device->numa = optional_number_of(test_random_below(random, 3));
        if (test_random_below(random, 6) == 0)
            device->parent = copy_of(parents[test_random_below(random, 2)]);
    }
    if (count <= 16 && test_random_below(random, 2) == 0)
        make_links(nodes, first, random);
}

/* Makes random sets of candidates, required and avoided devices. Requires at most as many devices
 * as the demand has. */
static void make_sets(struct rated_nodes *nodes, struct policy_demand demand,
                      struct test_random *random)
{
    uint32_t required = 0;

    for (size_t slot = 0; slot < nodes->machine.devices.count; slot++) {
        if (test_random_below(random, 6) == 0)
            bitset_remove(&nodes->candidates, slot);
        if (test_random_below(random, 4) == 0)
            bitset_add(&nodes->avoided, slot);
        if (required < demand.count && test_random_below(random, 8) == 0) {
            bitset_add(&nodes->required, slot);
            required++;
        }
    }
}

static struct policy_demand make_demand(struct test_random *random)
{
    struct policy_demand demand = {0};

    switch (test_random_below(random, 5)) {
    case 0:
        break;
    case 1:
    case 2:
        demand = rated_share(250 * (1 + (uint32_t)test_random_below(random, 3)));
        demand.count = test_random_below(random, 4) == 0 ? 2 : 1;
        break;
    default:
        demand = rated_whole(1 + (uint32_t)test_random_below(random, 6));
    }
    demand.cpus = test_random_below(random, 2) == 0 ? 0 : test_random_any_length(random);
    demand.draw = test_random_next(random);
    return demand;
}

/* Adds the default expected requests. */
static void expect_default(struct rated_nodes *nodes)
{
    const struct policy_demand demands[] = {rated_share(125), rated_share(250), rated_share(500),
                                            rated_whole(1),   rated_whole(2),   rated_whole(4)};

    for (size_t i = 0; i < COUNT(demands); i++)
        nodes->typical[nodes->typical_count++] = (struct policy_typical){
            .weight = 1,
            .count = demands[i].count,
            .share = demands[i].share,
            .accepts = &nodes->everything,
        };
}

static void check_offer(const struct policy_node *node, const struct policy_demand *demand,
                        const struct policy_offer *offer)
{
    uint32_t plain = node_rating_size(node->candidates & ~node->avoided & ~node->required);
    uint32_t open = demand->count - node_rating_size(node->required);
    uint32_t avoided = node_rating_size(node->avoided & node->required);

    assert_int_equal(offer->chosen & ~node->candidates, 0);
    assert_int_equal(node->required & ~offer->chosen, 0);
    assert_int_equal(node_rating_size(offer->chosen), demand->count);
    assert_int_equal(node_rating_size(offer->chosen & node->avoided),
                     avoided + (open > plain ? open - plain : 0));
}

static void check_policy(const struct rated_nodes *nodes, const struct policy *policy,
                         const struct policy_demand *demand)
{
    void *tables = rated_prepare(nodes, policy);

    for (uint32_t host = 0; host < nodes->machine.hosts.count; host++) {
        struct rated_view view;
        struct policy_offer offer = {0};
        struct policy_offer again = {.chosen = UINT64_MAX, .cost = 1, .score = 1};

        if (!rated_has_room(nodes, host, demand))
            continue;
        rated_show(nodes, tables, host, demand, &view);
        policy->rate(policy, &view.node, demand, &offer);
        check_offer(&view.node, demand, &offer);
        policy->rate(policy, &view.node, demand, &again);
        assert_int_equal(offer.chosen, again.chosen);
        assert_int_equal(offer.cost, again.cost);
        assert_int_equal(offer.score, again.score);
        assert_int_equal(offer.proven, again.proven);
        if (policy->cacheable) {
            struct policy_demand other = *demand;

            other.draw++;
            policy->rate(policy, &view.node, &other, &again);
            assert_int_equal(offer.chosen, again.chosen);
            assert_int_equal(offer.cost, again.cost);
        }
    }
    rated_forget(policy, tables);
}

static void every_filter_is_honoured(void **state)
{
    struct test_random random = {1};

    (void)state;
    for (unsigned long step = test_steps(2000); step > 0; step--) {
        struct policy_demand demand = make_demand(&random);
        struct rated_nodes nodes;

        rated_init(&nodes);
        make_host(&nodes, &random);
        make_host(&nodes, &random);
        make_sets(&nodes, demand, &random);
        expect_default(&nodes);
        nodes.held_known = test_random_below(&random, 2) == 0;
        for_each_rating (policy)
            check_policy(&nodes, *policy, &demand);
        rated_finish(&nodes);
    }
}

/* Among equal devices the lowest are taken, and equal nodes have the same cost. */
static void ties_go_to_the_lowest_slot(void **state)
{
    struct test_random random = {2};

    (void)state;
    for (unsigned long step = test_steps(500); step > 0; step--) {
        struct policy_demand demand = make_demand(&random);
        uint32_t left[8];
        uint32_t count = 1 + (uint32_t)test_random_below(&random, COUNT(left));
        struct rated_nodes nodes;

        rated_init(&nodes);
        for (uint32_t i = 0; i < count; i++)
            left[i] = demand.share == SHARE_WHOLE ? 1000 : 750 + 250 * (uint32_t)(step % 2);
        rated_add_host(&nodes, (struct optional_number){0}, left, count);
        rated_add_host(&nodes, (struct optional_number){0}, left, count);
        expect_default(&nodes);
        for_each_rating (policy) {
            struct policy_offer lower, higher;

            if (count < demand.count || *policy == &baseline_random)
                continue;
            lower = rated_offer(&nodes, *policy, 0, &demand);
            higher = rated_offer(&nodes, *policy, 1, &demand);
            assert_int_equal(lower.chosen, (UINT64_C(1) << demand.count) - 1);
            assert_int_equal(higher.chosen, lower.chosen);
            assert_int_equal(higher.cost, lower.cost);
            assert_int_equal(higher.score, lower.score);
        }
        rated_finish(&nodes);
    }
}

/* The node's order, which includes rank and affinity, decides among equals. */
static void the_order_decides_among_equals(void **state)
{
    struct policy_demand demand = rated_whole(2);
    struct rated_nodes nodes;

    (void)state;
    rated_init(&nodes);
    rated_host(&nodes, 1000, 1000, 1000, 1000);
    expect_default(&nodes);
    for_each_rating (policy) {
        void *tables = rated_prepare(&nodes, *policy);
        struct policy_offer offer = {0};
        struct rated_view view;

        rated_show(&nodes, tables, 0, &demand, &view);
        memcpy(view.order, (const uint8_t[]){3, 1, 0, 2}, 4);
        (*policy)->rate(*policy, &view.node, &demand, &offer);
        if (*policy != &baseline_random)
            assert_int_equal(offer.chosen, 1 << 3 | 1 << 1);
        rated_forget(*policy, tables);
    }
    rated_finish(&nodes);
}

struct attempt {
    const struct rated_nodes *nodes;
    const struct policy *policy;
};

static int prepare_once(void *context)
{
    const struct attempt *attempt = context;
    struct policy_environment around = {
        .machine = &attempt->nodes->machine,
        .typical = attempt->nodes->typical,
        .typical_count = attempt->nodes->typical_count,
    };
    void *tables = NULL;
    int code = attempt->policy->prepare(attempt->policy, &around, &tables);

    assert_int_equal(code < 0, tables == NULL);
    if (code == 0)
        attempt->policy->forget(tables);
    return code;
}

static void preparing_tells_of_lack_of_memory(void **state)
{
    struct test_random random = {3};
    struct rated_nodes nodes;

    (void)state;
    rated_init(&nodes);
    make_host(&nodes, &random);
    make_host(&nodes, &random);
    expect_default(&nodes);
    for_each_rating (policy) {
        struct attempt attempt = {.nodes = &nodes, .policy = *policy};

        assert_int_equal((*policy)->prepare == NULL, (*policy)->forget == NULL);
        if ((*policy)->prepare != NULL)
            assert_true(failing_allocator_try_all(prepare_once, &attempt) > 0);
    }
    rated_finish(&nodes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_filter_is_honoured),
        cmocka_unit_test(ties_go_to_the_lowest_slot),
        cmocka_unit_test(the_order_decides_among_equals),
        cmocka_unit_test(preparing_tells_of_lack_of_memory),
    };

    return cmocka_run_group_tests_name("policies_rating", tests, NULL, NULL);
}
