/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims in an engine with several nodes, by each policy that rates nodes.
 */
#include "support/engine/engine_steps.h"

enum { HOSTS = 3, DEVICES = 4 };

/* Three hosts with four devices each, two on each NUMA node. */
static void begin(struct world *world, uint64_t seed)
{
    const struct engine_settings settings = {.time_slice_tenants = 10, .seed = seed};
    struct machine machine = {0};

    for (uint32_t host = 0; host < HOSTS; host++) {
        struct host *place = vector_append(&machine.hosts);

        assert_non_null(place);
        place->cpus = optional_number_of(16000);
        for (uint32_t i = 0; i < DEVICES; i++) {
            struct device_id id = {VENDOR_NVIDIA, host * DEVICES + i, DEVICE_NO_MIG};
            struct device *device = machine_add(&machine, id);

            device->host = host;
            device->numa = optional_number_of(i / 2);
        }
    }
    world_init_with(world, &machine, &settings);
}

/* Checks that a claim gets these slots at once. Returns the lease. */
static uint64_t gets(struct world *world, const char *words, const char *slots)
{
    uint64_t lease = granted_to(world, words);
    struct lease_view view = lease_in(world, lease);
    struct text found = {0};

    for (uint32_t i = 0; i < view.slot_count; i++)
        text_append_format(&found, "%s%u", i == 0 ? "" : " ", view.slots[i]);
    assert_string_equal(text_string(&found), slots);
    text_finish(&found);
    return lease;
}

#define SHARE "sharing=time-slice share=250 policy="

static void pack_fills_devices_then_nodes(void **state)
{
    struct world world;
    uint64_t first;

    (void)state;
    begin(&world, 0);
    first = gets(&world, SHARE "pack", "0");
    gets(&world, SHARE "pack", "0");
    gets(&world, "gpus=2 policy=pack", "2 3");
    gets(&world, "gpus=2 policy=pack", "4 5");
    gets(&world, "sharing=time-slice share=750 policy=pack", "1");
    gets(&world, SHARE "pack", "1"); /* a full device is not used */
    gets(&world, SHARE "pack", "0");
    assert_int_equal(engine_release(world.engine, first, NULL), 0);
    gets(&world, "sharing=time-slice share=500 policy=pack", "0");
    gets(&world, "gpus=3 policy=pack", "8 9 10");
    gets(&world, "policy=pack", "11");
    gets(&world, SHARE "pack", "6");
    world_finish(&world);
}

static void spread_takes_nodes_in_turn(void **state)
{
    struct world world;

    (void)state;
    begin(&world, 0);
    gets(&world, SHARE "spread", "0");
    gets(&world, SHARE "spread", "4");
    gets(&world, SHARE "spread", "8");
    gets(&world, SHARE "spread", "2");
    gets(&world, "gpus=2 policy=spread", "5 6");
    gets(&world, "gpus=2 policy=spread", "9 10");
    world_finish(&world);
}

/* One decision for two replicas. */
static void replicas_are_rated_one_after_the_other(void **state)
{
    struct world world;

    (void)state;
    begin(&world, 0);
    gets(&world, "policy=pack", "0");
    gets(&world, "gpus=2 replicas=2 policy=pack", "2 3 4 5");
    gets(&world, "gpus=1 replicas=2 policy=spread", "8 10");
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
