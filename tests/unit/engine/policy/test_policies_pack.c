/* SPDX-License-Identifier: Apache-2.0
 *
 * pack: choices computed by hand, and a check that no other choice packs better.
 */
#include "support/engine/rated_nodes.h"

#include "engine/policy/node_rating.h"
#include "support/random.h"
#include "support/steps.h"

static void a_share_goes_to_the_fullest_device_that_has_room(void **state)
{
    struct rated_nodes *nodes = *state;

    rated_host(nodes, 1000, 750, 250);
    rated_host(nodes, 300, 1000, 200);
    rated_takes(nodes, &policy_pack, rated_share(200), 5);
    rated_takes(nodes, &policy_pack, rated_share(250), 2);
    rated_takes(nodes, &policy_pack, rated_share(300), 3);
    rated_takes(nodes, &policy_pack, rated_share(301), 1);
}

static void a_free_device_is_begun_only_where_no_other_has_room(void **state)
{
    struct rated_nodes *nodes = *state;

    rated_host(nodes, 1000, 1000);
    rated_host(nodes, 1000, 1000, 1000, 100);
    rated_host(nodes, 1000, 1000, 100);
    /* Nodes in use first; among them the one with the fewest free devices. */
    rated_takes(nodes, &policy_pack, rated_share(100), 8);
    rated_takes(nodes, &policy_pack, rated_share(500), 6);
    bitset_remove(&nodes->candidates, 6);
    rated_takes(nodes, &policy_pack, rated_share(500), 7);
}

static void whole_devices_come_from_the_node_with_the_fewest_free(void **state)
{
    struct rated_nodes *nodes = *state;

    rated_host(nodes, 1000, 1000, 0, 0);
    rated_host(nodes, 1000, 1000, 1000, 0);
    rated_host(nodes, 1000, 0, 0, 0);
    rated_host(nodes, 1000, 1000, 1000, 1000);
    rated_takes(nodes, &policy_pack, rated_whole(1), 8);
    rated_takes(nodes, &policy_pack, rated_whole(2), 0, 1);
    rated_takes(nodes, &policy_pack, rated_whole(3), 4, 5, 6);
    rated_takes(nodes, &policy_pack, rated_whole(4), 12, 13, 14, 15);
}

static void empty_nodes_stay_empty(void **state)
{
    struct rated_nodes *nodes = *state;

    rated_host(nodes, 1000, 1000);
    rated_host(nodes, 1000, 1000, 1000, 1000, 0);
    rated_takes(nodes, &policy_pack, rated_whole(1), 2);
    rated_takes(nodes, &policy_pack, rated_whole(4), 2, 3, 4, 5);
}

static void the_lowest_of_equal_nodes_is_taken(void **state)
{
    struct rated_nodes *nodes = *state;

    rated_host(nodes, 0, 0);
    rated_host(nodes, 1000, 500, 0);
    rated_host(nodes, 1000, 500, 0);
    rated_takes(nodes, &policy_pack, rated_whole(1), 2);
    rated_takes(nodes, &policy_pack, rated_share(500), 3);
}

static void numa_nodes_are_used_up_one_by_one(void **state)
{
    struct rated_nodes *nodes = *state;

    rated_host(nodes, 1000, 1000, 1000, 1000, 1000, 0, 1000, 0);
    rated_set_numa(nodes, "00001122");
    rated_takes(nodes, &policy_pack, rated_whole(1), 4);
    rated_takes(nodes, &policy_pack, rated_whole(2), 0, 1);
    rated_takes(nodes, &policy_pack, rated_whole(4), 0, 1, 2, 3);
    rated_takes(nodes, &policy_pack, rated_whole(5), 0, 1, 2, 3, 4);
    rated_takes(nodes, &policy_pack, rated_share(500), 4); /* a partly used node, too */
}

/* Three switches on one NUMA node, two of them connected. */
static void switches_are_used_up_one_by_one(void **state)
{
    struct rated_nodes *nodes = *state;

    rated_host(nodes, 1000, 1000, 1000, 1000, 1000, 1000);
    rated_set_numa(nodes, "000000");
    rated_link(nodes, 0, 1, LINK_PIX);
    rated_link(nodes, 2, 3, LINK_PIX);
    rated_link(nodes, 4, 5, LINK_PIX);
    rated_link(nodes, 0, 2, LINK_PXB);
    rated_link(nodes, 0, 4, LINK_NODE);
    rated_takes(nodes, &policy_pack, rated_whole(1), 4);
    rated_takes(nodes, &policy_pack, rated_whole(2), 4, 5);
    rated_takes(nodes, &policy_pack, rated_whole(3), 0, 1, 2);
    nodes->left[1] = 0;
    rated_takes(nodes, &policy_pack, rated_whole(3), 0, 2, 3);
    nodes->left[5] = 0;
    rated_takes(nodes, &policy_pack, rated_whole(2), 2, 3);
}

static void gpus_are_used_up_one_by_one(void **state)
{
    struct rated_nodes *nodes = *state;

    rated_host(nodes, 1000, 1000, 1000, 1000, 0, 1000);
    for (size_t slot = 0; slot < 6; slot++)
        nodes->machine.devices.items[slot].parent = copy_of(slot % 2 == 0 ? "GPU-a" : "GPU-b");
    rated_takes(nodes, &policy_pack, rated_whole(1), 0);
    rated_takes(nodes, &policy_pack, rated_whole(2), 0, 2);
    rated_takes(nodes, &policy_pack, rated_whole(3), 1, 3, 5);
}

