/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules that change while claims wait and leases are held.
 */
#include "support/unit.h"

#include "engine/policy/policies.h"
#include "support/engine/engine_steps.h"

/* Changes the rules, for which there is no event. */
static void rule(struct world *world, const struct engine_settings *settings)
{
    world->settings = *settings;
    world_forget(world);
    assert_int_equal(engine_set_rules(world->engine, settings), 0);
}

static void the_policy_is_that_of_requests_that_name_none(void **state)
{
    struct engine_request *ordinary, *named;
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    ordinary = world_request(&world, NULL);
    named = world_request(&world, "policy=first");
    released(&world, granted(&world, ordinary));
    rule(&world, &(struct engine_settings){.policy = &policy_round_robin});
    assert_int_equal(lease_in(&world, granted(&world, ordinary)).slots[0], 1);
    assert_int_equal(lease_in(&world, granted(&world, named)).slots[0], 0);
    released(&world, 2);
    released(&world, 3);
    assert_int_equal(lease_in(&world, granted_to(&world, NULL)).slots[0], 2);
    rule(&world, &(struct engine_settings){0});
    assert_int_equal(lease_in(&world, granted(&world, ordinary)).slots[0], 0);
    world_finish(&world);
}

static void the_grace_is_that_of_notices_to_come(void **state)
{
    struct world world;

    (void)state;
    world_init_settings(&world, "nvidia0,nvidia1", &(struct engine_settings){.grace = 10});
    granted_to(&world, "opportunistic device=nvidia0");
    granted_to(&world, "opportunistic device=nvidia1");
    waits_with(&world, "device=nvidia0");
    rule(&world, &(struct engine_settings){.grace = 30});
    waits_with(&world, "device=nvidia1");
    assert_int_equal(lease_in(&world, 1).force_at, 10);
    assert_int_equal(lease_in(&world, 2).force_at, 30);
    rule(&world, &(struct engine_settings){0});
    world_finish(&world);
}

static void ageing_counts_from_arrival(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, NULL);
    waits_with(&world, "priority=low");
    engine_advance(world.engine, 70);
    waits_with(&world, NULL);
    check_waiting(&world, "3 2");
    rule(&world, &(struct engine_settings){.age_step = 50});
    check_waiting(&world, "2 3");
    check_next_time(&world, 100);
    engine_advance(world.engine, 100);
    assert_int_equal(claim_in(&world, 2).class_now, PRIORITY_HIGH);
    rule(&world, &(struct engine_settings){.age_step = 1000});
    check_waiting(&world, "3 2");
    check_next_time(&world, 1000);
    world_finish(&world);
}

/* A claim that comes first by the new age_step starts at once. */
static void ageing_lets_claims_start(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "device=nvidia0");
    engine_block(world.engine, 1, BLOCK_DIRTY);
    waits_with(&world, "priority=low device=nvidia1");
    engine_advance(world.engine, 100);
    waits_with(&world, "gpus=2");
    engine_unblock(world.engine, 1, BLOCK_DIRTY);
    check_waiting(&world, "3 2");
    rule(&world, &(struct engine_settings){.age_step = 60});
    check_told(&world, "granted lease 4 of claim 2: slots 1\n");
    world_finish(&world);
}

static void more_tenants_let_claims_start(void **state)
{
    struct world world;

    (void)state;
    world_init_settings(&world, "nvidia0", &(struct engine_settings){.time_slice_tenants = 2});
    for (int i = 0; i < 2; i++)
        granted_to(&world, "sharing=time-slice share=100");
    waits_with(&world, "sharing=time-slice share=100");
    rule(&world, &(struct engine_settings){.time_slice_tenants = 3});
    check_told(&world, "granted lease 4 of claim 3: slots 0\n");
    waits_with(&world, "sharing=time-slice share=100");
    rule(&world, &(struct engine_settings){.mps_tenants = 3});
    check_told(&world, "granted lease 6 of claim 5: slots 0\n");
    world_finish(&world);
}

static void fewer_tenants_stay_until_they_end(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    for (int i = 0; i < 4; i++)
        granted_to(&world, "sharing=time-slice");
    rule(&world, &(struct engine_settings){.time_slice_tenants = 2});
    assert_int_equal(slot_in(&world, 0).tenants, 4);
    assert_int_equal(slot_in(&world, 0).share_used, SHARE_WHOLE);
    waits_with(&world, "sharing=time-slice share=100");
    released(&world, 1);
    released(&world, 2);
    check_waiting(&world, "5");
    released(&world, 3);
    check_waiting(&world, "");
    world_finish(&world);
}

