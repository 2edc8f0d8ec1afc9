/* SPDX-License-Identifier: Apache-2.0
 *
 * The choice among suitable devices: policies, picks without a lease, affinity.
 */
#include "support/unit.h"

#include "engine/policy/policies.h"
#include "support/engine/engine_steps.h"

/* Picks a device, which must be in this slot. */
#define check_pick(world, request, wanted)                                             \
    do {                                                                               \
        uint32_t slot_ = UINT32_MAX;                                                   \
        assert_int_equal(engine_pick((world)->engine, (request), &slot_, 1, NULL), 1); \
        assert_int_equal(slot_, (wanted));                                             \
    } while (0)

/* Makes a claim, checks that it gets this slot, and releases it. */
#define check_turn(world, request, wanted)                              \
    do {                                                                \
        uint64_t lease_ = granted((world), (request));                  \
        assert_int_equal(lease_in((world), lease_).slots[0], (wanted)); \
        released((world), lease_);                                      \
    } while (0)

static void round_robin_gives_everybody_a_turn(void **state)
{
    struct world world;
    struct engine_request *turns;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    turns = world_request(&world, "policy=round-robin");
    for (uint32_t i = 0; i < 7; i++)
        check_turn(&world, turns, i % 3);
    for (uint32_t i = 7; i < 14; i++)
        check_pick(&world, turns, i % 3);
    world_finish(&world);
}

static void least_loaded_does_not_herd_between_two_figures(void **state)
{
    struct load load = {.utilization = load_figure_sampled(900, 1)};
    struct world world;
    struct engine_request *request;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    engine_set_load(world.engine, 0, &load);
    load.utilization = load_figure_sampled(100, 1);
    engine_set_load(world.engine, 1, &load);
    load.utilization = load_figure_sampled(500, 1);
    engine_set_load(world.engine, 2, &load);
    request = world_request(&world, "policy=least-loaded");
    check_pick(&world, request, 1);
    check_pick(&world, request, 2);
    check_pick(&world, request, 0);
    check_pick(&world, request, 1);
    world_finish(&world);
}

static void a_new_load_forgets_the_picks_of_its_device(void **state)
{
    struct load load = {.utilization = load_figure_sampled(100, 1)};
    struct world world;
    struct engine_request *request;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    request = world_request(&world, "policy=least-loaded");
    check_pick(&world, request, 0);
    check_pick(&world, request, 1);
    engine_set_load(world.engine, 1, &load);
    check_pick(&world, request, 1);
    check_pick(&world, request, 1);
    world_finish(&world);
}

static void reported_work_counts_and_forgets_picks_too(void **state)
{
    struct world world;
    struct engine_request *request;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    request = world_request(&world, "policy=least-loaded");
    engine_set_work(world.engine, 0, 1, 1);
    check_pick(&world, request, 1);
    check_pick(&world, request, 1);
    check_pick(&world, request, 0);
    engine_set_work(world.engine, 1, 0, 0);
    check_pick(&world, request, 1);
    world_finish(&world);
}

static void leases_count_as_work(void **state)
{
    struct world world;
    struct engine_request *request;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    request = world_request(&world, "policy=least-loaded sharing=time-slice");
    granted(&world, request);
    granted(&world, request);
    assert_int_equal(slot_in(&world, 0).tenants, 1);
    assert_int_equal(slot_in(&world, 1).tenants, 1);
    world_finish(&world);
}

static void weights_share_out_the_turns(void **state)
{
    unsigned turns[2] = {0};
    struct world world;
    struct engine_request *request;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    engine_set_weight(world.engine, 1, 3);
    request = world_request(&world, "policy=weighted");
    for (int i = 0; i < 8; i++) {
        uint64_t lease = granted(&world, request);

        turns[lease_in(&world, lease).slots[0]]++;
        released(&world, lease);
    }
    assert_int_equal(turns[0], 2);
    assert_int_equal(turns[1], 6);
    world_finish(&world);
}

static void what_was_said_of_a_device_counts_within_leases_too(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    engine_set_work(world.engine, 0, 1, 0);
    engine_set_weight(world.engine, 1, 3);
    granted_to(&world, "gpus=2");
    check_turn(&world, world_request(&world, "parent=1 policy=least-loaded"), 1);
    check_turn(&world, world_request(&world, "parent=1 policy=weighted"), 1);
    world_finish(&world);
}

static void advice_takes_nothing_but_a_number(void **state)
{
    struct world world;
    struct engine_request *both;
    uint32_t slots[2] = {77, 77};

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    both = world_request(&world, "gpus=2");
    world_forget(&world);
    assert_int_equal(engine_pick(world.engine, both, slots, 2, NULL), 2);
    assert_int_equal(slots[0], 0);
    assert_int_equal(slots[1], 1);
    check_told(&world, "picked lease 1\n");
    assert_false(slot_in(&world, 0).taken);
    assert_int_equal(granted(&world, both), 2);
    world_finish(&world);
}

static void advice_writes_no_further_than_there_is_room(void **state)
{
    struct world world;
    uint32_t slots[2] = {77, 77};

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    assert_true(engine_pick(world.engine, world_request(&world, "gpus=2"), slots, 1, NULL) > 0);
    assert_int_equal(slots[0], 0);
    assert_int_equal(slots[1], 77);
    world_finish(&world);
}

