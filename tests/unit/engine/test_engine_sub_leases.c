/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims and leases within a lease.
 */
#include "support/unit.h"

#include "support/engine/engine_steps.h"

/* Checks that no request is opened, because there is no such lease. */
#define check_no_lease(world, words, wanted)                                                       \
    do {                                                                                           \
        struct engine_request *request_ = NULL;                                                    \
        struct berth_error error_ = {0};                                                           \
        assert_int_equal(world_open((world), (words), &request_, &error_), BERTH_ERROR_NOT_FOUND); \
        assert_string_equal(error_.message, (wanted));                                             \
        assert_null(request_);                                                                     \
    } while (0)

static void claims_within_a_lease_get_only_its_devices(void **state)
{
    struct world world;
    struct engine_request *one;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2,nvidia3");
    granted_to(&world, "gpus=2 device=nvidia1,nvidia3");
    one = world_request(&world, "parent=1");
    world_forget(&world);
    granted(&world, one);
    granted(&world, one);
    waits(&world, one);
    check_told(&world, "granted lease 2: slots 1\n"
                       "granted lease 3: slots 3\n"
                       "queued claim 4\n");
    assert_int_equal(lease_in(&world, 2).parent, 1);
    assert_int_equal(claim_in(&world, 4).parent, 1);
    assert_int_equal(slot_in(&world, 1).lease, 1);
    check_pending(&world, 1);
    world_finish(&world);
}

static void siblings_are_as_exclusive_as_any_two_leases(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "gpus=2");
    granted_to(&world, "parent=1");
    waits_with(&world, "parent=1 gpus=2");
    waits_with(&world, "parent=1");
    world_forget(&world);
    released(&world, 2);
    check_told(&world, "released lease 2\n"
                       "granted lease 5 of claim 3: slots 0,1\n");
    world_finish(&world);
}

static void they_wait_for_nobody_outside(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, NULL);
    waits_with(&world, "gpus=2 priority=high");
    granted_to(&world, "parent=1 priority=low");
    released(&world, 3); /* devices that are free within stay taken outside */
    check_waiting(&world, "2");
    world_finish(&world);
}

static void what_is_within_ends_with_the_lease(void **state)
{
    struct world world;
    struct engine_request *one;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "gpus=2");
    one = world_request(&world, "parent=1");
    granted(&world, one);
    granted(&world, one);
    waits(&world, one);
    waits_with(&world, "parent=1 gpus=2 priority=high");
    waits_with(&world, NULL);
    world_forget(&world);
    released(&world, 1);
    check_told(&world, "refused claim 5: its lease ended\n"
                       "refused claim 4: its lease ended\n"
                       "released lease 2\n"
                       "released lease 3\n"
                       "forgotten 2\n"
                       "forgotten 3\n"
                       "released lease 1\n"
                       "granted lease 7 of claim 6: slots 0\n");
    check_pending(&world, 0);
    world_finish(&world);
}

static void what_is_within_ends_when_the_lease_drains(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, NULL);
    granted_to(&world, "parent=1");
    waits_with(&world, "parent=1");
    world_forget(&world);
    assert_int_equal(engine_drain_lease(world.engine, 1, NULL), 0);
    check_told(&world, "refused claim 3: its lease ended\n"
                       "released lease 2\n"
                       "forgotten 2\n"
                       "forgotten 3\n"
                       "draining lease 1\n");
    check_no_lease(&world, "parent=1", "cannot claim within lease 1: no such lease");
    world_finish(&world);
}

static void a_lease_that_expired_has_not_ended_within(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "gpus=2 time=10");
    granted_to(&world, "parent=1");
    world_forget(&world);
    engine_advance(world.engine, 10);
    check_told(&world, "expired lease 1\n");
    assert_int_equal(lease_in(&world, 2).state, LEASE_HELD);
    granted_to(&world, "parent=1");
    world_forget(&world);
    vacated(&world, 1);
    check_told(&world, "released lease 2\n"
                       "released lease 3\n"
                       "forgotten 2\n"
                       "forgotten 3\n"
                       "released lease 1\n");
    world_finish(&world);
}

