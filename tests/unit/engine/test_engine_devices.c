/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices that appear, disappear, become sick or are blocked; hosts.
 */
#include "support/unit.h"

#include "support/engine/engine_steps.h"

/* Adds a device with only an id. Returns its slot. */
static uint32_t device_added(struct world *world, const char *id)
{
    struct device device = {.id = id_of(id)};
    uint32_t slot = UINT32_MAX;

    assert_int_equal(engine_device_add(world->engine, &device, &slot, NULL), 0);
    return slot;
}

static void a_new_device_gets_the_next_slot_and_starts_a_claim(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, NULL);
    waits_with(&world, NULL);
    world_forget(&world);
    assert_int_equal(device_added(&world, "nvidia1"), 1);
    check_told(&world, "device in slot 1\n"
                       "granted lease 3 of claim 2: slots 1\n");
    world_finish(&world);
}

static void a_first_device_makes_an_empty_engine_useful(void **state)
{
    struct world world;
    struct engine_request *one;

    (void)state;
    world_init(&world, "");
    one = world_request(&world, NULL);
    check_refused(&world, one, BERTH_ERROR_NO_DEVICE, "this pool has no devices");
    assert_int_equal(device_added(&world, "amd0"), 0);
    granted(&world, one);
    world_finish(&world);
}

static void a_device_that_comes_back_gets_its_old_slot(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    engine_device_gone(world.engine, 0);
    assert_false(slot_in(&world, 0).present);
    assert_int_equal(lease_in(&world, granted_to(&world, NULL)).slots[0], 1);
    assert_int_equal(device_added(&world, "nvidia0"), 0);
    assert_true(slot_in(&world, 0).present);
    assert_int_equal(lease_in(&world, granted_to(&world, NULL)).slots[0], 0);
    assert_int_equal(engine_machine(world.engine)->devices.count, 2);
    world_finish(&world);
}

static void a_device_that_comes_back_with_other_facts_is_judged_by_them(void **state)
{
    struct device device = {.id = id_of("nvidia0"), .memory_total = optional_number_of(100)};
    struct world world;
    struct engine_request *large;
    uint32_t slot;

    (void)state;
    world_init(&world, "nvidia0");
    large = world_request(&world, "min-memory=100");
    assert_int_equal(engine_would_grant(world.engine, large, NULL), BERTH_ERROR_IMPOSSIBLE);
    engine_device_gone(world.engine, 0);
    assert_int_equal(engine_device_add(world.engine, &device, &slot, NULL), 0);
    granted(&world, large);
    world_finish(&world);
}

static void there_is_no_room_for_more_devices_than_were_foreseen(void **state)
{
    struct engine_settings settings = {.slots_max = 2};
    struct device device = {.id = id_of("nvidia2"), .name = copy_of("one too many")};
    struct berth_error error = {0};
    struct world world;
    uint32_t slot = 77;

    (void)state;
    world_init_settings(&world, "nvidia0", &settings);
    assert_int_equal(engine_slots_max(world.engine), 2);
    assert_int_equal(device_added(&world, "nvidia1"), 1);
    world_forget(&world);
    assert_int_equal(engine_device_add(world.engine, &device, &slot, &error), BERTH_ERROR_LIMIT);
    assert_string_equal(error.message, "expected at most 2 devices, got one more: nvidia2");
    assert_int_equal(slot, 77);
    check_told(&world, "");
    assert_string_equal(device.name, "one too many");
    device_finish(&device);
    assert_int_equal(device_added(&world, "nvidia0"), 0);
    world_finish(&world);
}

static void there_is_room_for_some_more_unless_said(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    assert_true(engine_slots_max(world.engine) > 2);
    world_finish(&world);
}

static void an_engine_of_more_devices_than_slots_is_refused(void **state)
{
    struct engine_settings settings = {.slots_max = 1};
    struct berth_error error = {0};
    struct machine machine = {0};
    struct engine *engine = NULL;

    (void)state;
    machine_add_ids(&machine, "nvidia0,nvidia1");
    assert_int_equal(engine_create(&machine, &settings, &engine, &error), BERTH_ERROR_LIMIT);
    assert_string_equal(error.message, "expected at most 1 devices, got 2");
    assert_int_equal(machine.devices.count, 2);
    assert_null(engine);
    machine_finish(&machine);
}

