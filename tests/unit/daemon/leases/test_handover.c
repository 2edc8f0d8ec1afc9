/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/leases/handover.h"

#include "support/daemons/played_probe.h"
#include "support/daemons/pool_stage.h"
#include "support/engine/machines.h"
#include "support/failing_allocator.h"

static int begin(void **state)
{
    static const struct pool_part parts[] = {{handover_init, handover_finish}};
    struct pool_stage *stage = pool_stage_make(&(struct pool_stage_settings){
        .is_hardware = true, .parts = parts, .part_count = COUNT(parts)});

    assert_int_equal(
        probe_poll_create(&stage->pool.probe_poll, &(struct probe_poll_settings){0}, NULL), 0);
    *state = stage;
    return 0;
}

static int end(void **state)
{
    struct pool_stage *stage = *state;

    probe_poll_destroy(stage->pool.probe_poll);
    return pool_stage_end(state);
}

static bool is_dirty(const struct pool *pool, uint32_t slot)
{
    struct slot_view view;

    engine_get_slot(pool->engine, slot, &view);
    return (view.blocks & BLOCK_DIRTY) != 0;
}

/* Ends a lease in the engine, as lease_ending_done() does. */
static void end_lease(struct pool *pool, const struct job *job)
{
    handover_begin(pool, job);
    assert_int_equal(engine_vacated(pool->engine, job->by_lease.id, NULL), 0);
}

/* The device may not be granted before a report that began after the end was taken. */
static void a_device_waits_for_a_report_that_begins_after_the_end(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const struct job *job = pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=2"});
    struct device_id_list only = {0};

    assert_false(handover_is_pending(pool));
    end_lease(pool, job);
    assert_true(is_dirty(pool, 0) && is_dirty(pool, 1));
    assert_false(is_dirty(pool, 2));
    assert_true(handover_is_pending(pool));
    assert_true(handover_is_unasked(pool));
    /* A report that was asked for before the end. */
    handover_looked(pool);
    assert_true(is_dirty(pool, 0));
    handover_ask(pool, &only);
    assert_int_equal(only.count, 2);
    assert_true(device_id_equals(only.items[1], id_of("nvidia1")));
    assert_false(handover_is_unasked(pool));
    assert_true(handover_is_pending(pool));
    handover_looked(pool);
    assert_false(is_dirty(pool, 0) || is_dirty(pool, 1));
    assert_false(handover_is_pending(pool));
    vector_finish(&only);
}

/* A second lease ends while the report for the first one is on its way. */
static void a_report_counts_only_for_the_ends_before_it(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const struct job *one =
        pool_stage_claim(stage, &(struct stage_claim){.words = "device=nvidia0"});
    const struct job *other =
        pool_stage_claim(stage, &(struct stage_claim){.words = "device=nvidia1"});
    struct device_id_list only = {0};

    end_lease(pool, one);
    handover_ask(pool, NULL);
    end_lease(pool, other);
    assert_true(handover_is_unasked(pool));
    handover_looked(pool);
    assert_false(is_dirty(pool, 0));
    assert_true(is_dirty(pool, 1));
    handover_ask(pool, &only);
    assert_int_equal(only.count, 1);
    /* A further end on the same device needs yet another report. */
    handover_need(pool, 1, HANDOVER_LOOK);
    handover_looked(pool);
    assert_true(is_dirty(pool, 1));
    vector_finish(&only);
}

static void a_device_is_free_when_no_reason_is_left(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    static const enum handover reasons[] = {HANDOVER_LOOK, HANDOVER_LINGERS, HANDOVER_EPILOG,
                                            HANDOVER_MPS};

    for (size_t i = 0; i < COUNT(reasons); i++)
        handover_need(pool, 2, reasons[i]);
    for (size_t i = 0; i < COUNT(reasons); i++) {
        assert_true(is_dirty(pool, 2));
        handover_done(pool, 2, reasons[i]);
    }
    assert_false(is_dirty(pool, 2));
    /* Of the other devices nothing is known, and nothing needed. */
    handover_done(pool, 3, HANDOVER_EPILOG);
    assert_false(is_dirty(pool, 3));
}

