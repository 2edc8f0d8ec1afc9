/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of the queue, and how claims leave it.
 */
#include "support/unit.h"

#include "support/engine/engine_steps.h"

static void claims_wait_by_class_then_by_arrival(void **state)
{
    struct world world;
    uint64_t lease;

    (void)state;
    world_init(&world, "nvidia0");
    lease = granted_to(&world, NULL);
    waits_with(&world, "priority=low");
    waits_with(&world, NULL);
    waits_with(&world, "opportunistic");
    waits_with(&world, "priority=high");
    waits_with(&world, "priority=normal");
    waits_with(&world, "priority=high");
    waits_with(&world, "priority=low");
    check_waiting(&world, "5 7 3 6 2 8 4");
    world_forget(&world);
    released(&world, lease);
    check_told(&world, "released lease 1\n"
                       "granted lease 9 of claim 5: slots 0\n");
    world_finish(&world);
}

static void claims_of_several_requests_take_turns_by_arrival(void **state)
{
    struct world world;
    struct engine_request *one, *other;

    (void)state;
    world_init(&world, "nvidia0");
    one = world_request(&world, NULL);
    other = world_request(&world, "time=5");
    granted(&world, one);
    waits(&world, one);
    waits(&world, other);
    waits(&world, other);
    waits(&world, one);
    check_waiting(&world, "2 3 4 5");
    released(&world, 1);
    released(&world, 6);
    check_waiting(&world, "4 5");
    released(&world, 7);
    check_waiting(&world, "5");
    world_finish(&world);
}

static void one_release_starts_every_claim_that_it_makes_room_for(void **state)
{
    struct world world;
    uint64_t lease;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    lease = granted_to(&world, "gpus=3");
    waits_with(&world, NULL);
    waits_with(&world, NULL);
    waits_with(&world, NULL);
    waits_with(&world, NULL);
    world_forget(&world);
    released(&world, lease);
    check_told(&world, "released lease 1\n"
                       "granted lease 6 of claim 2: slots 0\n"
                       "granted lease 7 of claim 3: slots 1\n"
                       "granted lease 8 of claim 4: slots 2\n");
    check_pending(&world, 1);
    world_finish(&world);
}

static void waiting_raises_a_claim_by_one_class_for_each_step(void **state)
{
    struct world world;
    uint64_t claim;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, NULL);
    claim = waits_with(&world, "priority=low");
    check_next_time(&world, HOUR);
    engine_advance(world.engine, HOUR - 1);
    assert_int_equal(claim_in(&world, claim).class_now, PRIORITY_LOW);
    engine_advance(world.engine, HOUR);
    assert_int_equal(claim_in(&world, claim).class_now, PRIORITY_NORMAL);
    check_next_time(&world, 2 * HOUR);
    engine_advance(world.engine, 2 * HOUR);
    assert_int_equal(claim_in(&world, claim).class_now, PRIORITY_HIGH);
    check_next_time(&world, TIME_NEVER);
    engine_advance(world.engine, 9 * HOUR);
    assert_int_equal(claim_in(&world, claim).class_now, PRIORITY_HIGH);
    world_finish(&world);
}

static void an_aged_claim_is_served_before_a_younger_one_of_its_new_class(void **state)
{
    struct engine_settings settings = {.age_step = 10};
    struct world world;

    (void)state;
    world_init_settings(&world, "nvidia0", &settings);
    granted_to(&world, NULL);
    waits_with(&world, "priority=low");
    engine_advance(world.engine, 5);
    waits_with(&world, NULL);
    check_waiting(&world, "3 2");
    check_next_time(&world, 10);
    engine_advance(world.engine, 10);
    check_waiting(&world, "2 3");
    check_next_time(&world, 15);
    engine_advance(world.engine, 15);
    check_waiting(&world, "3 2");
    engine_advance(world.engine, 20);
    check_waiting(&world, "2 3");
    world_finish(&world);
}

static void a_claim_that_rises_above_the_one_that_bars_it_starts(void **state)
{
    struct engine_settings settings = {.age_step = 10};
    struct world world;

    (void)state;
    world_init_settings(&world, "nvidia0,nvidia1", &settings);
    world.with_times = true;
    granted_to(&world, "device=nvidia0");
    engine_block(world.engine, 1, BLOCK_DIRTY);
    waits_with(&world, "device=nvidia1 priority=low");
    engine_advance(world.engine, 5);
    waits_with(&world, "gpus=2 priority=high");
    engine_unblock(world.engine, 1, BLOCK_DIRTY);
    check_waiting(&world, "3 2");
    world_forget(&world);
    engine_advance(world.engine, 30);
    check_told(&world, "@20 granted lease 4 of claim 2: slots 1\n");
    world_finish(&world);
}

static void opportunistic_claims_never_age(void **state)
{
    struct world world;
    uint64_t claim;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, NULL);
    claim = waits_with(&world, "opportunistic");
    check_next_time(&world, TIME_NEVER);
    engine_advance(world.engine, 5 * HOUR);
    assert_int_equal(claim_in(&world, claim).class_now, PRIORITY_UNSAID);
    world_finish(&world);
}

