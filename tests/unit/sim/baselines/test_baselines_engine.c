/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims of an engine with several nodes by policies of the simulator: what the engine shows them.
 */
#include "support/engine/engine_nodes.h"

#include "sim/baselines/baselines.h"

#define SHARE "sharing=time-slice share=250"

/* CPUs that leases take from a host count. */
static void bestfit_sees_cpus(void **state)
{
    struct world world;

    (void)state;
    world_init_nodes(&world, &baseline_bestfit, 0);
    check_granted_slots(&world, "device=nvidia4 cpus=8000 policy=first", "4");
    check_granted_slots(&world, "device=nvidia8 cpus=4000 policy=first", "8");
    check_granted_slots(&world, "cpus=8000", "5");
    check_granted_slots(&world, "cpus=8000", "9");
    check_granted_slots(&world, "cpus=8000", "0");
    world_finish(&world);
}

/* Holders of one device, of two devices, and of shares. */
static void clustering_sees_holders(void **state)
{
    struct world world;

    (void)state;
    world_init_nodes(&world, &baseline_clustering, 0);
    check_granted_slots(&world, "device=nvidia0,nvidia1 gpus=2 policy=first", "0 1");
    check_granted_slots(&world, "device=nvidia4 policy=first", "4");
    check_granted_slots(&world, "device=nvidia8 " SHARE " policy=first", "8");
    check_granted_slots(&world, "", "5");
    check_granted_slots(&world, "gpus=2", "2 3");
    check_granted_slots(&world, SHARE, "8");
    world_finish(&world);
}

/* Engines with the same seed draw the same devices. */
static void random_draws_from_the_seed(void **state)
{
    uint32_t slots[3][NODE_COUNT * NODE_DEVICES];
    size_t same = 0;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct world world;

        world_init_nodes(&world, &baseline_random, i / 2 * 1000);
        for (size_t j = 0; j < NODE_COUNT * NODE_DEVICES; j++)
            slots[i][j] = lease_in(&world, granted_to(&world, "")).slots[0];
        world_finish(&world);
    }
    assert_memory_equal(slots[0], slots[1], sizeof(slots[0]));
    for (size_t j = 0; j < NODE_COUNT * NODE_DEVICES; j++)
        same += slots[0][j] == slots[2][j];
    assert_true(same < NODE_COUNT * NODE_DEVICES / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bestfit_sees_cpus),
        cmocka_unit_test(clustering_sees_holders),
        cmocka_unit_test(random_draws_from_the_seed),
    };

    return cmocka_run_group_tests_name("baselines_engine", tests, NULL, NULL);
}
