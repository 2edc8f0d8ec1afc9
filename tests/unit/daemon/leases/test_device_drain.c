/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/leases/device_drain.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/journal/journal_records.h"
#include "support/daemons/pool_stage.h"
#include "support/failing_allocator.h"

static int begin(void **state)
{
    static const struct pool_part parts[] = {{device_drain_init, device_drain_finish}};

    *state = pool_stage_make(&(struct pool_stage_settings){
        .devices = "nvidia0,nvidia1", .parts = parts, .part_count = COUNT(parts)});
    return 0;
}

static uint32_t blocks_of(const struct pool *pool, uint32_t slot)
{
    struct slot_view view;

    engine_get_slot(pool->engine, slot, &view);
    return view.blocks;
}

static void drain(struct pool *pool, uint32_t slot, const char *reason)
{
    assert_int_equal(device_drain_set(pool, slot, reason, optional_number_of(STAGE_USER), NULL), 0);
}

static void a_drained_device_is_not_granted(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const struct device_drain *now = device_drain_of(pool, 0);
    const struct job *job;

    drain(pool, 0, "a fan is \"broken\"");
    assert_string_equal(now->reason, "a fan is \"broken\"");
    assert_int_equal(now->uid.value, STAGE_USER);
    assert_int_equal(now->time, STAGE_NOW);
    assert_string_equal(pool_stage_log(stage),
                        "drained device=nvidia0 uid=1000 reason=\"a fan is \\\"broken\\\"\"\n");
    assert_string_equal(pool_stage_journal(stage),
                        "drain 0 begun: a fan is \"broken\"\ndevice 0: present, drained\n");
    job = pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=1"});
    assert_int_equal(job->state, JOB_HELD);
    job = pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=1"});
    assert_int_equal(job->state, JOB_WAITING);
    assert_int_equal(device_drain_of(pool, 1)->time, 0);
}

static void a_further_drain_replaces_the_reason(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;

    drain(pool, 0, "first");
    pool_stage_go_on(stage, 5);
    assert_int_equal(device_drain_set(pool, 0, NULL, (struct optional_number){0}, NULL), 0);
    assert_null(device_drain_of(pool, 0)->reason);
    assert_false(device_drain_of(pool, 0)->uid.known);
    assert_int_equal(device_drain_of(pool, 0)->time, STAGE_NOW + 5);
    assert_contains(pool_stage_log(stage), "drained device=nvidia0\n");
    device_drain_clear(pool, 0);
    assert_int_equal(blocks_of(pool, 0), 0);
}

static void a_device_comes_back_into_service_once(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;

    device_drain_clear(pool, 0);
    assert_string_equal(pool_stage_log(stage), "");
    assert_string_equal(pool_stage_journal(stage), "");
    drain(pool, 0, "dust");
    pool_stage_log(stage);
    pool_stage_journal(stage);
    device_drain_clear(pool, 0);
    device_drain_clear(pool, 0);
    assert_int_equal(device_drain_of(pool, 0)->time, 0);
    assert_null(device_drain_of(pool, 0)->reason);
    assert_int_equal(blocks_of(pool, 0), 0);
    assert_string_equal(pool_stage_log(stage), "undrained device=nvidia0\n");
    assert_string_equal(pool_stage_journal(stage), "drain 0 over\ndevice 0: present\n");
}

static void without_memory_the_former_drain_stays(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct berth_error error = BERTH_ERROR_INIT;
    int code;

    drain(pool, 0, "dust");
    failing_allocator_start(1);
    code = device_drain_set(pool, 0, "fire", optional_number_of(STAGE_OTHER), &error);
    assert_true(failing_allocator_stop());
    assert_int_equal(code, BERTH_ERROR_MEMORY);
    assert_string_equal(device_drain_of(pool, 0)->reason, "dust");
    assert_int_equal(device_drain_of(pool, 0)->uid.value, STAGE_USER);
}

/* Restores a drain as the journal has it. */
static void restore(struct pool *pool, uint32_t slot, int64_t time, const char *reason)
{
    struct kept_drain kept = {
        .slot = slot,
        .uid = optional_number_of(STAGE_USER),
        .time = time,
        .reason = reason == NULL ? NULL : strdup(reason),
    };

    device_drain_restore(pool, &kept);
    tagged_finish(&kept_drain_tagged, &kept);
}

static void the_last_record_of_a_device_counts(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;

    restore(pool, 0, 17, "dust");
    restore(pool, 0, 0, NULL);
    restore(pool, 1, 17, "dust");
    restore(pool, 1, 18, "fire");
    /* Blocked when the daemon before ended, but in service by now. */
    engine_block(pool->engine, 0, BLOCK_DRAINED);
    device_drain_restored(pool, false);
    assert_int_equal(blocks_of(pool, 0), 0);
    assert_int_equal(blocks_of(pool, 1), BLOCK_DRAINED);
    assert_string_equal(device_drain_of(pool, 1)->reason, "fire");
    assert_int_equal(device_drain_of(pool, 1)->time, 18);
}

static void a_record_of_no_slot_is_ignored(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;

    restore(pool, (uint32_t)engine_slots_max(pool->engine), 17, "dust");
    restore(pool, UINT32_MAX, 17, "dust");
    device_drain_restored(pool, false);
    assert_int_equal(blocks_of(pool, 0), 0);
}

static void drains_of_other_devices_are_dropped(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;

    restore(pool, 0, 17, "dust");
    engine_block(pool->engine, 0, BLOCK_DRAINED);
    device_drain_restored(pool, true);
    assert_int_equal(blocks_of(pool, 0), 0);
    assert_int_equal(device_drain_of(pool, 0)->time, 0);
    assert_null(device_drain_of(pool, 0)->reason);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_drained_device_is_not_granted, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_further_drain_replaces_the_reason, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_device_comes_back_into_service_once, begin,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(without_memory_the_former_drain_stays, begin,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(the_last_record_of_a_device_counts, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_record_of_no_slot_is_ignored, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(drains_of_other_devices_are_dropped, begin, pool_stage_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
