/* SPDX-License-Identifier: Apache-2.0
 *
 * Reservations and backfilling: which devices blocked claims bar to later claims.
 */
#include "support/unit.h"

#include "support/engine/engine_steps.h"

static void a_claim_that_ends_exactly_at_the_reserved_start_goes_first(void **state)
{
    struct world world;
    uint64_t wide;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "time=100");
    wide = waits_with(&world, "gpus=2");
    check_reserved(&world, wide, "0,1", 100);
    granted_to(&world, "time=100");
    check_reserved(&world, wide, "0,1", 100);
    world_finish(&world);
}

static void one_nanosecond_longer_is_too_long(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "time=100");
    waits_with(&world, "gpus=2");
    waits_with(&world, "time=101");
    check_pending(&world, 2);
    world_finish(&world);
}

static void what_is_left_until_the_start_counts_from_now(void **state)
{
    struct world world;
    struct engine_request *fits, *too_long;
    uint64_t id;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "time=100");
    waits_with(&world, "gpus=2");
    fits = world_request(&world, "time=70");
    too_long = world_request(&world, "time=71");
    engine_advance(world.engine, 30);
    assert_int_equal(engine_try(world.engine, too_long, &id, NULL), CLAIM_WAITS);
    assert_int_equal(engine_try(world.engine, fits, &id, NULL), CLAIM_GRANTED);
    world_finish(&world);
}

static void a_claim_that_waited_goes_first_when_a_time_limit_appears(void **state)
{
    struct world world;
    uint64_t lease;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    lease = granted_to(&world, NULL);
    waits_with(&world, "gpus=2");
    waits_with(&world, "time=40");
    world_forget(&world);
    assert_int_equal(engine_extend(world.engine, lease, 50, NULL), 0);
    check_told(&world, "extended lease 1\n"
                       "granted lease 4 of claim 3: slots 1\n");
    world_finish(&world);
}

static void only_the_reserved_set_is_barred_when_the_start_is_known(void **state)
{
    struct world world;
    uint64_t wide;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2,nvidia3");
    granted_to(&world, "gpus=2 time=100");
    wide = waits_with(&world, "gpus=3");
    check_reserved(&world, wide, "0,1,2", 100);
    world_forget(&world);
    granted(&world, world_request(&world, NULL));
    check_told(&world, "request 3\n"
                       "granted lease 3: slots 3\n");
    waits_with(&world, NULL);
    check_reserved(&world, wide, "0,1,2", 100);
    world_finish(&world);
}

static void the_reserved_set_prefers_what_is_not_free_now(void **state)
{
    struct world world;
    uint64_t wide;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2,nvidia3");
    granted_to(&world, "device=nvidia3 time=100");
    granted_to(&world, "device=nvidia1 time=50");
    wide = waits_with(&world, "gpus=3");
    check_reserved(&world, wide, "0,1,2", 50);
    granted_to(&world, "device=nvidia0 time=50");
    check_reserved(&world, wide, "0,1,2", 50);
    cancelled(&world, wide);
    wide = waits_with(&world, "gpus=2");
    check_reserved(&world, wide, "0,1", 50);
    world_finish(&world);
}

static void a_reservation_starts_when_the_last_needed_lease_ends(void **state)
{
    struct world world;
    uint64_t wide;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    granted_to(&world, "time=10");
    granted_to(&world, "time=30");
    granted_to(&world, "time=20");
    wide = waits_with(&world, "gpus=2");
    check_reserved(&world, wide, "0,2", 20);
    world_finish(&world);
}

static void an_unknown_start_closes_all_that_the_claim_accepts(void **state)
{
    struct world world;
    uint64_t wide;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    granted_to(&world, "device=nvidia0");
    wide = waits_with(&world, "device=nvidia0,nvidia1 gpus=2");
    check_reserved(&world, wide, "0,1", TIME_NEVER);
    waits_with(&world, "device=nvidia1 time=1");
    granted_to(&world, "device=nvidia2");
    world_finish(&world);
}

