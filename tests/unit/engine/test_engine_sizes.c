/* SPDX-License-Identifier: Apache-2.0
 *
 * How many devices a claim gets, of which kind, and how replicas are placed.
 */
#include "support/unit.h"

#include "support/engine/engine_steps.h"

/* Makes a machine of these devices, each on its NUMA node. */
static void world_init_numa(struct world *world, const char *ids, const unsigned *nodes)
{
    struct machine machine = {0};

    machine_add_ids(&machine, ids);
    for (size_t i = 0; i < machine.devices.count; i++)
        machine.devices.items[i].numa = optional_number_of(nodes[i]);
    world_init_with(world, &machine, NULL);
}

/* Makes a machine of these devices, each on its host. */
static void world_init_hosts(struct world *world, const char *ids, const unsigned *hosts)
{
    struct machine machine = {0};

    machine_add_ids(&machine, ids);
    for (size_t i = 0; i < machine.devices.count; i++) {
        machine.devices.items[i].host = hosts[i];
        while (machine.hosts.count <= hosts[i])
            assert_non_null(vector_append(&machine.hosts));
    }
    world_init_with(world, &machine, NULL);
}

#define check_gets(world, words, wanted)                             \
    do {                                                             \
        struct engine_request *asked_ = world_request(world, words); \
        world_forget(world);                                         \
        granted(world, asked_);                                      \
        check_told(world, wanted "\n");                              \
    } while (0)

static void an_elastic_claim_takes_the_most_that_is_free(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2,nvidia3");
    check_gets(&world, "device=nvidia1", "granted lease 1: slots 1");
    check_gets(&world, "gpus=2-4", "granted lease 2: slots 0,2,3");
    waits_with(&world, "gpus=2-4");
    released(&world, 1);
    check_pending(&world, 1);
    released(&world, 2);
    assert_int_equal(lease_in(&world, 4).slot_count, 4);
    world_finish(&world);
}

static void an_elastic_claim_never_takes_more_than_its_most(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2,nvidia3");
    check_gets(&world, "gpus=1-2", "granted lease 1: slots 0,1");
    world_finish(&world);
}

static void elastic_replicas_all_get_the_same_number(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2,nvidia3,nvidia4");
    check_gets(&world, "gpus=1-3 replicas=2", "granted lease 1: slots 0,1,2,3");
    assert_int_equal(lease_in(&world, 1).replicas, 2);
    world_finish(&world);
}

static void all_is_every_device_of_the_most_frequent_vendor(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "amd0,nvidia0,nvidia1");
    check_gets(&world, "gpus=all", "granted lease 1: slots 1,2");
    world_finish(&world);
}

static void all_waits_for_every_one_of_them(void **state)
{
    struct world world;
    uint64_t lease;

    (void)state;
    world_init(&world, "amd0,nvidia0,nvidia1");
    lease = granted_to(&world, "device=nvidia1");
    waits_with(&world, "gpus=all");
    /* The claim accepts only the nvidia devices. */
    check_gets(&world, NULL, "granted lease 3: slots 0");
    waits_with(&world, "vendor=nvidia");
    released(&world, lease);
    check_told(&world, "request 4\n"
                       "queued claim 4\n"
                       "released lease 1\n"
                       "granted lease 5 of claim 2: slots 1,2\n");
    world_finish(&world);
}

static void all_of_any_vendor_is_everything(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "amd0,nvidia0,nvidia1");
    check_gets(&world, "gpus=all vendor=any", "granted lease 1: slots 0,1,2");
    world_finish(&world);
}

static void a_gang_comes_in_one_step_or_waits_with_nothing(void **state)
{
    struct world world;
    uint64_t lease;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2,nvidia3");
    lease = granted_to(&world, "device=nvidia2");
    waits_with(&world, "gpus=2 replicas=2 scheduling=gang");
    assert_false(slot_in(&world, 0).taken);
    world_forget(&world);
    released(&world, lease);
    check_told(&world, "released lease 1\n"
                       "granted lease 3 of claim 2: slots 0,1,2,3\n");
    assert_int_equal(lease_in(&world, 3).replicas, 2);
    world_finish(&world);
}

