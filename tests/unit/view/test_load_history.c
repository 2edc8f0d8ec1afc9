/* SPDX-License-Identifier: Apache-2.0
 *
 * The history of loads: one view at each step, as berth top keeps it, and samples, as a new page
 * gets them.
 */
#include "support/unit.h"

#include <string.h>

#include "base/text/text.h"
#include "support/views/pool_views.h"
#include "view/load_history.h"

#define LENGTH   72
#define INTERVAL (5 * DURATION_SECOND)

/* ---- One view at each step ---- */

/* Returns the value `back` steps before the newest. */
static int value_of(const struct load_history *history, uint32_t index, size_t back)
{
    struct device_id id = {VENDOR_NVIDIA, index, DEVICE_NO_MIG};

    return load_history_value(history, load_history_find(history, id, 99),
                              history->step - (int64_t)back);
}

static void add(struct load_history *history, int64_t step, struct pool_view *view, int64_t load)
{
    for (size_t i = 0; i < view->snapshot.slots.count; i++)
        view->snapshot.slots.items[i].device->load.utilization =
            load_figure_sampled(load, VIEW_NOW);
    assert_int_equal(load_history_add(history, step, view), 0);
}

static void steps_that_were_left_out(void **state)
{
    struct pool_view view = view_of(2);
    struct load_history history = {.length = LENGTH, .interval = INTERVAL};

    (void)state;
    assert_int_equal(value_of(&history, 0, 0), LOAD_HISTORY_UNKNOWN);
    add(&history, 3, &view, 100);
    add(&history, 3, &view, 200); /* the same step again */
    add(&history, 5, &view, 300); /* one step is missing */
    add(&history, 9, &view, 400); /* three are missing */
    assert_int_equal(value_of(&history, 1, 0), 400);
    assert_int_equal(value_of(&history, 1, 1), LOAD_HISTORY_UNKNOWN);
    assert_int_equal(value_of(&history, 1, 3), LOAD_HISTORY_UNKNOWN);
    assert_int_equal(value_of(&history, 1, 4), 300);
    assert_int_equal(value_of(&history, 1, 5), 200);
    assert_int_equal(value_of(&history, 1, 6), 200);
    assert_int_equal(value_of(&history, 1, 7), LOAD_HISTORY_UNKNOWN);
    assert_int_equal(value_of(&history, 1, SIZE_MAX), LOAD_HISTORY_UNKNOWN);
    assert_int_equal(value_of(&history, 7, 0), LOAD_HISTORY_UNKNOWN);
    load_history_finish(&history);
    pool_view_finish(&view);
}

static void what_was_not_sampled_is_unknown(void **state)
{
    struct pool_view view = view_of(1);
    struct device *device = view.snapshot.slots.items[0].device;
    struct load_history history = {.length = LENGTH, .interval = INTERVAL};

    (void)state;
    add(&history, 1, &view, -5);
    assert_int_equal(value_of(&history, 0, 0), LOAD_HISTORY_UNKNOWN);
    add(&history, 2, &view, INT64_MAX);
    assert_int_equal(value_of(&history, 0, 0), 1000);
    device->old = true;
    add(&history, 3, &view, 500);
    assert_int_equal(value_of(&history, 0, 0), LOAD_HISTORY_UNKNOWN);
    load_history_finish(&history);
    pool_view_finish(&view);
}

static void it_is_bounded(void **state)
{
    struct pool_view many = view_of(5);
    struct pool_view few = view_of(1);
    struct load_history history = {.length = LENGTH, .interval = INTERVAL};

    (void)state;
    add(&history, 1, &many, 10);
    for (int64_t step = 2; step < 3 * LENGTH; step++)
        add(&history, step, &few, step % 1000);
    assert_int_equal(history.count, 1);
    assert_int_equal(value_of(&history, 0, LENGTH - 1), (2 * LENGTH) % 1000);
    assert_int_equal(value_of(&history, 0, LENGTH), LOAD_HISTORY_UNKNOWN);
    /* A long time without samples. */
    add(&history, INT64_MAX - 1, &few, 7);
    assert_int_equal(value_of(&history, 0, 0), 7);
    for (size_t back = 1; back < LENGTH; back++)
        assert_int_equal(value_of(&history, 0, back), LOAD_HISTORY_UNKNOWN);
    load_history_finish(&history);
    pool_view_finish(&many);
    pool_view_finish(&few);
}

/* ---- Samples ---- */

/* Returns the start of a step. */
#define STEP(number) (VIEW_NOW + (number)*INTERVAL)

