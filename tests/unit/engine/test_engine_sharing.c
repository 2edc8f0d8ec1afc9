/* SPDX-License-Identifier: Apache-2.0
 *
 * Several leases on one device.
 */
#include "support/unit.h"

#include "support/engine/engine_steps.h"

/* One device with this many bytes of memory. */
static void world_init_memory(struct world *world, uint64_t bytes)
{
    struct machine machine = {0};

    machine_add_ids(&machine, "nvidia0");
    machine.devices.items[0].memory_total = optional_number_of(bytes);
    world_init_with(world, &machine, NULL);
}

static void four_tenants_share_a_device_by_time_slices(void **state)
{
    struct world world;
    struct engine_request *request;

    (void)state;
    world_init(&world, "nvidia0");
    request = world_request(&world, "sharing=time-slice");
    for (int i = 0; i < 4; i++)
        assert_int_equal(lease_in(&world, granted(&world, request)).share, SHARE_WHOLE / 4);
    waits(&world, request);
    assert_int_equal(slot_in(&world, 0).tenants, 4);
    assert_int_equal(slot_in(&world, 0).share_used, SHARE_WHOLE);
    assert_int_equal(slot_in(&world, 0).sharing, SHARING_TIME_SLICE);
    world_finish(&world);
}

static void eight_tenants_share_a_device_by_mps(void **state)
{
    struct world world;
    struct engine_request *request;

    (void)state;
    world_init(&world, "nvidia0");
    request = world_request(&world, "sharing=mps uid=5");
    for (int i = 0; i < 8; i++)
        assert_int_equal(lease_in(&world, granted(&world, request)).share, SHARE_WHOLE / 8);
    waits(&world, request);
    assert_int_equal(slot_in(&world, 0).uid, 5);
    world_finish(&world);
}

static void the_number_of_tenants_is_a_setting(void **state)
{
    struct engine_settings settings = {.time_slice_tenants = 2, .mps_tenants = 3};
    struct world world;
    struct engine_request *slices, *mps;

    (void)state;
    world_init_settings(&world, "nvidia0,nvidia1", &settings);
    slices = world_request(&world, "device=nvidia0 sharing=time-slice");
    mps = world_request(&world, "device=nvidia1 sharing=mps");
    assert_int_equal(lease_in(&world, granted(&world, slices)).share, SHARE_WHOLE / 2);
    granted(&world, slices);
    waits(&world, slices);
    for (int i = 0; i < 3; i++)
        assert_int_equal(lease_in(&world, granted(&world, mps)).share, SHARE_WHOLE / 3);
    waits(&world, mps);
    world_finish(&world);
}

static void shares_sum_up_to_the_whole_and_no_further(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, "sharing=time-slice share=600");
    waits_with(&world, "sharing=time-slice share=401");
    cancelled(&world, 2);
    granted_to(&world, "sharing=time-slice share=400");
    waits_with(&world, "sharing=time-slice share=1");
    world_finish(&world);
}

static void tenants_are_counted_even_where_share_is_left(void **state)
{
    struct world world;
    struct engine_request *request;

    (void)state;
    world_init(&world, "nvidia0");
    request = world_request(&world, "sharing=time-slice share=100");
    for (int i = 0; i < 4; i++)
        granted(&world, request);
    waits(&world, request);
    assert_int_equal(slot_in(&world, 0).share_used, 400000);
    world_finish(&world);
}

static void reserved_memory_sums_up_to_the_device_and_no_further(void **state)
{
    struct world world;

    (void)state;
    world_init_memory(&world, 100);
    granted_to(&world, "sharing=time-slice memory=60");
    waits_with(&world, "sharing=time-slice memory=41");
    cancelled(&world, 2);
    granted_to(&world, "sharing=time-slice memory=40");
    assert_int_equal(slot_in(&world, 0).memory_used, 100);
    waits_with(&world, "sharing=time-slice memory=1");
    cancelled(&world, 4);
    granted_to(&world, "sharing=time-slice");
    world_finish(&world);
}

static void memory_is_reserved_only_where_it_is_known(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    check_impossible(&world, "sharing=mps memory=1",
                     "requested 1 device, shared by mps, 1 B reserved, but the only device here "
                     "has less memory than requested, or an unknown amount");
    world_finish(&world);
    world_init_memory(&world, 100);
    check_impossible(&world, "sharing=mps memory=101",
                     "requested 1 device, shared by mps, 101 B reserved, but the only device here "
                     "has less memory than requested, or an unknown amount");
    world_finish(&world);
}

static void a_device_has_one_mode_at_a_time(void **state)
{
    struct world world;
    uint64_t lease;

    (void)state;
    world_init(&world, "nvidia0");
    lease = granted_to(&world, "sharing=time-slice");
    waits_with(&world, "sharing=mps");
    world_forget(&world);
    released(&world, lease);
    check_told(&world, "released lease 1\n"
                       "granted lease 3 of claim 2: slots 0\n");
    assert_int_equal(slot_in(&world, 0).sharing, SHARING_MPS);
    world_finish(&world);
}

static void another_mode_goes_to_another_device(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    assert_int_equal(lease_in(&world, granted_to(&world, "sharing=time-slice")).slots[0], 0);
    assert_int_equal(lease_in(&world, granted_to(&world, "sharing=mps")).slots[0], 1);
    assert_int_equal(lease_in(&world, granted_to(&world, "sharing=time-slice")).slots[0], 0);
    assert_int_equal(lease_in(&world, granted_to(&world, "sharing=mps")).slots[0], 1);
    world_finish(&world);
}

