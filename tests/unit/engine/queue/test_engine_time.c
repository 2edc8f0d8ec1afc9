/* SPDX-License-Identifier: Apache-2.0
 *
 * Deadlines and time limits.
 */
#include "support/unit.h"

#include "support/engine/engine_steps.h"

static void a_claim_gives_up_exactly_at_its_deadline(void **state)
{
    struct world world;
    struct engine_request *one;

    (void)state;
    world_init(&world, "nvidia0");
    one = world_request(&world, NULL);
    granted(&world, one);
    waits_until(&world, one, 10);
    world_forget(&world);
    check_next_time(&world, 10);
    engine_advance(world.engine, 9);
    check_told(&world, "");
    engine_advance(world.engine, 10);
    check_told(&world, "refused claim 2: timed out\n");
    check_pending(&world, 0);
    check_next_time(&world, TIME_NEVER);
    world_finish(&world);
}

static void deadlines_come_in_order_of_time_then_of_arrival(void **state)
{
    struct world world;
    struct engine_request *one;

    (void)state;
    world_init(&world, "nvidia0");
    world.with_times = true;
    one = world_request(&world, NULL);
    granted(&world, one);
    waits_until(&world, one, 30);
    waits_until(&world, one, 10);
    waits_until(&world, one, 20);
    waits_until(&world, one, 10);
    world_forget(&world);
    engine_advance(world.engine, 100);
    check_told(&world, "@10 refused claim 3: timed out\n"
                       "@10 refused claim 5: timed out\n"
                       "@20 refused claim 4: timed out\n"
                       "@30 refused claim 2: timed out\n");
    assert_int_equal(engine_now(world.engine), 100);
    world_finish(&world);
}

static void a_claim_that_gives_up_lets_others_start(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, NULL);
    waits_until(&world, world_request(&world, "gpus=2"), 10);
    waits_with(&world, NULL);
    world_forget(&world);
    engine_advance(world.engine, 10);
    check_told(&world, "refused claim 2: timed out\n"
                       "granted lease 4 of claim 3: slots 1\n");
    world_finish(&world);
}

static void a_granted_claim_has_no_deadline_any_more(void **state)
{
    struct world world;
    struct engine_request *one;

    (void)state;
    world_init(&world, "nvidia0");
    one = world_request(&world, NULL);
    granted(&world, one);
    waits_until(&world, one, 10);
    released(&world, 1);
    world_forget(&world);
    check_next_time(&world, TIME_NEVER);
    engine_advance(world.engine, 20);
    check_told(&world, "");
    world_finish(&world);
}

static void a_deadline_in_the_past_is_due_at_once(void **state)
{
    struct world world;
    struct engine_request *one;

    (void)state;
    world_init(&world, "nvidia0");
    engine_advance(world.engine, 50);
    one = world_request(&world, NULL);
    granted(&world, one);
    waits_until(&world, one, 10);
    world_forget(&world);
    engine_advance(world.engine, 50);
    check_told(&world, "refused claim 2: timed out\n");
    assert_int_equal(engine_now(world.engine), 50);
    world_finish(&world);
}

static void a_lease_expires_and_its_devices_stay_until_vacated(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, "time=10");
    assert_int_equal(lease_in(&world, 1).expires, 10);
    waits_with(&world, NULL);
    world_forget(&world);
    check_next_time(&world, 10);
    engine_advance(world.engine, 10);
    check_told(&world, "expired lease 1\n");
    assert_int_equal(lease_in(&world, 1).state, LEASE_EXPIRED);
    check_pending(&world, 1);
    vacated(&world, 1);
    check_told(&world, "released lease 1\n"
                       "granted lease 3 of claim 2: slots 0\n");
    world_finish(&world);
}

static void an_expired_lease_can_be_released_too(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, "time=10");
    engine_advance(world.engine, 10);
    world_forget(&world);
    released(&world, 1);
    check_told(&world, "released lease 1\n");
    assert_false(slot_in(&world, 0).taken);
    world_finish(&world);
}

static void a_time_limit_counts_from_the_grant(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, NULL);
    waits_with(&world, "time=10");
    engine_advance(world.engine, 7);
    released(&world, 1);
    assert_int_equal(lease_in(&world, 3).granted, 7);
    assert_int_equal(lease_in(&world, 3).expires, 17);
    world_finish(&world);
}

static void a_time_limit_beyond_all_time_is_none(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    engine_advance(world.engine, 7);
    granted_to(&world, "time=9223372036854775807");
    assert_int_equal(lease_in(&world, 1).expires, TIME_NEVER);
    check_next_time(&world, TIME_NEVER);
    world_finish(&world);
}

static void a_lease_can_be_extended(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    world.with_times = true;
    granted_to(&world, "time=10");
    world_forget(&world);
    assert_int_equal(engine_extend(world.engine, 1, 30, NULL), 0);
    engine_advance(world.engine, 29);
    assert_int_equal(engine_extend(world.engine, 1, 40, NULL), 0);
    engine_advance(world.engine, 50);
    check_told(&world, "@0 extended lease 1\n"
                       "@29 extended lease 1\n"
                       "@40 expired lease 1\n");
    world_finish(&world);
}

static void a_lease_can_be_shortened(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, "time=100");
    assert_int_equal(engine_extend(world.engine, 1, 20, NULL), 0);
    check_next_time(&world, 20);
    engine_advance(world.engine, 20);
    assert_int_equal(lease_in(&world, 1).state, LEASE_EXPIRED);
    world_finish(&world);
}

static void a_time_limit_can_be_set_and_lifted(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, NULL);
    assert_int_equal(engine_extend(world.engine, 1, 20, NULL), 0);
    check_next_time(&world, 20);
    assert_int_equal(engine_extend(world.engine, 1, TIME_NEVER, NULL), 0);
    check_next_time(&world, TIME_NEVER);
    world_finish(&world);
}

