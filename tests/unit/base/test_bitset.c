/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/bitset.h"

#include "base/count.h"
#include "support/aborts.h"
#include "support/assert_error.h"
#include "support/failing_allocator.h"
#include "support/random.h"
#include "support/steps.h"

enum { LARGEST = 1000, SETS = 3 };

static const size_t sizes[] = {0, 1, 63, 64, 65, 128, LARGEST};

/* Some sets of one size, and a plain model of each. */
struct world {
    struct test_random random;
    size_t size;
    struct bitset sets[SETS];
    bool models[SETS][LARGEST];
};

static size_t model_count(const struct world *world, size_t which)
{
    size_t count = 0;

    for (size_t bit = 0; bit < world->size; bit++)
        count += world->models[which][bit];
    return count;
}

static size_t model_next(const struct world *world, size_t which, size_t from)
{
    while (from < world->size && !world->models[which][from])
        from++;
    return from < world->size ? from : world->size;
}

static void change_one_bit(struct world *world, size_t which)
{
    size_t bit;

    if (world->size == 0)
        return;
    bit = test_random_below(&world->random, world->size);
    world->models[which][bit] = test_random_below(&world->random, 2);
    if (world->models[which][bit])
        bitset_add(&world->sets[which], bit);
    else
        bitset_remove(&world->sets[which], bit);
}

static void change_whole_set(struct world *world, size_t which, size_t other)
{
    struct bitset *set = &world->sets[which];
    const struct bitset *with = &world->sets[other];
    uint64_t change = test_random_below(&world->random, 6);

    for (size_t bit = 0; bit < world->size; bit++) {
        bool mine = world->models[which][bit];
        bool theirs = world->models[other][bit];
        const bool results[] = {false,          true,           theirs,
                                mine || theirs, mine && theirs, mine && !theirs};

        world->models[which][bit] = results[change];
    }
    if (change == 0)
        bitset_clear(set);
    else if (change == 1)
        bitset_fill(set);
    else if (change == 2)
        bitset_copy(set, with);
    else if (change == 3)
        bitset_unite(set, with);
    else if (change == 4)
        bitset_intersect(set, with);
    else
        bitset_subtract(set, with);
}

static void check_alone(struct world *world, size_t which)
{
    const struct bitset *set = &world->sets[which];
    size_t from = test_random_below(&world->random, world->size + 2);

    for (size_t bit = 0; bit < world->size; bit++)
        assert_int_equal(bitset_has(set, bit), world->models[which][bit]);
    assert_int_equal(bitset_count(set), model_count(world, which));
    assert_int_equal(bitset_is_empty(set), model_count(world, which) == 0);
    assert_int_equal(bitset_next(set, from), model_next(world, which, from));
}

static void check_together(const struct world *world, size_t which, size_t other)
{
    const bool *mine = world->models[which];
    const bool *theirs = world->models[other];
    bool equal = true, subset = true, intersect = false;

    for (size_t bit = 0; bit < world->size; bit++) {
        equal = equal && mine[bit] == theirs[bit];
        subset = subset && (!mine[bit] || theirs[bit]);
        intersect = intersect || (mine[bit] && theirs[bit]);
    }
    assert_int_equal(bitset_equals(&world->sets[which], &world->sets[other]), equal);
    assert_int_equal(bitset_is_subset(&world->sets[which], &world->sets[other]), subset);
    assert_int_equal(bitset_intersects(&world->sets[which], &world->sets[other]), intersect);
}

/* Checks that parsing the formatted set gives the same set. */
static void check_ranges(const struct world *world, size_t which)
{
    struct text text = {0};
    struct bitset again;
    size_t needed = 0;

    for (size_t bit = 0; bit < world->size; bit++)
        needed = world->models[which][bit] ? bit + 1 : needed;
    bitset_format_ranges(&world->sets[which], &text);
    assert_int_equal(bitset_parse_ranges(text_string(&text), world->size, &again, NULL), 0);
    assert_int_equal(again.size, needed);
    for (size_t bit = 0; bit < needed; bit++)
        assert_int_equal(bitset_has(&again, bit), world->models[which][bit]);
    bitset_finish(&again);
    text_finish(&text);
}