static void a_device_in_no_host_is_refused(void **state)
{
    struct device device = {.id = id_of("nvidia1"), .host = 1};
    struct berth_error error = {0};
    struct machine machine = {0};
    struct engine *engine = NULL;
    struct world world;
    uint32_t slot = 77;

    (void)state;
    world_init(&world, "nvidia0");
    assert_int_equal(engine_device_add(world.engine, &device, &slot, &error), BERTH_ERROR_INVALID);
    assert_string_equal(error.message, "nvidia1: expected a known host, got 1");
    world_finish(&world);
    machine_add_ids(&machine, "nvidia0");
    machine.devices.items[0].host = 3;
    assert_int_equal(engine_create(&machine, NULL, &engine, &error), BERTH_ERROR_INVALID);
    machine_finish(&machine);
}

static void a_lost_device_refuses_what_became_impossible(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, NULL);
    waits_with(&world, "gpus=2");
    waits_with(&world, "device=nvidia0");
    waits_with(&world, "device=nvidia1");
    world_forget(&world);
    engine_device_gone(world.engine, 1);
    check_told(&world, "device in slot 1\n"
                       "refused claim 2: impossible\n"
                       "refused claim 4: impossible\n");
    check_waiting(&world, "3");
    world_finish(&world);
}

static void leases_on_a_lost_device_go_on(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "gpus=2");
    waits_with(&world, NULL);
    engine_device_gone(world.engine, 0);
    engine_device_gone(world.engine, 0);
    assert_int_equal(lease_in(&world, 1).state, LEASE_HELD);
    world_forget(&world);
    released(&world, 1);
    check_told(&world, "released lease 1\n"
                       "granted lease 3 of claim 2: slots 1\n");
    world_finish(&world);
}

static void all_means_fewer_when_one_is_lost(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    granted_to(&world, "device=nvidia2");
    waits_with(&world, "gpus=all");
    world_forget(&world);
    engine_device_gone(world.engine, 2);
    check_told(&world, "device in slot 2\n"
                       "granted lease 3 of claim 2: slots 0,1\n");
    world_finish(&world);
}

static void a_sick_device_is_not_given_out_until_it_is_well(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    engine_device_health(world.engine, 0, HEALTH_SICK);
    check_why(&world, waits_with(&world, NULL), "needs 1: 1 is sick", TIME_NEVER);
    world_forget(&world);
    engine_device_health(world.engine, 0, HEALTH_SICK);
    check_told(&world, "");
    engine_device_health(world.engine, 0, HEALTH_UNKNOWN);
    check_told(&world, "device in slot 0\n"
                       "granted lease 2 of claim 1: slots 0\n");
    world_finish(&world);
}

static void every_block_keeps_a_device_back_and_has_its_words(void **state)
{
    static const struct {
        enum block block;
        const char *words;
    } rows[] = {
        {BLOCK_SQUATTED, "1 is used without a lease"},
        {BLOCK_DIRTY, "1 is not cleaned up yet"},
        {BLOCK_DRAINED, "1 is drained"},
        {BLOCK_ELSEWHERE, "1 is held by another pool"},
        {BLOCK_ASLEEP, "1 is asleep"},
    };
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct text why = {0};
        uint64_t claim;

        engine_block(world.engine, 0, rows[i].block);
        assert_int_equal(slot_in(&world, 0).blocks, rows[i].block);
        claim = waits_with(&world, NULL);
        text_append(&why, "needs 1: ");
        text_append(&why, rows[i].words);
        check_why(&world, claim, text_string(&why), TIME_NEVER);
        text_finish(&why);
        engine_unblock(world.engine, 0, rows[i].block);
        assert_false(engine_get_claim(world.engine, claim, &(struct claim_view){0}));
        released(&world, claim + 1);
    }
    world_finish(&world);
}

static void a_device_is_free_when_its_last_block_is_gone(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    engine_block(world.engine, 0, BLOCK_DIRTY);
    engine_block(world.engine, 0, BLOCK_SQUATTED);
    engine_block(world.engine, 0, BLOCK_DIRTY);
    check_told(&world, "device in slot 0\n"
                       "device in slot 0\n");
    waits_with(&world, NULL);
    engine_unblock(world.engine, 0, BLOCK_DIRTY);
    check_pending(&world, 1);
    engine_unblock(world.engine, 0, BLOCK_SQUATTED);
    check_pending(&world, 0);
    world_finish(&world);
}

static void a_block_or_an_illness_ends_no_lease(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, "sharing=time-slice");
    engine_block(world.engine, 0, BLOCK_DRAINED);
    engine_device_health(world.engine, 0, HEALTH_SICK);
    assert_int_equal(lease_in(&world, 1).state, LEASE_HELD);
    waits_with(&world, "sharing=time-slice");
    world_finish(&world);
}

