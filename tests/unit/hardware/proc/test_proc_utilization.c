/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "hardware/proc/proc_scan.h"

#include <stdio.h>
#include <string.h>

#define SECOND INT64_C(1000000000)

/* One device, and two scans a second apart. */
struct stage {
    struct proc_scan before;
    struct proc_scan now;
};

static void add_device(struct proc_scan *look, const char *path)
{
    struct used_device *device = vector_append(&look->devices);

    assert_non_null(device);
    device->path = strdup(path);
    assert_non_null(device->path);
}

static int set_up(void **state)
{
    struct stage *stage = calloc(1, sizeof(*stage));

    assert_non_null(stage);
    add_device(&stage->before, "/sys/devices/one");
    add_device(&stage->now, "/sys/devices/one");
    stage->before.began_at = 5 * SECOND;
    stage->now.began_at = 6 * SECOND;
    *state = stage;
    return 0;
}

static int tear_down(void **state)
{
    struct stage *stage = *state;

    proc_scan_finish(&stage->before);
    proc_scan_finish(&stage->now);
    free(stage);
    return 0;
}

/* Calls must be in the order of clients and names. */
static struct fdinfo_engine *add(struct proc_scan *look, uint64_t client, const char *name)
{
    struct use_engine *use = vector_append(&look->engines);

    assert_non_null(use);
    use->client = client;
    use->read_at = look->began_at;
    use->engine.capacity = 1;
    snprintf(use->engine.name, sizeof(use->engine.name), "%s", name);
    return &use->engine;
}

static struct fdinfo_engine *add_busy(struct proc_scan *look, uint64_t client, const char *name,
                                      uint64_t busy)
{
    struct fdinfo_engine *engine = add(look, client, name);

    engine->busy = optional_number_of(busy);
    return engine;
}

static void add_cycles(struct proc_scan *look, uint64_t client, const char *name, uint64_t cycles,
                       uint64_t total)
{
    struct fdinfo_engine *engine = add(look, client, name);

    engine->cycles = optional_number_of(cycles);
    engine->total_cycles = optional_number_of(total);
}

static void assert_busy(struct stage *stage, int64_t wanted)
{
    int64_t busy = -1;

    assert_true(proc_scan_utilization(&stage->now, 0, &stage->before, &busy));
    assert_int_equal(busy, wanted);
}

static void assert_unknown(struct stage *stage)
{
    int64_t busy = -1;

    assert_false(proc_scan_utilization(&stage->now, 0, &stage->before, &busy));
    assert_int_equal(busy, -1);
}

static void the_busiest_engine_counts(void **state)
{
    struct stage *stage = *state;

    add_busy(&stage->before, 1, "copy", 5000);
    add_busy(&stage->before, 1, "render", 1000);
    add_busy(&stage->now, 1, "copy", 5000 + SECOND / 10);
    add_busy(&stage->now, 1, "render", 1000 + SECOND / 4);
    assert_busy(stage, 250);
}

static void clients_add_up(void **state)
{
    struct stage *stage = *state;

    for (uint64_t client = 1; client <= 3; client++) {
        add_busy(&stage->before, client, "render", client * 1000);
        add_busy(&stage->now, client, "render", client * 1000 + SECOND / 5);
    }
    assert_busy(stage, 600);
}

static void it_is_never_more_than_all(void **state)
{
    struct stage *stage = *state;

    for (uint64_t client = 1; client <= 3; client++) {
        add_busy(&stage->before, client, "render", 0);
        add_busy(&stage->now, client, "render", SECOND);
    }
    assert_busy(stage, 1000);
}

static void several_engines_share_the_work(void **state)
{
    struct stage *stage = *state;

    add_busy(&stage->before, 1, "video", 0)->capacity = 4;
    add_busy(&stage->now, 1, "video", 2 * SECOND)->capacity = 4;
    assert_busy(stage, 500);
}

static void each_is_measured_by_when_it_was_read(void **state)
{
    struct stage *stage = *state;

    add_busy(&stage->before, 1, "render", 0);
    add_busy(&stage->now, 1, "render", SECOND / 2);
    stage->now.engines.items[0].read_at += SECOND;
    assert_busy(stage, 250);
}

static void a_new_client_began_with_nothing(void **state)
{
    struct stage *stage = *state;

    add_busy(&stage->before, 1, "render", 7);
    add_busy(&stage->before, 2, "render", SECOND); /* gone in the second scan */
    add_busy(&stage->now, 1, "render", 7);
    add_busy(&stage->now, 3, "render", SECOND / 2);
    assert_busy(stage, 500);
}

static void an_engine_that_was_never_used_may_not_have_been_told(void **state)
{
    struct stage *stage = *state;

    add_busy(&stage->before, 1, "gfx", 7);
    add_busy(&stage->now, 1, "dec", SECOND / 4);
    add_busy(&stage->now, 1, "gfx", 7);
    assert_busy(stage, 250);
}

