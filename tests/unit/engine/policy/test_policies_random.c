/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares policies with a slow and simple model on random pools. In the model a policy is a list
 * of numbers for each slot; the lowest is the best.
 */
#include "support/engine/policy_world.h"

#include <string.h>

#include "support/failing_allocator.h"
#include "support/random.h"
#include "support/steps.h"

__extension__ typedef __int128 wide;

/* 720720 is a multiple of all weights from 1 to 16. */
enum { WEIGHTS = 16, DIVIDES_BY_ALL = 720720 };

enum { KEYS = 6 };

/* Unknown is above every number. */
#define UNKNOWN ((wide)1 << 100)

struct ranks {
    wide keys[KEYS];
};

static wide known_or(bool known, wide value)
{
    return known ? value : UNKNOWN;
}

/* Fills in the keys by which the policy itself compares. */
static void rank(const struct policy *policy, const struct device *device,
                 const struct policy_slot *slot, wide *keys)
{
    if (strcmp(policy->name, "round-robin") == 0) {
        keys[0] = slot->last_served;
        keys[1] = slot->served;
    } else if (strcmp(policy->name, "least-loaded") == 0) {
        wide work = (wide)slot->queued + slot->active + slot->tenants + slot->picks;

        keys[0] = work > UINT64_MAX ? UINT64_MAX : work;
        keys[1] = known_or(device->load.utilization.known, device->load.utilization.value);
    } else if (strcmp(policy->name, "best-available") == 0) {
        keys[0] = known_or(device->load.memory_free.known, -(wide)device->load.memory_free.value);
        keys[1] = (wide)slot->tenants + slot->picks;
    } else if (strcmp(policy->name, "best-compute") == 0) {
        keys[0] = known_or(device->cap.known, -(wide)device->cap.major * 65536 - device->cap.minor);
        keys[1] = known_or(device->memory_total.known, -(wide)device->memory_total.value);
    } else if (strcmp(policy->name, "weighted") == 0) {
        keys[0] = ((wide)slot->served + 1) * (DIVIDES_BY_ALL / (slot->weight ? slot->weight : 1));
    } else {
        assert_string_equal(policy->name, "first");
    }
}

static struct ranks rank_all(const struct policy *policy, struct policy_world *world, size_t slot)
{
    static const struct policy_slot nothing = {0};
    const struct policy_slot *known = world->slots_unknown ? &nothing : &world->slots[slot];
    bool affinity = world->affinity != 0 && known->affinity == world->affinity;
    struct ranks ranks = {0};

    ranks.keys[0] = bitset_has(&world->avoided, slot);
    rank(policy, policy_world_device(world, slot), known, ranks.keys + 1);
    ranks.keys[3] = !world->ranked ? 0 : known_or(known->rank != 0, known->rank);
    ranks.keys[4] = !affinity;
    ranks.keys[5] = slot;
    return ranks;
}

static int compare_ranks(const struct ranks *one, const struct ranks *other)
{
    for (size_t i = 0; i < KEYS; i++) {
        if (one->keys[i] != other->keys[i])
            return one->keys[i] < other->keys[i] ? -1 : 1;
    }
    return 0;
}

static int sign(int number)
{
    return (number > 0) - (number < 0);
}

/* Returns a number that is often equal to another, and sometimes extreme. */
static uint64_t make_number(struct test_random *random, uint64_t max)
{
    switch (test_random_below(random, 8)) {
    case 0:
        return max - test_random_below(random, 2);
    case 1:
        return test_random_any_length(random) & max;
    default:
        return test_random_below(random, 3);
    }
}

static struct figure make_figure(struct test_random *random)
{
    if (test_random_below(random, 3) == 0)
        return (struct figure){.value = (int64_t)test_random_below(random, 3)};
    return load_figure_sampled((int64_t)make_number(random, INT64_MAX), 1);
}