static void a_lease_that_is_over_is_not_extended(void **state)
{
    struct berth_error error = {0};
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, "time=10");
    engine_advance(world.engine, 5);
    world_forget(&world);
    assert_int_equal(engine_extend(world.engine, 1, 5, &error), BERTH_ERROR_INVALID);
    assert_string_equal(error.message,
                        "lease 1: expected a time limit in the future, got one in the past");
    engine_advance(world.engine, 10);
    assert_int_equal(engine_extend(world.engine, 1, 30, &error), BERTH_ERROR_INVALID);
    assert_string_equal(error.message, "cannot extend lease 1: its time is over");
    assert_int_equal(engine_drain_lease(world.engine, 1, NULL), 0);
    assert_int_equal(engine_extend(world.engine, 1, 30, &error), BERTH_ERROR_NOT_FOUND);
    assert_int_equal(engine_extend(world.engine, 2, 30, &error), BERTH_ERROR_NOT_FOUND);
    assert_string_equal(error.message, "no lease 2 is held");
    check_told(&world, "expired lease 1\n"
                       "draining lease 1\n");
    world_finish(&world);
}

static void a_draining_lease_keeps_its_devices_until_vacated(void **state)
{
    struct berth_error error = {0};
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, "time=10");
    waits_with(&world, NULL);
    world_forget(&world);
    assert_int_equal(engine_drain_lease(world.engine, 1, NULL), 0);
    assert_int_equal(lease_in(&world, 1).state, LEASE_DRAINING);
    check_pending(&world, 1);
    assert_int_equal(engine_release(world.engine, 1, &error), BERTH_ERROR_NOT_FOUND);
    assert_int_equal(engine_drain_lease(world.engine, 1, &error), BERTH_ERROR_NOT_FOUND);
    assert_string_equal(error.message, "no lease 1 is held");
    /* Its time limit has no effect any more. */
    engine_advance(world.engine, 20);
    check_told(&world, "draining lease 1\n");
    vacated(&world, 1);
    check_told(&world, "released lease 1\n"
                       "granted lease 3 of claim 2: slots 0\n");
    assert_int_equal(engine_vacated(world.engine, 1, &error), BERTH_ERROR_NOT_FOUND);
    world_finish(&world);
}

static void time_never_goes_backwards(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    engine_advance(world.engine, 10);
    engine_advance(world.engine, 5);
    assert_int_equal(engine_now(world.engine), 10);
    world_finish(&world);
}

static void the_end_of_all_time_is_reached(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, NULL);
    engine_advance(world.engine, TIME_NEVER - 1);
    waits_with(&world, "priority=low");
    check_next_time(&world, TIME_NEVER);
    engine_advance(world.engine, TIME_NEVER);
    assert_int_equal(engine_now(world.engine), TIME_NEVER);
    world_finish(&world);
}

/* Makes a state in which many timers are due, at time 0. */
static void make_plans(struct world *world)
{
    static const struct engine_settings settings = {.age_step = 7, .grace = 4};

    world_init_settings(world, "nvidia0,nvidia1,nvidia2,nvidia3", &settings);
    world->with_times = true;
    granted_to(world, "device=nvidia0 time=9");
    granted_to(world, "device=nvidia1 time=5");
    granted_to(world, "opportunistic device=nvidia2 time=30");
    granted_to(world, "opportunistic device=nvidia3");
    waits_until(world, world_request(world, "gpus=4"), 12);
    waits_until(world, world_request(world, "gpus=3 priority=high"), 3);
    waits_with(world, "device=nvidia3 priority=low");
    waits_until(world, world_request(world, "device=nvidia2,nvidia3 time=2"), 21);
    waits_with(world, "opportunistic");
}

static void one_big_step_is_the_same_as_many_small_ones(void **state)
{
    struct world slow, quick;

    (void)state;
    make_plans(&slow);
    make_plans(&quick);
    for (int64_t now = 1; now <= 60; now++)
        engine_advance(slow.engine, now);
    engine_advance(quick.engine, 60);
    assert_string_equal(text_string(&slow.told), text_string(&quick.told));
    check_same_state(slow.engine, quick.engine);
    check_told(&quick, text_string(&slow.told));
    world_finish(&slow);
    world_finish(&quick);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_claim_gives_up_exactly_at_its_deadline),
        cmocka_unit_test(deadlines_come_in_order_of_time_then_of_arrival),
        cmocka_unit_test(a_claim_that_gives_up_lets_others_start),
        cmocka_unit_test(a_granted_claim_has_no_deadline_any_more),
        cmocka_unit_test(a_deadline_in_the_past_is_due_at_once),
        cmocka_unit_test(a_lease_expires_and_its_devices_stay_until_vacated),
        cmocka_unit_test(an_expired_lease_can_be_released_too),
        cmocka_unit_test(a_time_limit_counts_from_the_grant),
        cmocka_unit_test(a_time_limit_beyond_all_time_is_none),
        cmocka_unit_test(a_lease_can_be_extended),
        cmocka_unit_test(a_lease_can_be_shortened),
        cmocka_unit_test(a_time_limit_can_be_set_and_lifted),
        cmocka_unit_test(a_lease_that_is_over_is_not_extended),
        cmocka_unit_test(a_draining_lease_keeps_its_devices_until_vacated),
        cmocka_unit_test(time_never_goes_backwards),
        cmocka_unit_test(the_end_of_all_time_is_reached),
        cmocka_unit_test(one_big_step_is_the_same_as_many_small_ones),
    };

    return cmocka_run_group_tests_name("engine_time", tests, NULL, NULL);
}