static void there_is_no_advice_where_a_claim_would_wait_or_fail(void **state)
{
    struct berth_error error = {0};
    struct world world;
    struct engine_request *one;
    uint32_t slot = 77;

    (void)state;
    world_init(&world, "nvidia0");
    one = world_request(&world, NULL);
    granted(&world, one);
    world_forget(&world);
    assert_int_equal(engine_pick(world.engine, one, &slot, 1, &error), 0);
    check_told(&world, "");
    assert_int_equal(engine_pick(world.engine, world_request(&world, "gpus=2"), &slot, 1, &error),
                     BERTH_ERROR_IMPOSSIBLE);
    assert_int_equal(slot, 77);
    world_finish(&world);
}

static void the_settings_and_the_caller_name_policies_too(void **state)
{
    static const struct policy highest = {.name = "none"};
    struct engine_settings settings = {0};
    const struct policy *round_robin;
    struct engine_request *request;
    struct request what;
    struct world world;

    (void)state;
    assert_int_equal(policy_find("round-robin", &round_robin, NULL), 0);
    settings.policy = round_robin;
    world_init_settings(&world, "nvidia0,nvidia1", &settings);
    request = world_request(&world, NULL);
    check_turn(&world, request, 0);
    check_turn(&world, request, 1);
    check_turn(&world, world_request(&world, "policy=first"), 0);
    check_turn(&world, request, 1);
    request_init(&what);
    what.policy = copy_of("round-robin");
    assert_int_equal(engine_request_open(world.engine, &what, NULL, &highest, &request, NULL), 0);
    check_turn(&world, request, 0);
    check_turn(&world, request, 0);
    request_finish(&what);
    world_finish(&world);
}

static void a_key_goes_back_to_the_device_that_served_it(void **state)
{
    struct world world;
    struct engine_request *mine, *other;
    uint64_t lease;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    mine = world_request(&world, "affinity=mine");
    other = world_request(&world, "affinity=other");
    lease = granted(&world, other);
    check_turn(&world, mine, 1);
    released(&world, lease);
    check_turn(&world, mine, 1);
    check_turn(&world, other, 0);
    check_turn(&world, world_request(&world, NULL), 0);
    check_turn(&world, world_request(&world, "affinity=third"), 0);
    check_turn(&world, other, 0);
    world_finish(&world);
}

static void a_key_decides_only_among_equals(void **state)
{
    struct world world;
    struct engine_request *request;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    request = world_request(&world, "affinity=mine policy=least-loaded");
    check_turn(&world, request, 0);
    engine_set_work(world.engine, 0, 1, 0);
    check_turn(&world, request, 1);
    world_finish(&world);
}

static void a_user_may_be_the_key(void **state)
{
    struct engine_settings settings = {.affinity_by_user = true};
    struct world world;
    struct engine_request *one, *other;
    uint64_t lease;

    (void)state;
    world_init_settings(&world, "nvidia0,nvidia1", &settings);
    one = world_request(&world, "uid=1");
    other = world_request(&world, "uid=2");
    lease = granted(&world, one);
    check_turn(&world, other, 1);
    released(&world, lease);
    check_turn(&world, other, 1);
    check_turn(&world, one, 0);
    world_finish(&world);
}

static void users_with_large_numbers_have_keys_of_their_own(void **state)
{
    struct engine_settings settings = {.affinity_by_user = true};
    struct world world;
    struct engine_request *small, *large;
    uint64_t lease;

    (void)state;
    world_init_settings(&world, "nvidia0,nvidia1", &settings);
    small = world_request(&world, "uid=1");
    large = world_request(&world, "uid=2147483649");
    lease = granted_to(&world, "uid=7");
    check_turn(&world, small, 1);
    released(&world, lease);
    check_turn(&world, large, 0);
    world_finish(&world);
}

static void a_user_is_no_key_unless_set(void **state)
{
    struct world world;
    struct engine_request *one;
    uint64_t lease;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    one = world_request(&world, "uid=1");
    lease = granted(&world, one);
    check_turn(&world, one, 1);
    released(&world, lease);
    check_turn(&world, one, 0);
    world_finish(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_robin_gives_everybody_a_turn),
        cmocka_unit_test(least_loaded_does_not_herd_between_two_figures),
        cmocka_unit_test(a_new_load_forgets_the_picks_of_its_device),
        cmocka_unit_test(reported_work_counts_and_forgets_picks_too),
        cmocka_unit_test(leases_count_as_work),
        cmocka_unit_test(weights_share_out_the_turns),
        cmocka_unit_test(what_was_said_of_a_device_counts_within_leases_too),
        cmocka_unit_test(advice_takes_nothing_but_a_number),
        cmocka_unit_test(advice_writes_no_further_than_there_is_room),
        cmocka_unit_test(there_is_no_advice_where_a_claim_would_wait_or_fail),
        cmocka_unit_test(the_settings_and_the_caller_name_policies_too),
        cmocka_unit_test(a_key_goes_back_to_the_device_that_served_it),
        cmocka_unit_test(a_key_decides_only_among_equals),
        cmocka_unit_test(a_user_may_be_the_key),
        cmocka_unit_test(users_with_large_numbers_have_keys_of_their_own),
        cmocka_unit_test(a_user_is_no_key_unless_set),
    };

    return cmocka_run_group_tests_name("engine_picks", tests, NULL, NULL);
}