static void make_slot(struct policy_world *world, size_t slot, struct test_random *random)
{
    struct device *device = policy_world_device(world, slot);

    world->slots[slot] = (struct policy_slot){
        .tenants = (uint32_t)make_number(random, UINT32_MAX),
        .picks = (uint32_t)make_number(random, UINT32_MAX),
        .queued = make_number(random, UINT64_MAX),
        .active = make_number(random, UINT64_MAX),
        .weight = (uint32_t)test_random_below(random, WEIGHTS + 1),
        .served = make_number(random, UINT64_MAX),
        .last_served = make_number(random, UINT64_MAX),
        .affinity = test_random_below(random, 3),
        .rank = world->ranked ? (uint32_t)make_number(random, UINT32_MAX) : 0,
    };
    device->load = (struct load){
        .memory_free = make_figure(random),
        .utilization = make_figure(random),
    };
    device->cap = (struct capability){
        .known = test_random_below(random, 3) > 0,
        .major = (uint16_t)make_number(random, UINT16_MAX),
        .minor = (uint16_t)make_number(random, UINT16_MAX),
    };
    device->memory_total = (struct optional_number){
        .known = test_random_below(random, 3) > 0,
        .value = make_number(random, UINT64_MAX),
    };
}

/* Makes a pool of `count` devices, most of them candidates. */
static void make_world(struct policy_world *world, size_t count, struct test_random *random)
{
    policy_world_init(world, count);
    world->slots_unknown = test_random_below(random, 8) == 0;
    world->affinity = test_random_below(random, 3);
    world->ranked = test_random_below(random, 3) == 0;
    for (size_t slot = 0; slot < count; slot++) {
        make_slot(world, slot, random);
        if (test_random_below(random, 4) == 0)
            bitset_add(&world->avoided, slot);
        if (test_random_below(random, 4) == 0)
            bitset_remove(&world->candidates, slot);
        else if (test_random_below(random, 8) == 0)
            bitset_add(&world->required, slot);
    }
}

static void comparing_agrees_with_the_model(void **state)
{
    struct test_random random = {1};
    struct policy_world world;

    (void)state;
    for (unsigned long step = test_steps(2000); step > 0; step--) {
        struct policy_question question;

        make_world(&world, 5, &random);
        question = policy_world_question(&world, 1);
        for_each_comparing (policy) {
            for (size_t pair = 0; pair < 25; pair++) {
                struct ranks one = rank_all(*policy, &world, pair / 5);
                struct ranks other = rank_all(*policy, &world, pair % 5);

                assert_int_equal(sign(policy_compare(*policy, &question, pair / 5, pair % 5)),
                                 compare_ranks(&one, &other));
            }
        }
        policy_world_finish(&world);
    }
}

/* Compares by the policy alone, without rank, affinity and slot. */
static int compare_alone(const struct policy *policy, const struct policy_question *question,
                         size_t one, size_t other)
{
    return policy->compare == NULL ? 0 : sign(policy->compare(policy, question, one, other));
}

static void check_order(const struct policy *policy, const struct policy_question *question,
                        size_t one, size_t two, size_t three)
{
    int first = compare_alone(policy, question, one, two);
    int second = compare_alone(policy, question, two, three);

    assert_int_equal(compare_alone(policy, question, one, one), 0);
    assert_int_equal(compare_alone(policy, question, two, one), -first);
    if (first == second || second == 0)
        assert_int_equal(compare_alone(policy, question, one, three), first);
    else if (first == 0)
        assert_int_equal(compare_alone(policy, question, one, three), second);
}

static void comparing_is_a_strict_weak_order(void **state)
{
    enum { SLOTS = 6 };
    struct test_random random = {2};
    struct policy_world world;

    (void)state;
    for (unsigned long step = test_steps(500); step > 0; step--) {
        struct policy_question question;

        make_world(&world, SLOTS, &random);
        for (size_t slot = 0; slot < SLOTS; slot++)
            world.slots[slot].weight = (uint32_t)make_number(&random, UINT32_MAX);
        question = policy_world_question(&world, 1);
        for_each_comparing (policy) {
            for (size_t triple = 0; triple < SLOTS * SLOTS * SLOTS; triple++)
                check_order(*policy, &question, triple / (SLOTS * SLOTS), triple / SLOTS % SLOTS,
                            triple % SLOTS);
        }
        policy_world_finish(&world);
    }
}

/* Chooses by the model: the required slots, then the best one by one. */
static void choose_slowly(const struct policy *policy, struct policy_world *world, size_t count,
                          struct bitset *chosen)
{
    struct ranks ranks[POLICY_WORLD_MAX];

    bitset_copy(chosen, &world->required);
    bitset_for_each (slot, &world->candidates)
        ranks[slot] = rank_all(policy, world, slot);
    for (size_t left = count - bitset_count(chosen); left > 0; left--) {
        size_t best = chosen->size;

        bitset_for_each (slot, &world->candidates) {
            if (!bitset_has(chosen, slot) &&
                (best == chosen->size || compare_ranks(&ranks[slot], &ranks[best]) < 0))
                best = slot;
        }
        bitset_add(chosen, best);
    }
}

