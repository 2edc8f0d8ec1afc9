/* SPDX-License-Identifier: Apache-2.0
 *
 * Reasons why claims wait, estimates of their start, and reservations.
 */
#include "support/unit.h"

#include "support/engine/engine_steps.h"

static void the_first_is_told_what_is_in_its_way_and_until_when(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "time=100");
    check_why(&world, waits_with(&world, "gpus=2"), "needs 2, 1 free: user 0 holds 1", 100);
    world_finish(&world);
}

static void those_behind_are_told_how_many_are_before_them(void **state)
{
    struct world world;
    struct engine_request *wide;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "time=100s");
    wide = world_request(&world, "gpus=2 time=50s");
    waits(&world, wide);
    check_why(&world, waits(&world, wide),
              "needs 2, 1 free: user 0 holds 1 until 1970-01-01T00:01Z; 1 claim is before it",
              150 * SECOND);
    check_why(&world, waits_with(&world, "time=101s"),
              "needs 1: user 0 holds 1 until 1970-01-01T00:01Z, 1 is kept for earlier claims; 2 "
              "claims are "
              "before it",
              200 * SECOND);
    world_finish(&world);
}

static void a_claim_before_it_without_an_end_leaves_the_start_open(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, "time=100");
    check_why(&world, waits_with(&world, NULL), "needs 1: user 0 holds 1", 100);
    check_why(&world, waits_with(&world, NULL), "needs 1: user 0 holds 1; 1 claim is before it",
              TIME_NEVER);
    world_finish(&world);
}

static void a_claim_before_it_that_wants_something_else_does_not_delay_it(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, NULL);
    granted_to(&world, "time=70");
    waits_with(&world, "device=nvidia0");
    check_why(&world, waits_with(&world, "device=nvidia1"),
              "needs 1: user 0 holds 1, 1 is not named in the request; 1 claim is before it", 70);
    world_finish(&world);
}

static void who_is_held_by_a_limit_is_told_of_it_alone(void **state)
{
    struct world world;
    uint64_t held;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    limit_user(&world, 5, 2500);
    granted_to(&world, "uid=5 time=10");
    held = waits_with(&world, "uid=5 gpus=2 time=100");
    check_why(&world, held, "needs 2, but user 5 holds 1 of at most 2.5 devices", TIME_NEVER);
    /* Other claims do not wait for it. */
    granted_to(&world, NULL);
    granted_to(&world, NULL);
    check_why(&world, waits_with(&world, NULL),
              "needs 1: user 0 holds 2, user 5 holds 1; 1 claim is before it", 10);
    world_finish(&world);
}

static void shared_room_is_counted_in_claims(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "device=nvidia0 sharing=time-slice share=600");
    granted_to(&world, "device=nvidia1 sharing=time-slice");
    check_why(&world, waits_with(&world, "gpus=2 sharing=time-slice share=500"),
              "needs 2, room for 1: 1 has too small a share left", TIME_NEVER);
    world_finish(&world);
}

static void vendors_that_stand_in_the_way_are_said(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,amd0");
    granted_to(&world, NULL);
    check_why(&world, waits_with(&world, "gpus=2"),
              "needs 2, 2 free: user 0 holds 1; all devices of a replica must have one vendor, "
              "unless vendor is any",
              TIME_NEVER);
    world_finish(&world);
}

static void low_memory_is_said(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    check_why(&world, waits_with(&world, "min-free=10"),
              "needs 1: 1 has too little or unknown free memory", TIME_NEVER);
    world_finish(&world);
}

static void claims_within_a_lease_are_explained_from_within(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, NULL);
    waits_with(&world, "gpus=2");
    granted_to(&world, "parent=1 time=30");
    check_why(&world, waits_with(&world, "parent=1"),
              "needs 1: user 0 holds 1, 1 is outside the lease", 30);
    world_finish(&world);
}

static void only_waiting_claims_are_explained(void **state)
{
    struct berth_error error = {0};
    struct text why = {0};
    int64_t start = 77;
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, NULL);
    assert_int_equal(engine_explain(world.engine, 1, &why, &start, &error), BERTH_ERROR_NOT_FOUND);
    assert_string_equal(error.message, "no claim 1 is waiting");
    assert_int_equal(start, 77);
    assert_int_equal(why.length, 0);
    world_finish(&world);
}

