/* SPDX-License-Identifier: Apache-2.0
 *
 * The order in which each policy takes devices, case by case.
 */
#include "support/engine/policy_world.h"

enum { SLOTS = 5 };

static int set_up(void **state)
{
    struct policy_world *world = malloc(sizeof(*world));

    assert_non_null(world);
    policy_world_init(world, SLOTS);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    policy_world_finish(*state);
    free(*state);
    return 0;
}

static void set_utilization(struct policy_world *world, size_t slot, int64_t value)
{
    policy_world_device(world, slot)->load.utilization = load_figure_declared(value);
}

static void set_free(struct policy_world *world, size_t slot, int64_t value)
{
    policy_world_device(world, slot)->load.memory_free = load_figure_sampled(value, 1);
}

static void set_capability(struct policy_world *world, size_t slot, uint16_t major, uint16_t minor)
{
    policy_world_device(world, slot)->cap =
        (struct capability){.known = true, .major = major, .minor = minor};
}

static void where_nothing_is_known_all_take_the_lowest(void **state)
{
    struct policy_world *world = *state;

    for_each_comparing (policy) {
        world->slots_unknown = false;
        policy_world_takes(world, *policy, 0, 1, 2, 3, 4);
        world->slots_unknown = true;
        policy_world_takes(world, *policy, 0, 1, 2, 3, 4);
    }
}

static void what_is_unknown_of_slots_makes_no_difference(void **state)
{
    struct policy_world *world = *state;

    world->slots_unknown = true;
    world->affinity = 7;
    for (size_t slot = 0; slot < SLOTS; slot++)
        world->slots[slot] = (struct policy_slot){
            .tenants = (uint32_t)(SLOTS - slot),
            .picks = (uint32_t)(SLOTS - slot),
            .queued = SLOTS - slot,
            .active = SLOTS - slot,
            .weight = (uint32_t)(slot + 1),
            .served = SLOTS - slot,
            .last_served = SLOTS - slot,
            .affinity = slot == 4 ? 7 : 0,
        };
    for_each_comparing (policy)
        policy_world_takes(world, *policy, 0, 1, 2, 3, 4);
}

/* Sets values that make every policy prefer the highest slots. */
static void favour_the_highest(struct policy_world *world)
{
    for (size_t slot = 0; slot < SLOTS; slot++) {
        world->slots[slot] = (struct policy_slot){
            .queued = SLOTS - slot,
            .served = SLOTS - slot,
            .last_served = SLOTS - slot,
        };
        set_free(world, slot, (int64_t)slot);
        set_capability(world, slot, (uint16_t)slot, 0);
    }
}

static void avoided_ones_come_last(void **state)
{
    struct policy_world *world = *state;

    bitset_add(&world->avoided, 1);
    bitset_add(&world->avoided, 4);
    policy_world_takes(world, &policy_first, 0, 2, 3, 1, 4);
    favour_the_highest(world);
    for_each_comparing_but_first (policy)
        policy_world_takes(world, *policy, 3, 2, 0, 4, 1);
}

static void required_ones_come_first_even_if_avoided(void **state)
{
    struct policy_world *world = *state;

    bitset_add(&world->required, 1);
    bitset_add(&world->avoided, 1);
    policy_world_takes(world, &policy_first, 1, 0, 2, 3, 4);
    favour_the_highest(world);
    for_each_comparing_but_first (policy)
        policy_world_takes(world, *policy, 1, 4, 3, 2, 0);
}

static void only_candidates_are_taken(void **state)
{
    struct policy_world *world = *state;

    bitset_remove(&world->candidates, 0);
    bitset_remove(&world->candidates, 4);
    policy_world_takes(world, &policy_first, 1, 2, 3);
    favour_the_highest(world);
    for_each_comparing_but_first (policy)
        policy_world_takes(world, *policy, 3, 2, 1);
}

static void affinity_decides_among_equals(void **state)
{
    struct policy_world *world = *state;

    world->affinity = 7;
    world->slots[1].affinity = 8;
    world->slots[2].affinity = 7;
    world->slots[3].affinity = 7;
    for_each_comparing (policy)
        policy_world_takes(world, *policy, 2, 3, 0, 1, 4);
    bitset_add(&world->avoided, 2);
    for_each_comparing (policy)
        policy_world_takes(world, *policy, 3, 0, 1, 4, 2);
    world->affinity = 0; /* no affinity, which never counts as equal to a slot's 0 */
    for_each_comparing (policy)
        policy_world_takes(world, *policy, 0, 1, 3, 4, 2);
}

/* Rank 1 before rank 2, then slots without a rank, by affinity. */
static void ranks_decide_among_equals(void **state)
{
    struct policy_world *world = *state;

    world->ranked = true;
    world->affinity = 7;
    world->slots[1].affinity = 7;
    world->slots[4].rank = 1;
    world->slots[2].rank = UINT32_MAX;
    world->slots[3].rank = UINT32_MAX;
    world->slots[3].affinity = 7;
    for_each_comparing (policy)
        policy_world_takes(world, *policy, 4, 3, 2, 1, 0);
    bitset_add(&world->avoided, 4);
    for_each_comparing (policy)
        policy_world_takes(world, *policy, 3, 2, 1, 0, 4);
}

