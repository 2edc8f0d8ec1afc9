/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns over a long time: round-robin is even although devices come and go, and weighted follows
 * the weights.
 */
#include "support/engine/policy_world.h"

#include "support/random.h"
#include "support/steps.h"

/* How a pool numbers the slots of one grant: all alike, or in the policy's order. */
enum numbering {
    SAME_FOR_ALL,
    IN_OLD_ORDER,
    NUMBERINGS,
};

struct pool {
    struct policy_world world;
    enum numbering numbering;
    uint64_t now;
};

static void pool_init(struct pool *pool, size_t count, enum numbering numbering)
{
    policy_world_init(&pool->world, count);
    pool->numbering = numbering;
    pool->now = 0;
}

/* Returns the first chosen slot after `from` in the policy's order, or the number of slots if there
 * is none. `from` may be that number to start. */
static size_t next_in_order(const struct policy_world *world, const struct policy *policy,
                            size_t from)
{
    struct policy_question question = policy_world_question(world, 1);
    size_t best = world->chosen.size;

    bitset_for_each (slot, &world->chosen) {
        if (from < world->chosen.size && policy_compare(policy, &question, slot, from) <= 0)
            continue;
        if (best == world->chosen.size || policy_compare(policy, &question, slot, best) < 0)
            best = slot;
    }
    return best;
}

/* Grants `count` devices, which are in world.chosen then. */
static void grant(struct pool *pool, const struct policy *policy, size_t count)
{
    struct policy_world *world = &pool->world;
    size_t order[POLICY_WORLD_MAX];
    size_t slot = world->chosen.size;

    assert_int_equal(policy_world_ask(world, policy, count), 0);
    for (size_t i = 0; i < count; i++) {
        slot = next_in_order(world, policy, slot);
        order[i] = slot;
    }
    pool->now++;
    for (size_t i = 0; i < count; i++) {
        world->slots[order[i]].served++;
        world->slots[order[i]].last_served = pool->now;
        if (pool->numbering == IN_OLD_ORDER)
            pool->now++;
    }
}

static uint64_t served(const struct pool *pool, size_t slot)
{
    return pool->world.slots[slot].served;
}

static void check_within_one(uint64_t one, uint64_t other)
{
    assert_true(one <= other + 1 && other <= one + 1);
}

static void check_even(const struct pool *pool, uint64_t turns)
{
    for (size_t slot = 0; slot < pool->world.chosen.size; slot++)
        assert_int_equal(served(pool, slot), turns);
}

static void round_robin_is_even(void **state)
{
    (void)state;
    for (enum numbering numbering = 0; numbering < NUMBERINGS; numbering++) {
        for (size_t count = 1; count <= 9; count++) {
            for (size_t wanted = 1; wanted <= count; wanted++) {
                struct pool pool;

                pool_init(&pool, count, numbering);
                for (uint64_t turn = 1; turn <= 10 * count; turn++) {
                    grant(&pool, &policy_round_robin, wanted);
                    for (size_t slot = 1; slot < count; slot++)
                        check_within_one(served(&pool, 0), served(&pool, slot));
                    if (turn % count == 0)
                        check_even(&pool, turn / count * wanted);
                }
                policy_world_finish(&pool.world);
            }
        }
    }
}

/* Removes or adds random pairs of neighbours. */
static void change_pairs(struct pool *pool, struct test_random *random)
{
    struct bitset *candidates = &pool->world.candidates;

    for (size_t slot = 0; slot < candidates->size; slot += 2) {
        if (test_random_below(random, 4) > 0)
            continue;
        for (size_t one = slot; one < slot + 2; one++) {
            if (bitset_has(candidates, one))
                bitset_remove(candidates, one);
            else
                bitset_add(candidates, one);
        }
    }
}

static void round_robin_is_even_for_those_available_at_the_same_times(void **state)
{
    enum { SLOTS = 10 };
    struct test_random random = {1};

    (void)state;
    for (enum numbering numbering = 0; numbering < NUMBERINGS; numbering++) {
        struct pool pool;

        pool_init(&pool, SLOTS, numbering);
        for (unsigned long step = test_steps(5000); step > 0; step--) {
            change_pairs(&pool, &random);
            grant(&pool, &policy_round_robin,
                  test_random_below(&random, bitset_count(&pool.world.candidates) + 1));
            for (size_t slot = 0; slot < SLOTS; slot += 2)
                check_within_one(served(&pool, slot), served(&pool, slot + 1));
        }
        policy_world_finish(&pool.world);
    }
}

/* No slot has two turns while another available slot has none. */
static void round_robin_passes_nobody_over_twice(void **state)
{
    enum { SLOTS = 7 };
    unsigned passed[SLOTS][SLOTS] = {0}; /* turns of the first while the second waited */
    struct test_random random = {2};
    struct pool pool;

    (void)state;
    pool_init(&pool, SLOTS, SAME_FOR_ALL);
    for (unsigned long step = test_steps(20000); step > 0; step--) {
        size_t taken;

        bitset_clear(&pool.world.candidates);
        for (size_t slot = 0; slot < SLOTS; slot++) {
            if (test_random_below(&random, slot + 2) > 0)
                bitset_add(&pool.world.candidates, slot);
        }
        if (bitset_is_empty(&pool.world.candidates))
            continue;
        grant(&pool, &policy_round_robin, 1);
        taken = bitset_next(&pool.world.chosen, 0);
        bitset_for_each (slot, &pool.world.candidates) {
            if (slot != taken)
                assert_true(++passed[taken][slot] <= 1);
        }
        for (size_t slot = 0; slot < SLOTS; slot++)
            passed[slot][taken] = 0;
    }
    policy_world_finish(&pool.world);
}

