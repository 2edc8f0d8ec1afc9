/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/text/suggest.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/count.h"
#include "support/random.h"
#include "support/steps.h"

/* Returns the distance if `name` is near to `wanted`, else -1. */
static int distance_of(const char *wanted, const char *name)
{
    struct suggestion nearest = {.wanted = wanted};

    suggest_compare(&nearest, name);
    if (nearest.best == NULL)
        return -1;
    assert_ptr_equal(nearest.best, name);
    return (int)nearest.distance;
}

static void each_change_counts_one(void **state)
{
    (void)state;
    assert_int_equal(distance_of("memory", "memory"), 0);
    assert_int_equal(distance_of("memory", "memoryx"), 1);
    assert_int_equal(distance_of("memory", "xmemory"), 1);
    assert_int_equal(distance_of("memory", "memry"), 1);
    assert_int_equal(distance_of("memory", "mexory"), 1);
    assert_int_equal(distance_of("memory", "meomry"), 1);
    assert_int_equal(distance_of("memory", "emmoyr"), 2);
    assert_int_equal(distance_of("memory", "emory"), 1);
    assert_int_equal(distance_of("memory", "memo"), 2);
}

static void case_does_not_count(void **state)
{
    (void)state;
    assert_int_equal(distance_of("Memory", "mEMORY"), 0);
    assert_int_equal(distance_of("EMMORY", "memory"), 1);
    /* The characters beside the letters in ASCII are not letters. */
    assert_int_equal(distance_of("[@`{", "{`@["), -1);
}

static void near_is_a_third_rounded_up(void **state)
{
    (void)state;
    assert_int_equal(distance_of("", ""), 0);
    assert_int_equal(distance_of("a", ""), 1);
    assert_int_equal(distance_of("", "a"), 1);
    assert_int_equal(distance_of("a", "b"), 1);
    assert_int_equal(distance_of("ab", "xy"), -1);
    assert_int_equal(distance_of("abc", "abx"), 1);
    assert_int_equal(distance_of("abc", "axy"), -1);
    assert_int_equal(distance_of("abcd", "abxy"), 2);
    assert_int_equal(distance_of("abcd", "axyz"), -1);
    assert_int_equal(distance_of("abcdef", "abcdxy"), 2);
    assert_int_equal(distance_of("abcdef", "abcxyz"), -1);
    assert_int_equal(distance_of("abcdefg", "abcdxyz"), 3);
}

static void long_names_are_never_near(void **state)
{
    char longest[65], too_long[66];

    (void)state;
    memset(longest, 'a', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    memset(too_long, 'a', sizeof(too_long));
    too_long[sizeof(too_long) - 1] = '\0';
    assert_int_equal(distance_of(longest, longest), 0);
    assert_int_equal(distance_of(longest, too_long), -1);
    assert_int_equal(distance_of(too_long, longest), -1);
    assert_int_equal(distance_of(too_long, too_long), -1);
    longest[63] = 'x';
    assert_int_equal(distance_of(longest, longest + 1), 1);
}

static void the_first_of_the_nearest_wins(void **state)
{
    static const char *const names[] = {"vendor", "count", "memory", "memoryy", "model", "memoxy"};
    struct suggestion nearest = {.wanted = "memorx"};

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++)
        suggest_compare(&nearest, names[i]);
    assert_string_equal(nearest.best, "memory");
    assert_int_equal(nearest.distance, 1);
    suggest_compare(&nearest, "memorx");
    assert_string_equal(nearest.best, "memorx");
    assert_int_equal(nearest.distance, 0);
}

static void nothing_near_is_null(void **state)
{
    struct suggestion nearest = {.wanted = "temperature"};

    (void)state;
    suggest_compare(&nearest, "vendor");
    suggest_compare(&nearest, "count");
    assert_null(nearest.best);
}

static int smallest(int one, int two, int three)
{
    int smaller = one < two ? one : two;

    return smaller < three ? smaller : three;
}

/* Computes the distance by its recursive definition, in exponential time. */
static int naive_distance(const char *one, size_t i, const char *other, size_t j)
{
    bool same;
    int best;

    if (i == 0 || j == 0)
        return (int)(i + j);
    same = tolower((unsigned char)one[i - 1]) == tolower((unsigned char)other[j - 1]);
    best =
        smallest(naive_distance(one, i - 1, other, j) + 1, naive_distance(one, i, other, j - 1) + 1,
                 naive_distance(one, i - 1, other, j - 1) + !same);
    if (i > 1 && j > 1 &&
        tolower((unsigned char)one[i - 1]) == tolower((unsigned char)other[j - 2]) &&
        tolower((unsigned char)one[i - 2]) == tolower((unsigned char)other[j - 1])) {
        int swapped = naive_distance(one, i - 2, other, j - 2) + 1;

        best = swapped < best ? swapped : best;
    }
    return best;
}

static void random_names_agree_with_the_definition(void **state)
{
    static const char letters[] = "abAB";
    struct test_random random = {7};

    (void)state;
    for (unsigned long step = test_steps(3000); step > 0; step--) {
        char names[2][7] = {"", ""};
        size_t longer = 0;
        int expected;

        for (size_t i = 0; i < 2; i++) {
            size_t length = test_random_below(&random, sizeof(names[i]));

            for (size_t j = 0; j < length; j++)
                names[i][j] = letters[test_random_below(&random, sizeof(letters) - 1)];
            longer = length > longer ? length : longer;
        }
        expected = naive_distance(names[0], strlen(names[0]), names[1], strlen(names[1]));
        if (expected * 3 >= (int)longer + 3)
            expected = -1;
        assert_int_equal(distance_of(names[0], names[1]), expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_change_counts_one),
        cmocka_unit_test(case_does_not_count),
        cmocka_unit_test(near_is_a_third_rounded_up),
        cmocka_unit_test(long_names_are_never_near),
        cmocka_unit_test(the_first_of_the_nearest_wins),
        cmocka_unit_test(nothing_near_is_null),
        cmocka_unit_test(random_names_agree_with_the_definition),
    };

    return cmocka_run_group_tests_name("nearest", tests, NULL, NULL);
}