static void mps_tenants_of_a_device_are_of_one_user(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, "sharing=mps uid=1");
    waits_with(&world, "sharing=mps uid=2");
    cancelled(&world, 2);
    granted_to(&world, "sharing=mps uid=1");
    world_finish(&world);
}

static void time_slices_are_shared_by_users(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, "sharing=time-slice uid=1");
    granted_to(&world, "sharing=time-slice uid=2");
    world_finish(&world);
}

static void an_exclusive_claim_never_gets_a_shared_device(void **state)
{
    struct world world;
    uint64_t first, second;

    (void)state;
    world_init(&world, "nvidia0");
    first = granted_to(&world, "sharing=time-slice share=1");
    second = granted_to(&world, "sharing=time-slice share=1");
    waits_with(&world, NULL);
    released(&world, first);
    check_pending(&world, 1);
    released(&world, second);
    check_pending(&world, 0);
    world_finish(&world);
}

static void a_shared_claim_never_gets_an_exclusive_device(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, NULL);
    waits_with(&world, "sharing=time-slice share=1");
    waits_with(&world, "sharing=mps share=1");
    check_pending(&world, 2);
    world_finish(&world);
}

static void a_waiting_exclusive_claim_is_not_starved_by_tenants(void **state)
{
    struct world world;
    uint64_t lease;

    (void)state;
    world_init(&world, "nvidia0");
    lease = granted_to(&world, "sharing=time-slice");
    waits_with(&world, NULL);
    waits_with(&world, "sharing=time-slice");
    world_forget(&world);
    released(&world, lease);
    check_told(&world, "released lease 1\n"
                       "granted lease 4 of claim 2: slots 0\n");
    world_finish(&world);
}

static void a_full_release_starts_several_tenants(void **state)
{
    struct world world;
    struct engine_request *half;
    uint64_t lease;

    (void)state;
    world_init(&world, "nvidia0");
    lease = granted_to(&world, NULL);
    half = world_request(&world, "sharing=time-slice share=500");
    waits(&world, half);
    waits(&world, half);
    waits(&world, half);
    world_forget(&world);
    released(&world, lease);
    check_told(&world, "released lease 1\n"
                       "granted lease 5 of claim 2: slots 0\n"
                       "granted lease 6 of claim 3: slots 0\n");
    check_pending(&world, 1);
    world_finish(&world);
}

static void replicas_of_one_lease_may_share_a_device(void **state)
{
    struct world world;
    uint64_t lease;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    world_forget(&world);
    lease = granted_to(&world, "sharing=time-slice share=400 replicas=4");
    assert_int_equal(lease_in(&world, lease).slot_count, 4);
    assert_int_equal(slot_in(&world, 0).tenants, 2);
    assert_int_equal(slot_in(&world, 1).tenants, 2);
    granted_to(&world, "sharing=time-slice share=200 device=nvidia1");
    waits_with(&world, "sharing=time-slice share=201");
    released(&world, lease);
    assert_int_equal(slot_in(&world, 0).tenants, 0); /* the waiting claim needs a larger share */
    assert_int_equal(slot_in(&world, 1).tenants, 2);
    world_finish(&world);
}

static void a_slot_names_the_first_lease_that_is_on_it(void **state)
{
    struct world world;
    struct engine_request *request;

    (void)state;
    world_init(&world, "nvidia0");
    request = world_request(&world, "sharing=time-slice");
    assert_int_equal(slot_in(&world, 0).lease, 0);
    granted(&world, request);
    granted(&world, request);
    granted(&world, request);
    assert_int_equal(slot_in(&world, 0).lease, 1);
    released(&world, 1);
    assert_int_equal(slot_in(&world, 0).lease, 2);
    released(&world, 3);
    assert_int_equal(slot_in(&world, 0).lease, 2);
    released(&world, 2);
    assert_int_equal(slot_in(&world, 0).lease, 0);
    assert_false(slot_in(&world, 0).taken);
    world_finish(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_tenants_share_a_device_by_time_slices),
        cmocka_unit_test(eight_tenants_share_a_device_by_mps),
        cmocka_unit_test(the_number_of_tenants_is_a_setting),
        cmocka_unit_test(shares_sum_up_to_the_whole_and_no_further),
        cmocka_unit_test(tenants_are_counted_even_where_share_is_left),
        cmocka_unit_test(reserved_memory_sums_up_to_the_device_and_no_further),
        cmocka_unit_test(memory_is_reserved_only_where_it_is_known),
        cmocka_unit_test(a_device_has_one_mode_at_a_time),
        cmocka_unit_test(another_mode_goes_to_another_device),
        cmocka_unit_test(mps_tenants_of_a_device_are_of_one_user),
        cmocka_unit_test(time_slices_are_shared_by_users),
        cmocka_unit_test(an_exclusive_claim_never_gets_a_shared_device),
        cmocka_unit_test(a_shared_claim_never_gets_an_exclusive_device),
        cmocka_unit_test(a_waiting_exclusive_claim_is_not_starved_by_tenants),
        cmocka_unit_test(a_full_release_starts_several_tenants),
        cmocka_unit_test(replicas_of_one_lease_may_share_a_device),
        cmocka_unit_test(a_slot_names_the_first_lease_that_is_on_it),
    };

    return cmocka_run_group_tests_name("engine_sharing", tests, NULL, NULL);
}
