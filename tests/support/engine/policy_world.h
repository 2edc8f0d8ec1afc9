/* SPDX-License-Identifier: Apache-2.0
 *
 * The input of a policy: devices, the state of their slots, and the sets of a request.
 */
#ifndef TESTS_POLICY_WORLD_H
#define TESTS_POLICY_WORLD_H

#include "support/unit.h"

#include "base/count.h"
#include "engine/policy/policies.h"
#include "support/engine/machines.h"

enum { POLICY_WORLD_MAX = 200 };

/* Runs `policy` over the policies that compare slots. */
#define for_each_comparing(policy)                                                 \
    for (const struct policy *const *policy = policies; *policy != NULL; policy++) \
        if ((*policy)->rate == NULL)

/* The same without `first`, to which all devices are equal. */
#define for_each_comparing_but_first(policy) \
    for_each_comparing (policy)              \
        if (*policy != &policy_first)

struct policy_world {
    struct machine machine;
    struct policy_slot slots[POLICY_WORLD_MAX];
    bool slots_unknown; /* questions do not contain the slots */
    bool ranked;        /* some slots have a rank */
    struct bitset candidates;
    struct bitset required;
    struct bitset avoided;
    struct bitset chosen; /* the last answer */
    uint64_t affinity;
};

/* Initialises a world of `count` devices without facts. All are candidates. */
static inline void policy_world_init(struct policy_world *world, size_t count)
{
    struct bitset *sets[] = {&world->candidates, &world->required, &world->avoided, &world->chosen};

    assert_true(count <= POLICY_WORLD_MAX);
    *world = (struct policy_world){0};
    for (uint32_t i = 0; i < count; i++)
        machine_add(&world->machine, (struct device_id){
                                         .vendor = VENDOR_NVIDIA,
                                         .index = i,
                                         .mig = DEVICE_NO_MIG,
                                     });
    for (size_t i = 0; i < COUNT(sets); i++)
        assert_int_equal(bitset_init(sets[i], count), 0);
    bitset_fill(&world->candidates);
}

static inline void policy_world_finish(struct policy_world *world)
{
    machine_finish(&world->machine);
    bitset_finish(&world->candidates);
    bitset_finish(&world->required);
    bitset_finish(&world->avoided);
    bitset_finish(&world->chosen);
}

static inline struct device *policy_world_device(struct policy_world *world, size_t slot)
{
    return &world->machine.devices.items[slot];
}

/* Returns the question for `count` of the candidates. It is valid as long as the world exists. */
static inline struct policy_question policy_world_question(const struct policy_world *world,
                                                           size_t count)
{
    return (struct policy_question){
        .machine = &world->machine,
        .slots = world->slots_unknown ? NULL : world->slots,
        .candidates = &world->candidates,
        .required = &world->required,
        .avoided = &world->avoided,
        .count = count,
        .affinity = world->affinity,
        .ranked = world->ranked && !world->slots_unknown,
    };
}

/* Sets `chosen` to the policy's choice of `count` candidates. Returns the result of
 * policy_choose(). */
static inline int policy_world_ask(struct policy_world *world, const struct policy *policy,
                                   size_t count)
{
    struct policy_question question = policy_world_question(world, count);

    bitset_clear(&world->chosen);
    return policy_choose(policy, &question, &world->chosen);
}

/* Checks that the policy takes the candidates in this order: for every n, it chooses the first n of
 * them. The order ends with -1. */
static inline void policy_world_check(struct policy_world *world, const struct policy *policy,
                                      const int *order)
{
    for (size_t count = 1; order[count - 1] >= 0; count++) {
        assert_int_equal(policy_world_ask(world, policy, count), 0);
        assert_int_equal(bitset_count(&world->chosen), count);
        for (size_t i = 0; i < count; i++)
            assert_true(bitset_has(&world->chosen, (size_t)order[i]));
    }
}

#define policy_world_takes(world, policy, ...) \
    policy_world_check((world), (policy), (const int[]){__VA_ARGS__, -1})

#endif
