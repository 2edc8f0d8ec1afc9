/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports about the hardware, applied to the engine.
 */
#include "support/unit.h"

#include "engine/engine_report.h"

#include <stdio.h>

#include "base/count.h"
#include "support/assert_error.h"
#include "support/engine/engine_steps.h"

enum { ALL_LISTED = 0x1f };

/* The changes that the handler got, as text. */
struct heard {
    struct text words;
};

static void hear(void *context, uint32_t slot, unsigned changes)
{
    static const char *const names[] = {"added", "back", "gone", "facts", "health"};
    struct heard *heard = context;

    text_append_format(&heard->words, "%u:", slot);
    for (unsigned i = 0; i < COUNT(names); i++) {
        if ((changes & 1U << i) != 0)
            text_append_format(&heard->words, " %s", names[i]);
    }
    text_append(&heard->words, "\n");
}

static struct machine_report report_of(const char *ids, uint32_t listed)
{
    struct machine_report report = {.listed = listed};
    struct device_id_list list = {0};
    const struct device_id *id;

    if (*ids != '\0')
        assert_int_equal(device_id_list_parse(&list, ids, NULL), 0);
    vector_for_each (id, &list)
        machine_add(&report.machine, *id);
    vector_finish(&list);
    return report;
}

static void take(struct world *world, struct machine_report report, bool fixed, const char *wanted)
{
    struct heard heard = {0};
    const struct report_handler taker = {.fixed = fixed, .changed = hear, .context = &heard};

    engine_pause(world->engine);
    assert_int_equal(engine_apply_report(world->engine, &report, &taker, NULL), 0);
    engine_resume(world->engine);
    assert_int_equal(report.machine.devices.count, 0);
    assert_string_equal(text_string(&heard.words), wanted);
    text_finish(&heard.words);
}

static const struct device *device_at(const struct world *world, size_t slot)
{
    return &engine_machine(world->engine)->devices.items[slot];
}

static void new_devices_get_slots_in_their_order(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "");
    take(&world, report_of("nvidia1,nvidia0", ALL_LISTED), false, "0: added\n1: added\n");
    take(&world, report_of("amd0,nvidia0,nvidia1", ALL_LISTED), false, "2: added\n");
    assert_true(device_id_equals(device_at(&world, 0)->id, id_of("nvidia1")));
    assert_true(device_id_equals(device_at(&world, 2)->id, id_of("amd0")));
    granted_to(&world, "gpus=2 vendor=nvidia");
    world_finish(&world);
}

static void nothing_new_tells_nothing(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    world_forget(&world);
    take(&world, report_of("nvidia1,nvidia0", ALL_LISTED), false, "");
    check_told(&world, "");
    world_finish(&world);
}

static void what_is_missing_is_gone_if_its_vendor_was_listed(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,amd0");
    take(&world, report_of("", 1 << VENDOR_AMD), false, "1: gone\n");
    assert_true(slot_in(&world, 0).present);
    assert_true(device_at(&world, 0)->old);
    assert_false(slot_in(&world, 1).present);
    take(&world, report_of("", 1 << VENDOR_AMD), false, "");
    take(&world, report_of("nvidia0,amd0", ALL_LISTED), false, "1: back\n");
    assert_false(device_at(&world, 0)->old);
    assert_true(slot_in(&world, 1).present);
    world_finish(&world);
}

static void who_waits_is_granted_what_comes_back(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    take(&world, report_of("nvidia0", ALL_LISTED), false, "1: gone\n");
    granted_to(&world, NULL);
    waits_with(&world, NULL);
    world_forget(&world);
    take(&world, report_of("nvidia0,nvidia1", ALL_LISTED), false, "1: back\n");
    check_told(&world, "device in slot 1\n"
                       "granted lease 3 of claim 2: slots 1\n");
    world_finish(&world);
}

