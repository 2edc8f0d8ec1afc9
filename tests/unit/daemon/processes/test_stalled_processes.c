/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/processes/stalled_processes.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/core/pidfd.h"
#include "reader/reader_messages.h"
#include "support/daemons/waiting_child.h"
#include "support/failing_allocator.h"

enum { ALICE = 1000, BOB = 1001 };

struct stall {
    struct loop loop;
    struct stalled_processes processes;
    int ended;
};

static void count_end(void *context)
{
    struct stall *stall = context;

    stall->ended++;
    stall->loop.ended = true;
}

static void nothing(void *context)
{
    (void)context;
}

static void stall_begin(struct stall *stall)
{
    *stall = (struct stall){0};
    assert_int_equal(loop_init(&stall->loop, NULL), 0);
    stalled_processes_init(&stall->processes, &stall->loop, count_end, stall);
}

static void stall_end(struct stall *stall)
{
    stalled_processes_finish(&stall->processes);
    loop_finish(&stall->loop);
}

static void a_process_is_remembered_until_it_ends(void **state)
{
    struct stall stall;
    struct reader_numbers pids = {0};
    pid_t first = waiting_child_start();
    pid_t second = waiting_child_start();
    const struct stalled_process *added;

    (void)state;
    stall_begin(&stall);
    stall.loop.now = 4711;
    added = stalled_processes_add(&stall.processes, first, pidfd_open_process(first), ALICE);
    assert_int_equal(added->pid, first);
    assert_int_equal(added->account, ALICE);
    assert_int_equal(added->since, 4711);
    stalled_processes_add(&stall.processes, second, pidfd_open_process(second), BOB);
    stall.loop.now = 0;
    assert_true(stalled_processes_has(&stall.processes, first));
    assert_int_equal(stalled_processes_count(&stall.processes, ALICE), 1);
    assert_int_equal(stalled_processes_count(&stall.processes, 0), 0);
    stalled_processes_list(&stall.processes, &pids);
    assert_int_equal(pids.count, 2);
    assert_int_equal(pids.items[0], first);
    assert_int_equal(pids.items[1], second);

    kill(first, SIGKILL);
    loop_run(&stall.loop, &(struct loop_turn){nothing, nothing, NULL});
    assert_int_equal(stall.ended, 1);
    assert_false(stalled_processes_has(&stall.processes, first));
    assert_true(stalled_processes_has(&stall.processes, second));
    assert_int_equal(stalled_processes_count(&stall.processes, ALICE), 0);
    stalled_processes_list(&stall.processes, &pids);
    assert_int_equal(pids.count, 1);
    assert_int_equal(pids.items[0], second);
    vector_finish(&pids);
    stall_end(&stall);
    waiting_child_end(first);
    waiting_child_end(second);
}

static int visited;

static void visit(void *context, const struct stalled_process *process)
{
    assert_int_equal(process->account, *(const uint32_t *)context + (uint32_t)visited);
    visited++;
}

static void all_are_visited_oldest_first(void **state)
{
    struct stall stall;
    pid_t child = waiting_child_start();
    uint32_t first = ALICE;

    (void)state;
    stall_begin(&stall);
    stalled_processes_add(&stall.processes, child, pidfd_open_process(child), ALICE);
    stalled_processes_add(&stall.processes, child, pidfd_open_process(child), BOB);
    stalled_processes_each(&stall.processes, visit, &first);
    assert_int_equal(visited, 2);
    stall_end(&stall);
    waiting_child_end(child);
}

/* Raises the limit of open files, if it is lower and that is allowed. */
static bool may_open(rlim_t count)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < count) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= count;
}

/* A request has room for so many; the oldest are the likeliest to stall again. */
static void a_list_has_a_maximum_length(void **state)
{
    struct stall stall;
    struct reader_numbers pids = {0};
    pid_t child = waiting_child_start();

    (void)state;
    if (!may_open(READER_NUMBERS_MAX + 100)) {
        waiting_child_end(child);
        print_message("skip: this process may not open enough files\n");
        skip();
    }
    stall_begin(&stall);
    for (int i = 0; i < READER_NUMBERS_MAX + 3; i++)
        stalled_processes_add(&stall.processes, child, pidfd_open_process(child), ALICE);
    assert_int_equal(stalled_processes_count(&stall.processes, ALICE), READER_NUMBERS_MAX + 3);
    stalled_processes_list(&stall.processes, &pids);
    assert_int_equal(pids.count, READER_NUMBERS_MAX);
    vector_finish(&pids);
    stall_end(&stall);
    waiting_child_end(child);
}

/* Without memory a process is not remembered, and its descriptor is closed. */
static void no_memory_forgets_the_process(void **state)
{
    struct stall stall;
    pid_t child = waiting_child_start();
    int descriptor = pidfd_open_process(child);

    (void)state;
    stall_begin(&stall);
    failing_allocator_start(1);
    assert_null(stalled_processes_add(&stall.processes, child, descriptor, ALICE));
    assert_true(failing_allocator_stop());
    assert_int_equal(close(descriptor), -1);
    assert_false(stalled_processes_has(&stall.processes, child));
    stall_end(&stall);
    waiting_child_end(child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_is_remembered_until_it_ends),
        cmocka_unit_test(all_are_visited_oldest_first),
        cmocka_unit_test(a_list_has_a_maximum_length),
        cmocka_unit_test(no_memory_forgets_the_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
