/* SPDX-License-Identifier: Apache-2.0
 *
 * The history of loads for a new page.
 */
#include "support/unit.h"

#include <string.h>

#include "support/pool_views.h"
#include "web/recent_loads.h"

/* Returns the start of a step. */
#define STEP(number) (VIEW_NOW + (number)*RECENT_INTERVAL)

static void note(struct recent_loads *recent, size_t device, int64_t value, int64_t time)
{
    struct pool_view view = view_of(2);

    view.snapshot.slots.items[device].device->load.utilization = load_figure_sampled(value, time);
    recent_loads_add(recent, &view);
    pool_view_finish(&view);
}

/* Checks the last values of the only device, newest last. */
static void check(const struct recent_loads *recent, int64_t now, const char *wanted)
{
    struct text text = {0};
    struct json json;
    const char *end;

    json_start(&json, &text, JSON_COMPACT);
    recent_loads_write(recent, now, &json);
    json_finish(&json);
    end = strstr(text_string(&text), "]}]}");
    assert_non_null(end);
    assert_true((size_t)(end - text_string(&text)) >= strlen(wanted));
    assert_memory_equal(end - strlen(wanted), wanted, strlen(wanted));
    text_finish(&text);
}

static void figures_stand_at_their_times(void **state)
{
    struct recent_loads recent = {0};

    (void)state;
    note(&recent, 0, 100, STEP(0));
    note(&recent, 0, 250, STEP(1));
    check(&recent, STEP(1), "null,0.1,0.25");
    note(&recent, 0, 1000, STEP(4));
    check(&recent, STEP(4) + 1, "0.1,0.25,null,null,1");
    /* Time passes without samples, too. */
    check(&recent, STEP(6), "0.25,null,null,1,null,null");
    recent_loads_finish(&recent);
}

static void the_peak_of_a_step_counts(void **state)
{
    struct recent_loads recent = {0};

    (void)state;
    note(&recent, 0, 0, STEP(0));
    check(&recent, STEP(0), "null,0");
    note(&recent, 0, 900, STEP(0) + 1);
    note(&recent, 0, 300, STEP(0) + 2);
    check(&recent, STEP(0), "null,0.9");
    recent_loads_finish(&recent);
}

static void what_is_old_is_forgotten(void **state)
{
    struct recent_loads recent = {0};

    (void)state;
    note(&recent, 0, 100, STEP(0));
    note(&recent, 0, 200, STEP(RECENT_STEPS - 1));
    check(&recent, STEP(RECENT_STEPS - 1), "null,0.2");
    assert_int_equal(recent.items[0].utilization[(STEP(0) / RECENT_INTERVAL) % RECENT_STEPS], 100);
    note(&recent, 0, 300, STEP(100 * RECENT_STEPS));
    check(&recent, STEP(100 * RECENT_STEPS), "null,null,0.3");
    for (unsigned i = 0; i < RECENT_STEPS; i++)
        assert_true(recent.items[0].utilization[i] == RECENT_UNKNOWN ||
                    recent.items[0].utilization[i] == 300);
    /* An older sample that changes nothing. */
    note(&recent, 0, 999, STEP(0));
    check(&recent, STEP(100 * RECENT_STEPS), "null,null,0.3");
    recent_loads_finish(&recent);
}

static void what_nobody_sampled_is_not_there(void **state)
{
    struct pool_view view = view_of(2);
    struct recent_loads recent = {0};

    (void)state;
    view.snapshot.slots.items[0].device->load.utilization = load_figure_declared(500);
    view.snapshot.slots.items[1].device->load.utilization = load_figure_sampled(500, STEP(0));
    view.snapshot.slots.items[1].device->old = true;
    recent_loads_add(&recent, &view);
    assert_int_equal(recent.count, 0);
    pool_view_finish(&view);
}

static void devices_that_went_are_forgotten(void **state)
{
    struct pool_view view = view_of(1);
    struct recent_loads recent = {0};

    (void)state;
    note(&recent, 0, 100, STEP(0));
    note(&recent, 1, 200, STEP(0));
    assert_int_equal(recent.count, 2);
    recent_loads_add(&recent, &view);
    assert_int_equal(recent.count, 1);
    assert_int_equal(recent.items[0].id.index, 0);
    pool_view_finish(&view);
    recent_loads_finish(&recent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_stand_at_their_times),
        cmocka_unit_test(the_peak_of_a_step_counts),
        cmocka_unit_test(what_is_old_is_forgotten),
        cmocka_unit_test(what_nobody_sampled_is_not_there),
        cmocka_unit_test(devices_that_went_are_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
