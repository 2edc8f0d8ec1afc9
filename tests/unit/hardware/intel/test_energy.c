/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "hardware/intel/energy.h"

#include "base/text/quantity.h"
#include "support/failing_allocator.h"

#define JOULE UINT64_C(1000000)

static void power_is_the_mean_between_two_looks(void **state)
{
    struct energy *energy = NULL;
    struct figure power;

    (void)state;
    assert_false(energy_power(&energy, "a", 5 * JOULE, 0).known);
    assert_false(energy_power(&energy, "b", 1000 * JOULE, 0).known);
    power = energy_power(&energy, "a", 155 * JOULE, DURATION_SECOND);
    assert_true(power.known);
    assert_int_equal(power.value, 150000);
    assert_true(power.sampled_at > 0);
    power = energy_power(&energy, "a", 155 * JOULE + JOULE / 2, 2 * DURATION_SECOND);
    assert_int_equal(power.value, 500);
    power = energy_power(&energy, "b", 1000 * JOULE, 10 * DURATION_SECOND);
    assert_true(power.known); /* no power, which is a known value */
    assert_int_equal(power.value, 0);
    energy_destroy(energy);
}

static void a_counter_that_went_back_tells_nothing_once(void **state)
{
    struct energy *energy = NULL;

    (void)state;
    energy_power(&energy, "a", 100 * JOULE, 0);
    assert_false(energy_power(&energy, "a", 99 * JOULE, DURATION_SECOND).known);
    assert_int_equal(energy_power(&energy, "a", 100 * JOULE, 2 * DURATION_SECOND).value, 1000);
    energy_destroy(energy);
}

static void looks_must_be_some_time_apart(void **state)
{
    struct energy *energy = NULL;

    (void)state;
    energy_power(&energy, "a", 0, 0);
    assert_false(energy_power(&energy, "a", 1 * JOULE, 0).known);
    assert_false(energy_power(&energy, "a", 1 * JOULE, -DURATION_SECOND).known);
    assert_false(energy_power(&energy, "a", 1 * JOULE, DURATION_SECOND / 100).known);
    /* These samples were not kept: the mean starts at the first sample. */
    assert_int_equal(energy_power(&energy, "a", 2 * JOULE, DURATION_SECOND / 10).value, 20000);
    assert_false(energy_power(&energy, "a", 9 * JOULE, DURATION_HOUR).known);
    assert_true(energy_power(&energy, "a", 9 * JOULE, DURATION_HOUR + DURATION_SECOND).known);
    energy_destroy(energy);
}

static void lies_are_unknown(void **state)
{
    struct energy *energy = NULL;

    (void)state;
    energy_power(&energy, "a", 0, 0);
    assert_false(energy_power(&energy, "a", UINT64_MAX, DURATION_SECOND).known);
    assert_false(energy_power(&energy, "a", 0, 2 * DURATION_SECOND).known);
    energy_destroy(energy);
    energy_destroy(NULL);
}

static void out_of_memory_nothing_is_noted(void **state)
{
    struct energy *energy = NULL;

    (void)state;
    for (unsigned long n = 1; n <= 3; n++) {
        failing_allocator_start(n);
        assert_false(energy_power(&energy, "a", 0, 0).known);
        assert_true(failing_allocator_stop() || n == 3);
        energy_destroy(energy);
        energy = NULL;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_is_the_mean_between_two_looks),
        cmocka_unit_test(a_counter_that_went_back_tells_nothing_once),
        cmocka_unit_test(looks_must_be_some_time_apart),
        cmocka_unit_test(lies_are_unknown),
        cmocka_unit_test(out_of_memory_nothing_is_noted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