static void what_is_required_draws_the_rest(void **state)
{
    struct rated_nodes *nodes = *state;

    rated_host(nodes, 1000, 1000, 1000, 1000, 1000, 0);
    rated_set_numa(nodes, "000111");
    bitset_add(&nodes->required, 1);
    rated_takes(nodes, &policy_pack, rated_whole(2), 0, 1);
    rated_takes(nodes, &policy_pack, rated_whole(4), 0, 1, 2, 3);
    bitset_add(&nodes->avoided, 0);
    bitset_add(&nodes->avoided, 1);
    rated_takes(nodes, &policy_pack, rated_whole(2), 1, 2);
    rated_takes(nodes, &policy_pack, rated_whole(3), 1, 2, 3);
}

static void work_without_devices_goes_where_the_least_is_left(void **state)
{
    struct rated_nodes *nodes = *state;
    struct policy_demand demand = {.cpus = 1000};

    rated_host_with(nodes, 64000, 1000, 1000);
    rated_host_with(nodes, 64000, 0, 500);
    rated_host_with(nodes, 32000, 500, 0);
    rated_host_with(nodes, 64000, 1000, 0);
    rated_goes_to(nodes, &policy_pack, demand, 2);
    nodes->cpus_left[2] = 999;
    rated_goes_to(nodes, &policy_pack, demand, 1);
}

/* Returns the number of NUMA nodes of the devices. */
static uint32_t count_numa(const struct rated_nodes *nodes, uint64_t devices)
{
    uint64_t found = 0;

    node_rating_for_each (device, devices)
        found |= UINT64_C(1) << nodes->machine.devices.items[device].numa.value;
    return node_rating_size(found);
}

static uint32_t left_partly(const struct rated_nodes *nodes, struct policy_demand demand,
                            uint64_t chosen)
{
    uint32_t count = 0;

    for (size_t slot = 0; slot < nodes->machine.devices.count; slot++) {
        uint32_t left = nodes->left[slot] - ((chosen >> slot & 1) != 0 ? demand.share : 0);

        count += left > 0 && left < SHARE_WHOLE;
    }
    return count;
}

static bool is_possible(const struct rated_nodes *nodes, struct policy_demand demand,
                        uint64_t devices)
{
    node_rating_for_each (device, devices) {
        if (nodes->left[device] < demand.share)
            return false;
    }
    return node_rating_size(devices) == demand.count;
}

static void make_node(struct rated_nodes *nodes, struct test_random *random)
{
    static const uint32_t lefts[] = {0, 250, 500, 750, 1000, 1000, 1000, 1000};
    uint32_t left[8];
    char numa[9] = "";

    for (size_t i = 0; i < COUNT(left); i++) {
        left[i] = lefts[test_random_below(random, COUNT(lefts))];
        numa[i] = (char)('0' + test_random_below(random, 4));
    }
    rated_add_host(nodes, (struct optional_number){0}, left, COUNT(left));
    rated_set_numa(nodes, numa);
}

/* No other choice leaves fewer devices partly used, or takes whole devices from fewer NUMA nodes.
 */
static void nothing_packs_better(void **state)
{
    struct test_random random = {1};

    (void)state;
    for (unsigned long step = test_steps(400); step > 0; step--) {
        struct policy_demand demand = step % 2 == 0
                                          ? rated_whole(1 + (uint32_t)test_random_below(&random, 5))
                                          : rated_share(250 * (1 + (uint32_t)(step / 2 % 3)));
        struct rated_nodes nodes;
        uint64_t chosen = 0;

        rated_init(&nodes);
        make_node(&nodes, &random);
        if (rated_best(&nodes, &policy_pack, &demand, &chosen) == 0) {
            assert_true(is_possible(&nodes, demand, chosen));
            for (uint64_t other = 0; other < 256; other++) {
                if (!is_possible(&nodes, demand, other))
                    continue;
                assert_true(left_partly(&nodes, demand, chosen) <=
                            left_partly(&nodes, demand, other));
                if (demand.share == SHARE_WHOLE)
                    assert_true(count_numa(&nodes, chosen) <= count_numa(&nodes, other));
            }
        }
        rated_finish(&nodes);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rated_set_up, rated_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_share_goes_to_the_fullest_device_that_has_room),
        TEST(a_free_device_is_begun_only_where_no_other_has_room),
        TEST(whole_devices_come_from_the_node_with_the_fewest_free),
        TEST(empty_nodes_stay_empty),
        TEST(the_lowest_of_equal_nodes_is_taken),
        TEST(numa_nodes_are_used_up_one_by_one),
        TEST(switches_are_used_up_one_by_one),
        TEST(gpus_are_used_up_one_by_one),
        TEST(what_is_required_draws_the_rest),
        TEST(work_without_devices_goes_where_the_least_is_left),
        cmocka_unit_test(nothing_packs_better),
    };

    return cmocka_run_group_tests_name("policies_pack", tests, NULL, NULL);
}
