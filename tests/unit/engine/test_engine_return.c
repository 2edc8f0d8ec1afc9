/* SPDX-License-Identifier: Apache-2.0
 *
 * Withdrawn grants: the lease becomes a waiting claim again, at its old position.
 */
#include "support/unit.h"

#include "support/engine/engine_steps.h"

#define returned(world, lease, arrived, deadline) \
    assert_int_equal(engine_return((world)->engine, (lease), (arrived), (deadline), NULL), 0)

static void it_is_granted_another_device_at_once(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, NULL);
    engine_block(world.engine, 0, BLOCK_DRAINED);
    world_forget(&world);
    returned(&world, 1, 0, TIME_NEVER);
    check_told(&world, "returned lease 1\ngranted lease 2 of claim 1: slots 1\n");
    assert_int_equal(lease_in(&world, 2).claim, 1);
    returned(&world, 2, 0, TIME_NEVER);
    check_told(&world, "returned lease 2\ngranted lease 3 of claim 1: slots 1\n");
    released(&world, 3);
    world_finish(&world);
}

static void it_stands_where_it_stood(void **state)
{
    struct engine_request *request;
    struct world world;
    uint64_t lease;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    request = world_request(&world, NULL);
    granted(&world, request);
    lease = granted(&world, request);
    engine_advance(world.engine, 5);
    waits(&world, request); /* claim 3, of the same lane */
    engine_advance(world.engine, 6);
    waits_with(&world, "gpus=2"); /* claim 4 */
    engine_block(world.engine, 1, BLOCK_DRAINED);
    returned(&world, lease, 0, TIME_NEVER);
    check_waiting(&world, "2 3 4");
    assert_int_equal(claim_in(&world, 2).arrived, 0);
    /* Once more, for a claim that waited. */
    released(&world, 1);
    assert_int_equal(lease_in(&world, 5).claim, 2);
    check_waiting(&world, "3 4");
    engine_block(world.engine, 0, BLOCK_DRAINED);
    returned(&world, 5, 0, TIME_NEVER);
    check_waiting(&world, "2 3 4");
    engine_unblock(world.engine, 0, BLOCK_DRAINED);
    check_waiting(&world, "3 4");
    world_finish(&world);
}

static void between_others_of_its_lane(void **state)
{
    struct engine_request *request;
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    engine_block(world.engine, 0, BLOCK_DIRTY);
    request = world_request(&world, NULL);
    for (int i = 0; i < 4; i++)
        waits(&world, request);
    engine_unblock(world.engine, 0, BLOCK_DIRTY); /* claim 1 is lease 5 */
    released(&world, 5);                          /* claim 2 is lease 6 */
    engine_block(world.engine, 0, BLOCK_DRAINED);
    returned(&world, 6, 0, TIME_NEVER);
    check_waiting(&world, "2 3 4");
    engine_unblock(world.engine, 0, BLOCK_DRAINED); /* claim 2 is lease 7 */
    cancelled(&world, 3);
    returned(&world, 7, 0, TIME_NEVER); /* and lease 8 at once */
    check_waiting(&world, "4");
    assert_int_equal(lease_in(&world, 8).claim, 2);
    world_finish(&world);
}

static void it_ages_from_its_arrival(void **state)
{
    struct engine_settings settings = {.age_step = 100};
    struct world world;

    (void)state;
    world_init_settings(&world, "nvidia0", &settings);
    granted_to(&world, "priority=low");
    engine_advance(world.engine, 90);
    waits_with(&world, "gpus=1-2");
    engine_block(world.engine, 0, BLOCK_DRAINED);
    returned(&world, 1, 0, TIME_NEVER);
    check_waiting(&world, "2 1");
    check_next_time(&world, 100);
    engine_advance(world.engine, 100);
    check_waiting(&world, "1 2");
    world_finish(&world);
}

static void its_deadline_is_the_one_that_is_said(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, "time=3");
    engine_advance(world.engine, 2);
    engine_block(world.engine, 0, BLOCK_DRAINED);
    world_forget(&world);
    returned(&world, 1, 0, 20);
    check_next_time(&world, 20);
    engine_advance(world.engine, 20);
    check_told(&world, "returned lease 1\nrefused claim 1: timed out\n");
    /* A deadline in the past takes effect when the time advances. */
    engine_unblock(world.engine, 0, BLOCK_DRAINED);
    granted_to(&world, NULL);
    engine_block(world.engine, 0, BLOCK_DRAINED);
    world_forget(&world);
    returned(&world, 2, 20, 10);
    check_waiting(&world, "2");
    engine_advance(world.engine, 20);
    check_told(&world, "returned lease 2\nrefused claim 2: timed out\n");
    world_finish(&world);
}

static void an_arrival_to_come_is_now(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    engine_advance(world.engine, 5);
    granted_to(&world, NULL);
    engine_block(world.engine, 0, BLOCK_DRAINED);
    returned(&world, 1, 50, TIME_NEVER);
    assert_int_equal(claim_in(&world, 1).arrived, 5);
    world_finish(&world);
}

