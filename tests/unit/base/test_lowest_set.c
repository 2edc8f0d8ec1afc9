/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/lowest_set.h"

#include <berth/error.h>
#include <string.h>

#include "base/count.h"
#include "support/aborts.h"
#include "support/failing_allocator.h"
#include "support/random.h"
#include "support/steps.h"

enum { LARGEST = 64 * 64 * 3 + 5 };

/* Around the sizes that need another word or level. */
static const size_t sizes[] = {0, 1, 63, 64, 65, 128, 64 * 64 - 1, 64 * 64, 64 * 64 + 1, LARGEST};

static void a_new_set_is_empty(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct lowest_set set;

        assert_int_equal(lowest_set_init(&set, sizes[i]), 0);
        assert_true(lowest_set_is_empty(&set));
        assert_int_equal(lowest_set_next(&set, 0), SIZE_MAX);
        assert_int_equal(lowest_set_next(&set, sizes[i]), SIZE_MAX);
        lowest_set_finish(&set);
    }
}

static void the_last_number_is_found_alone(void **state)
{
    (void)state;
    for (size_t i = 1; i < COUNT(sizes); i++) {
        size_t last = sizes[i] - 1;
        struct lowest_set set;

        assert_int_equal(lowest_set_init(&set, sizes[i]), 0);
        lowest_set_add(&set, last);
        assert_false(lowest_set_is_empty(&set));
        assert_true(lowest_set_has(&set, last));
        assert_int_equal(lowest_set_first(&set), last);
        assert_int_equal(lowest_set_next(&set, 0), last);
        assert_int_equal(lowest_set_next(&set, last), last);
        assert_int_equal(lowest_set_next(&set, last + 1), SIZE_MAX);
        lowest_set_remove(&set, last);
        assert_true(lowest_set_is_empty(&set));
        lowest_set_finish(&set);
    }
}

static void the_lowest_comes_first_whatever_the_order(void **state)
{
    struct lowest_set set;

    (void)state;
    assert_int_equal(lowest_set_init(&set, LARGEST), 0);
    lowest_set_add(&set, 5000);
    lowest_set_add(&set, 70);
    lowest_set_add(&set, 12000);
    assert_int_equal(lowest_set_first(&set), 70);
    assert_int_equal(lowest_set_next(&set, 71), 5000);
    assert_int_equal(lowest_set_next(&set, 5001), 12000);
    lowest_set_remove(&set, 70);
    assert_int_equal(lowest_set_first(&set), 5000);
    lowest_set_finish(&set);
}

static void a_set_of_all_numbers_counts_up(void **state)
{
    struct lowest_set set;

    (void)state;
    assert_int_equal(lowest_set_init(&set, LARGEST), 0);
    for (size_t number = LARGEST; number-- > 0;)
        lowest_set_add(&set, number);
    for (size_t number = 0; number < LARGEST; number++) {
        assert_int_equal(lowest_set_first(&set), number);
        lowest_set_remove(&set, number);
    }
    assert_true(lowest_set_is_empty(&set));
    lowest_set_finish(&set);
}

static size_t model_next(const bool *model, size_t size, size_t from)
{
    while (from < size && !model[from])
        from++;
    return from < size ? from : SIZE_MAX;
}

/* Changes numbers near a moving position, so that whole words become full and empty. */
static void change_at_random(size_t size, unsigned long steps)
{
    static bool model[LARGEST];
    struct test_random random = {size};
    struct lowest_set set;

    memset(model, 0, sizeof(model));
    assert_int_equal(lowest_set_init(&set, size), 0);
    for (unsigned long step = 0; step < steps; step++) {
        size_t near = (size_t)(step / 100) * 977;
        size_t number = (near + test_random_below(&random, 100)) % size;
        size_t from = test_random_below(&random, size + 1);
        size_t first;

        if (model[number])
            lowest_set_remove(&set, number);
        else
            lowest_set_add(&set, number);
        model[number] = !model[number];
        first = model_next(model, size, 0);
        assert_int_equal(lowest_set_has(&set, number), model[number]);
        assert_int_equal(lowest_set_is_empty(&set), first == SIZE_MAX);
        if (first != SIZE_MAX)
            assert_int_equal(lowest_set_first(&set), first);
        assert_int_equal(lowest_set_next(&set, from), model_next(model, size, from));
    }
    lowest_set_finish(&set);
}

static void random_changes_agree_with_a_model(void **state)
{
    (void)state;
    for (size_t i = 1; i < COUNT(sizes); i++)
        change_at_random(sizes[i], test_steps(2000));
}

static int attempt(void *context)
{
    struct lowest_set set;
    int code = lowest_set_init(&set, LARGEST);

    (void)context;
    lowest_set_finish(&set);
    return code;
}

static void without_memory_there_is_no_set(void **state)
{
    (void)state;
    assert_int_equal(failing_allocator_try_all(attempt, NULL), 3);
}

static void ask_for_too_much(void)
{
    struct lowest_set set;

    (void)lowest_set_init(&set, ((size_t)1 << 24) + 1);
}

static void a_set_beyond_its_levels_is_a_bug(void **state)
{
    (void)state;
    assert_aborts(ask_for_too_much);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_set_is_empty),
        cmocka_unit_test(the_last_number_is_found_alone),
        cmocka_unit_test(the_lowest_comes_first_whatever_the_order),
        cmocka_unit_test(a_set_of_all_numbers_counts_up),
        cmocka_unit_test(random_changes_agree_with_a_model),
        cmocka_unit_test(without_memory_there_is_no_set),
        cmocka_unit_test(a_set_beyond_its_levels_is_a_bug),
    };

    return cmocka_run_group_tests_name("lowest_set", tests, NULL, NULL);
}