static void round_robin_gives_the_successor_of_a_busy_device_no_double_share(void **state)
{
    enum { SLOTS = 4, BUSY = 1 };
    struct pool pool;

    (void)state;
    pool_init(&pool, SLOTS, SAME_FOR_ALL);
    bitset_remove(&pool.world.candidates, BUSY);
    for (unsigned turn = 0; turn < 300; turn++)
        grant(&pool, &policy_round_robin, 1);
    for (size_t slot = 0; slot < SLOTS; slot++)
        assert_int_equal(served(&pool, slot), slot == BUSY ? 0 : 100);
    policy_world_finish(&pool.world);
}

/* A slot that was away is served first once, and then as often as all others. */
static void check_return(enum numbering numbering, size_t wanted)
{
    enum { SLOTS = 5, AWAY = 3 };
    uint64_t before[SLOTS];
    struct pool pool;

    pool_init(&pool, SLOTS, numbering);
    bitset_remove(&pool.world.candidates, AWAY);
    for (unsigned turn = 0; turn < 400; turn++)
        grant(&pool, &policy_round_robin, wanted);
    bitset_add(&pool.world.candidates, AWAY);
    for (size_t slot = 0; slot < SLOTS; slot++)
        before[slot] = served(&pool, slot);
    for (unsigned turn = 1; turn <= 4 * SLOTS; turn++) {
        grant(&pool, &policy_round_robin, wanted);
        assert_true(turn > 1 || bitset_has(&pool.world.chosen, AWAY));
        for (size_t slot = 0; slot < SLOTS; slot++)
            check_within_one(served(&pool, slot) - before[slot], served(&pool, AWAY));
    }
    policy_world_finish(&pool.world);
}

static void round_robin_gives_a_device_that_comes_back_no_burst(void **state)
{
    (void)state;
    check_return(SAME_FOR_ALL, 1);
    for (size_t wanted = 1; wanted <= 4; wanted++)
        check_return(IN_OLD_ORDER, wanted);
}

/* After `turns` turns, served / turns is weight / total for every slot, to within one turn. */
static void check_weights(const struct pool *pool, uint64_t turns, uint64_t total)
{
    const struct policy_slot *slots = pool->world.slots;
    size_t count = pool->world.chosen.size;

    for (size_t i = 0; i < count; i++) {
        uint64_t due = turns * slots[i].weight; /* `due`, `had`: in units of 1 / total turn */
        uint64_t had = slots[i].served * total;

        assert_true(had + total > due);
        if (count <= 2)
            assert_true(had < due + total);
        if (turns % total == 0)
            assert_int_equal(had, due);
        for (size_t j = 0; j < count; j++)
            assert_true(slots[i].served * slots[j].weight <=
                        (slots[j].served + 1) * slots[i].weight);
    }
}

static void weighted_keeps_to_the_weights(void **state)
{
    struct test_random random = {3};

    (void)state;
    for (unsigned long step = test_steps(100); step > 0; step--) {
        size_t count = 1 + test_random_below(&random, step % 2 == 0 ? 2 : 8);
        uint64_t total = 0;
        struct pool pool;

        pool_init(&pool, count, SAME_FOR_ALL);
        for (size_t slot = 0; slot < count; slot++) {
            pool.world.slots[slot].weight = (uint32_t)(1 + test_random_below(&random, 20));
            total += pool.world.slots[slot].weight;
        }
        for (uint64_t turn = 1; turn <= 3 * total; turn++) {
            grant(&pool, &policy_weighted, 1);
            check_weights(&pool, turn, total);
        }
        policy_world_finish(&pool.world);
    }
}

static void without_weights_weighted_is_even(void **state)
{
    enum { SLOTS = 6 };
    struct pool pool;

    (void)state;
    pool_init(&pool, SLOTS, SAME_FOR_ALL);
    for (uint64_t turn = 1; turn <= 10 * SLOTS; turn++) {
        grant(&pool, &policy_weighted, 1);
        assert_int_equal(bitset_next(&pool.world.chosen, 0), (turn - 1) % SLOTS);
    }
    check_even(&pool, 10);
    policy_world_finish(&pool.world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_robin_is_even),
        cmocka_unit_test(round_robin_is_even_for_those_available_at_the_same_times),
        cmocka_unit_test(round_robin_passes_nobody_over_twice),
        cmocka_unit_test(round_robin_gives_the_successor_of_a_busy_device_no_double_share),
        cmocka_unit_test(round_robin_gives_a_device_that_comes_back_no_burst),
        cmocka_unit_test(weighted_keeps_to_the_weights),
        cmocka_unit_test(without_weights_weighted_is_even),
    };

    return cmocka_run_group_tests_name("policies_turns", tests, NULL, NULL);
}