static void a_new_client_that_did_more_than_it_can_was_there_before(void **state)
{
    struct stage *stage = *state;

    add_busy(&stage->before, 1, "render", 0);
    add_busy(&stage->now, 1, "render", 0);
    add_busy(&stage->now, 3, "render", 100 * SECOND);
    assert_unknown(stage);
}

static void a_device_that_was_not_open_before_is_measured_too(void **state)
{
    struct stage *stage = *state;

    add_device(&stage->now, "/sys/devices/other");
    add_busy(&stage->before, 1, "render", 0);
    add_busy(&stage->now, 1, "render", 0);
    add_busy(&stage->now, 9, "render", SECOND / 2);
    stage->now.engines.items[1].device = 1;
    assert_busy(stage, 0);
    {
        int64_t busy;

        assert_true(proc_scan_utilization(&stage->now, 1, &stage->before, &busy));
        assert_int_equal(busy, 500);
    }
}

static void a_counter_that_goes_back_stands_still(void **state)
{
    struct stage *stage = *state;

    add_busy(&stage->before, 1, "render", 500);
    add_busy(&stage->now, 1, "render", 300);
    assert_busy(stage, 0);
    assert_int_equal(stage->now.engines.items[0].engine.busy.value, 500);
}

static void cycles_count_out_of_all_cycles(void **state)
{
    struct stage *stage = *state;

    add_cycles(&stage->before, 1, "ccs", 1000, 50000);
    add_cycles(&stage->before, 1, "rcs", 10, 50000);
    add_cycles(&stage->now, 1, "ccs", 1000 + 300, 50000 + 1000);
    add_cycles(&stage->now, 1, "rcs", 10, 50000 + 1000);
    assert_busy(stage, 300);
}

static void cycles_of_a_new_client_count_since_another_was_read(void **state)
{
    struct stage *stage = *state;

    add_cycles(&stage->before, 1, "rcs", 10, 50000);
    add_cycles(&stage->now, 1, "rcs", 10, 51000);
    add_cycles(&stage->now, 2, "rcs", 250, 51000);
    assert_busy(stage, 250);
}

static void cycles_without_anything_to_compare_are_unknown(void **state)
{
    struct stage *stage = *state;

    add_cycles(&stage->now, 2, "rcs", 250, 51000);
    assert_unknown(stage);
}

static void an_engine_clock_that_stands_still_is_unknown(void **state)
{
    struct stage *stage = *state;

    add_cycles(&stage->before, 2, "rcs", 200, 51000);
    add_cycles(&stage->now, 2, "rcs", 250, 51000);
    assert_unknown(stage);
}

static void no_engine_is_unknown(void **state)
{
    struct stage *stage = *state;

    assert_unknown(stage);
    add(&stage->before, 1, "render");
    add(&stage->now, 1, "render");
    assert_unknown(stage);
}

static void the_largest_numbers_are_harmless(void **state)
{
    struct stage *stage = *state;

    add_busy(&stage->before, 1, "a", 0);
    add_cycles(&stage->before, 1, "b", 0, 0);
    add_busy(&stage->now, 1, "a", UINT64_MAX);
    add_cycles(&stage->now, 1, "b", UINT64_MAX, 1);
    assert_busy(stage, 1000);
}

static void more_engines_than_there_can_be_are_unknown(void **state)
{
    struct stage *stage = *state;

    for (uint64_t i = 0; i < 100; i++) {
        char name[16];

        snprintf(name, sizeof(name), "%03d", (int)i);
        add_busy(&stage->now, i, name, 1);
    }
    assert_unknown(stage);
}

#define STAGE_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGE_TEST(the_busiest_engine_counts),
        STAGE_TEST(clients_add_up),
        STAGE_TEST(it_is_never_more_than_all),
        STAGE_TEST(several_engines_share_the_work),
        STAGE_TEST(each_is_measured_by_when_it_was_read),
        STAGE_TEST(a_new_client_began_with_nothing),
        STAGE_TEST(an_engine_that_was_never_used_may_not_have_been_told),
        STAGE_TEST(a_new_client_that_did_more_than_it_can_was_there_before),
        STAGE_TEST(a_device_that_was_not_open_before_is_measured_too),
        STAGE_TEST(a_counter_that_goes_back_stands_still),
        STAGE_TEST(cycles_count_out_of_all_cycles),
        STAGE_TEST(cycles_of_a_new_client_count_since_another_was_read),
        STAGE_TEST(cycles_without_anything_to_compare_are_unknown),
        STAGE_TEST(an_engine_clock_that_stands_still_is_unknown),
        STAGE_TEST(no_engine_is_unknown),
        STAGE_TEST(the_largest_numbers_are_harmless),
        STAGE_TEST(more_engines_than_there_can_be_are_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