static void leases_lie_within_leases_within_leases(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    granted_to(&world, "gpus=3");
    granted_to(&world, "gpus=2 parent=1");
    granted_to(&world, "parent=2");
    granted_to(&world, "parent=2");
    waits_with(&world, "parent=2");
    granted_to(&world, "parent=1");
    assert_int_equal(lease_in(&world, 6).slots[0], 2);
    check_impossible(
        &world, "parent=2 gpus=3",
        "requested 3 devices, but only 2 of 3 devices are suitable: 1 is outside the lease");
    world_forget(&world);
    released(&world, 1);
    check_told(&world, "refused claim 5: its lease ended\n"
                       "released lease 3\n"
                       "released lease 4\n"
                       "forgotten 3\n"
                       "forgotten 4\n"
                       "forgotten 5\n"
                       "forgotten 7\n"
                       "released lease 2\n"
                       "released lease 6\n"
                       "forgotten 2\n"
                       "forgotten 6\n"
                       "released lease 1\n");
    world_finish(&world);
}

static void ending_the_middle_one_frees_its_devices_for_its_siblings(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "gpus=2");
    granted_to(&world, "gpus=2 parent=1");
    granted_to(&world, "parent=2");
    waits_with(&world, "parent=1");
    world_forget(&world);
    released(&world, 2);
    check_told(&world, "released lease 3\n"
                       "forgotten 3\n"
                       "released lease 2\n"
                       "granted lease 5 of claim 4: slots 0\n");
    world_finish(&world);
}

/* A device with 100 bytes, and a lease of half its share and 50 bytes. */
static void world_init_half(struct world *world)
{
    struct machine machine = {0};

    machine_add_ids(&machine, "nvidia0");
    machine.devices.items[0].memory_total = optional_number_of(100);
    world_init_with(world, &machine, NULL);
    granted_to(world, "sharing=time-slice share=500 memory=50");
}

static void the_share_of_a_lease_is_all_there_is_within(void **state)
{
    struct world world;

    (void)state;
    world_init_half(&world);
    granted_to(&world, "parent=1 sharing=time-slice share=300");
    waits_with(&world, "parent=1 sharing=time-slice share=201");
    cancelled(&world, 3);
    granted_to(&world, "parent=1 sharing=time-slice share=200");
    assert_int_equal(
        engine_would_grant(world.engine,
                           world_request(&world, "parent=1 sharing=time-slice share=501"), NULL),
        BERTH_ERROR_IMPOSSIBLE);
    world_finish(&world);
}

static void the_memory_of_a_lease_is_all_there_is_within(void **state)
{
    struct world world;

    (void)state;
    world_init_half(&world);
    granted_to(&world, "parent=1 sharing=time-slice memory=30");
    waits_with(&world, "parent=1 sharing=time-slice memory=21");
    cancelled(&world, 3);
    granted_to(&world, "parent=1 sharing=time-slice memory=20");
    check_impossible(&world, "parent=1 sharing=time-slice memory=51",
                     "requested 1 device, shared by time-slice, 51 B reserved, but the only device "
                     "here has less memory than requested, or an unknown amount");
    world_finish(&world);
}

static void a_tenant_within_gets_an_even_part_of_the_lease(void **state)
{
    struct world world;
    struct engine_request *part;

    (void)state;
    world_init_half(&world);
    part = world_request(&world, "parent=1 sharing=time-slice");
    for (int i = 0; i < 4; i++)
        assert_int_equal(lease_in(&world, granted(&world, part)).share, SHARE_WHOLE / 8);
    waits(&world, part);
    world_finish(&world);
}

static void an_exclusive_claim_within_a_part_takes_the_whole_part(void **state)
{
    struct world world;

    (void)state;
    world_init_half(&world);
    assert_int_equal(lease_in(&world, granted_to(&world, "parent=1")).share, SHARE_WHOLE / 2);
    waits_with(&world, "parent=1 sharing=time-slice share=1");
    world_finish(&world);
}

static void a_part_is_not_shared_in_another_mode(void **state)
{
    struct world world;

    (void)state;
    world_init_half(&world);
    check_impossible(
        &world, "parent=1 sharing=mps",
        "requested 1 device, shared by mps, but the only device here is outside the lease");
    granted_to(&world, "parent=1");
    check_impossible(
        &world, "parent=2 sharing=mps",
        "requested 1 device, shared by mps, but the only device here is outside the lease");
    world_finish(&world);
}

static void a_whole_device_is_shared_within_in_any_mode(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "gpus=2");
    granted_to(&world, "parent=1 sharing=mps");
    granted_to(&world, "parent=1 sharing=time-slice");
    assert_int_equal(slot_in(&world, 0).sharing, SHARING_EXCLUSIVE);
    world_finish(&world);
}

static void there_is_nothing_to_claim_within_a_lease_that_is_not_there(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    check_no_lease(&world, "parent=1", "cannot claim within lease 1: no such lease");
    granted_to(&world, NULL);
    waits_with(&world, NULL);
    check_no_lease(&world, "parent=2", "cannot claim within lease 2: no such lease");
    world_finish(&world);
}