/* The share of a lease never changes, nor do the shares within it. */
static void an_even_share_stays_what_it_was(void **state)
{
    struct engine_request *before;
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    before = world_request(&world, "sharing=time-slice device=nvidia0");
    granted(&world, before);
    granted_to(&world, "parent=1 sharing=time-slice share=200");
    rule(&world, &(struct engine_settings){.time_slice_tenants = 8});
    assert_int_equal(lease_in(&world, 1).share, SHARE_WHOLE / 4);
    assert_int_equal(lease_in(&world, 2).share, 200000);
    assert_int_equal(lease_in(&world, granted(&world, before)).share, SHARE_WHOLE / 4);
    assert_int_equal(
        lease_in(&world, granted_to(&world, "sharing=time-slice device=nvidia0")).share,
        SHARE_WHOLE / 8);
    assert_int_equal(slot_in(&world, 0).share_used, SHARE_WHOLE / 8 * 5);
    granted(&world, before);
    waits(&world, before);
    granted_to(&world, "sharing=time-slice device=nvidia0 priority=high");
    released(&world, 1);
    check_waiting(&world, "");
    world_finish(&world);
}

static void even_shares_of_earlier_rules_are_restored(void **state)
{
    struct world world;
    struct engine *twin;

    (void)state;
    world_init(&world, "nvidia0");
    for (int i = 0; i < 4; i++)
        granted_to(&world, "sharing=mps uid=5");
    rule(&world, &(struct engine_settings){.mps_tenants = 2});
    twin = world_twin(&world);
    replay_bytes(twin, &world.journal);
    check_same_state(world.engine, twin);
    engine_destroy(twin);
    world_finish(&world);
}

static void what_fewer_tenants_make_impossible_is_refused(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, NULL);
    waits_with(&world, "sharing=time-slice replicas=4");
    rule(&world, &(struct engine_settings){.time_slice_tenants = 3});
    check_told(&world, "refused claim 2: impossible\n");
    world_finish(&world);
}

static void more_tenants_make_possible(void **state)
{
    struct engine_request *request;
    struct world world;
    uint64_t lease = 0;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    request = world_request(&world, "sharing=time-slice replicas=40 share=1");
    assert_int_equal(engine_try(world.engine, request, &lease, NULL), BERTH_ERROR_IMPOSSIBLE);
    rule(&world, &(struct engine_settings){.time_slice_tenants = 20});
    assert_int_equal(lease_in(&world, granted(&world, request)).slot_count, 40);
    world_finish(&world);
}

static void size_and_affinity_stay(void **state)
{
    struct engine_settings settings = {.slots_max = 70, .affinity_by_user = true};
    struct world world;

    (void)state;
    world_init_settings(&world, "nvidia0,nvidia1", &settings);
    assert_int_equal(
        engine_set_rules(world.engine, &(struct engine_settings){.slots_max = 9, .grace = 3}), 0);
    assert_int_equal(engine_set_rules(world.engine, NULL), 0);
    assert_int_equal(engine_slots_max(world.engine), 70);
    granted_to(&world, "uid=5 device=nvidia1");
    released(&world, 1);
    assert_int_equal(lease_in(&world, granted_to(&world, "uid=5")).slots[0], 1);
    world_finish(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_policy_is_that_of_requests_that_name_none),
        cmocka_unit_test(the_grace_is_that_of_notices_to_come),
        cmocka_unit_test(ageing_counts_from_arrival),
        cmocka_unit_test(ageing_lets_claims_start),
        cmocka_unit_test(more_tenants_let_claims_start),
        cmocka_unit_test(fewer_tenants_stay_until_they_end),
        cmocka_unit_test(an_even_share_stays_what_it_was),
        cmocka_unit_test(even_shares_of_earlier_rules_are_restored),
        cmocka_unit_test(what_fewer_tenants_make_impossible_is_refused),
        cmocka_unit_test(more_tenants_make_possible),
        cmocka_unit_test(size_and_affinity_stay),
    };

    return cmocka_run_group_tests_name("engine_rules", tests, NULL, NULL);
}
