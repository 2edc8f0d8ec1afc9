/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/leases/squatter_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include "daemon/leases/handover.h"
#include "support/daemons/device_processes.h"
#include "support/daemons/pool_stage.h"
#include "support/daemons/waiting_child.h"
#include "support/failing_allocator.h"

static const struct pool_part parts[] = {{handover_init, handover_finish},
                                         {squatter_watch_init, squatter_watch_finish}};

static int begin(void **state)
{
    *state = pool_stage_make(&(struct pool_stage_settings){
        .devices = "nvidia0,nvidia1", .parts = parts, .part_count = COUNT(parts)});
    return 0;
}

static int begin_live(void **state)
{
    *state = pool_stage_make(&(struct pool_stage_settings){
        .devices = "nvidia0,nvidia1", .parts = parts, .part_count = COUNT(parts), .is_live = true});
    return 0;
}

static uint32_t blocks_of(const struct pool_stage *stage, uint32_t slot)
{
    struct slot_view view;

    engine_get_slot(stage->pool.engine, slot, &view);
    return view.blocks;
}

static const struct device_process *process_of(const struct pool_stage *stage, uint32_t slot)
{
    return &engine_machine(stage->pool.engine)->devices.items[slot].processes.items[0];
}

/* A stranger's program. */
static struct device_process stranger(uint64_t pid)
{
    return (struct device_process){
        .pid = pid,
        .uid = optional_number_of(STAGE_OTHER),
        .command = (char *)"python \"x.py\"",
    };
}

static void a_squatter_blocks_its_device(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct device_process process = stranger(999999);

    put_process(pool->engine, 0, &process);
    squatter_watch_judge(pool, 0);
    assert_int_equal(blocks_of(stage, 0), BLOCK_SQUATTED);
    assert_true(process_of(stage, 0)->squats);
    assert_string_equal(pool_stage_log(stage),
                        "squatted device=nvidia0 pid=999999 uid=1001 command=\"python\"\n");
    /* It is logged once, not with each report. */
    squatter_watch_judge(pool, 0);
    assert_string_equal(pool_stage_log(stage), "");
    put_process(pool->engine, 0, NULL);
    squatter_watch_judge(pool, 0);
    assert_int_equal(blocks_of(stage, 0), 0);
}

static void a_container_is_named_with_advice(void **state)
{
    struct pool_stage *stage = *state;
    struct device_process process = stranger(999999);

    process.container = (char *)"docker-0123";
    process.uid.known = false;
    process.command = NULL;
    put_process(stage->pool.engine, 0, &process);
    squatter_watch_judge(&stage->pool, 0);
    assert_contains(pool_stage_log(stage), "pid=999999 container=\"docker-0123\" advice=\"");
}

static void processes_with_a_lease_do_not_squat(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const struct job *job = pool_stage_claim(stage, &(struct stage_claim){0});
    struct device_process process = stranger(999999);

    process.lease = job->by_id.id;
    put_process(pool->engine, 0, &process);
    squatter_watch_judge_all(pool);
    assert_int_equal(blocks_of(stage, 0), 0);
    assert_false(process_of(stage, 0)->squats);
    /* Nor does the daemon's own program. */
    process = stranger((uint64_t)pool->pid);
    put_process(pool->engine, 1, &process);
    squatter_watch_judge_all(pool);
    assert_int_equal(blocks_of(stage, 1), 0);
}

static void the_rules_may_ignore_squatters(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct device_process process = stranger(999999);

    put_process(pool->engine, 0, &process);
    squatter_watch_judge_all(pool);
    assert_int_equal(blocks_of(stage, 0), BLOCK_SQUATTED);
    pool->rules.squatters = SQUATTING_IGNORED;
    squatter_watch_judge_all(pool);
    assert_int_equal(blocks_of(stage, 0), 0);
    /* It is shown all the same. */
    assert_true(process_of(stage, 0)->squats);
}

/* A process on a device that another pool leases is that pool's matter. */
static void devices_of_other_pools_are_not_squatted(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct device_process process = stranger(999999);

    put_process(pool->engine, 0, &process);
    engine_block(pool->engine, 0, BLOCK_ELSEWHERE);
    squatter_watch_judge_all(pool);
    assert_int_equal(blocks_of(stage, 0), BLOCK_ELSEWHERE);
    engine_unblock(pool->engine, 0, BLOCK_ELSEWHERE);
    squatter_watch_judge_all(pool);
    assert_int_equal(blocks_of(stage, 0), BLOCK_SQUATTED);
}

/* A process that a lease left behind keeps its device until it ends. */
static void a_process_left_behind_keeps_the_device(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct job *job = pool_stage_claim(stage, &(struct stage_claim){0});
    struct device_process process = stranger(999999);

    process.lease = job->by_id.id;
    put_process(pool->engine, 0, &process);
    squatter_watch_judge(pool, 0);
    assert_int_equal(blocks_of(stage, 0), 0);
    job->state = JOB_DRAINING;
    squatter_watch_judge(pool, 0);
    assert_int_equal(blocks_of(stage, 0), BLOCK_DIRTY);
    /* The lease is over, and its job forgotten. */
    process.lease = 4711;
    put_process(pool->engine, 0, &process);
    squatter_watch_judge(pool, 0);
    assert_int_equal(blocks_of(stage, 0), BLOCK_DIRTY);
    put_process(pool->engine, 0, NULL);
    squatter_watch_judge(pool, 0);
    assert_int_equal(blocks_of(stage, 0), 0);
}