static void best_effort_replicas_are_claims_of_their_own(void **state)
{
    struct world world;
    struct engine_request *request;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    request = world_request(&world, "replicas=3 scheduling=best-effort");
    assert_int_equal(engine_request_claims(request), 3);
    assert_int_equal(engine_request_claims(world_request(&world, "replicas=2")), 1);
    assert_int_equal(engine_request_claims(world_request(&world, "replicas=2 ranks")), 1);
    assert_int_equal(engine_request_claims(world_request(&world, NULL)), 1);
    granted(&world, request);
    granted(&world, request);
    waits(&world, request);
    assert_int_equal(lease_in(&world, 1).replicas, 1);
    assert_int_equal(lease_in(&world, 1).slot_count, 1);
    world_finish(&world);
}

static void spread_replicas_go_to_numa_nodes_of_their_own(void **state)
{
    static const unsigned nodes[] = {0, 0, 1, 1};
    struct world world;

    (void)state;
    world_init_numa(&world, "nvidia0,nvidia1,nvidia2,nvidia3", nodes);
    check_gets(&world, "replicas=2 scheduling=spread", "granted lease 1: slots 0,2");
    world_finish(&world);
}

static void spread_replicas_go_to_hosts_of_their_own(void **state)
{
    static const unsigned hosts[] = {0, 0, 1, 1};
    struct world world;

    (void)state;
    world_init_hosts(&world, "nvidia0,nvidia1,nvidia2,nvidia3", hosts);
    check_gets(&world, "replicas=2 scheduling=spread", "granted lease 1: slots 0,2");
    check_gets(&world, "replicas=2 scheduling=gang", "granted lease 2: slots 1,3");
    world_finish(&world);
}

static void spread_prefers_the_emptier_host(void **state)
{
    static const unsigned hosts[] = {0, 0, 1, 1, 2, 2};
    struct world world;

    (void)state;
    world_init_hosts(&world, "nvidia0,nvidia1,nvidia2,nvidia3,nvidia4,nvidia5", hosts);
    granted_to(&world, "device=nvidia0");
    check_gets(&world, "replicas=2 scheduling=spread", "granted lease 2: slots 2,4");
    world_finish(&world);
}

static void a_replica_stays_in_one_host(void **state)
{
    static const unsigned hosts[] = {0, 0, 1, 1};
    struct world world;
    uint64_t lease;

    (void)state;
    world_init_hosts(&world, "nvidia0,nvidia1,nvidia2,nvidia3", hosts);
    lease = granted_to(&world, "device=nvidia1");
    check_gets(&world, "gpus=2", "granted lease 2: slots 2,3");
    released(&world, 2);
    granted_to(&world, "device=nvidia2");
    check_why(&world, waits_with(&world, "gpus=2 vendor=any"),
              "needs 2, 2 free: user 0 holds 2; all devices of a replica must be on one host",
              TIME_NEVER);
    released(&world, lease);
    check_pending(&world, 0);
    released(&world, 5);
    check_impossible(&world, "gpus=3",
                     "requested 3 devices, but all devices of a replica must be on one host");
    world_finish(&world);
}

static void a_replica_gets_one_vendor_but_two_replicas_may_differ(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,amd0,nvidia1,amd1");
    check_gets(&world, "gpus=2 replicas=2", "granted lease 1: slots 0,2,1,3");
    world_finish(&world);
}

static void a_vendor_may_be_wanted(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,amd0");
    check_gets(&world, "vendor=amd", "granted lease 1: slots 1");
    waits_with(&world, "vendor=amd");
    world_finish(&world);
}

static void avoided_devices_come_last(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    check_gets(&world, "avoid=nvidia0", "granted lease 1: slots 1");
    check_gets(&world, "avoid=nvidia0 gpus=2", "granted lease 2: slots 0,2");
    world_finish(&world);
}

static void wanted_devices_are_the_only_ones(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    check_gets(&world, "device=nvidia2,nvidia1", "granted lease 1: slots 1");
    check_gets(&world, "device=nvidia2,nvidia1", "granted lease 2: slots 2");
    waits_with(&world, "device=nvidia2,nvidia1");
    world_finish(&world);
}

static void unknown_free_memory_is_worth_waiting_for(void **state)
{
    struct load load = {.memory_free = load_figure_sampled(9, 0)};
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    waits_with(&world, "min-free=10");
    engine_set_load(world.engine, 1, &load);
    check_pending(&world, 1);
    world_forget(&world);
    load.memory_free = load_figure_sampled(10, 1);
    engine_set_load(world.engine, 1, &load);
    check_told(&world, "granted lease 2 of claim 1: slots 1\n");
    world_finish(&world);
}

