/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims of an engine with several nodes by policies of the simulator: what the engine shows them.
 */
#include "support/engine/engine_steps.h"

#include "sim/baselines/baselines.h"

enum { HOSTS = 3, DEVICES = 4 };

/* Starts an engine with three hosts of four devices each, two on each NUMA node. */
static void begin(struct world *world, const struct policy *policy, uint64_t seed)
{
    const struct engine_settings settings = {
        .time_slice_tenants = 10, .policy = policy, .seed = seed};
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

/* Claims, and checks that exactly these slots are granted at once. Returns the lease. */
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

#define SHARE "sharing=time-slice share=250"

/* CPUs that leases take from a host count. */
static void bestfit_sees_cpus(void **state)
{
    struct world world;

    (void)state;
    begin(&world, &baseline_bestfit, 0);
    gets(&world, "device=nvidia4 cpus=8000 policy=first", "4");
    gets(&world, "device=nvidia8 cpus=4000 policy=first", "8");
    gets(&world, "cpus=8000", "5");
    gets(&world, "cpus=8000", "9");
    gets(&world, "cpus=8000", "0");
    world_finish(&world);
}

/* Holders of one device, of two devices, and of shares. */
static void clustering_sees_holders(void **state)
{
    struct world world;

    (void)state;
    begin(&world, &baseline_clustering, 0);
    gets(&world, "device=nvidia0,nvidia1 gpus=2 policy=first", "0 1");
    gets(&world, "device=nvidia4 policy=first", "4");
    gets(&world, "device=nvidia8 " SHARE " policy=first", "8");
    gets(&world, "", "5");
    gets(&world, "gpus=2", "2 3");
    gets(&world, SHARE, "8");
    world_finish(&world);
}

/* Engines with the same seed draw the same devices. */
static void random_draws_from_the_seed(void **state)
{
    uint32_t slots[3][HOSTS * DEVICES];
    size_t same = 0;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct world world;

        begin(&world, &baseline_random, i / 2 * 1000);
        for (size_t j = 0; j < HOSTS * DEVICES; j++)
            slots[i][j] = lease_in(&world, granted_to(&world, "")).slots[0];
        world_finish(&world);
    }
    assert_memory_equal(slots[0], slots[1], sizeof(slots[0]));
    for (size_t j = 0; j < HOSTS * DEVICES; j++)
        same += slots[0][j] == slots[2][j];
    assert_true(same < HOSTS * DEVICES / 2);
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
