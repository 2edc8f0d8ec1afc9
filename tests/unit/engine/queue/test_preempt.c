/* SPDX-License-Identifier: Apache-2.0
 *
 * Opportunistic leases: which devices they get, and preemption.
 */
#include "support/unit.h"

#include "support/engine/engine_steps.h"

static void opportunistic_claims_are_never_pending(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, NULL);
    waits_with(&world, "opportunistic");
    check_pending(&world, 0);
    check_waiting(&world, "2");
    world_finish(&world);
}

static void they_get_only_what_no_waiting_claim_accepts(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    granted_to(&world, "device=nvidia0 time=10");
    waits_with(&world, "device=nvidia0,nvidia1 gpus=2");
    waits_with(&world, "opportunistic device=nvidia1 time=1");
    world_forget(&world);
    granted(&world, world_request(&world, "opportunistic device=nvidia2"));
    check_told(&world, "request 4\n"
                       "granted lease 4: slots 2\n");
    world_finish(&world);
}

static void a_claim_held_by_a_limit_keeps_them_off_too(void **state)
{
    struct world world;
    uint64_t claim;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    limit_user(&world, 5, 1000);
    granted_to(&world, "uid=5 device=nvidia0");
    claim = waits_with(&world, "uid=5 device=nvidia1");
    waits_with(&world, "opportunistic");
    world_forget(&world);
    cancelled(&world, claim);
    check_told(&world, "refused claim 2: cancelled\n"
                       "granted lease 4 of claim 3: slots 1\n");
    world_finish(&world);
}

static void they_are_served_by_arrival_among_themselves(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, NULL);
    waits_with(&world, "opportunistic gpus=2");
    waits_with(&world, "opportunistic");
    world_forget(&world);
    cancelled(&world, 2);
    check_told(&world, "refused claim 2: cancelled\n"
                       "granted lease 4 of claim 3: slots 1\n");
    world_finish(&world);
}

static void an_ordinary_claim_takes_what_a_waiting_helper_accepts(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, NULL);
    waits_with(&world, "opportunistic gpus=2");
    granted_to(&world, "priority=low");
    world_finish(&world);
}

static void the_youngest_is_given_notice(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "opportunistic device=nvidia1");
    granted_to(&world, "opportunistic device=nvidia0");
    world_forget(&world);
    waits(&world, world_request(&world, NULL));
    check_told(&world, "request 3\n"
                       "queued claim 3\n"
                       "notice lease 2\n");
    assert_int_equal(lease_in(&world, 1).state, LEASE_HELD);
    assert_int_equal(lease_in(&world, 2).state, LEASE_NOTICED);
    assert_int_equal(lease_in(&world, 2).force_at, 10 * SECOND);
    world_finish(&world);
}

static void one_that_is_not_in_the_way_is_left_alone(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "opportunistic device=nvidia0");
    granted_to(&world, "opportunistic device=nvidia1");
    waits_with(&world, "device=nvidia0");
    assert_int_equal(lease_in(&world, 1).state, LEASE_NOTICED);
    assert_int_equal(lease_in(&world, 2).state, LEASE_HELD);
    world_finish(&world);
}

static void nobody_is_asked_in_vain(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "device=nvidia0");
    granted_to(&world, "opportunistic");
    waits_with(&world, "gpus=2");
    assert_int_equal(lease_in(&world, 2).state, LEASE_HELD);
    world_forget(&world);
    released(&world, 1);
    check_told(&world, "released lease 1\n"
                       "notice lease 2\n");
    world_finish(&world);
}

static void those_not_needed_in_the_end_are_left_alone(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2,nvidia3");
    granted_to(&world, "opportunistic gpus=2");
    granted_to(&world, "opportunistic");
    granted_to(&world, "opportunistic");
    world_forget(&world);
    waits(&world, world_request(&world, "gpus=3"));
    check_told(&world, "request 4\n"
                       "queued claim 4\n"
                       "notice lease 1\n"
                       "notice lease 3\n");
    world_finish(&world);
}