/* Returns a number of devices that may be requested. */
static size_t make_count(const struct policy_world *world, struct test_random *random)
{
    size_t min = bitset_count(&world->required);

    return min + test_random_below(random, bitset_count(&world->candidates) - min + 1);
}

static void choosing_agrees_with_the_model(void **state)
{
    struct test_random random = {3};
    struct policy_world world;

    (void)state;
    for (unsigned long step = test_steps(300); step > 0; step--) {
        size_t max = step % 8 == 0 ? POLICY_WORLD_MAX : 12;
        struct bitset wanted;

        make_world(&world, test_random_below(&random, max + 1), &random);
        assert_int_equal(bitset_init(&wanted, world.machine.devices.count), 0);
        for_each_comparing (policy) {
            size_t count = make_count(&world, &random);

            choose_slowly(*policy, &world, count, &wanted);
            assert_int_equal(policy_world_ask(&world, *policy, count), 0);
            assert_true(bitset_equals(&world.chosen, &wanted));
        }
        bitset_finish(&wanted);
        policy_world_finish(&world);
    }
}

static int compare_by_chance(const struct policy *policy, const struct policy_question *question,
                             size_t one, size_t other)
{
    (void)question;
    (void)one;
    (void)other;
    return (int)test_random_below(policy->context, 3) - 1;
}

static void a_policy_that_contradicts_itself_still_gives_a_whole_set(void **state)
{
    struct test_random random = {4};
    struct test_random chance = {5};
    const struct policy policy = {
        .name = "chance", .summary = "any", .compare = compare_by_chance, .context = &chance};
    struct policy_world world;

    (void)state;
    for (unsigned long step = test_steps(300); step > 0; step--) {
        size_t count;

        make_world(&world, test_random_below(&random, POLICY_WORLD_MAX + 1), &random);
        count = make_count(&world, &random);
        assert_int_equal(policy_world_ask(&world, &policy, count), 0);
        assert_int_equal(bitset_count(&world.chosen), count);
        assert_true(bitset_is_subset(&world.chosen, &world.candidates));
        assert_true(bitset_is_subset(&world.required, &world.chosen));
        policy_world_finish(&world);
    }
}

struct attempt {
    struct policy_world world;
    const struct policy *policy;
    size_t count;
};

static int ask(void *context)
{
    struct attempt *attempt = context;
    int code = policy_world_ask(&attempt->world, attempt->policy, attempt->count);

    assert_int_equal(bitset_count(&attempt->world.chosen), code < 0 ? 0 : attempt->count);
    return code;
}

static unsigned long allocations(struct attempt *attempt, const struct policy *policy, size_t count)
{
    attempt->policy = policy;
    attempt->count = count;
    return failing_allocator_try_all(ask, attempt);
}

static void only_large_choices_allocate(void **state)
{
    enum { SLOTS = 100 };
    struct attempt attempt;

    (void)state;
    policy_world_init(&attempt.world, SLOTS);
    for_each_comparing_but_first (policy) {
        assert_int_equal(allocations(&attempt, *policy, 64), 0);
        assert_int_equal(allocations(&attempt, *policy, 65), 1);
        assert_int_equal(allocations(&attempt, *policy, SLOTS), 0); /* no choice: all slots */
    }
    assert_int_equal(allocations(&attempt, &policy_first, 65), 0);
    attempt.world.affinity = 1;
    assert_int_equal(allocations(&attempt, &policy_first, 65), 1);
    attempt.world.slots_unknown = true;
    assert_int_equal(allocations(&attempt, &policy_first, 65), 0);
    bitset_add(&attempt.world.required, 5);
    assert_int_equal(allocations(&attempt, &policy_weighted, 65), 0);
    assert_int_equal(allocations(&attempt, &policy_weighted, 66), 1);
    policy_world_finish(&attempt.world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comparing_agrees_with_the_model),
        cmocka_unit_test(comparing_is_a_strict_weak_order),
        cmocka_unit_test(choosing_agrees_with_the_model),
        cmocka_unit_test(a_policy_that_contradicts_itself_still_gives_a_whole_set),
        cmocka_unit_test(only_large_choices_allocate),
    };

    return cmocka_run_group_tests_name("policies_random", tests, NULL, NULL);
}
