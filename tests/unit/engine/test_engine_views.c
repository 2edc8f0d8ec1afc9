/* SPDX-License-Identifier: Apache-2.0
 *
 * Ids, owners, queries and sinks.
 */
#include "support/unit.h"

#include "support/engine/engine_steps.h"

static void numbers_grow_and_are_never_used_again(void **state)
{
    struct world world;
    struct engine_request *one;
    uint64_t last = 0;

    (void)state;
    world_init(&world, "nvidia0");
    one = world_request(&world, NULL);
    for (int i = 0; i < 100; i++) {
        uint64_t lease = granted(&world, one);
        uint64_t claim = waits(&world, one);

        assert_true(lease > last);
        assert_true(claim > lease);
        cancelled(&world, claim);
        released(&world, lease);
        last = claim;
    }
    world_finish(&world);
}

static void a_later_lease_of_a_device_has_a_greater_number(void **state)
{
    struct world world;
    struct engine_request *one;
    uint64_t lease;

    (void)state;
    world_init(&world, "nvidia0");
    one = world_request(&world, NULL);
    lease = granted(&world, one);
    waits(&world, one);
    waits(&world, one);
    released(&world, lease);
    /* Greater than both claims, although one of them still waits. */
    assert_int_equal(slot_in(&world, 0).lease, 4);
    world_finish(&world);
}

static void a_lease_remembers_the_claim_that_it_was(void **state)
{
    struct world world;
    struct engine_request *one;

    (void)state;
    world_init(&world, "nvidia0");
    one = world_request(&world, "uid=9");
    granted(&world, one);
    waits(&world, one);
    assert_int_equal(lease_in(&world, 1).claim, 0);
    engine_advance(world.engine, 5);
    released(&world, 1);
    assert_int_equal(lease_in(&world, 3).claim, 2);
    assert_int_equal(lease_in(&world, 3).granted, 5);
    assert_ptr_equal(lease_in(&world, 3).request, one);
    assert_false(engine_get_claim(world.engine, 2, &(struct claim_view){0}));
    world_finish(&world);
}

static void owners_are_handed_back(void **state)
{
    struct claim_owner owner = {.waiter = &owner, .data = &world_tell};
    struct world world;
    struct engine_request *one;
    uint64_t id;

    (void)state;
    world_init(&world, "nvidia0");
    one = world_request(&world, NULL);
    assert_int_equal(engine_claim(world.engine, one, TIME_NEVER, &owner, &id, NULL), CLAIM_GRANTED);
    assert_ptr_equal(lease_in(&world, id).owner.waiter, &owner);
    owner.data = &world;
    assert_int_equal(engine_claim(world.engine, one, TIME_NEVER, &owner, &id, NULL), CLAIM_WAITS);
    assert_ptr_equal(claim_in(&world, id).owner.data, &world);
    released(&world, 1);
    assert_ptr_equal(lease_in(&world, 3).owner.waiter, &owner);
    assert_ptr_equal(lease_in(&world, 3).owner.data, &world);
    released(&world, 3);
    /* A recycled record does not keep the old owner. */
    assert_null(lease_in(&world, granted(&world, one)).owner.waiter);
    assert_null(claim_in(&world, waits(&world, one)).owner.waiter);
    world_finish(&world);
}

static void a_claim_shows_when_it_came_and_gives_up(void **state)
{
    struct world world;
    struct engine_request *low;
    uint64_t claim;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, NULL);
    engine_advance(world.engine, 5);
    low = world_request(&world, "priority=low");
    claim = waits_until(&world, low, 50);
    assert_int_equal(claim_in(&world, claim).arrived, 5);
    assert_int_equal(claim_in(&world, claim).deadline, 50);
    assert_int_equal(claim_in(&world, claim).class_now, PRIORITY_LOW);
    assert_ptr_equal(claim_in(&world, claim).request, low);
    assert_int_equal(claim_in(&world, waits(&world, low)).deadline, TIME_NEVER);
    assert_int_equal(claim_in(&world, waits_with(&world, NULL)).class_now, PRIORITY_NORMAL);
    world_finish(&world);
}

static void write_lease(void *context, const struct lease_view *view)
{
    text_append_format(context, "%llu/%u ", (unsigned long long)view->id, view->slots[0]);
}

static void leases_are_visited_in_the_order_of_their_numbers(void **state)
{
    struct text ids = {0};
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    granted_to(&world, "device=nvidia2");
    granted_to(&world, "device=nvidia1");
    granted_to(&world, "device=nvidia0");
    released(&world, 2);
    granted_to(&world, "device=nvidia1");
    granted_to(&world, "parent=3");
    engine_each_lease(world.engine, write_lease, &ids);
    assert_string_equal(text_string(&ids), "1/2 3/0 4/1 5/0 ");
    text_finish(&ids);
    world_finish(&world);
}

static void claims_within_leases_are_visited_last(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, NULL);
    granted_to(&world, "parent=1");
    waits_with(&world, "parent=1 priority=high");
    waits_with(&world, "priority=low");
    check_waiting(&world, "4 3");
    world_finish(&world);
}