static void several_waiting_claims_get_several_notices(void **state)
{
    struct world world;
    struct engine_request *helper;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    helper = world_request(&world, "opportunistic");
    for (int i = 0; i < 3; i++)
        granted(&world, helper);
    world_forget(&world);
    waits(&world, world_request(&world, NULL));
    waits(&world, world_request(&world, NULL));
    check_told(&world, "request 2\n"
                       "queued claim 4\n"
                       "notice lease 3\n"
                       "request 3\n"
                       "queued claim 5\n"
                       "notice lease 2\n");
    assert_int_equal(lease_in(&world, 1).state, LEASE_HELD);
    world_finish(&world);
}

static void nobody_is_given_notice_twice(void **state)
{
    struct engine_settings settings = {.grace = 5, .age_step = 2};
    struct world world;

    (void)state;
    world_init_settings(&world, "nvidia0", &settings);
    granted_to(&world, "opportunistic");
    waits_with(&world, NULL);
    world_forget(&world);
    waits(&world, world_request(&world, NULL));
    engine_advance(world.engine, 4);
    engine_block(world.engine, 0, BLOCK_DIRTY);
    engine_unblock(world.engine, 0, BLOCK_DIRTY);
    check_told(&world, "request 3\n"
                       "queued claim 3\n"
                       "device in slot 0\n"
                       "device in slot 0\n");
    world_finish(&world);
}

static void who_was_given_notice_already_goes_before_others(void **state)
{
    struct world world;
    uint64_t claim;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "opportunistic device=nvidia0");
    granted_to(&world, "opportunistic device=nvidia1");
    claim = waits_with(&world, "device=nvidia0");
    cancelled(&world, claim);
    world_forget(&world);
    waits(&world, world_request(&world, NULL));
    check_told(&world, "request 4\n"
                       "queued claim 4\n");
    world_finish(&world);
}

static void a_claim_that_finds_a_free_device_disturbs_nobody(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "opportunistic");
    granted_to(&world, NULL);
    assert_int_equal(lease_in(&world, 1).state, LEASE_HELD);
    world_finish(&world);
}

static void force_comes_exactly_when_the_grace_is_over(void **state)
{
    struct engine_settings settings = {.grace = 5};
    struct world world;

    (void)state;
    world_init_settings(&world, "nvidia0", &settings);
    world.with_times = true;
    granted_to(&world, "opportunistic");
    engine_advance(world.engine, 3);
    waits_with(&world, NULL);
    world_forget(&world);
    check_next_time(&world, 8);
    engine_advance(world.engine, 7);
    check_told(&world, "");
    engine_advance(world.engine, 20);
    check_told(&world, "@8 revoked lease 1\n");
    check_next_time(&world, 3 + HOUR);
    world_finish(&world);
}

static void devices_move_only_when_they_are_vacated(void **state)
{
    struct engine_settings settings = {.grace = 5};
    struct world world;

    (void)state;
    world_init_settings(&world, "nvidia0", &settings);
    granted_to(&world, "opportunistic");
    waits_with(&world, NULL);
    engine_advance(world.engine, 5);
    assert_int_equal(lease_in(&world, 1).state, LEASE_REVOKED);
    assert_int_equal(slot_in(&world, 0).lease, 1);
    check_pending(&world, 1);
    world_forget(&world);
    vacated(&world, 1);
    check_told(&world, "released lease 1\n"
                       "granted lease 3 of claim 2: slots 0\n");
    world_finish(&world);
}

static void a_lease_released_within_the_grace_moves_at_once(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, "opportunistic");
    waits_with(&world, NULL);
    world_forget(&world);
    released(&world, 1);
    check_told(&world, "released lease 1\n"
                       "granted lease 3 of claim 2: slots 0\n");
    check_next_time(&world, TIME_NEVER);
    world_finish(&world);
}

static void a_time_limit_within_the_grace_ends_the_lease_first(void **state)
{
    struct engine_settings settings = {.grace = 5};
    struct world world;

    (void)state;
    world_init_settings(&world, "nvidia0", &settings);
    world.with_times = true;
    granted_to(&world, "opportunistic time=4");
    waits_with(&world, NULL);
    world_forget(&world);
    engine_advance(world.engine, 20);
    check_told(&world, "@4 expired lease 1\n");
    world_finish(&world);
}

