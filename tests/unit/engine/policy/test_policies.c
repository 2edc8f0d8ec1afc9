/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "engine/policy/policies.h"

#include <string.h>

#include "base/count.h"
#include "support/assert_error.h"
#include "support/failing_allocator.h"
#include "support/random.h"
#include "support/steps.h"

static void policies_are_found_by_name(void **state)
{
    const struct policy *found = NULL;
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    for (const struct policy *const *policy = policies; *policy != NULL; policy++) {
        assert_true(strlen((*policy)->summary) > 0);
        assert_int_equal(policy_find((*policy)->name, &found, &error), 0);
        assert_ptr_equal(found, *policy);
    }
    assert_int_equal(policy_find("first", &found, &error), 0);
    assert_ptr_equal(found, &policy_first);
    assert_string_equal(error.message, "");
}

static int find(void *context)
{
    const struct policy *found = NULL;

    return policy_find(context, &found, NULL);
}

static void finding_one_takes_no_memory(void **state)
{
    char name[] = "weighted";

    (void)state;
    assert_int_equal(failing_allocator_try_all(find, name), 0);
}

static void no_name_finds_no_policy(void **state)
{
    const struct policy *found = &policy_first;

    (void)state;
    assert_int_equal(policy_find(NULL, &found, NULL), 0);
    assert_null(found);
}

static void other_names_are_refused(void **state)
{
    static const char *const names[] = {"", "First", "first ", "firs", "no-such-policy"};

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        struct berth_error error = BERTH_ERROR_INIT;
        const struct policy *found = &policy_first;

        assert_int_equal(policy_find(names[i], &found, &error), BERTH_ERROR_INVALID);
        assert_int_equal(error.code, BERTH_ERROR_INVALID);
        /* The names are between these. */
        assert_memory_equal(error.message, "policy: expected one of first, ", 31);
        for (const struct policy *const *policy = policies; *policy != NULL; policy++)
            assert_non_null(strstr(error.message, (*policy)->name));
        assert_non_null(strstr(error.message, "; got '"));
        assert_ptr_equal(found, &policy_first);
    }
}

static int refuse(void *context)
{
    struct berth_error error = BERTH_ERROR_INIT;
    const struct policy *found = NULL;
    int code = policy_find(context, &found, &error);

    assert_null(found);
    return code == BERTH_ERROR_INVALID ? 0 : code;
}

static void out_of_memory_is_reported(void **state)
{
    char name[] = "no-such-policy";

    (void)state;
    assert_true(failing_allocator_try_all(refuse, name) >= 1);
}

enum { SLOTS = 70, SETS = 4 };

/* The sets of a question. */
struct world {
    struct bitset candidates;
    struct bitset required;
    struct bitset avoided;
    struct bitset chosen;
};

static void check_first(const struct world *world, size_t count)
{
    /* A skipped slot must be worse than every later slot that is chosen. */
    bool plain_left = false;
    bool avoided_left = false;

    assert_int_equal(bitset_count(&world->chosen), count);
    assert_true(bitset_is_subset(&world->chosen, &world->candidates));
    assert_true(bitset_is_subset(&world->required, &world->chosen));
    bitset_for_each (slot, &world->candidates) {
        bool avoided = bitset_has(&world->avoided, slot);

        if (bitset_has(&world->required, slot))
            continue;
        if (bitset_has(&world->chosen, slot)) {
            assert_false(avoided ? avoided_left : plain_left);
            continue;
        }
        plain_left = plain_left || !avoided;
        avoided_left = avoided_left || avoided;
    }
    bitset_for_each (slot, &world->chosen) {
        if (bitset_has(&world->avoided, slot) && !bitset_has(&world->required, slot))
            assert_false(plain_left);
    }
}

static void first_takes_the_lowest_but_avoided_ones_last(void **state)
{
    struct test_random random = {16};
    struct machine machine = {0};
    struct world world;
    struct bitset *sets[SETS] = {&world.candidates, &world.required, &world.avoided, &world.chosen};

    (void)state;
    for (size_t i = 0; i < SETS; i++)
        assert_int_equal(bitset_init(sets[i], SLOTS), 0);
    for (unsigned long step = test_steps(5000); step > 0; step--) {
        size_t max = 0;
        size_t min = 0;
        size_t count;

        for (size_t i = 0; i < SETS; i++)
            bitset_clear(sets[i]);
        for (size_t slot = 0; slot < SLOTS; slot++) {
            if (test_random_below(&random, 2) == 0)
                bitset_add(&world.avoided, slot);
            if (test_random_below(&random, 2) == 0)
                continue;
            bitset_add(&world.candidates, slot);
            max++;
            if (test_random_below(&random, 8) == 0) {
                bitset_add(&world.required, slot);
                min++;
            }
        }
        count = min + test_random_below(&random, max - min + 1);
        assert_int_equal(policy_choose(&policy_first,
                                       &(struct policy_question){.machine = &machine,
                                                                 .candidates = &world.candidates,
                                                                 .required = &world.required,
                                                                 .avoided = &world.avoided,
                                                                 .count = count},
                                       &world.chosen),
                         0);
        check_first(&world, count);
    }
    for (size_t i = 0; i < SETS; i++)
        bitset_finish(sets[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies_are_found_by_name),
        cmocka_unit_test(finding_one_takes_no_memory),
        cmocka_unit_test(no_name_finds_no_policy),
        cmocka_unit_test(other_names_are_refused),
        cmocka_unit_test(out_of_memory_is_reported),
        cmocka_unit_test(first_takes_the_lowest_but_avoided_ones_last),
    };

    return cmocka_run_group_tests_name("policies", tests, NULL, NULL);
}