static void walk(size_t size)
{
    struct world world = {.random = {size}, .size = size};

    for (size_t i = 0; i < SETS; i++) {
        assert_int_equal(bitset_init(&world.sets[i], size), 0);
        check_alone(&world, i);
    }
    for (unsigned long step = test_steps(2000); step > 0; step--) {
        size_t which = test_random_below(&world.random, SETS);
        size_t other = test_random_below(&world.random, SETS);

        /* Mostly single bits; otherwise the sets would nearly always be full or empty. */
        if (test_random_below(&world.random, 20) > 0)
            change_one_bit(&world, which);
        else
            change_whole_set(&world, which, other);
        check_alone(&world, which);
        check_together(&world, which, other);
        check_ranges(&world, which);
    }
    for (size_t i = 0; i < SETS; i++)
        bitset_finish(&world.sets[i]);
}

static void random_operations_agree_with_a_model(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++)
        walk(sizes[i]);
}

static void a_set_may_be_combined_with_itself(void **state)
{
    struct bitset set;

    (void)state;
    assert_int_equal(bitset_init(&set, 70), 0);
    bitset_add(&set, 69);
    bitset_unite(&set, &set);
    bitset_intersect(&set, &set);
    bitset_copy(&set, &set);
    assert_int_equal(bitset_count(&set), 1);
    assert_true(bitset_is_subset(&set, &set));
    bitset_subtract(&set, &set);
    assert_true(bitset_is_empty(&set));
    assert_false(bitset_intersects(&set, &set));
    bitset_finish(&set);
}

static void finish_leaves_an_empty_set(void **state)
{
    struct bitset set;

    (void)state;
    assert_int_equal(bitset_init(&set, 70), 0);
    bitset_finish(&set);
    assert_null(set.words);
    assert_int_equal(set.size, 0);
    bitset_finish(&set);
}

static void for_each_allows_removing_the_current_one(void **state)
{
    static const size_t members[] = {0, 1, 63, 64, 127, 128, 199};
    struct bitset set;
    size_t seen = 0;

    (void)state;
    assert_int_equal(bitset_init(&set, 200), 0);
    for (size_t i = 0; i < COUNT(members); i++)
        bitset_add(&set, members[i]);
    bitset_for_each (bit, &set) {
        assert_int_equal(bit, members[seen++]);
        bitset_remove(&set, bit);
    }
    assert_int_equal(seen, COUNT(members));
    assert_true(bitset_is_empty(&set));
    bitset_finish(&set);
}

static void an_absurd_size_is_out_of_memory(void **state)
{
    struct bitset set;

    (void)state;
    /* The test allocator fails it, because sanitizers report a real request of this size. */
    failing_allocator_start(1);
    assert_int_equal(bitset_init(&set, SIZE_MAX), BERTH_ERROR_MEMORY);
    failing_allocator_stop();
}

static void add_above_the_size(void)
{
    struct bitset set;

    if (bitset_init(&set, 64) == 0)
        bitset_add(&set, 64);
}

static void ask_an_empty_set(void)
{
    struct bitset set;

    if (bitset_init(&set, 0) == 0)
        bitset_has(&set, 0);
}

static void combine_different_sizes(void)
{
    struct bitset small, large;

    if (bitset_init(&small, 64) == 0 && bitset_init(&large, 65) == 0)
        bitset_unite(&small, &large);
}

static void misuse_aborts(void **state)
{
    (void)state;
    assert_aborts(add_above_the_size);
    assert_aborts(ask_an_empty_set);
    assert_aborts(combine_different_sizes);
}

/* Parses a list and compares the set's format with the canonical form. */
static void check_list(const char *list, size_t size, const char *canonical)
{
    struct bitset set;
    struct text text = {0};

    assert_int_equal(bitset_parse_ranges(list, 4096, &set, NULL), 0);
    assert_int_equal(set.size, size);
    bitset_format_ranges(&set, &text);
    assert_string_equal(text_string(&text), canonical);
    text_finish(&text);
    bitset_finish(&set);
}

static void lists_are_read(void **state)
{
    (void)state;
    check_list("", 0, "");
    check_list("\n", 0, "");
    check_list(" \t\r\n", 0, "");
    check_list("0", 1, "0");
    check_list("0-3,8,10-11", 12, "0-3,8,10-11");
    check_list("  0-3,8\n", 9, "0-3,8");
    check_list("8,0-3", 9, "0-3,8");
    check_list("5-5", 6, "5");
    check_list("0,1,2", 3, "0-2");
    check_list("0-5,3-8,4", 9, "0-8");
    check_list("007", 8, "7");
    check_list("62-65", 66, "62-65");
    check_list("4095", 4096, "4095");
    check_list("0-4095", 4096, "0-4095");
}