static void its_owner_is_kept(void **state)
{
    int door = 0;
    struct claim_owner owner = {.waiter = &door, .data = &owner};
    struct world world;
    uint64_t lease = 0;

    (void)state;
    world_init(&world, "nvidia0");
    assert_int_equal(
        engine_claim(world.engine, world_request(&world, NULL), TIME_NEVER, &owner, &lease, NULL),
        CLAIM_GRANTED);
    engine_block(world.engine, 0, BLOCK_DRAINED);
    returned(&world, lease, 0, TIME_NEVER);
    assert_ptr_equal(claim_in(&world, 1).owner.waiter, &door);
    engine_unblock(world.engine, 0, BLOCK_DRAINED);
    assert_ptr_equal(lease_in(&world, 2).owner.data, &owner);
    world_finish(&world);
}

static void others_may_start_instead(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "gpus=2");
    waits_with(&world, "device=nvidia1");
    engine_block(world.engine, 0, BLOCK_DRAINED);
    world_forget(&world);
    /* The returned claim bars both devices, because its start is unknown. */
    returned(&world, 1, 0, TIME_NEVER);
    check_told(&world, "returned lease 1\n");
    cancelled(&world, 1);
    check_told(&world, "refused claim 1: cancelled\ngranted lease 3 of claim 2: slots 1\n");
    world_finish(&world);
}

static void what_it_held_does_not_count_any_more(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    limit_user(&world, 5, 1000);
    granted_to(&world, "uid=5 device=nvidia0 sharing=time-slice share=500");
    granted_to(&world, "uid=5 opportunistic sharing=time-slice share=500");
    waits_with(&world, "uid=5 sharing=time-slice share=500");
    engine_block(world.engine, 0, BLOCK_DRAINED);
    world_forget(&world);
    returned(&world, 1, 0, TIME_NEVER);
    check_told(&world, "returned lease 1\ngranted lease 4 of claim 3: slots 1\n");
    world_finish(&world);
}

static void what_is_within_it_ends(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, NULL);
    granted_to(&world, "parent=1");
    waits_with(&world, "parent=1");
    engine_block(world.engine, 0, BLOCK_DRAINED);
    world_forget(&world);
    returned(&world, 1, 0, TIME_NEVER);
    check_told(&world, "refused claim 3: its lease ended\nreleased lease 2\nforgotten 2\n"
                       "forgotten 3\nreturned lease 1\n");
    world_finish(&world);
}

static void one_that_cannot_be_any_more_is_refused(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, NULL);
    engine_device_gone(world.engine, 0);
    world_forget(&world);
    returned(&world, 1, 0, TIME_NEVER);
    check_told(&world, "returned lease 1\nrefused claim 1: impossible\n");
    world_finish(&world);
}

static void a_closed_request_lives_on(void **state)
{
    struct engine_request *request;
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    request = world_request(&world, NULL);
    granted(&world, request);
    engine_request_close(world.engine, request);
    engine_block(world.engine, 0, BLOCK_DRAINED);
    world_forget(&world);
    returned(&world, 1, 0, TIME_NEVER);
    cancelled(&world, 1);
    check_told(&world, "returned lease 1\nrefused claim 1: cancelled\nforgotten 1\n");
    world_finish(&world);
}

static void only_leases_that_are_held_can_be(void **state)
{
    struct berth_error error = {0};
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, NULL);
    waits_with(&world, NULL);
    assert_int_equal(engine_drain_lease(world.engine, 1, NULL), 0);
    world_forget(&world);
    for (uint64_t lease = 1; lease < 4; lease++)
        assert_int_equal(engine_return(world.engine, lease, 0, TIME_NEVER, &error),
                         BERTH_ERROR_NOT_FOUND);
    assert_string_equal(error.message, "no lease 3 is held");
    check_told(&world, "");
    world_finish(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_granted_another_device_at_once),
        cmocka_unit_test(it_stands_where_it_stood),
        cmocka_unit_test(between_others_of_its_lane),
        cmocka_unit_test(it_ages_from_its_arrival),
        cmocka_unit_test(its_deadline_is_the_one_that_is_said),
        cmocka_unit_test(an_arrival_to_come_is_now),
        cmocka_unit_test(its_owner_is_kept),
        cmocka_unit_test(others_may_start_instead),
        cmocka_unit_test(what_it_held_does_not_count_any_more),
        cmocka_unit_test(what_is_within_it_ends),
        cmocka_unit_test(one_that_cannot_be_any_more_is_refused),
        cmocka_unit_test(a_closed_request_lives_on),
        cmocka_unit_test(only_leases_that_are_held_can_be),
    };

    return cmocka_run_group_tests_name("engine_return", tests, NULL, NULL);
}