static void a_lease_that_is_gone_cannot_be_looked_at(void **state)
{
    struct world world;
    struct lease_view view;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, NULL);
    released(&world, 1);
    assert_false(engine_get_lease(world.engine, 1, &view));
    assert_false(engine_get_lease(world.engine, 0, &view));
    world_finish(&world);
}

static void a_request_is_forgotten_when_closed_and_not_used(void **state)
{
    struct world world;
    struct engine_request *one;

    (void)state;
    world_init(&world, "nvidia0");
    one = world_request(&world, NULL);
    granted(&world, one);
    released(&world, 1);
    world_forget(&world);
    engine_request_close(world.engine, one);
    check_told(&world, "forgotten 1\n");
    engine_request_close(world.engine, NULL);
    world_finish(&world);
}

static void a_request_that_is_closed_early_lives_on_with_its_claims_and_leases(void **state)
{
    struct world world;
    struct engine_request *one;

    (void)state;
    world_init(&world, "nvidia0");
    one = world_request(&world, "uid=3");
    granted(&world, one);
    waits(&world, one);
    waits(&world, one);
    engine_request_close(world.engine, one);
    world_forget(&world);
    released(&world, 1);
    assert_int_equal(engine_request_claims(lease_in(&world, 4).request), 1);
    released(&world, 4);
    released(&world, 5);
    check_told(&world, "released lease 1\n"
                       "granted lease 4 of claim 2: slots 0\n"
                       "released lease 4\n"
                       "granted lease 5 of claim 3: slots 0\n"
                       "released lease 5\n"
                       "forgotten 1\n");
    world_finish(&world);
}

static void the_last_claim_of_a_closed_request_takes_it_along(void **state)
{
    struct world world;
    struct engine_request *one;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, NULL);
    one = world_request(&world, NULL);
    waits_until(&world, one, 10);
    engine_request_close(world.engine, one);
    world_forget(&world);
    engine_advance(world.engine, 10);
    check_told(&world, "refused claim 2: timed out\n"
                       "forgotten 2\n");
    world_finish(&world);
}

static void count_event(void *context, const struct engine_event *event)
{
    ((unsigned *)context)[event->type]++;
}

static void only_wanted_events_are_told(void **state)
{
    unsigned counts[EVENT_TYPES] = {0};
    struct event_sink sink = {
        .notify = count_event,
        .context = counts,
        .wanted = EVENT_BIT(EVENT_GRANTED) | EVENT_BIT(EVENT_RELEASED),
    };
    struct machine machine = {0};
    struct world world = {0};
    struct engine_request *one;

    (void)state;
    machine_add_ids(&machine, "nvidia0");
    assert_int_equal(engine_create(&machine, NULL, &world.engine, NULL), 0);
    engine_set_sink(world.engine, &sink);
    one = world_request(&world, NULL);
    granted(&world, one);
    waits(&world, one);
    released(&world, 1);
    assert_int_equal(counts[EVENT_GRANTED], 2);
    assert_int_equal(counts[EVENT_RELEASED], 1);
    assert_int_equal(counts[EVENT_REQUEST] + counts[EVENT_QUEUED], 0);
    /* There is no event for a claim that is granted at once. */
    sink.waited_only = true;
    engine_set_sink(world.engine, &sink);
    released(&world, 3);
    granted(&world, one);
    waits(&world, one);
    assert_int_equal(counts[EVENT_GRANTED], 2);
    released(&world, 4);
    assert_int_equal(counts[EVENT_GRANTED], 3);
    engine_set_sink(world.engine, &(struct event_sink){0});
    released(&world, 6);
    assert_int_equal(counts[EVENT_RELEASED], 3);
    engine_destroy(world.engine);
}

static void an_engine_may_end_with_everything_in_it(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "gpus=2 time=10");
    granted_to(&world, "parent=1 sharing=mps");
    waits_with(&world, "parent=1 gpus=2");
    waits_until(&world, world_request(&world, "gpus=2"), 50);
    released(&world, 1);
    granted_to(&world, "parent=5");
    world_finish(&world);
    engine_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_grow_and_are_never_used_again),
        cmocka_unit_test(a_later_lease_of_a_device_has_a_greater_number),
        cmocka_unit_test(a_lease_remembers_the_claim_that_it_was),
        cmocka_unit_test(owners_are_handed_back),
        cmocka_unit_test(a_claim_shows_when_it_came_and_gives_up),
        cmocka_unit_test(leases_are_visited_in_the_order_of_their_numbers),
        cmocka_unit_test(claims_within_leases_are_visited_last),
        cmocka_unit_test(a_lease_that_is_gone_cannot_be_looked_at),
        cmocka_unit_test(a_request_is_forgotten_when_closed_and_not_used),
        cmocka_unit_test(a_request_that_is_closed_early_lives_on_with_its_claims_and_leases),
        cmocka_unit_test(the_last_claim_of_a_closed_request_takes_it_along),
        cmocka_unit_test(only_wanted_events_are_told),
        cmocka_unit_test(an_engine_may_end_with_everything_in_it),
    };

    return cmocka_run_group_tests_name("engine_views", tests, NULL, NULL);
}
