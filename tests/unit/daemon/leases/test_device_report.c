/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/leases/device_report.h"

#include <stdio.h>
#include <string.h>

#include "daemon/leases/handover.h"
#include "daemon/leases/pool_facts.h"
#include "daemon/leases/squatter_watch.h"
#include "support/daemons/device_processes.h"
#include "support/daemons/pool_stage.h"

static int begin(void **state)
{
    static const struct pool_part parts[] = {{handover_init, handover_finish},
                                             {squatter_watch_init, squatter_watch_finish}};

    *state = pool_stage_make(&(struct pool_stage_settings){
        .devices = "nvidia0,nvidia1", .parts = parts, .part_count = COUNT(parts), .slots = 3});
    return 0;
}

/* Returns a report of these devices, all that there are. */
static struct machine_report report_of(const char *ids)
{
    struct machine_report report = {.listed = UINT32_MAX};

    machine_add_ids(&report.machine, ids);
    assert_non_null(vector_append(&report.machine.hosts));
    report.machine.hosts.items[0] = (struct host){0};
    return report;
}

static void apply(struct pool *pool, struct machine_report *report)
{
    struct berth_error error = BERTH_ERROR_INIT;

    if (device_report_apply(pool, report, &error) < 0)
        fail_msg("%s", error.message);
    assert_int_equal(report->machine.devices.count, 0);
    engine_resume(pool->engine);
    machine_report_finish(report);
}

static void apply_devices(struct pool *pool, const char *ids)
{
    struct machine_report report = report_of(ids);

    apply(pool, &report);
}

static struct slot_view slot_of(const struct pool_stage *stage, uint32_t slot)
{
    struct slot_view view;

    engine_get_slot(stage->pool.engine, slot, &view);
    return view;
}

static void devices_come_and_go(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;

    apply_devices(pool, "nvidia0,nvidia1,amd0");
    assert_string_equal(pool_stage_log(stage), "device what=added id=amd0\n");
    assert_int_equal(engine_machine(pool->engine)->devices.count, 3);
    assert_true((pool->vendors & (1U << VENDOR_AMD)) != 0);
    assert_contains(pool_stage_journal(stage), "devices amd0\n");
    apply_devices(pool, "nvidia0,amd0");
    assert_string_equal(pool_stage_log(stage), "device what=gone id=nvidia1\n");
    assert_false(slot_of(stage, 1).present);
    apply_devices(pool, "nvidia0,nvidia1,amd0");
    assert_string_equal(pool_stage_log(stage), "device what=back id=nvidia1\n");
    pool_stage_journal(stage);
    apply_devices(pool, "nvidia0,nvidia1,amd0");
    assert_string_equal(pool_stage_log(stage), "");
    assert_string_equal(pool_stage_journal(stage), "");
}

/* A device that comes while claims wait is granted once the caller resumes the engine. */
static void a_new_device_is_granted(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct machine_report report = report_of("nvidia0,nvidia1,nvidia2");
    const struct job *waits;
    struct claim_view view;

    pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=2"});
    waits = pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=1"});
    assert_int_equal(device_report_apply(pool, &report, NULL), 0);
    assert_true(engine_get_claim(pool->engine, waits->by_id.id, &view));
    engine_resume(pool->engine);
    assert_false(engine_get_claim(pool->engine, waits->by_id.id, &view));
    machine_report_finish(&report);
}

/* The rules hold for a device that comes after them. */
static void a_new_device_may_be_reserved(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    static const char rules[] = "reserved: {nvidia2: nobody}";

    configuration_finish(&pool->rules);
    assert_int_equal(configuration_parse("test", rules, strlen(rules), &pool->rules, NULL), 0);
    apply_devices(pool, "nvidia0,nvidia1,nvidia2");
    pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=2"});
    assert_int_equal(pool_stage_claim(stage, &(struct stage_claim){0})->state, JOB_WAITING);
}