static void blocked_and_sick_devices_stay_so_in_reservations(void **state)
{
    struct world world;
    uint64_t wide;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    granted_to(&world, "device=nvidia0 time=10");
    granted_to(&world, "device=nvidia1 time=20");
    engine_block(world.engine, 2, BLOCK_DIRTY);
    wide = waits_with(&world, "gpus=2");
    check_reserved(&world, wide, "0,1", 20);
    engine_device_health(world.engine, 1, HEALTH_SICK);
    check_reserved(&world, wide, "0,1,2", TIME_NEVER);
    world_finish(&world);
}

/* Two hosts with two devices each, and this many thousandths of a CPU and bytes each. */
static void world_init_hosts(struct world *world, uint64_t cpus, uint64_t memory)
{
    struct machine machine = {0};

    machine_add_ids(&machine, "nvidia0,nvidia1,nvidia2,nvidia3");
    for (size_t i = 0; i < 2; i++) {
        struct host *host = vector_append(&machine.hosts);

        assert_non_null(host);
        host->cpus = optional_number_of(cpus);
        host->memory = optional_number_of(memory);
        machine.devices.items[2 + i].host = 1;
    }
    world_init_with(world, &machine, NULL);
}

static void the_cpus_of_a_host_limit_what_it_carries(void **state)
{
    struct world world;
    struct engine_request *request;

    (void)state;
    world_init_hosts(&world, 4000, 100);
    request = world_request(&world, "cpus=3000");
    assert_int_equal(lease_in(&world, granted(&world, request)).slots[0], 0);
    assert_int_equal(lease_in(&world, granted(&world, request)).slots[0], 2);
    waits(&world, request);
    released(&world, 1);
    check_pending(&world, 0);
    assert_int_equal(engine_would_grant(world.engine, world_request(&world, "cpus=4001"), NULL),
                     BERTH_ERROR_IMPOSSIBLE);
    world_finish(&world);
}

static void the_memory_of_a_host_limits_what_it_carries(void **state)
{
    struct world world;

    (void)state;
    world_init_hosts(&world, 4000, 100);
    granted_to(&world, "host-memory=60 device=nvidia0");
    waits_with(&world, "host-memory=41 device=nvidia1");
    cancelled(&world, 2);
    granted_to(&world, "host-memory=40 device=nvidia1");
    world_finish(&world);
}

static void replicas_are_spread_over_hosts_by_their_cpus(void **state)
{
    struct world world;

    (void)state;
    world_init_hosts(&world, 4000, 100);
    granted(&world, world_request(&world, "replicas=2 cpus=3000"));
    check_told(&world, "request 1\n"
                       "granted lease 1: slots 0,2\n");
    world_finish(&world);
}

static void a_replica_takes_its_cpus_once_however_many_devices_it_has(void **state)
{
    struct world world;

    (void)state;
    world_init_hosts(&world, 4000, 100);
    granted_to(&world, "gpus=2 replicas=2 cpus=4000");
    released(&world, 1);
    granted_to(&world, "gpus=1 cpus=4000 device=nvidia0");
    waits_with(&world, "gpus=1 cpus=1 device=nvidia1");
    granted_to(&world, "device=nvidia2 cpus=4000");
    world_finish(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_device_gets_the_next_slot_and_starts_a_claim),
        cmocka_unit_test(a_first_device_makes_an_empty_engine_useful),
        cmocka_unit_test(a_device_that_comes_back_gets_its_old_slot),
        cmocka_unit_test(a_device_that_comes_back_with_other_facts_is_judged_by_them),
        cmocka_unit_test(there_is_no_room_for_more_devices_than_were_foreseen),
        cmocka_unit_test(there_is_room_for_some_more_unless_said),
        cmocka_unit_test(an_engine_of_more_devices_than_slots_is_refused),
        cmocka_unit_test(a_device_in_no_host_is_refused),
        cmocka_unit_test(a_lost_device_refuses_what_became_impossible),
        cmocka_unit_test(leases_on_a_lost_device_go_on),
        cmocka_unit_test(all_means_fewer_when_one_is_lost),
        cmocka_unit_test(a_sick_device_is_not_given_out_until_it_is_well),
        cmocka_unit_test(every_block_keeps_a_device_back_and_has_its_words),
        cmocka_unit_test(a_device_is_free_when_its_last_block_is_gone),
        cmocka_unit_test(a_block_or_an_illness_ends_no_lease),
        cmocka_unit_test(blocked_and_sick_devices_stay_so_in_reservations),
        cmocka_unit_test(the_cpus_of_a_host_limit_what_it_carries),
        cmocka_unit_test(the_memory_of_a_host_limits_what_it_carries),
        cmocka_unit_test(replicas_are_spread_over_hosts_by_their_cpus),
        cmocka_unit_test(a_replica_takes_its_cpus_once_however_many_devices_it_has),
    };

    return cmocka_run_group_tests_name("engine_devices", tests, NULL, NULL);
}
