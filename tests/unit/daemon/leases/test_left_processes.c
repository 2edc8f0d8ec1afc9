/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/leases/left_processes.h"

#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "daemon/leases/mps_events.h"
#include "daemon/leases/reader_events.h"
#include "daemon/processes/leftovers.h"
#include "support/daemons/played_readers.h"
#include "support/daemons/pool_stage.h"
#include "support/daemons/waiting_child.h"
#include "support/failing_allocator.h"

static int begin(void **state)
{
    static const struct pool_part parts[] = {{reader_events_init, reader_events_finish},
                                             {mps_events_init, mps_events_finish}};

    *state =
        pool_stage_make(&(struct pool_stage_settings){.parts = parts, .part_count = COUNT(parts)});
    return 0;
}

enum { CHILDREN = 20, NAMED = 16 };

static void ignore_looked(void *context, bool is_gone, struct optional_number exit_code)
{
    (void)context;
    (void)is_gone;
    (void)exit_code;
}

static void ignore_gone(void *context)
{
    (void)context;
}

static void ignore_spent(void *context, int64_t time)
{
    (void)context;
    (void)time;
}

/* Makes a lease that is over, but left these processes. */
static struct job *leave(struct pool_stage *stage, const pid_t *children, size_t count)
{
    struct pool *pool = &stage->pool;
    struct job *job = pool_stage_claim(stage, &(struct stage_claim){0});
    struct lease_watch *guard = job_lease_watch(pool, job);
    struct reader_answer answer = {0};

    job->state = JOB_DRAINING;
    guard->leftovers = leftovers_new(
        &(struct leftovers_settings){
            .loop = &pool->loop,
            .readers = pool->readers,
            .spared = &pool->spared,
            .socket = STAGE_SOCKET,
            .uid = geteuid(),
            .leases = &(struct id_list){.items = &job->by_id.id, .count = 1},
        },
        &(struct leftovers_events){ignore_looked, ignore_gone, ignore_spent, NULL});
    leftovers_look(guard->leftovers, false);
    for (size_t i = 0; i < count; i++)
        played_readers_add(&answer, children[i], READER_OURS)->uid = optional_number_of(STAGE_USER);
    played_readers_answer(played_readers_query(pool->readers, READER_LEFTOVERS), &answer);
    return job;
}

static struct problem_list describe(const struct pool_stage *stage)
{
    struct problem_list problems = {0};

    left_processes_describe(&stage->pool, &problems);
    return problems;
}

/* A process that gets its time to end is no problem; one that SIGKILL does not end is. */
static void a_process_that_no_signal_ends_is_named(void **state)
{
    struct pool_stage *stage = *state;
    pid_t child = waiting_child_start();
    struct job *job = leave(stage, &child, 1);
    struct problem_list problems = describe(stage);
    char wanted[200];

    assert_int_equal(problems.count, 0);
    leftovers_signal(job->guard->leftovers, SIGKILL);
    pool_stage_go_on(stage, DURATION_SECOND - 1);
    problems = describe(stage);
    assert_int_equal(problems.count, 0);
    pool_stage_go_on(stage, DURATION_SECOND + 2);
    problems = describe(stage);
    assert_int_equal(problems.count, 1);
    snprintf(wanted, sizeof(wanted),
             "process %d (uid 1000) of lease 1 still runs 2s after SIGKILL: its devices stay "
             "blocked until it ends",
             (int)child);
    assert_string_equal(problems.items[0].backend, "processes");
    assert_string_equal(problems.items[0].message, wanted);
    machine_report_finish_problems(&problems);
    /* While the lease goes on, its processes are no problem. */
    job->state = JOB_ENDING;
    problems = describe(stage);
    assert_int_equal(problems.count, 0);
    waiting_child_end(child);
}

static void a_process_that_stalls_readers_is_named(void **state)
{
    struct pool_stage *stage = *state;
    struct problem_list problems;

    stage->pool.readers->stalled = (struct stalled_process){
        .pid = 4711, .account = STAGE_OTHER, .since = STAGE_LOOP_NOW - 90 * DURATION_SECOND - 1};
    problems = describe(stage);
    assert_int_equal(problems.count, 1);
    assert_string_equal(problems.items[0].message,
                        "process 4711 (uid 1001) has blocked reads of its /proc files "
                        "for 1m30s: berth ignores it until it ends");
    machine_report_finish_problems(&problems);
    stage->pool.readers->stalled.owner = optional_number_of(STAGE_USER);
    problems = describe(stage);
    assert_contains(problems.items[0].message,
                    "process 4711 (uid 1000) has blocked reads of its /proc ");
    machine_report_finish_problems(&problems);
}

/* A program that the user started as root is not ended, but named while it runs. */
static void a_process_of_root_is_named(void **state)
{
    struct pool_stage *stage = *state;
    pid_t child = waiting_child_start();
    const struct foreign_process process = {.pid = child, .lease = 7, .uid = STAGE_USER};
    struct problem_list problems;
    char wanted[200];

    foreign_processes_add(&stage->pool.foreign, &process, pidfd_open_process(child));
    problems = describe(stage);
    assert_int_equal(problems.count, 1);
    snprintf(wanted, sizeof(wanted),
             "process %d of root is left of lease 7: it was not ended, because uid 1000, the "
             "lease's user, may not end it",
             (int)child);
    assert_string_equal(problems.items[0].message, wanted);
    machine_report_finish_problems(&problems);
    waiting_child_end(child);
}

/* So may a program as a third user. */
static void a_process_of_a_third_user_is_named(void **state)
{
    struct pool_stage *stage = *state;
    pid_t child = waiting_child_start();
    const struct foreign_process process = {
        .pid = child, .lease = 7, .uid = STAGE_USER, .owner = STAGE_OTHER};
    struct problem_list problems;

    foreign_processes_add(&stage->pool.foreign, &process, pidfd_open_process(child));
    problems = describe(stage);
    assert_int_equal(problems.count, 1);
    assert_contains(problems.items[0].message, " of uid 1001 is left of lease 7: ");
    machine_report_finish_problems(&problems);
    waiting_child_end(child);
}

/* Status must have room for other problems. */
static void at_most_a_few_are_named(void **state)
{
    struct pool_stage *stage = *state;
    pid_t children[CHILDREN];
    struct problem_list problems;
    struct job *job;

    for (int i = 0; i < CHILDREN; i++)
        children[i] = waiting_child_start();
    job = leave(stage, children, CHILDREN);
    leftovers_signal(job->guard->leftovers, SIGKILL);
    pool_stage_go_on(stage, 2 * DURATION_SECOND);
    stage->pool.readers->stalled = (struct stalled_process){.pid = 4711, .account = STAGE_OTHER};
    problems = describe(stage);
    assert_int_equal(problems.count, NAMED);
    machine_report_finish_problems(&problems);
    for (int i = 0; i < CHILDREN; i++)
        waiting_child_end(children[i]);
}

static void without_memory_fewer_are_named(void **state)
{
    struct pool_stage *stage = *state;
    struct problem_list problems = {0};

    stage->pool.readers->stalled = (struct stalled_process){.pid = 4711, .account = STAGE_OTHER};
    failing_allocator_start(1);
    left_processes_describe(&stage->pool, &problems);
    assert_true(failing_allocator_stop());
    assert_int_equal(problems.count, 0);
    machine_report_finish_problems(&problems);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_process_that_no_signal_ends_is_named, begin,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(a_process_of_a_third_user_is_named, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_process_that_stalls_readers_is_named, begin,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(a_process_of_root_is_named, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(at_most_a_few_are_named, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(without_memory_fewer_are_named, begin, pool_stage_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
