/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits of users and groups.
 */
#include "support/unit.h"

#include "support/engine/engine_steps.h"

static void a_user_holds_no_more_than_the_limit(void **state)
{
    struct world world;
    struct engine_request *one;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    limit_user(&world, 5, 1000);
    one = world_request(&world, "uid=5");
    granted(&world, one);
    check_why(&world, waits(&world, one), "needs 1, but user 5 holds 1 of at most 1 device",
              TIME_NEVER);
    granted_to(&world, "uid=6");
    world_forget(&world);
    released(&world, 1);
    check_told(&world, "released lease 1\n"
                       "granted lease 4 of claim 2: slots 0\n");
    world_finish(&world);
}

static void a_group_holds_no_more_than_the_limit(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    limit_group(&world, 7, 2000);
    granted_to(&world, "uid=1 group=7");
    granted_to(&world, "uid=2 group=3 group=7");
    check_why(&world, waits_with(&world, "uid=3 group=7"),
              "needs 1, but group 7 holds 2 of at most 2 devices", TIME_NEVER);
    granted_to(&world, "uid=7");
    world_finish(&world);
}

static void the_tightest_limit_counts(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    limit_user(&world, 5, 2000);
    limit_group(&world, 7, 1000);
    granted_to(&world, "uid=5 group=7");
    waits_with(&world, "uid=5 group=7");
    granted_to(&world, "uid=5");
    waits_with(&world, "uid=5");
    world_finish(&world);
}

static void a_share_counts_as_a_part_of_a_device(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    limit_user(&world, 5, 750);
    granted_to(&world, "uid=5 sharing=time-slice");
    granted_to(&world, "uid=5 sharing=time-slice share=500");
    check_why(&world, waits_with(&world, "uid=5 sharing=time-slice share=1"),
              "needs 0.001, but user 5 holds 0.75 of at most 0.75 devices", TIME_NEVER);
    world_finish(&world);
}

static void replicas_count_together(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2,nvidia3");
    limit_user(&world, 5, 3000);
    check_impossible(
        &world, "uid=5 gpus=2 replicas=2",
        "requested 2 devices for each of 2 replicas, but user 5 may hold at most 3 devices");
    granted_to(&world, "uid=5 replicas=3");
    waits_with(&world, "uid=5");
    world_finish(&world);
}

static void a_claim_held_by_a_limit_blocks_no_other(void **state)
{
    struct world world;
    struct engine_request *both;
    uint64_t held;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    limit_user(&world, 5, 2000);
    granted_to(&world, "uid=5");
    both = world_request(&world, "uid=5 gpus=2");
    held = waits(&world, both);
    check_not_reserved(&world, held);
    granted_to(&world, NULL);
    granted_to(&world, NULL);
    check_pending(&world, 1);
    world_finish(&world);
}

static void an_elastic_claim_is_cut_to_the_limit(void **state)
{
    struct world world;
    uint64_t lease;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2,nvidia3");
    limit_user(&world, 5, 3000);
    granted_to(&world, "uid=5");
    lease = granted_to(&world, "uid=5 gpus=1-4");
    assert_int_equal(lease_in(&world, lease).slot_count, 2);
    world_finish(&world);
}

static void a_limit_counts_what_is_held_already(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "uid=5");
    limit_user(&world, 5, 1000);
    waits_with(&world, "uid=5");
    world_finish(&world);
}

static void a_lowered_limit_refuses_what_became_impossible(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "uid=5");
    waits_with(&world, "uid=5 gpus=2");
    waits_with(&world, "uid=6 gpus=2");
    waits_with(&world, "uid=5");
    world_forget(&world);
    limit_user(&world, 5, 1000);
    check_told(&world, "refused claim 2: impossible\n");
    check_waiting(&world, "3 4");
    limit_user(&world, 5, 0);
    check_told(&world, "refused claim 4: impossible\n");
    assert_int_equal(lease_in(&world, 1).state, LEASE_HELD);
    world_finish(&world);
}