static void changed_facts_are_kept(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct machine_report report = report_of("nvidia0,nvidia1");

    report.machine.devices.items[1].uuid = copy_of("GPU-1");
    apply(pool, &report);
    assert_string_equal(pool_stage_log(stage), "device what=changed id=nvidia1\n");
    assert_contains(pool_stage_journal(stage), "devices nvidia1\n");
    assert_string_equal(engine_machine(pool->engine)->devices.items[1].uuid, "GPU-1");
}

static void sickness_is_logged_with_its_reason(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct machine_report report = report_of("nvidia0,nvidia1");

    report.machine.devices.items[0].health = HEALTH_SICK;
    report.machine.devices.items[0].health_reason = copy_of("it fell \"off\" the bus");
    apply(pool, &report);
    assert_string_equal(pool_stage_log(stage),
                        "device what=sick id=nvidia0 reason=\"it fell \\\"off\\\" the bus\"\n");
    pool_stage_journal(stage);
    report = report_of("nvidia0,nvidia1");
    report.machine.devices.items[0].health = HEALTH_OK;
    apply(pool, &report);
    assert_string_equal(pool_stage_log(stage), "device what=well id=nvidia0\n");
    assert_contains_not(pool_stage_journal(stage), "devices");
}

static void squatters_are_judged(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct machine_report report = report_of("nvidia0,nvidia1");
    const struct job *job =
        pool_stage_claim(stage, &(struct stage_claim){.words = "device=nvidia0", .pid = 999998});

    add_process(&report.machine.devices.items[0].processes,
                &(struct device_process){.pid = 999998, .command = (char *)"train"});
    add_process(&report.machine.devices.items[1].processes,
                &(struct device_process){.pid = 999999, .command = (char *)"train"});
    apply(pool, &report);
    assert_int_equal(slot_of(stage, 0).blocks, 0);
    assert_int_equal(slot_of(stage, 1).blocks, BLOCK_SQUATTED);
    assert_int_equal(engine_device_processes(pool->engine, 0)->items[0].lease, job->by_id.id);
}

/* A message must have room for a device with all its processes, however many and long these are. */
static void very_many_processes_are_cut(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct machine_report report = report_of("nvidia0,nvidia1");
    const struct device *device;
    char command[1000];

    memset(command, 'x', sizeof(command) - 1);
    command[sizeof(command) - 1] = '\0';
    for (uint64_t pid = 1; pid <= 100; pid++)
        add_process(&report.machine.devices.items[0].processes,
                    &(struct device_process){.pid = pid, .command = command});
    for (uint64_t pid = 1; pid <= 100; pid++)
        add_process(&report.machine.devices.items[1].processes,
                    &(struct device_process){.pid = pid});
    apply(pool, &report);
    device = &engine_machine(pool->engine)->devices.items[0];
    assert_in_range(device->processes.count, 10, 20);
    assert_in_range(pool_facts_device_size(device), 1, WIRE_MESSAGE_MAX / 4);
    assert_int_equal(engine_machine(pool->engine)->devices.items[1].processes.count, 100);
}

/* There is no slot for a fourth device. The others of the report are applied. */
static void a_device_too_many_is_an_error(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct machine_report report = report_of("nvidia0,nvidia1,nvidia2,nvidia3");
    struct berth_error error = BERTH_ERROR_INIT;

    assert_int_equal(device_report_apply(pool, &report, &error), BERTH_ERROR_LIMIT);
    assert_int_equal(engine_machine(pool->engine)->devices.count, 3);
    engine_resume(pool->engine);
    machine_report_finish(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(devices_come_and_go, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_new_device_is_granted, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_new_device_may_be_reserved, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(changed_facts_are_kept, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(sickness_is_logged_with_its_reason, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(squatters_are_judged, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(very_many_processes_are_cut, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_device_too_many_is_an_error, begin, pool_stage_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
