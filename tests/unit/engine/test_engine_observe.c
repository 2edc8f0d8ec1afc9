/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts about devices that do not influence decisions, and changes that count as one.
 */
#include "support/unit.h"

#include <string.h>

#include "support/engine/engine_steps.h"

/* Adds a device with only an id. Returns its slot. */
static uint32_t device_added(struct world *world, const char *id)
{
    struct device device = {.id = id_of(id)};
    uint32_t slot = UINT32_MAX;

    assert_int_equal(engine_device_add(world->engine, &device, &slot, NULL), 0);
    return slot;
}

/* ---- Facts that do not influence decisions ---- */

static struct device observed(const char *id, const char *reason)
{
    struct device device = {.id = id_of(id), .health_reason = strdup(reason), .asleep = true};

    device_process_find_or_add(&device.processes, 42)->lease = 7;
    return device;
}

static void what_is_observed_is_taken_over_and_decides_nothing(void **state)
{
    struct device from = observed("nvidia0", "hot");
    const struct device *device;
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    world_forget(&world);
    engine_device_observe(world.engine, 0, &from);
    device = &engine_machine(world.engine)->devices.items[0];
    assert_null(from.health_reason);
    assert_int_equal(from.processes.count, 0);
    assert_string_equal(device->health_reason, "hot");
    assert_true(device->asleep);
    assert_false(device->old);
    assert_int_equal(device->processes.count, 1);
    assert_int_equal(device->processes.items[0].lease, 7);
    check_told(&world, "");
    granted_to(&world, NULL); /* use wakes a device that sleeps */
    world_finish(&world);
}

static void what_is_observed_later_replaces_it(void **state)
{
    struct device first = observed("nvidia0", "hot");
    struct device second = {.id = id_of("nvidia0"), .old = true};
    const struct device *device;
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    engine_device_observe(world.engine, 0, &first);
    engine_device_observe(world.engine, 0, &second);
    device = &engine_machine(world.engine)->devices.items[0];
    assert_null(device->health_reason);
    assert_int_equal(device->processes.count, 0);
    assert_false(device->asleep);
    assert_true(device->old);
    world_finish(&world);
}

static void a_device_that_nobody_answers_for_keeps_what_is_known_of_it(void **state)
{
    struct device from = observed("nvidia0", "hot");
    const struct device *device;
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    engine_device_observe(world.engine, 0, &from);
    engine_device_mark_old(world.engine, 0);
    device = &engine_machine(world.engine)->devices.items[0];
    assert_true(device->old);
    assert_string_equal(device->health_reason, "hot");
    assert_int_equal(device->processes.count, 1);
    world_finish(&world);
}

/* ---- Changes that belong together ---- */

static void nothing_is_decided_during_a_pause(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    engine_device_health(world.engine, 0, HEALTH_SICK);
    engine_device_health(world.engine, 1, HEALTH_SICK);
    waits_with(&world, "gpus=2");
    waits_with(&world, NULL);
    world_forget(&world);
    engine_pause(world.engine);
    engine_device_health(world.engine, 0, HEALTH_OK);
    engine_device_health(world.engine, 1, HEALTH_OK);
    check_told(&world, "device in slot 0\n"
                       "device in slot 1\n");
    world_forget(&world);
    engine_resume(world.engine);
    check_told(&world, "granted lease 3 of claim 1: slots 0,1\n");
    world_finish(&world);
}

/* A claim stays possible while partitions replace their GPU. */
static void what_is_impossible_in_between_is_not_refused(void **state)
{
    struct device whole = {.id = id_of("nvidia0"), .partitioned = true};
    struct world world;
    uint32_t slot;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, NULL);
    waits_with(&world, NULL);
    world_forget(&world);
    engine_pause(world.engine);
    assert_int_equal(engine_device_add(world.engine, &whole, &slot, NULL), 0);
    assert_int_equal(device_added(&world, "nvidia0.1"), 1);
    engine_resume(world.engine);
    check_told(&world, "device in slot 0\n"
                       "device in slot 1\n"
                       "granted lease 3 of claim 2: slots 1\n");
    world_finish(&world);
}

static void what_is_impossible_after_a_pause_is_refused(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, NULL);
    waits_with(&world, NULL);
    world_forget(&world);
    engine_pause(world.engine);
    engine_device_gone(world.engine, 0);
    check_told(&world, "device in slot 0\n");
    world_forget(&world);
    engine_resume(world.engine);
    check_told(&world, "refused claim 2: impossible\n");
    world_finish(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_observed_is_taken_over_and_decides_nothing),
        cmocka_unit_test(what_is_observed_later_replaces_it),
        cmocka_unit_test(a_device_that_nobody_answers_for_keeps_what_is_known_of_it),
        cmocka_unit_test(nothing_is_decided_during_a_pause),
        cmocka_unit_test(what_is_impossible_in_between_is_not_refused),
        cmocka_unit_test(what_is_impossible_after_a_pause_is_refused),
    };

    return cmocka_run_group_tests_name("engine_observe", tests, NULL, NULL);
}