static void facts_decide_which_devices_are_accepted(void **state)
{
    struct machine machine = {0};
    struct world world;

    (void)state;
    machine_add_ids(&machine, "nvidia0,nvidia1,nvidia2,nvidia3");
    machine.devices.items[0].cap = (struct capability){.known = true, .major = 7, .minor = 5};
    machine.devices.items[1].cap = (struct capability){.known = true, .major = 9, .minor = 0};
    machine.devices.items[2].memory_total = optional_number_of(100);
    machine.devices.items[3].name = copy_of("NVIDIA A100-SXM4");
    world_init_with(&world, &machine, NULL);
    check_gets(&world, "min-cap=8.0", "granted lease 1: slots 1");
    check_gets(&world, "min-memory=100", "granted lease 2: slots 2");
    check_gets(&world, "model=a100", "granted lease 3: slots 3");
    check_impossible(&world, "min-memory=101",
                     "requested 1 device, at least 101 B of memory, but none of 4 devices is "
                     "suitable: 4 have too little or unknown memory");
    check_impossible(&world, "min-cap=9.1",
                     "requested 1 device, capability 9.1 or higher, but none of 4 devices is "
                     "suitable: 4 have a lower or unknown compute capability");
    world_finish(&world);
}

static void a_partitioned_device_is_leased_by_its_partitions_only(void **state)
{
    struct machine machine = {0};
    struct world world;

    (void)state;
    machine_add_ids(&machine, "nvidia0,nvidia0.1,nvidia0.2");
    machine.devices.items[0].partitioned = true;
    world_init_with(&world, &machine, NULL);
    check_gets(&world, NULL, "granted lease 1: slots 1");
    check_gets(&world, NULL, "granted lease 2: slots 2");
    check_impossible(&world, "device=nvidia0",
                     "requested 1 device, only nvidia0, but none of 3 devices is suitable: 1 is "
                     "split into partitions, 2 are not named in the request");
    world_finish(&world);
}

static void large_leases_and_large_machines_work_alike(void **state)
{
    struct machine machine = {0};
    struct world world;
    struct engine_request *one;

    (void)state;
    for (uint32_t i = 0; i < 130; i++)
        machine_add(&machine, (struct device_id){VENDOR_NVIDIA, i, DEVICE_NO_MIG});
    world_init_with(&world, &machine, NULL);
    one = world_request(&world, NULL);
    granted_to(&world, "gpus=70");
    assert_int_equal(lease_in(&world, 1).slots[69], 69);
    for (uint32_t i = 70; i < 130; i++)
        assert_int_equal(lease_in(&world, granted(&world, one)).slots[0], i);
    waits(&world, one);
    world_finish(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_elastic_claim_takes_the_most_that_is_free),
        cmocka_unit_test(an_elastic_claim_never_takes_more_than_its_most),
        cmocka_unit_test(elastic_replicas_all_get_the_same_number),
        cmocka_unit_test(all_is_every_device_of_the_most_frequent_vendor),
        cmocka_unit_test(all_waits_for_every_one_of_them),
        cmocka_unit_test(all_of_any_vendor_is_everything),
        cmocka_unit_test(a_gang_comes_in_one_step_or_waits_with_nothing),
        cmocka_unit_test(best_effort_replicas_are_claims_of_their_own),
        cmocka_unit_test(spread_replicas_go_to_numa_nodes_of_their_own),
        cmocka_unit_test(spread_replicas_go_to_hosts_of_their_own),
        cmocka_unit_test(spread_prefers_the_emptier_host),
        cmocka_unit_test(a_replica_stays_in_one_host),
        cmocka_unit_test(a_replica_gets_one_vendor_but_two_replicas_may_differ),
        cmocka_unit_test(a_vendor_may_be_wanted),
        cmocka_unit_test(avoided_devices_come_last),
        cmocka_unit_test(wanted_devices_are_the_only_ones),
        cmocka_unit_test(unknown_free_memory_is_worth_waiting_for),
        cmocka_unit_test(facts_decide_which_devices_are_accepted),
        cmocka_unit_test(a_partitioned_device_is_leased_by_its_partitions_only),
        cmocka_unit_test(large_leases_and_large_machines_work_alike),
    };

    return cmocka_run_group_tests_name("engine_sizes", tests, NULL, NULL);
}
