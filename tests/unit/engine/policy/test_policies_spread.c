/* SPDX-License-Identifier: Apache-2.0
 *
 * spread: choices computed by hand, and a check that no other choice is more even.
 */
#include "support/engine/rated_nodes.h"

#include "engine/policy/node_rating.h"
#include "support/random.h"
#include "support/steps.h"

static void the_emptiest_node_is_taken(void **state)
{
    struct rated_nodes *nodes = *state;

    rated_host(nodes, 1000, 0, 1000, 1000);
    rated_host(nodes, 750, 1000, 1000, 1000);
    rated_host(nodes, 1000, 0);
    rated_takes(nodes, &policy_spread, rated_share(500), 5);
    rated_takes(nodes, &policy_spread, rated_whole(1), 5);
    rated_takes(nodes, &policy_spread, rated_whole(3), 5, 6, 7);
    nodes->left[5] = 0;
    nodes->left[6] = 250 * THOUSANDTH;
    rated_takes(nodes, &policy_spread, rated_share(500), 0);
}

/* One of two devices counts as much as four of eight. */
static void small_nodes_count_as_large_ones(void **state)
{
    struct rated_nodes *nodes = *state;

    rated_host(nodes, 1000, 1000, 0, 0);
    rated_host(nodes, 1000, 0);
    rated_takes(nodes, &policy_spread, rated_whole(1), 0);
    nodes->left[1] -= 1;
    rated_takes(nodes, &policy_spread, rated_whole(1), 4);
}

static void a_share_goes_to_the_emptiest_device_of_the_emptiest_numa_node(void **state)
{
    struct rated_nodes *nodes = *state;

    rated_host(nodes, 1000, 0, 500, 600);
    rated_takes(nodes, &policy_spread, rated_share(100), 0);
    rated_set_numa(nodes, "0011");
    rated_takes(nodes, &policy_spread, rated_share(100), 3);
    nodes->left[3] = 500 * THOUSANDTH; /* as much as the first two together */
    rated_takes(nodes, &policy_spread, rated_share(100), 0);
}

static void devices_of_one_request_are_apart(void **state)
{
    struct rated_nodes *nodes = *state;

    rated_host(nodes, 1000, 1000, 1000, 1000, 1000, 0, 0, 0);
    rated_set_numa(nodes, "00001111");
    rated_takes(nodes, &policy_spread, rated_whole(1), 0);
    rated_takes(nodes, &policy_spread, rated_whole(2), 0, 4);
    rated_takes(nodes, &policy_spread, rated_whole(3), 0, 1, 4);
}

static void switches_are_taken_in_turn(void **state)
{
    struct rated_nodes *nodes = *state;

    rated_host(nodes, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000);
    rated_set_numa(nodes, "00001111");
    rated_link(nodes, 0, 1, LINK_PIX);
    rated_link(nodes, 2, 3, LINK_PXB);
    rated_link(nodes, 4, 5, LINK_PSB);
    rated_link(nodes, 6, 7, LINK_PIX);
    rated_link(nodes, 0, 2, LINK_PHB);
    rated_takes(nodes, &policy_spread, rated_whole(2), 0, 4);
    rated_takes(nodes, &policy_spread, rated_whole(4), 0, 2, 4, 6);
    rated_takes(nodes, &policy_spread, rated_whole(5), 0, 1, 2, 4, 6);
    nodes->left[1] = 0;
    rated_takes(nodes, &policy_spread, rated_whole(1), 4);
    rated_takes(nodes, &policy_spread, rated_whole(2), 2, 4);
}

/* A GPU split into partitions is never free itself, and does not make its node fuller. */
static void partitions_are_spread_over_gpus(void **state)
{
    struct rated_nodes *nodes = *state;

    rated_host(nodes, 0, 1000, 1000, 0, 1000, 1000);
    rated_host(nodes, 1000, 1000, 1000, 0);
    for (size_t slot = 0; slot < 6; slot++) {
        struct device *device = &nodes->machine.devices.items[slot];

        if (slot % 3 == 0)
            device->partitioned = true;
        else
            device->parent = copy_of(slot < 3 ? "GPU-a" : "GPU-b");
    }
    rated_takes(nodes, &policy_spread, rated_whole(1), 1);
    rated_takes(nodes, &policy_spread, rated_whole(2), 1, 4);
    rated_takes(nodes, &policy_spread, rated_whole(3), 1, 2, 4);
}