static void a_request_outlives_the_lease_that_it_was_made_within(void **state)
{
    struct berth_error error = {0};
    struct world world;
    struct engine_request *request;
    uint32_t slot;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, NULL);
    request = world_request(&world, "parent=1");
    released(&world, 1);
    check_refused(&world, request, BERTH_ERROR_NOT_FOUND,
                  "cannot claim within lease 1: it has ended");
    assert_int_equal(engine_pick(world.engine, request, &slot, 1, &error), BERTH_ERROR_NOT_FOUND);
    assert_int_equal(engine_request_what(request)->replicas, 1);
    world_forget(&world);
    engine_request_close(world.engine, request);
    check_told(&world, ""); /* its event was sent when the lease ended */
    world_finish(&world);
}

static void limits_do_not_count_within(void **state)
{
    struct world world;
    struct engine_request *one;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    limit_user(&world, 5, 2000);
    granted_to(&world, "uid=5 gpus=2");
    one = world_request(&world, "uid=5 parent=1");
    granted(&world, one);
    granted(&world, one);
    waits(&world, one);
    limit_user(&world, 5, 1000);
    check_pending(&world, 1);
    released(&world, 2);
    check_pending(&world, 0);
    world_finish(&world);
}

static void opportunistic_leases_give_way_within(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "device=nvidia0");
    granted_to(&world, "opportunistic");
    granted_to(&world, "parent=1 opportunistic");
    world_forget(&world);
    waits(&world, world_request(&world, "parent=1"));
    check_told(&world, "request 4\n"
                       "queued claim 4\n"
                       "notice lease 3\n");
    world_finish(&world);
}

static void time_passes_within_as_outside(void **state)
{
    struct engine_settings settings = {.age_step = 7};
    struct world world;

    (void)state;
    world_init_settings(&world, "nvidia0", &settings);
    world.with_times = true;
    granted_to(&world, "time=100");
    granted_to(&world, "parent=1 time=10");
    waits_until(&world, world_request(&world, "parent=1"), 9);
    waits_with(&world, "parent=1 priority=low");
    world_forget(&world);
    check_next_time(&world, 7);
    engine_advance(world.engine, 20);
    check_told(&world, "@9 refused claim 3: timed out\n"
                       "@10 expired lease 2\n");
    assert_int_equal(claim_in(&world, 4).class_now, PRIORITY_HIGH);
    check_reserved(&world, 4, "0", 20);
    world_finish(&world);
}

static void a_lost_device_is_lost_within_too(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "gpus=2");
    granted_to(&world, "parent=1");
    waits_with(&world, "parent=1 gpus=2");
    engine_block(world.engine, 1, BLOCK_DIRTY);
    world_forget(&world);
    engine_device_gone(world.engine, 0);
    check_told(&world, "device in slot 0\n"
                       "refused claim 3: impossible\n");
    /* Blocks do not matter within a lease. */
    granted_to(&world, "parent=1");
    world_finish(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims_within_a_lease_get_only_its_devices),
        cmocka_unit_test(siblings_are_as_exclusive_as_any_two_leases),
        cmocka_unit_test(they_wait_for_nobody_outside),
        cmocka_unit_test(what_is_within_ends_with_the_lease),
        cmocka_unit_test(what_is_within_ends_when_the_lease_drains),
        cmocka_unit_test(a_lease_that_expired_has_not_ended_within),
        cmocka_unit_test(leases_lie_within_leases_within_leases),
        cmocka_unit_test(ending_the_middle_one_frees_its_devices_for_its_siblings),
        cmocka_unit_test(the_share_of_a_lease_is_all_there_is_within),
        cmocka_unit_test(the_memory_of_a_lease_is_all_there_is_within),
        cmocka_unit_test(a_tenant_within_gets_an_even_part_of_the_lease),
        cmocka_unit_test(an_exclusive_claim_within_a_part_takes_the_whole_part),
        cmocka_unit_test(a_part_is_not_shared_in_another_mode),
        cmocka_unit_test(a_whole_device_is_shared_within_in_any_mode),
        cmocka_unit_test(there_is_nothing_to_claim_within_a_lease_that_is_not_there),
        cmocka_unit_test(a_request_outlives_the_lease_that_it_was_made_within),
        cmocka_unit_test(limits_do_not_count_within),
        cmocka_unit_test(opportunistic_leases_give_way_within),
        cmocka_unit_test(time_passes_within_as_outside),
        cmocka_unit_test(a_lost_device_is_lost_within_too),
    };

    return cmocka_run_group_tests_name("engine_sub_leases", tests, NULL, NULL);
}