static void note(struct load_history *recent, size_t device, int64_t value, int64_t time)
{
    struct pool_view view = view_of(2);

    view.snapshot.slots.items[device].device->load.utilization = load_figure_sampled(value, time);
    load_history_add_samples(recent, &view);
    pool_view_finish(&view);
}

/* Checks the last values of the first device, newest last. */
static void check(const struct load_history *recent, int64_t now, const char *wanted)
{
    int64_t step = load_history_step(recent, now);
    struct text text = {0};
    const char *end;

    assert_true(recent->count > 0);
    for (int64_t i = step - LENGTH + 1; i <= step; i++)
        text_append_format(&text, " %d", load_history_value(recent, &recent->items[0], i));
    end = text_string(&text) + text.length;
    assert_true(text.length >= strlen(wanted));
    assert_string_equal(end - strlen(wanted), wanted);
    text_finish(&text);
}

static void figures_stand_at_their_times(void **state)
{
    struct load_history recent = {.length = LENGTH, .interval = INTERVAL};

    (void)state;
    note(&recent, 0, 100, STEP(0));
    note(&recent, 0, 250, STEP(1));
    check(&recent, STEP(1), " -1 100 250");
    note(&recent, 0, 1000, STEP(4));
    check(&recent, STEP(4) + 1, " 100 250 -1 -1 1000");
    /* Time passes without samples, too. */
    check(&recent, STEP(6), " 250 -1 -1 1000 -1 -1");
    load_history_finish(&recent);
}

static void the_peak_of_a_step_counts(void **state)
{
    struct load_history recent = {.length = LENGTH, .interval = INTERVAL};

    (void)state;
    note(&recent, 0, 0, STEP(0));
    check(&recent, STEP(0), " -1 0");
    note(&recent, 0, 900, STEP(0) + 1);
    note(&recent, 0, 300, STEP(0) + 2);
    check(&recent, STEP(0), " -1 900");
    load_history_finish(&recent);
}

static void what_is_old_is_forgotten(void **state)
{
    struct load_history recent = {.length = LENGTH, .interval = INTERVAL};

    (void)state;
    note(&recent, 0, 100, STEP(0));
    note(&recent, 0, 200, STEP(LENGTH - 1));
    check(&recent, STEP(LENGTH - 1), " -1 200");
    assert_int_equal(recent.items[0].values[(STEP(0) / INTERVAL) % LENGTH], 100);
    note(&recent, 0, 300, STEP(100 * LENGTH));
    check(&recent, STEP(100 * LENGTH), " -1 -1 300");
    for (unsigned i = 0; i < LENGTH; i++)
        assert_true(recent.items[0].values[i] == LOAD_HISTORY_UNKNOWN ||
                    recent.items[0].values[i] == 300);
    /* An older sample that changes nothing. */
    note(&recent, 0, 999, STEP(0));
    check(&recent, STEP(100 * LENGTH), " -1 -1 300");
    load_history_finish(&recent);
}

static void what_nobody_sampled_is_not_there(void **state)
{
    struct pool_view view = view_of(2);
    struct load_history recent = {.length = LENGTH, .interval = INTERVAL};

    (void)state;
    view.snapshot.slots.items[0].device->load.utilization = load_figure_declared(500);
    view.snapshot.slots.items[1].device->load.utilization = load_figure_sampled(500, STEP(0));
    view.snapshot.slots.items[1].device->old = true;
    load_history_add_samples(&recent, &view);
    assert_int_equal(recent.count, 0);
    pool_view_finish(&view);
}

static void devices_that_went_are_forgotten(void **state)
{
    struct pool_view view = view_of(1);
    struct load_history recent = {.length = LENGTH, .interval = INTERVAL};

    (void)state;
    note(&recent, 0, 100, STEP(0));
    note(&recent, 1, 200, STEP(0));
    assert_int_equal(recent.count, 2);
    load_history_add_samples(&recent, &view);
    assert_int_equal(recent.count, 1);
    assert_int_equal(recent.items[0].id.index, 0);
    pool_view_finish(&view);
    load_history_finish(&recent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_that_were_left_out),
        cmocka_unit_test(what_was_not_sampled_is_unknown),
        cmocka_unit_test(it_is_bounded),
        cmocka_unit_test(figures_stand_at_their_times),
        cmocka_unit_test(the_peak_of_a_step_counts),
        cmocka_unit_test(what_is_old_is_forgotten),
        cmocka_unit_test(what_nobody_sampled_is_not_there),
        cmocka_unit_test(devices_that_went_are_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
