/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims in an engine with several nodes, by each policy that rates nodes.
 */
#include "support/engine/engine_nodes.h"

#define SHARE "sharing=time-slice share=250 policy="

static void pack_fills_devices_then_nodes(void **state)
{
    struct world world;
    uint64_t first;

    (void)state;
    world_init_nodes(&world, NULL, 0);
    first = check_granted_slots(&world, SHARE "pack", "0");
    check_granted_slots(&world, SHARE "pack", "0");
    check_granted_slots(&world, "gpus=2 policy=pack", "2 3");
    check_granted_slots(&world, "gpus=2 policy=pack", "4 5");
    check_granted_slots(&world, "sharing=time-slice share=750 policy=pack", "1");
    check_granted_slots(&world, SHARE "pack", "1"); /* a full device is not used */
    check_granted_slots(&world, SHARE "pack", "0");
    assert_int_equal(engine_release(world.engine, first, NULL), 0);
    check_granted_slots(&world, "sharing=time-slice share=500 policy=pack", "0");
    check_granted_slots(&world, "gpus=3 policy=pack", "8 9 10");
    check_granted_slots(&world, "policy=pack", "11");
    check_granted_slots(&world, SHARE "pack", "6");
    world_finish(&world);
}

static void spread_takes_nodes_in_turn(void **state)
{
    struct world world;

    (void)state;
    world_init_nodes(&world, NULL, 0);
    check_granted_slots(&world, SHARE "spread", "0");
    check_granted_slots(&world, SHARE "spread", "4");
    check_granted_slots(&world, SHARE "spread", "8");
    check_granted_slots(&world, SHARE "spread", "2");
    check_granted_slots(&world, "gpus=2 policy=spread", "5 6");
    check_granted_slots(&world, "gpus=2 policy=spread", "9 10");
    world_finish(&world);
}

/* One decision for two replicas. */
static void replicas_are_rated_one_after_the_other(void **state)
{
    struct world world;

    (void)state;
    world_init_nodes(&world, NULL, 0);
    check_granted_slots(&world, "policy=pack", "0");
    check_granted_slots(&world, "gpus=2 replicas=2 policy=pack", "2 3 4 5");
    check_granted_slots(&world, "gpus=1 replicas=2 policy=spread", "8 10");
    world_finish(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pack_fills_devices_then_nodes),
        cmocka_unit_test(spread_takes_nodes_in_turn),
        cmocka_unit_test(replicas_are_rated_one_after_the_other),
    };

    return cmocka_run_group_tests_name("engine_nodes", tests, NULL, NULL);
}