/* A lease past its limit counts as gone, so that the reservation keeps its start. */
static void a_lease_over_its_limit_keeps_a_reservation_in_place(void **state)
{
    struct engine_settings settings = {.grace = 20};
    struct world world;
    uint64_t lease, wide;

    (void)state;
    world_init_settings(&world, "nvidia0,nvidia1,nvidia2", &settings);
    lease = granted_to(&world, "device=nvidia0 time=100");
    granted_to(&world, "device=nvidia1 time=500");
    wide = waits_with(&world, "gpus=2");
    check_reserved(&world, wide, "0,2", 100);
    waits_with(&world, "time=300");
    world_forget(&world);
    engine_advance(world.engine, 100);
    check_reserved(&world, wide, "0,2", 100);
    waits_with(&world, "time=1");
    engine_advance(world.engine, 139);
    check_reserved(&world, wide, "0,2", 139);
    check_told(&world, "expired lease 1\nrequest 5\nqueued claim 5\n");
    world_forget(&world);
    vacated(&world, lease);
    check_told(&world, "released lease 1\ngranted lease 6 of claim 3: slots 0,2\n");
    world_finish(&world);
}

/* A lease that overstays makes the start unknown. */
static void a_lease_that_overstays_tells_no_start(void **state)
{
    struct engine_settings settings = {.grace = 20};
    struct world world;
    uint64_t wide;

    (void)state;
    world_init_settings(&world, "nvidia0,nvidia1,nvidia2", &settings);
    granted_to(&world, "device=nvidia0 time=100");
    granted_to(&world, "device=nvidia1 time=500");
    wide = waits_with(&world, "gpus=2");
    waits_with(&world, "time=300");
    engine_advance(world.engine, 100);
    world_forget(&world);
    check_next_time(&world, 140);
    engine_advance(world.engine, 140);
    check_told(&world, "granted lease 5 of claim 4: slots 2\n");
    check_reserved(&world, wide, "1,2", 500);
    check_next_time(&world, 440);
    world_finish(&world);
}

static void a_longer_grace_takes_an_overstayer_back(void **state)
{
    struct engine_settings settings = {.grace = 20};
    struct world world;
    uint64_t wide;

    (void)state;
    world_init_settings(&world, "nvidia0,nvidia1", &settings);
    granted_to(&world, "time=100");
    wide = waits_with(&world, "gpus=2");
    engine_advance(world.engine, 150);
    check_reserved(&world, wide, "0,1", TIME_NEVER);
    settings.grace = 40;
    assert_int_equal(engine_set_rules(world.engine, &settings), 0);
    check_reserved(&world, wide, "0,1", 150);
    check_next_time(&world, 180);
    engine_advance(world.engine, 180);
    check_reserved(&world, wide, "0,1", TIME_NEVER);
    world_finish(&world);
}

static void only_the_first_of_a_group_has_a_reservation(void **state)
{
    struct world world;
    uint64_t first, second, apart;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    granted_to(&world, "device=nvidia0 time=100");
    granted_to(&world, "device=nvidia2 time=200");
    first = waits_with(&world, "device=nvidia0,nvidia1 gpus=2");
    second = waits_with(&world, "device=nvidia1");
    apart = waits_with(&world, "device=nvidia2");
    check_reserved(&world, first, "0,1", 100);
    check_not_reserved(&world, second);
    check_reserved(&world, apart, "2", 200);
    world_finish(&world);
}

static void groups_with_a_member_in_common_are_one(void **state)
{
    struct world world;
    struct engine_request *brief;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2,nvidia3");
    granted_to(&world, "device=nvidia0 time=100");
    granted_to(&world, "device=nvidia2");
    waits_with(&world, "device=nvidia0,nvidia1 gpus=2");
    waits_with(&world, "device=nvidia2,nvidia3 gpus=2");
    brief = world_request(&world, "device=nvidia1 time=100");
    assert_int_equal(engine_would_grant(world.engine, brief, NULL), CLAIM_GRANTED);
    /* Belongs to both groups. The second start is unknown, so the whole region is barred. */
    waits_with(&world, "device=nvidia1,nvidia3 gpus=2");
    assert_int_equal(engine_would_grant(world.engine, brief, NULL), CLAIM_WAITS);
    world_finish(&world);
}