static void what_is_required_counts_as_taken(void **state)
{
    struct rated_nodes *nodes = *state;

    rated_host(nodes, 1000, 1000, 1000, 1000);
    rated_set_numa(nodes, "0011");
    bitset_add(&nodes->required, 1);
    rated_takes(nodes, &policy_spread, rated_whole(1), 1);
    rated_takes(nodes, &policy_spread, rated_whole(2), 1, 2);
    bitset_add(&nodes->avoided, 2);
    rated_takes(nodes, &policy_spread, rated_whole(2), 1, 3);
    rated_takes(nodes, &policy_spread, rated_whole(3), 0, 1, 3);
}

static void work_without_devices_goes_where_cpus_are(void **state)
{
    struct rated_nodes *nodes = *state;
    struct policy_demand demand = {.cpus = 1000};

    rated_host_with(nodes, 64000, 1000, 1000);
    rated_host_with(nodes, 32000, 0, 0);
    rated_host_with(nodes, 32000, 1000, 0);
    nodes->cpus_left[0] = 40000;
    rated_goes_to(nodes, &policy_spread, demand, 2);
    nodes->cpus_left[2] = 16000;
    rated_goes_to(nodes, &policy_spread, demand, 1);
    nodes->cpus_left[1] = 0;
    rated_goes_to(nodes, &policy_spread, demand, 0);
}

/* Extreme amounts do not overflow. */
static void enormous_hosts_are_rated(void **state)
{
    struct rated_nodes *nodes = *state;
    struct policy_demand demand = {.cpus = 1000};

    rated_host_with(nodes, UINT64_MAX, 1000);
    rated_host_with(nodes, UINT64_MAX, 1000);
    nodes->cpus_left[0] = UINT64_MAX / 2;
    rated_goes_to(nodes, &policy_spread, demand, 1);
}

/* Returns the most of these devices on one NUMA node. */
static uint32_t most_together(const struct rated_nodes *nodes, uint64_t devices)
{
    uint32_t counts[4] = {0};
    uint32_t max = 0;

    node_rating_for_each (device, devices) {
        uint32_t count = ++counts[nodes->machine.devices.items[device].numa.value];

        max = count > max ? count : max;
    }
    return max;
}

static void nothing_is_more_even(void **state)
{
    struct test_random random = {1};

    (void)state;
    for (unsigned long step = test_steps(400); step > 0; step--) {
        struct policy_demand demand = rated_whole(1 + (uint32_t)test_random_below(&random, 5));
        struct rated_nodes nodes;
        uint64_t chosen = 0;
        uint64_t free_ones = 0;
        uint32_t left[8];
        char numa[9] = "";

        rated_init(&nodes);
        for (size_t i = 0; i < COUNT(left); i++) {
            left[i] = test_random_below(&random, 4) == 0 ? 0 : 1000;
            free_ones |= (uint64_t)(left[i] > 0) << i;
            numa[i] = (char)('0' + test_random_below(&random, 4));
        }
        rated_add_host(&nodes, (struct optional_number){0}, left, COUNT(left));
        rated_set_numa(&nodes, numa);
        if (rated_best(&nodes, &policy_spread, &demand, &chosen) == 0) {
            for (uint64_t other = 0; other < 256; other++) {
                if ((other & ~free_ones) == 0 && node_rating_size(other) == demand.count)
                    assert_true(most_together(&nodes, chosen) <= most_together(&nodes, other));
            }
        }
        rated_finish(&nodes);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rated_set_up, rated_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_emptiest_node_is_taken),
        TEST(small_nodes_count_as_large_ones),
        TEST(a_share_goes_to_the_emptiest_device_of_the_emptiest_numa_node),
        TEST(devices_of_one_request_are_apart),
        TEST(switches_are_taken_in_turn),
        TEST(partitions_are_spread_over_gpus),
        TEST(what_is_required_counts_as_taken),
        TEST(work_without_devices_goes_where_cpus_are),
        TEST(enormous_hosts_are_rated),
        cmocka_unit_test(nothing_is_more_even),
    };

    return cmocka_run_group_tests_name("policies_spread", tests, NULL, NULL);
}