static void their_devices_count_as_free_in_reservations(void **state)
{
    struct world world;
    uint64_t wide;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    granted_to(&world, "device=nvidia0 time=100");
    granted_to(&world, "opportunistic device=nvidia1");
    wide = waits_with(&world, "device=nvidia0,nvidia1 gpus=2");
    check_reserved(&world, wide, "0,1", 100);
    world_finish(&world);
}

static void an_ordinary_tenant_makes_revoking_the_other_useless(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, "sharing=time-slice");
    granted_to(&world, "opportunistic sharing=time-slice");
    waits_with(&world, NULL);
    assert_int_equal(lease_in(&world, 2).state, LEASE_HELD);
    world_forget(&world);
    released(&world, 1);
    check_told(&world, "released lease 1\n"
                       "notice lease 2\n");
    world_finish(&world);
}

static void cancelling_in_the_middle_lets_a_later_claim_ask_for_its_devices(void **state)
{
    struct world world;
    struct engine_request *one;
    uint64_t second;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    granted_to(&world, "opportunistic");
    granted_to(&world, "opportunistic");
    granted_to(&world, "opportunistic");
    one = world_request(&world, "device=nvidia0,nvidia1 avoid=nvidia0");
    waits(&world, one);
    second = waits(&world, one);
    waits_with(&world, "device=nvidia0,nvidia2 gpus=2");
    assert_int_equal(lease_in(&world, 3).state, LEASE_HELD);
    world_forget(&world);
    cancelled(&world, second);
    check_told(&world, "refused claim 5: cancelled\n"
                       "notice lease 3\n");
    world_finish(&world);
}

/* The devices that a group gives back make room under its limit for another device. */
static void what_goes_counts_against_what_starts(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    limit_group(&world, 2, 2000);
    granted_to(&world, "opportunistic group=2 device=nvidia1");
    granted_to(&world, "opportunistic device=nvidia0");
    waits_with(&world, "group=2 device=nvidia1");
    world_forget(&world);
    waits_with(&world, "group=2 device=nvidia0");
    check_told(&world, "request 4\nqueued claim 4\nnotice lease 2\n");
    released(&world, 2);
    check_waiting(&world, "3");
    released(&world, 1);
    check_waiting(&world, "");
    world_finish(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opportunistic_claims_are_never_pending),
        cmocka_unit_test(they_get_only_what_no_waiting_claim_accepts),
        cmocka_unit_test(a_claim_held_by_a_limit_keeps_them_off_too),
        cmocka_unit_test(they_are_served_by_arrival_among_themselves),
        cmocka_unit_test(an_ordinary_claim_takes_what_a_waiting_helper_accepts),
        cmocka_unit_test(the_youngest_is_given_notice),
        cmocka_unit_test(one_that_is_not_in_the_way_is_left_alone),
        cmocka_unit_test(nobody_is_asked_in_vain),
        cmocka_unit_test(those_not_needed_in_the_end_are_left_alone),
        cmocka_unit_test(several_waiting_claims_get_several_notices),
        cmocka_unit_test(nobody_is_given_notice_twice),
        cmocka_unit_test(who_was_given_notice_already_goes_before_others),
        cmocka_unit_test(a_claim_that_finds_a_free_device_disturbs_nobody),
        cmocka_unit_test(force_comes_exactly_when_the_grace_is_over),
        cmocka_unit_test(devices_move_only_when_they_are_vacated),
        cmocka_unit_test(a_lease_released_within_the_grace_moves_at_once),
        cmocka_unit_test(a_time_limit_within_the_grace_ends_the_lease_first),
        cmocka_unit_test(their_devices_count_as_free_in_reservations),
        cmocka_unit_test(an_ordinary_tenant_makes_revoking_the_other_useless),
        cmocka_unit_test(cancelling_in_the_middle_lets_a_later_claim_ask_for_its_devices),
        cmocka_unit_test(what_goes_counts_against_what_starts),
    };

    return cmocka_run_group_tests_name("engine_opportunistic", tests, NULL, NULL);
}