static void groups_with_known_starts_bar_their_sets_after_merging(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2,nvidia3");
    granted_to(&world, "device=nvidia0 time=100");
    granted_to(&world, "device=nvidia2 time=200");
    waits_with(&world, "device=nvidia0,nvidia1 gpus=2");
    waits_with(&world, "device=nvidia2,nvidia3 gpus=2");
    waits_with(&world, "device=nvidia1,nvidia3 gpus=2");
    waits_with(&world, "device=nvidia1 time=101");
    granted_to(&world, "device=nvidia3 time=101");
    granted_to(&world, "device=nvidia1 time=100");
    world_finish(&world);
}

static void a_higher_class_moves_a_reservation(void **state)
{
    struct world world;
    uint64_t wide;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "time=100");
    wide = waits_with(&world, "gpus=2");
    check_reserved(&world, wide, "0,1", 100);
    granted_to(&world, "device=nvidia1 time=500 priority=high");
    check_reserved(&world, wide, "0,1", 500);
    world_finish(&world);
}

static void a_blocked_claim_of_a_higher_class_takes_the_reservation(void **state)
{
    struct world world;
    uint64_t normal, high;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "time=100");
    normal = waits_with(&world, "gpus=2");
    high = waits_with(&world, "gpus=2 priority=high");
    check_not_reserved(&world, normal);
    check_reserved(&world, high, "0,1", 100);
    world_finish(&world);
}

static void a_lease_that_ends_early_starts_the_reserved_claim_early(void **state)
{
    struct world world;
    uint64_t lease;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    lease = granted_to(&world, "time=100");
    waits_with(&world, "gpus=2");
    world_forget(&world);
    engine_advance(world.engine, 10);
    released(&world, lease);
    check_told(&world, "released lease 1\n"
                       "granted lease 3 of claim 2: slots 0,1\n");
    world_finish(&world);
}

static void a_claim_granted_at_once_that_moves_a_reservation_frees_what_was_reserved(void **state)
{
    struct world world;
    uint64_t wide;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2,nvidia3");
    granted_to(&world, "gpus=2 time=100");
    wide = waits_with(&world, "gpus=3");
    waits_with(&world, "device=nvidia2");
    check_reserved(&world, wide, "0,1,2", 100);
    world_forget(&world);
    granted(&world, world_request(&world, "device=nvidia3 time=50"));
    check_told(&world, "request 4\n"
                       "granted lease 4: slots 3\n"
                       "granted lease 5 of claim 3: slots 2\n");
    check_reserved(&world, wide, "0,1,3", 100);
    world_finish(&world);
}

static void a_waiting_claim_that_starts_and_moves_a_reservation_does_the_same(void **state)
{
    struct world world;
    uint64_t lease;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2,nvidia3");
    granted_to(&world, "gpus=2 time=100");
    engine_block(world.engine, 3, BLOCK_DIRTY);
    lease = waits_with(&world, "gpus=3");
    check_reserved(&world, lease, "0,1,2", 100);
    waits_with(&world, "device=nvidia2");
    waits_with(&world, "device=nvidia3 time=50");
    world_forget(&world);
    engine_unblock(world.engine, 3, BLOCK_DIRTY);
    check_told(&world, "device in slot 3\n"
                       "granted lease 5 of claim 4: slots 3\n"
                       "granted lease 6 of claim 3: slots 2\n");
    world_finish(&world);
}