static void health_is_told_when_it_changes(void **state)
{
    struct machine_report report = report_of("nvidia0", ALL_LISTED);
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    report.machine.devices.items[0].health = HEALTH_SICK;
    report.machine.devices.items[0].health_reason = copy_of("hot");
    take(&world, report, false, "0: health\n");
    assert_string_equal(device_at(&world, 0)->health_reason, "hot");
    waits_with(&world, NULL);
    report = report_of("nvidia0", ALL_LISTED);
    report.machine.devices.items[0].health = HEALTH_SICK;
    report.machine.devices.items[0].health_reason = copy_of("hot");
    take(&world, report, false, "");
    report = report_of("nvidia0", ALL_LISTED);
    report.machine.devices.items[0].health = HEALTH_SICK;
    report.machine.devices.items[0].health_reason = copy_of("very hot");
    take(&world, report, false, "0: health\n");
    world_forget(&world);
    report = report_of("nvidia0", ALL_LISTED);
    report.machine.devices.items[0].health = HEALTH_OK;
    take(&world, report, false, "0: health\n");
    assert_null(device_at(&world, 0)->health_reason);
    check_told(&world, "device in slot 0\n"
                       "granted lease 2 of claim 1: slots 0\n");
    world_finish(&world);
}

static void new_facts_replace_old_ones(void **state)
{
    struct machine_report report = report_of("nvidia0", ALL_LISTED);
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    report.machine.devices.items[0].memory_total = optional_number_of(100);
    report.machine.devices.items[0].load.utilization = load_figure_sampled(5, 6);
    take(&world, report, false, "0: facts\n");
    assert_int_equal(device_at(&world, 0)->memory_total.value, 100);
    assert_int_equal(device_at(&world, 0)->load.utilization.value, 5);
    granted_to(&world, "min-memory=100");
    world_finish(&world);
}

/* A device whose driver hangs keeps its known facts. */
static void of_a_device_that_is_old_only_its_health_is_news(void **state)
{
    struct machine_report report = report_of("nvidia0", ALL_LISTED);
    struct device *device = &report.machine.devices.items[0];
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    device->name = copy_of("A100");
    device->load.utilization = load_figure_sampled(5, 6);
    device_process_find_or_add(&device->processes, 42);
    take(&world, report, false, "0: facts\n");
    report = report_of("nvidia0", ALL_LISTED);
    device = &report.machine.devices.items[0];
    device->old = true;
    device->health = HEALTH_SICK;
    device->health_reason = copy_of("it hangs");
    take(&world, report, false, "0: health\n");
    assert_true(device_at(&world, 0)->old);
    assert_string_equal(device_at(&world, 0)->name, "A100");
    assert_string_equal(device_at(&world, 0)->health_reason, "it hangs");
    assert_int_equal(device_at(&world, 0)->load.utilization.value, 5);
    assert_int_equal(device_at(&world, 0)->processes.count, 1);
    world_finish(&world);
}

static void a_load_ends_what_picks_counted(void **state)
{
    struct machine_report report = report_of("nvidia0,nvidia1", ALL_LISTED);
    struct world world;
    struct engine_request *one;
    uint32_t slot;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    one = world_request(&world, "policy=least-loaded");
    assert_int_equal(engine_pick(world.engine, one, &slot, 1, NULL), 1);
    assert_int_equal(slot, 0);
    report.machine.devices.items[0].load.utilization = load_figure_sampled(0, 1);
    take(&world, report, false, "");
    assert_int_equal(engine_pick(world.engine, one, &slot, 1, NULL), 1);
    assert_int_equal(slot, 0);
    world_finish(&world);
}

static void a_pool_that_is_fixed_takes_in_nothing_new(void **state)
{
    struct machine_report report = report_of("nvidia0,nvidia1", ALL_LISTED);
    const char *name;
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    name = device_at(&world, 0)->name;
    report.machine.devices.items[0].name = copy_of("another");
    report.machine.devices.items[0].health = HEALTH_SICK;
    take(&world, report, true, "0: health\n");
    assert_int_equal(engine_machine(world.engine)->devices.count, 1);
    assert_ptr_equal(device_at(&world, 0)->name, name);
    take(&world, report_of("nvidia1", ALL_LISTED), true, "0: gone\n");
    take(&world, report_of("nvidia0", ALL_LISTED), true, "0: back health\n");
    assert_true(slot_in(&world, 0).present);
    world_finish(&world);
}