static void ranks_decide_only_among_equals(void **state)
{
    struct policy_world *world = *state;

    favour_the_highest(world);
    world->ranked = true;
    world->slots[0].rank = 1;
    for_each_comparing_but_first (policy)
        policy_world_takes(world, *policy, 4, 3, 2, 1, 0);
    policy_world_takes(world, &policy_first, 0, 1, 2, 3, 4);
}

static void affinity_decides_only_among_equals(void **state)
{
    struct policy_world *world = *state;

    favour_the_highest(world);
    world->affinity = 7;
    world->slots[0].affinity = 7;
    for_each_comparing_but_first (policy)
        policy_world_takes(world, *policy, 4, 3, 2, 1, 0);
}

static void round_robin_takes_whose_turn_was_longest_ago(void **state)
{
    struct policy_world *world = *state;

    world->slots[0] = (struct policy_slot){.served = 1, .last_served = UINT64_MAX};
    world->slots[1] = (struct policy_slot){.served = 9, .last_served = 5};
    world->slots[2] = (struct policy_slot){.served = 1, .last_served = 6};
    world->slots[4] = (struct policy_slot){.served = 8, .last_served = 5};
    policy_world_takes(world, &policy_round_robin, 3, 4, 1, 2, 0);
}

/* Gives the best slot its turn. */
static size_t take_turn(struct policy_world *world, const struct policy *policy, uint64_t now)
{
    size_t slot;

    assert_int_equal(policy_world_ask(world, policy, 1), 0);
    slot = bitset_next(&world->chosen, 0);
    world->slots[slot].served++;
    world->slots[slot].picks++;
    world->slots[slot].last_served = now;
    return slot;
}

static void round_robin_picks_alternates(void **state)
{
    struct policy_world *world = *state;

    bitset_clear(&world->candidates);
    bitset_add(&world->candidates, 1);
    bitset_add(&world->candidates, 3);
    for (uint64_t now = 1; now <= 10; now++)
        assert_int_equal(take_turn(world, &policy_round_robin, now), now % 2 == 1 ? 1 : 3);
}

static void least_loaded_takes_the_least_work(void **state)
{
    struct policy_world *world = *state;

    world->slots[0].queued = 4;
    world->slots[1].active = 3;
    world->slots[2].tenants = 2;
    world->slots[3].picks = 1;
    world->slots[4] = (struct policy_slot){.queued = 2, .active = 1, .tenants = 1, .picks = 1};
    policy_world_takes(world, &policy_least_loaded, 3, 2, 1, 0, 4);
    /* Work counts before utilization. */
    set_utilization(world, 3, 1000);
    set_utilization(world, 0, 0);
    policy_world_takes(world, &policy_least_loaded, 3, 2, 1, 0, 4);
}

static void least_loaded_takes_the_least_utilised_and_unknown_ones_last(void **state)
{
    struct policy_world *world = *state;

    set_utilization(world, 1, 1000);
    set_utilization(world, 2, 0);
    set_utilization(world, 4, 999);
    policy_world_takes(world, &policy_least_loaded, 2, 4, 1, 0, 3);
    world->slots_unknown = true; /* as on an inventory */
    policy_world_takes(world, &policy_least_loaded, 2, 4, 1, 0, 3);
    set_utilization(world, 0, -1);
    policy_world_takes(world, &policy_least_loaded, 2, 4, 1, 0, 3);
}

static void least_loaded_is_not_fooled_by_huge_numbers(void **state)
{
    struct policy_world *world = *state;

    world->slots[0] = (struct policy_slot){.queued = UINT64_MAX, .active = 1};
    world->slots[1] = (struct policy_slot){.queued = UINT64_MAX - 1, .tenants = 1, .picks = 1};
    world->slots[2] = (struct policy_slot){.active = UINT64_MAX};
    world->slots[3] = (struct policy_slot){.active = UINT64_MAX - 1};
    world->slots[4] = (struct policy_slot){.tenants = UINT32_MAX, .picks = UINT32_MAX};
    policy_world_takes(world, &policy_least_loaded, 4, 3, 0, 1, 2);
}

static void min_loaded_spreads_picks(void **state)
{
    struct policy_world *world = *state;

    for (uint64_t now = 1; now <= 10; now++)
        assert_int_equal(take_turn(world, &policy_least_loaded, now), (now - 1) % SLOTS);
}