static void a_lease_that_drains_moves_no_reservation_before_it_overstays(void **state)
{
    struct engine_settings settings = {.grace = 20};
    struct world world;
    uint64_t lease, wide;

    (void)state;
    world_init_settings(&world, "nvidia0,nvidia1,nvidia2,nvidia3", &settings);
    lease = granted_to(&world, "device=nvidia0 time=100");
    granted_to(&world, "device=nvidia1,nvidia2 gpus=2 time=200");
    wide = waits_with(&world, "gpus=2");
    check_reserved(&world, wide, "0,3", 100);
    waits_with(&world, NULL);
    world_forget(&world);
    assert_int_equal(engine_drain_lease(world.engine, lease, NULL), 0);
    check_reserved(&world, wide, "0,3", 100);
    check_told(&world, "draining lease 1\n");
    engine_advance(world.engine, 139);
    check_reserved(&world, wide, "0,3", 139);
    world_forget(&world);
    engine_advance(world.engine, 140);
    check_reserved(&world, wide, "1,2", 200);
    check_told(&world, "granted lease 5 of claim 4: slots 3\n");
    world_finish(&world);
}

static void write_reservation(void *context, const struct reservation_view *view)
{
    text_append_format(context, "claim %llu", (unsigned long long)view->claim);
    if (view->start == TIME_NEVER)
        text_append_format(context, ", owner %s\n", (const char *)view->owner.data);
    else
        text_append_format(context, " at %lld\n", (long long)view->start);
}

/* One for each group, with a known start or not; none for opportunistic claims. */
static void all_reservations_can_be_seen(void **state)
{
    static char name[] = "Ann";
    struct world world;
    struct text found = {0};
    uint64_t id;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2,nvidia3");
    granted_to(&world, "device=nvidia0 time=100");
    granted_to(&world, "device=nvidia1");
    granted_to(&world, "device=nvidia2 opportunistic");
    waits_with(&world, "device=nvidia0");
    waits_with(&world, "device=nvidia0 time=5");
    assert_int_equal(engine_claim(world.engine, world_request(&world, "device=nvidia1"), TIME_NEVER,
                                  &(struct claim_owner){.data = name}, &id, NULL),
                     CLAIM_WAITS);
    waits_with(&world, "device=nvidia2 opportunistic");
    assert_int_equal(engine_each_reservation(world.engine, write_reservation, &found), 0);
    assert_string_equal(text_string(&found), "claim 4 at 100\nclaim 6, owner Ann\n");
    text_finish(&found);
    world_finish(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_claim_that_ends_exactly_at_the_reserved_start_goes_first),
        cmocka_unit_test(one_nanosecond_longer_is_too_long),
        cmocka_unit_test(what_is_left_until_the_start_counts_from_now),
        cmocka_unit_test(a_claim_that_waited_goes_first_when_a_time_limit_appears),
        cmocka_unit_test(only_the_reserved_set_is_barred_when_the_start_is_known),
        cmocka_unit_test(the_reserved_set_prefers_what_is_not_free_now),
        cmocka_unit_test(a_reservation_starts_when_the_last_needed_lease_ends),
        cmocka_unit_test(an_unknown_start_closes_all_that_the_claim_accepts),
        cmocka_unit_test(a_lease_over_its_limit_keeps_a_reservation_in_place),
        cmocka_unit_test(a_lease_that_overstays_tells_no_start),
        cmocka_unit_test(a_longer_grace_takes_an_overstayer_back),
        cmocka_unit_test(only_the_first_of_a_group_has_a_reservation),
        cmocka_unit_test(groups_with_a_member_in_common_are_one),
        cmocka_unit_test(groups_with_known_starts_bar_their_sets_after_merging),
        cmocka_unit_test(a_higher_class_moves_a_reservation),
        cmocka_unit_test(a_blocked_claim_of_a_higher_class_takes_the_reservation),
        cmocka_unit_test(a_lease_that_ends_early_starts_the_reserved_claim_early),
        cmocka_unit_test(a_claim_granted_at_once_that_moves_a_reservation_frees_what_was_reserved),
        cmocka_unit_test(a_waiting_claim_that_starts_and_moves_a_reservation_does_the_same),
        cmocka_unit_test(a_lease_that_drains_moves_no_reservation_before_it_overstays),
        cmocka_unit_test(all_reservations_can_be_seen),
    };

    return cmocka_run_group_tests_name("engine_backfill", tests, NULL, NULL);
}