static void a_device_without_room_does_not_keep_others_out(void **state)
{
    struct machine_report report = report_of("nvidia0,nvidia1,nvidia2", ALL_LISTED);
    const struct engine_settings settings = {.slots_max = 2};
    const struct report_handler taker = {0};
    struct machine machine = {0};
    struct berth_error error = BERTH_ERROR_INIT;
    struct engine *engine;

    (void)state;
    machine_add(&machine, id_of("nvidia2"));
    assert_int_equal(engine_create(&machine, &settings, &engine, NULL), 0);
    engine_pause(engine);
    assert_fails(engine_apply_report(engine, &report, &taker, &error), BERTH_ERROR_LIMIT, &error,
                 "expected at most 2 devices, got one more: nvidia1");
    engine_resume(engine);
    assert_int_equal(engine_machine(engine)->devices.count, 2);
    engine_destroy(engine);
}

/* Makes devices with these ids; each letter is the UUID of one. */
static struct machine_report named(const char *ids, const char *letters)
{
    struct machine_report report = report_of(ids, ALL_LISTED);

    for (size_t i = 0; letters[i] != '\0'; i++)
        assert_true(asprintf(&report.machine.devices.items[i].uuid, "GPU-%c", letters[i]) > 0);
    return report;
}

static void a_device_that_is_counted_anew_is_not_given_out_twice(void **state)
{
    uint64_t first;
    uint64_t second;
    struct world world;

    (void)state;
    world_init(&world, "");
    take(&world, named("nvidia0,nvidia1", "AB"), false, "0: added\n1: added\n");
    first = granted_to(&world, "device=nvidia0");
    second = granted_to(&world, "device=nvidia1");
    /* A is gone, and B has become nvidia0. */
    take(&world, named("nvidia0", "B"), false, "1: gone\n0: gone\n");
    released(&world, first);
    take(&world, named("nvidia0", "B"), false, "");
    assert_false(slot_in(&world, 0).present);
    released(&world, second);
    take(&world, named("nvidia0", "B"), false, "0: back facts\n");
    assert_true(slot_in(&world, 0).present);
    assert_string_equal(device_at(&world, 0)->uuid, "GPU-B");
    granted_to(&world, "device=nvidia0");
    world_finish(&world);
}

static void a_device_under_a_lease_gets_no_second_slot(void **state)
{
    uint64_t lease;
    struct world world;

    (void)state;
    world_init(&world, "");
    take(&world, named("nvidia0", "A"), false, "0: added\n");
    lease = granted_to(&world, NULL);
    take(&world, named("nvidia5", "A"), false, "0: gone\n");
    assert_int_equal(engine_machine(world.engine)->devices.count, 1);
    released(&world, lease);
    take(&world, named("nvidia5", "A"), false, "1: added\n");
    world_finish(&world);
}

static void a_fixed_pool_takes_no_other_device_for_its_own(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "");
    take(&world, named("nvidia0,nvidia1", "AB"), false, "0: added\n1: added\n");
    take(&world, named("nvidia0", "B"), true, "1: gone\n0: gone\n");
    take(&world, named("nvidia0,nvidia1", "AB"), true, "0: back\n1: back\n");
    world_finish(&world);
}

static void without_a_report_all_is_old(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    engine_mark_devices_old(world.engine);
    assert_true(device_at(&world, 0)->old && device_at(&world, 1)->old);
    granted_to(&world, "gpus=2");
    world_finish(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_devices_get_slots_in_their_order),
        cmocka_unit_test(nothing_new_tells_nothing),
        cmocka_unit_test(what_is_missing_is_gone_if_its_vendor_was_listed),
        cmocka_unit_test(who_waits_is_granted_what_comes_back),
        cmocka_unit_test(health_is_told_when_it_changes),
        cmocka_unit_test(new_facts_replace_old_ones),
        cmocka_unit_test(of_a_device_that_is_old_only_its_health_is_news),
        cmocka_unit_test(a_load_ends_what_picks_counted),
        cmocka_unit_test(a_pool_that_is_fixed_takes_in_nothing_new),
        cmocka_unit_test(a_device_without_room_does_not_keep_others_out),
        cmocka_unit_test(a_device_that_is_counted_anew_is_not_given_out_twice),
        cmocka_unit_test(a_device_under_a_lease_gets_no_second_slot),
        cmocka_unit_test(a_fixed_pool_takes_no_other_device_for_its_own),
        cmocka_unit_test(without_a_report_all_is_old),
    };

    return cmocka_run_group_tests_name("engine_report", tests, NULL, NULL);
}