static void a_claim_that_takes_nothing_an_earlier_one_accepts_goes_first(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    granted_to(&world, "device=nvidia0");
    waits_with(&world, "device=nvidia0,nvidia1 gpus=2");
    granted_to(&world, "device=nvidia2");
    waits_with(&world, "device=nvidia1");
    waits_with(&world, "device=nvidia1,nvidia2");
    check_pending(&world, 3);
    world_finish(&world);
}

static void a_claim_with_a_choice_takes_what_the_earlier_one_leaves(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    granted_to(&world, "device=nvidia0");
    waits_with(&world, "device=nvidia0,nvidia1 gpus=2");
    world_forget(&world);
    granted(&world, world_request(&world, NULL));
    check_told(&world, "request 3\n"
                       "granted lease 3: slots 2\n");
    world_finish(&world);
}

static void cancelling_the_first_lets_others_start(void **state)
{
    struct world world;
    uint64_t wide;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, NULL);
    wide = waits_with(&world, "gpus=2");
    waits_with(&world, NULL);
    world_forget(&world);
    cancelled(&world, wide);
    check_told(&world, "refused claim 2: cancelled\n"
                       "granted lease 4 of claim 3: slots 1\n");
    world_finish(&world);
}

static void cancelling_one_in_the_middle_changes_nothing_else(void **state)
{
    struct world world;
    struct engine_request *wide;
    uint64_t middle;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, NULL);
    wide = world_request(&world, "gpus=2");
    waits(&world, wide);
    middle = waits(&world, wide);
    waits(&world, wide);
    waits_with(&world, NULL);
    world_forget(&world);
    cancelled(&world, middle);
    check_told(&world, "refused claim 3: cancelled\n");
    check_waiting(&world, "2 4 5");
    check_pending(&world, 3);
    world_finish(&world);
}

static void cancelling_the_first_of_a_lane_moves_the_lane_back(void **state)
{
    struct world world;
    struct engine_request *wide;
    uint64_t first;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, NULL);
    wide = world_request(&world, "gpus=2");
    first = waits(&world, wide);
    waits_with(&world, NULL);
    waits(&world, wide);
    world_forget(&world);
    cancelled(&world, first);
    check_told(&world, "refused claim 2: cancelled\n"
                       "granted lease 5 of claim 3: slots 1\n");
    check_waiting(&world, "4");
    world_finish(&world);
}

static void a_claim_is_cancelled_once(void **state)
{
    struct berth_error error = {0};
    struct world world;
    uint64_t lease, claim;

    (void)state;
    world_init(&world, "nvidia0");
    lease = granted_to(&world, NULL);
    claim = waits_with(&world, NULL);
    cancelled(&world, claim);
    assert_int_equal(engine_cancel(world.engine, claim, &error), BERTH_ERROR_NOT_FOUND);
    assert_string_equal(error.message, "no claim 2 is waiting");
    assert_int_equal(engine_cancel(world.engine, lease, NULL), BERTH_ERROR_NOT_FOUND);
    assert_int_equal(engine_cancel(world.engine, 0, NULL), BERTH_ERROR_NOT_FOUND);
    world_finish(&world);
}

static void pending_counts_exactly_the_claims_that_wait(void **state)
{
    struct world world;
    struct engine_request *one;
    uint64_t lease, id;

    (void)state;
    world_init(&world, "nvidia0");
    one = world_request(&world, NULL);
    lease = granted(&world, one);
    check_pending(&world, 0);
    assert_int_equal(engine_try(world.engine, one, &id, NULL), CLAIM_WAITS);
    check_pending(&world, 0);
    waits(&world, one);
    waits_until(&world, one, 5);
    waits_with(&world, "opportunistic");
    check_pending(&world, 2);
    engine_advance(world.engine, 5);
    check_pending(&world, 1);
    released(&world, lease);
    check_pending(&world, 0);
    world_finish(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims_wait_by_class_then_by_arrival),
        cmocka_unit_test(claims_of_several_requests_take_turns_by_arrival),
        cmocka_unit_test(one_release_starts_every_claim_that_it_makes_room_for),
        cmocka_unit_test(waiting_raises_a_claim_by_one_class_for_each_step),
        cmocka_unit_test(an_aged_claim_is_served_before_a_younger_one_of_its_new_class),
        cmocka_unit_test(a_claim_that_rises_above_the_one_that_bars_it_starts),
        cmocka_unit_test(opportunistic_claims_never_age),
        cmocka_unit_test(a_claim_that_takes_nothing_an_earlier_one_accepts_goes_first),
        cmocka_unit_test(a_claim_with_a_choice_takes_what_the_earlier_one_leaves),
        cmocka_unit_test(cancelling_the_first_lets_others_start),
        cmocka_unit_test(cancelling_one_in_the_middle_changes_nothing_else),
        cmocka_unit_test(cancelling_the_first_of_a_lane_moves_the_lane_back),
        cmocka_unit_test(a_claim_is_cancelled_once),
        cmocka_unit_test(pending_counts_exactly_the_claims_that_wait),
    };

    return cmocka_run_group_tests_name("engine_queue", tests, NULL, NULL);
}
