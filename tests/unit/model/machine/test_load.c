/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "model/machine/load.h"

#include "base/count.h"

#include "support/random.h"
#include "support/steps.h"

#define UNTOUCHED 4711

enum { FIGURES = 4 };

/* The load's figures one by one. */
static struct figure *figure_of(struct load *load, size_t i)
{
    struct figure *figures[FIGURES] = {&load->memory_free, &load->utilization, &load->temperature,
                                       &load->power};

    return figures[i];
}

static void check_never_sampled(const struct load *load)
{
    int64_t time = UNTOUCHED;

    assert_false(load_sampled_at(load, &time));
    assert_int_equal(time, UNTOUCHED);
}

static void check_sampled(const struct load *load, int64_t wanted)
{
    int64_t time = UNTOUCHED;

    assert_true(load_sampled_at(load, &time));
    assert_true(time == wanted);
}

static void figures_carry_their_origin(void **state)
{
    struct figure declared = load_figure_declared(-5);
    struct figure sampled = load_figure_sampled(70, 99);

    (void)state;
    assert_true(declared.known);
    assert_int_equal(declared.value, -5);
    assert_true(declared.sampled_at == FIGURE_DECLARED);
    assert_true(sampled.known);
    assert_int_equal(sampled.value, 70);
    assert_int_equal(sampled.sampled_at, 99);
}

static void nothing_known_was_never_sampled(void **state)
{
    (void)state;
    check_never_sampled(&(struct load){0});
}

static void an_unknown_figure_has_no_time(void **state)
{
    struct load load = {.power = {.known = false, .sampled_at = 5}};

    (void)state;
    check_never_sampled(&load);
    load.memory_free = load_figure_sampled(1, 10);
    check_sampled(&load, 10);
}

static void a_declared_figure_was_not_sampled(void **state)
{
    struct load load = {.memory_free = load_figure_declared(1),
                        .utilization = load_figure_declared(0)};

    (void)state;
    check_never_sampled(&load);
    load.temperature = load_figure_sampled(40000, 7);
    check_sampled(&load, 7);
}

static void every_figure_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < FIGURES; i++) {
        struct load load = {0};

        *figure_of(&load, i) = load_figure_sampled(0, 1000);
        check_sampled(&load, 1000);
        *figure_of(&load, (i + 1) % FIGURES) = load_figure_sampled(0, 999);
        check_sampled(&load, 999);
        *figure_of(&load, (i + 2) % FIGURES) = load_figure_sampled(0, 1001);
        check_sampled(&load, 999);
    }
}

static void any_time_is_a_time(void **state)
{
    struct load load = {.power = load_figure_sampled(1, INT64_MAX)};

    (void)state;
    check_sampled(&load, INT64_MAX);
    load.utilization = load_figure_sampled(1, 0);
    check_sampled(&load, 0);
    load.temperature = load_figure_sampled(1, -1);
    check_sampled(&load, -1);
    load.memory_free = load_figure_sampled(1, INT64_MIN + 1);
    check_sampled(&load, INT64_MIN + 1);
}

static void random_loads_give_their_oldest_sample(void **state)
{
    struct test_random random = {7};

    (void)state;
    for (unsigned long step = test_steps(20000); step > 0; step--) {
        struct load load = {0};
        int64_t oldest = INT64_MAX;
        bool sampled = false;

        for (size_t i = 0; i < FIGURES; i++) {
            int64_t time = (int64_t)test_random_below(&random, 10) - 5;

            switch (test_random_below(&random, 3)) {
            case 0:
                figure_of(&load, i)->sampled_at = time;
                break;
            case 1:
                *figure_of(&load, i) = load_figure_declared(time);
                break;
            default:
                *figure_of(&load, i) = load_figure_sampled(1, time);
                sampled = true;
                oldest = time < oldest ? time : oldest;
            }
        }
        if (sampled)
            check_sampled(&load, oldest);
        else
            check_never_sampled(&load);
    }
}

static void loads_are_equal_when_all_is(void **state)
{
    struct load one = {.power = load_figure_sampled(1, 2)};
    struct load other = one;
    struct figure *const figures[] = {&other.memory_free, &other.utilization, &other.temperature,
                                      &other.power, &other.frequency};

    (void)state;
    assert_true(load_equals(&one, &other));
    for (size_t i = 0; i < COUNT(figures); i++) {
        struct figure before = *figures[i];

        *figures[i] = load_figure_sampled(7, 2);
        assert_false(load_equals(&one, &other));
        assert_false(load_equals(&other, &one));
        *figures[i] = before;
    }
    other.power.sampled_at = 3;
    assert_false(load_equals(&one, &other));
    other.power = one.power;
    other.frequency.value = 9; /* the value of an unknown figure has no meaning */
    assert_true(load_equals(&one, &other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_carry_their_origin),
        cmocka_unit_test(nothing_known_was_never_sampled),
        cmocka_unit_test(an_unknown_figure_has_no_time),
        cmocka_unit_test(a_declared_figure_was_not_sampled),
        cmocka_unit_test(every_figure_counts),
        cmocka_unit_test(any_time_is_a_time),
        cmocka_unit_test(random_loads_give_their_oldest_sample),
        cmocka_unit_test(loads_are_equal_when_all_is),
    };

    return cmocka_run_group_tests_name("load", tests, NULL, NULL);
}