static void a_refused_claim_makes_way_for_others(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, NULL);
    waits_with(&world, "uid=5 gpus=2");
    waits_with(&world, NULL);
    world_forget(&world);
    limit_user(&world, 5, 1000);
    check_told(&world, "refused claim 2: impossible\n"
                       "granted lease 4 of claim 3: slots 1\n");
    world_finish(&world);
}

static void a_raised_or_lifted_limit_grants_what_waited(void **state)
{
    struct world world;
    struct engine_request *one;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    limit_user(&world, 5, 1000);
    one = world_request(&world, "uid=5");
    granted(&world, one);
    waits(&world, one);
    waits(&world, one);
    world_forget(&world);
    limit_user(&world, 5, 2000);
    check_told(&world, "granted lease 4 of claim 2: slots 1\n");
    assert_int_equal(engine_limit_user(world.engine, 5, UINT64_MAX, NULL), 0);
    check_told(&world, "granted lease 5 of claim 3: slots 2\n");
    assert_int_equal(engine_limit_user(world.engine, 5, UINT64_MAX, NULL), 0);
    world_finish(&world);
}

static void a_lease_that_ends_late_still_counts(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    limit_user(&world, 5, 1000);
    granted_to(&world, "uid=5 time=10");
    waits_with(&world, "uid=5");
    engine_advance(world.engine, 10);
    check_pending(&world, 1);
    vacated(&world, 1);
    check_pending(&world, 0);
    world_finish(&world);
}

static void an_opportunistic_claim_is_limited_too(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    limit_user(&world, 5, 1000);
    granted_to(&world, "uid=5 opportunistic");
    waits_with(&world, "uid=5 opportunistic");
    /* It does not bar the device to other claims either. */
    granted_to(&world, "uid=6 opportunistic");
    world_finish(&world);
}

static void a_user_at_the_limit_bars_no_device(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    limit_user(&world, 5, 2000);
    granted_to(&world, "device=nvidia0");
    waits_with(&world, "uid=5 gpus=2 device=nvidia0,nvidia1");
    waits_with(&world, "device=nvidia1");
    world_forget(&world);
    granted(&world, world_request(&world, "uid=5 device=nvidia2"));
    check_told(&world, "request 4\n"
                       "granted lease 4: slots 2\n"
                       "granted lease 5 of claim 3: slots 1\n");
    world_finish(&world);
}

static void claims_of_one_user_are_given_way_only_up_to_the_limit(void **state)
{
    struct world world;
    struct engine_request *helper, *one;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    limit_user(&world, 5, 1000);
    helper = world_request(&world, "opportunistic");
    granted(&world, helper);
    granted(&world, helper);
    one = world_request(&world, "uid=5");
    world_forget(&world);
    waits(&world, one);
    waits(&world, one);
    check_told(&world, "queued claim 3\n"
                       "notice lease 2\n"
                       "queued claim 4\n");
    world_finish(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_user_holds_no_more_than_the_limit),
        cmocka_unit_test(a_group_holds_no_more_than_the_limit),
        cmocka_unit_test(the_tightest_limit_counts),
        cmocka_unit_test(a_share_counts_as_a_part_of_a_device),
        cmocka_unit_test(replicas_count_together),
        cmocka_unit_test(a_claim_held_by_a_limit_blocks_no_other),
        cmocka_unit_test(an_elastic_claim_is_cut_to_the_limit),
        cmocka_unit_test(a_limit_counts_what_is_held_already),
        cmocka_unit_test(a_lowered_limit_refuses_what_became_impossible),
        cmocka_unit_test(a_refused_claim_makes_way_for_others),
        cmocka_unit_test(a_raised_or_lifted_limit_grants_what_waited),
        cmocka_unit_test(a_lease_that_ends_late_still_counts),
        cmocka_unit_test(an_opportunistic_claim_is_limited_too),
        cmocka_unit_test(a_user_at_the_limit_bars_no_device),
        cmocka_unit_test(claims_of_one_user_are_given_way_only_up_to_the_limit),
    };

    return cmocka_run_group_tests_name("engine_limits", tests, NULL, NULL);
}