/* The end of a device's handover grants it to the claim that waits for it. */
static void the_last_reason_grants_the_device_on(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const struct job *holds = pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=4"});
    const struct job *waits = pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=4"});
    struct claim_view view;

    end_lease(pool, holds);
    assert_true(engine_get_claim(pool->engine, waits->by_id.id, &view));
    handover_ask(pool, NULL);
    handover_looked(pool);
    assert_false(engine_get_claim(pool->engine, waits->by_id.id, &view));
}

static void without_a_probe_nothing_is_waited_for(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const struct job *job = pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=1"});

    pool->probe_poll->answers = false;
    end_lease(pool, job);
    assert_false(is_dirty(pool, 0));
    assert_false(handover_is_unasked(pool));
}

/* The device stays with the lease around it. */
static void leases_within_leases_hand_nothing_over(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const struct job *outer = pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=1"});
    const struct job *inner = pool_stage_claim(
        stage, &(struct stage_claim){.words = "gpus=1", .parent = outer->by_id.id});

    assert_int_equal(inner->state, JOB_HELD);
    end_lease(pool, inner);
    assert_false(is_dirty(pool, 0));
}

/* The handover does not wait for facts that cannot be known, but for a program that runs. */
static void a_lost_probe_ends_the_waits_for_it(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;

    handover_need(pool, 0, HANDOVER_LOOK);
    handover_need(pool, 1, HANDOVER_LOOK);
    handover_need(pool, 1, HANDOVER_LINGERS);
    handover_need(pool, 2, HANDOVER_LOOK);
    handover_need(pool, 2, HANDOVER_EPILOG);
    handover_need(pool, 3, HANDOVER_MPS);
    handover_unanswered(pool);
    assert_false(is_dirty(pool, 0) || is_dirty(pool, 1));
    assert_true(is_dirty(pool, 2) && is_dirty(pool, 3));
    assert_false(handover_is_pending(pool));
    assert_false(handover_is_unasked(pool));
    handover_done(pool, 2, HANDOVER_EPILOG);
    assert_false(is_dirty(pool, 2));
}

/* The daemon before ended in the middle of a handover: its journal says that the device is dirty.
 */
static void a_restart_looks_again(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;

    engine_block(pool->engine, 1, BLOCK_DIRTY);
    engine_block(pool->engine, 2, BLOCK_DRAINED);
    handover_restored(pool);
    assert_true(is_dirty(pool, 1));
    assert_false(is_dirty(pool, 0) || is_dirty(pool, 2));
    assert_true(handover_is_unasked(pool));
    handover_ask(pool, NULL);
    handover_looked(pool);
    assert_false(is_dirty(pool, 1));
    engine_block(pool->engine, 1, BLOCK_DIRTY);
    pool->probe_poll->answers = false;
    handover_restored(pool);
    assert_false(is_dirty(pool, 1));
}

/* Without memory for the ids of all devices, the rest is asked for with the next report. */
static void without_memory_the_next_report_is_for_the_rest(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct device_id_list only = {0};

    handover_need(pool, 0, HANDOVER_LOOK);
    failing_allocator_start(1);
    handover_ask(pool, &only);
    assert_true(failing_allocator_stop());
    assert_int_equal(only.count, 0);
    assert_true(handover_is_unasked(pool));
    handover_looked(pool);
    assert_true(is_dirty(pool, 0));
    handover_ask(pool, &only);
    handover_looked(pool);
    assert_false(is_dirty(pool, 0));
    vector_finish(&only);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_device_waits_for_a_report_that_begins_after_the_end,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_report_counts_only_for_the_ends_before_it, begin, end),
        cmocka_unit_test_setup_teardown(a_device_is_free_when_no_reason_is_left, begin, end),
        cmocka_unit_test_setup_teardown(the_last_reason_grants_the_device_on, begin, end),
        cmocka_unit_test_setup_teardown(without_a_probe_nothing_is_waited_for, begin, end),
        cmocka_unit_test_setup_teardown(leases_within_leases_hand_nothing_over, begin, end),
        cmocka_unit_test_setup_teardown(a_lost_probe_ends_the_waits_for_it, begin, end),
        cmocka_unit_test_setup_teardown(a_restart_looks_again, begin, end),
        cmocka_unit_test_setup_teardown(without_memory_the_next_report_is_for_the_rest, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