static bool needs_report(struct pool_stage *stage)
{
    return handover_is_unasked(&stage->pool);
}

/* The end of a squatter is noticed at once: the next report is asked for. */
static void the_end_of_a_squatter_needs_a_report(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    struct device_process process = stranger((uint64_t)child);

    put_process(pool->engine, 1, &process);
    squatter_watch_judge_all(pool);
    squatter_watch_judge_all(pool);
    assert_false(handover_is_unasked(pool));
    waiting_child_end(child);
    pool_stage_run(stage, needs_report);
    assert_int_equal(blocks_of(stage, 1), BLOCK_SQUATTED | BLOCK_DIRTY);
    assert_int_equal(blocks_of(stage, 0), 0);
}

/* So is the end of a process that a lease left behind. */
static void the_end_of_a_process_left_behind_needs_a_report(void **state)
{
    struct pool_stage *stage = *state;
    pid_t child = waiting_child_start();
    struct device_process process = stranger((uint64_t)child);

    process.lease = 4711;
    put_process(stage->pool.engine, 1, &process);
    squatter_watch_judge_all(&stage->pool);
    squatter_watch_judge_all(&stage->pool);
    assert_int_equal(blocks_of(stage, 1), BLOCK_DIRTY);
    assert_false(needs_report(stage));
    waiting_child_end(child);
    pool_stage_run(stage, needs_report);
}

static bool is_quiet(struct pool_stage *stage)
{
    (void)stage;
    return true;
}

/* Once a process is no squatter any more, its end means nothing. */
static void others_are_not_watched(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const struct job *job = pool_stage_claim(stage, &(struct stage_claim){0});
    pid_t child = waiting_child_start();
    pid_t squatter = waiting_child_start();
    struct device_process process = stranger((uint64_t)child);
    struct device_process other = stranger((uint64_t)squatter);

    put_process(pool->engine, 0, &process);
    put_process(pool->engine, 1, &other);
    squatter_watch_judge_all(pool);
    process.lease = job->by_id.id;
    put_process(pool->engine, 0, &process);
    squatter_watch_judge_all(pool);
    waiting_child_end(child);
    pool_stage_run(stage, is_quiet);
    assert_false(handover_is_unasked(pool));
    waiting_child_end(squatter);
    pool_stage_run(stage, needs_report);
    assert_int_equal(blocks_of(stage, 0) & BLOCK_DIRTY, 0);
}

static int count_descriptors(void)
{
    int count = 0;

    for (int descriptor = 0; descriptor < 1024; descriptor++)
        count += fcntl(descriptor, F_GETFD) >= 0;
    return count;
}

/* All users share the daemon's descriptors, so of very many squatters only some are watched. */
static void only_so_many_are_watched(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct device_process other;
    struct device seen = {0};
    pid_t children[300];
    int before = count_descriptors();

    for (size_t i = 0; i < COUNT(children); i++) {
        struct device_process process;

        children[i] = waiting_child_start();
        process = stranger((uint64_t)children[i]);
        add_process(&seen.processes, &process);
    }
    engine_device_observe(pool->engine, 0, &seen);
    squatter_watch_judge_all(pool);
    assert_int_equal(count_descriptors() - before, 256);
    put_process(pool->engine, 0, NULL);
    squatter_watch_judge_all(pool);
    assert_int_equal(count_descriptors(), before);
    /* There is room for others again. */
    other = stranger((uint64_t)children[0]);
    put_process(pool->engine, 0, &other);
    squatter_watch_judge_all(pool);
    assert_int_equal(count_descriptors(), before + 1);
    for (size_t i = 0; i < COUNT(children); i++)
        waiting_child_end(children[i]);
}

static void without_memory_a_squatter_blocks_all_the_same(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct device_process process = stranger((uint64_t)getppid());

    put_process(pool->engine, 0, &process);
    /* Not the log's and the journal's memory. */
    squatter_watch_judge(pool, 0);
    failing_allocator_start(1);
    squatter_watch_judge_all(pool);
    assert_true(failing_allocator_stop());
    assert_int_equal(blocks_of(stage, 0), BLOCK_SQUATTED);
}

/* A number that no process can have is not watched, nor an impossible one taken for another. */
static void impossible_pids_are_not_watched(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct device_process process = stranger((UINT64_C(1) << 32) + (uint64_t)getpid());
    int before = count_descriptors();

    put_process(pool->engine, 0, &process);
    squatter_watch_judge_all(pool);
    assert_int_equal(count_descriptors(), before);
    assert_int_equal(blocks_of(stage, 0), BLOCK_SQUATTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_squatter_blocks_its_device, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_container_is_named_with_advice, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(processes_with_a_lease_do_not_squat, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(the_rules_may_ignore_squatters, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(devices_of_other_pools_are_not_squatted, begin,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(a_process_left_behind_keeps_the_device, begin,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(the_end_of_a_squatter_needs_a_report, begin_live,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(the_end_of_a_process_left_behind_needs_a_report, begin_live,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(others_are_not_watched, begin_live, pool_stage_end),
        cmocka_unit_test_setup_teardown(only_so_many_are_watched, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(without_memory_a_squatter_blocks_all_the_same, begin,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(impossible_pids_are_not_watched, begin, pool_stage_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