static void explaining_changes_nothing(void **state)
{
    struct text why = {0};
    struct text before, after;
    struct world world;
    int64_t start;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "time=100");
    waits_with(&world, "gpus=2");
    waits_with(&world, NULL);
    before = engine_state(world.engine);
    world_forget(&world);
    for (uint64_t claim = 2; claim <= 3; claim++)
        assert_int_equal(engine_explain(world.engine, claim, &why, &start, NULL), 0);
    check_told(&world, "");
    after = engine_state(world.engine);
    assert_int_equal(before.length, after.length);
    assert_memory_equal(before.bytes, after.bytes, before.length);
    text_finish(&before);
    text_finish(&after);
    text_finish(&why);
    world_finish(&world);
}

static void the_start_of_a_waiting_helper_is_not_now(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, "opportunistic");
    check_why(&world, waits_with(&world, "opportunistic"), "needs 1: user 0 holds 1", TIME_NEVER);
    world_finish(&world);
}

static void the_cpus_of_claims_before_it_delay_a_start(void **state)
{
    struct machine machine = {0};
    struct host *host = vector_append(&machine.hosts);
    struct world world;
    uint64_t behind;

    (void)state;
    assert_non_null(host);
    host->cpus = optional_number_of(4000);
    machine_add_ids(&machine, "nvidia0,nvidia1");
    world_init_with(&world, &machine, NULL);
    granted_to(&world, "gpus=2 time=100");
    waits_with(&world, "cpus=3000 time=50");
    behind = waits_with(&world, "cpus=2000");
    check_why(&world, behind, "needs 1: user 0 holds 2; 1 claim is before it", 150);
    world_finish(&world);
}

static void who_waits_far_behind_has_no_forecast(void **state)
{
    struct world world;
    struct engine_request *brief;
    uint64_t last = 0;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, "time=10s");
    brief = world_request(&world, "time=10s");
    for (int i = 0; i < 64; i++)
        last = waits(&world, brief);
    check_why(&world, last,
              "needs 1: user 0 holds 1 until 1970-01-01T00:00Z; 63 claims are before it",
              640 * SECOND);
    check_why(&world, waits(&world, brief),
              "needs 1: user 0 holds 1 until 1970-01-01T00:00Z; 64 claims are before it",
              TIME_NEVER);
    world_finish(&world);
}

static void some_claims_have_no_reservation(void **state)
{
    struct world world;
    struct engine_request *one;
    uint64_t helper;

    (void)state;
    world_init(&world, "nvidia0");
    limit_user(&world, 5, 1000);
    one = world_request(&world, "uid=5");
    granted(&world, one);
    check_not_reserved(&world, 1);
    check_not_reserved(&world, waits(&world, one));
    helper = waits_with(&world, "opportunistic");
    check_not_reserved(&world, helper);
    world_finish(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_is_told_what_is_in_its_way_and_until_when),
        cmocka_unit_test(those_behind_are_told_how_many_are_before_them),
        cmocka_unit_test(a_claim_before_it_without_an_end_leaves_the_start_open),
        cmocka_unit_test(a_claim_before_it_that_wants_something_else_does_not_delay_it),
        cmocka_unit_test(who_is_held_by_a_limit_is_told_of_it_alone),
        cmocka_unit_test(shared_room_is_counted_in_claims),
        cmocka_unit_test(vendors_that_stand_in_the_way_are_said),
        cmocka_unit_test(low_memory_is_said),
        cmocka_unit_test(claims_within_a_lease_are_explained_from_within),
        cmocka_unit_test(only_waiting_claims_are_explained),
        cmocka_unit_test(explaining_changes_nothing),
        cmocka_unit_test(the_start_of_a_waiting_helper_is_not_now),
        cmocka_unit_test(the_cpus_of_claims_before_it_delay_a_start),
        cmocka_unit_test(who_waits_far_behind_has_no_forecast),
        cmocka_unit_test(some_claims_have_no_reservation),
    };

    return cmocka_run_group_tests_name("engine_explain", tests, NULL, NULL);
}