static void bad_lists_are_refused(void **state)
{
    static const struct {
        const char *list;
        int code;
        const char *message;
    } cases[] = {
        {"x", BERTH_ERROR_SYNTAX, "expected a number or a range such as 0-3, got 'x'"},
        {",", BERTH_ERROR_SYNTAX, "expected a number or a range such as 0-3, got ''"},
        {"1,", BERTH_ERROR_SYNTAX, "expected a number or a range such as 0-3, got ''"},
        {"1,,2", BERTH_ERROR_SYNTAX, "expected a number or a range such as 0-3, got ''"},
        {"1, 2", BERTH_ERROR_SYNTAX, "expected a number or a range such as 0-3, got ' 2'"},
        {"1 2", BERTH_ERROR_SYNTAX, "expected a number or a range such as 0-3, got '1 2'"},
        {"-3", BERTH_ERROR_SYNTAX, "expected a number or a range such as 0-3, got '-3'"},
        {"3-", BERTH_ERROR_SYNTAX, "expected a number or a range such as 0-3, got '3-'"},
        {"3-\n", BERTH_ERROR_SYNTAX, "expected a number or a range such as 0-3, got '3-'"},
        {"1-2-3", BERTH_ERROR_SYNTAX, "expected a number or a range such as 0-3, got '1-2-3'"},
        {"0,+1", BERTH_ERROR_SYNTAX, "expected a number or a range such as 0-3, got '+1'"},
        {"0-31:2/8", BERTH_ERROR_SYNTAX,
         "expected a number or a range such as 0-3, got '0-31:2/8'"},
        {"0x10", BERTH_ERROR_SYNTAX, "expected a number or a range such as 0-3, got '0x10'"},
        {"0,5-3", BERTH_ERROR_RANGE, "expected a range from small to large, got '5-3'"},
        {"64", BERTH_ERROR_RANGE, "expected numbers below 64, got '64'"},
        {"3,60-64", BERTH_ERROR_RANGE, "expected numbers below 64, got '60-64'"},
        {"18446744073709551615", BERTH_ERROR_RANGE,
         "expected numbers below 64, got '18446744073709551615'"},
        {"0-18446744073709551616", BERTH_ERROR_RANGE,
         "expected numbers below 64, got '0-18446744073709551616'"},
        {"99999999999999999999-1", BERTH_ERROR_RANGE,
         "expected a range from small to large, got '99999999999999999999-1'"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct berth_error error = BERTH_ERROR_INIT;
        struct bitset set = {.size = 12345};

        assert_fails(bitset_parse_ranges(cases[i].list, 64, &set, &error), cases[i].code, &error,
                     cases[i].message);
        assert_int_equal(bitset_parse_ranges(cases[i].list, 64, &set, NULL), cases[i].code);
        assert_int_equal(set.size, 12345);
    }
}

static void limits_are_kept_at_their_ends(void **state)
{
    struct bitset set;

    (void)state;
    assert_int_equal(bitset_parse_ranges("", 0, &set, NULL), 0);
    bitset_finish(&set);
    assert_int_equal(bitset_parse_ranges("0", 0, &set, NULL), BERTH_ERROR_RANGE);
    assert_int_equal(bitset_parse_ranges("18446744073709551615", SIZE_MAX, &set, NULL),
                     BERTH_ERROR_RANGE);
}

static int parse_and_format(void *context)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct bitset set;
    struct text text = {0};
    int code = bitset_parse_ranges(context, 4096, &set, &error);

    if (code < 0) {
        assert_string_equal(error.message, "out of memory");
        return code;
    }
    bitset_format_ranges(&set, &text);
    code = text_failed(&text) ? BERTH_ERROR_MEMORY : 0;
    text_finish(&text);
    bitset_finish(&set);
    return code;
}

static void out_of_memory_is_reported(void **state)
{
    char list[] = "0-3,8,100-200,4095";

    (void)state;
    assert_true(failing_allocator_try_all(parse_and_format, list) >= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations_agree_with_a_model),
        cmocka_unit_test(a_set_may_be_combined_with_itself),
        cmocka_unit_test(finish_leaves_an_empty_set),
        cmocka_unit_test(for_each_allows_removing_the_current_one),
        cmocka_unit_test(an_absurd_size_is_out_of_memory),
        cmocka_unit_test(misuse_aborts),
        cmocka_unit_test(lists_are_read),
        cmocka_unit_test(bad_lists_are_refused),
        cmocka_unit_test(limits_are_kept_at_their_ends),
        cmocka_unit_test(out_of_memory_is_reported),
    };

    return cmocka_run_group_tests_name("bitset", tests, NULL, NULL);
}