static void best_available_takes_the_most_free_memory(void **state)
{
    struct policy_world *world = *state;

    set_free(world, 0, 0);
    set_free(world, 1, INT64_MAX);
    set_free(world, 3, 5);
    set_free(world, 4, -1); /* a negative value counts as unknown */
    policy_world_takes(world, &policy_best_available, 1, 3, 0, 2, 4);
    /* Free memory counts before users, and users before the slot. */
    set_free(world, 0, 5);
    world->slots[1].tenants = 9;
    world->slots[0] = (struct policy_slot){.tenants = 1, .picks = 1};
    world->slots[3] = (struct policy_slot){.picks = 1};
    world->slots[2] = (struct policy_slot){.tenants = UINT32_MAX, .picks = 1};
    world->slots[4] = (struct policy_slot){.tenants = UINT32_MAX};
    policy_world_takes(world, &policy_best_available, 1, 3, 0, 4, 2);
}

static void best_compute_takes_the_highest_capability(void **state)
{
    struct policy_world *world = *state;

    set_capability(world, 0, 8, 9);
    set_capability(world, 1, 8, 10);
    set_capability(world, 3, 0, 0);
    set_capability(world, 4, 9, 0);
    policy_world_takes(world, &policy_best_compute, 4, 1, 0, 3, 2);
}

static void best_compute_takes_the_most_memory_of_equals(void **state)
{
    struct policy_world *world = *state;

    for (size_t slot = 0; slot < SLOTS - 1; slot++)
        set_capability(world, slot, 8, 0);
    policy_world_device(world, 1)->memory_total = optional_number_of(0);
    policy_world_device(world, 2)->memory_total = optional_number_of(UINT64_MAX);
    policy_world_device(world, 3)->memory_total = optional_number_of(80 * GIB);
    policy_world_device(world, 4)->memory_total = optional_number_of(UINT64_MAX);
    policy_world_takes(world, &policy_best_compute, 2, 3, 1, 0, 4);
    /* Without known capabilities, only memory decides. */
    for (size_t slot = 0; slot < SLOTS; slot++)
        policy_world_device(world, slot)->cap = (struct capability){.major = (uint16_t)slot};
    policy_world_takes(world, &policy_best_compute, 2, 4, 3, 1, 0);
}

static void weighted_takes_who_had_the_least_for_its_weight(void **state)
{
    struct policy_world *world = *state;

    world->slots[0] = (struct policy_slot){.served = 3, .weight = 2};    /* 2 */
    world->slots[1] = (struct policy_slot){.served = 1, .weight = 0};    /* 2 */
    world->slots[2] = (struct policy_slot){.served = 2, .weight = 2};    /* 3/2 */
    world->slots[3] = (struct policy_slot){.served = 0, .weight = 1};    /* 1 */
    world->slots[4] = (struct policy_slot){.served = 99, .weight = 101}; /* 100/101 */
    policy_world_takes(world, &policy_weighted, 4, 3, 2, 0, 1);
}

static void weighted_is_exact_on_huge_numbers(void **state)
{
    struct policy_world *world = *state;

    world->slots[0] = (struct policy_slot){.served = UINT64_MAX, .weight = UINT32_MAX - 1};
    world->slots[1] = (struct policy_slot){.served = UINT64_MAX, .weight = UINT32_MAX};
    world->slots[2] = (struct policy_slot){.served = UINT64_MAX - 1, .weight = UINT32_MAX};
    world->slots[3] = (struct policy_slot){.served = UINT64_MAX};
    world->slots[4] = (struct policy_slot){.served = UINT64_MAX - 1, .weight = 1};
    policy_world_takes(world, &policy_weighted, 2, 1, 0, 4, 3);
}

/* As on nodes with too many devices to rate. */
static void pack_and_spread_go_by_leases_where_they_cannot_rate(void **state)
{
    struct policy_world *world = *state;

    world->slots[0].tenants = 2;
    world->slots[2].tenants = 3;
    world->slots[3].tenants = 1;
    policy_world_takes(world, &policy_pack, 2, 0, 3, 1, 4);
    policy_world_takes(world, &policy_spread, 1, 4, 3, 0, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(where_nothing_is_known_all_take_the_lowest),
        TEST(what_is_unknown_of_slots_makes_no_difference),
        TEST(avoided_ones_come_last),
        TEST(required_ones_come_first_even_if_avoided),
        TEST(only_candidates_are_taken),
        TEST(affinity_decides_among_equals),
        TEST(affinity_decides_only_among_equals),
        TEST(ranks_decide_among_equals),
        TEST(ranks_decide_only_among_equals),
        TEST(round_robin_takes_whose_turn_was_longest_ago),
        TEST(round_robin_picks_alternates),
        TEST(least_loaded_takes_the_least_work),
        TEST(least_loaded_takes_the_least_utilised_and_unknown_ones_last),
        TEST(least_loaded_is_not_fooled_by_huge_numbers),
        TEST(min_loaded_spreads_picks),
        TEST(best_available_takes_the_most_free_memory),
        TEST(best_compute_takes_the_highest_capability),
        TEST(best_compute_takes_the_most_memory_of_equals),
        TEST(weighted_takes_who_had_the_least_for_its_weight),
        TEST(weighted_is_exact_on_huge_numbers),
        TEST(pack_and_spread_go_by_leases_where_they_cannot_rate),
    };

    return cmocka_run_group_tests_name("policies_order", tests, NULL, NULL);
}
