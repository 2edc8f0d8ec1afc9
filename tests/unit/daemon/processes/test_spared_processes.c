/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/processes/spared_processes.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/core/pidfd.h"
#include "support/daemons/waiting_child.h"
#include "support/failing_allocator.h"

/* The children have the test's user. */
static struct signal_right own;

/* Waits for the child, and returns the signal that ended it. */
static int signal_of(pid_t child)
{
    int status = 0;

    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void fire_due(struct loop *loop, int64_t time)
{
    while (!list_is_empty(&loop->timers)) {
        struct timer *timer = container_of(list_first(&loop->timers), struct timer, in_loop);

        if (timer->at > time)
            return;
        loop_set_timer(loop, timer, LOOP_NEVER);
        timer->fire(timer);
    }
}

static void a_process_is_killed_when_its_time_is_over(void **state)
{
    struct loop loop;
    struct spared_processes processes;
    pid_t soon = waiting_child_start();
    pid_t later = waiting_child_start();

    (void)state;
    assert_int_equal(loop_init(&loop, NULL), 0);
    spared_processes_init(&processes, &loop);
    spared_processes_add(&processes, &own, later, pidfd_open_process(later), 2000);
    spared_processes_add(&processes, &own, soon, pidfd_open_process(soon), 1000);
    fire_due(&loop, 999);
    assert_true(spared_processes_has(&processes, soon));
    fire_due(&loop, 1000);
    assert_int_equal(signal_of(soon), SIGKILL);
    assert_false(spared_processes_has(&processes, soon));
    assert_true(spared_processes_has(&processes, later));
    assert_int_equal(waitpid(later, NULL, WNOHANG), 0);
    /* The daemon's end spares no process. */
    spared_processes_finish(&processes);
    assert_int_equal(signal_of(later), SIGKILL);
    assert_true(list_is_empty(&loop.timers));
    loop_finish(&loop);
}

static void after_wait(void *context)
{
    struct loop *loop = context;

    loop->ended = true;
}

static void nothing(void *context)
{
    (void)context;
}

/* The number of a process that has ended may be another one's. */
static void a_process_that_ends_by_itself_is_forgotten(void **state)
{
    struct loop loop;
    struct spared_processes processes;
    pid_t child = waiting_child_start();

    (void)state;
    assert_int_equal(loop_init(&loop, NULL), 0);
    spared_processes_init(&processes, &loop);
    spared_processes_add(&processes, &own, child, pidfd_open_process(child), LOOP_NEVER - 1);
    kill(child, SIGTERM);
    loop_run(&loop, &(struct loop_turn){nothing, after_wait, &loop});
    assert_int_equal(signal_of(child), SIGTERM);
    assert_false(spared_processes_has(&processes, child));
    assert_true(list_is_empty(&loop.timers));
    spared_processes_finish(&processes);
    loop_finish(&loop);
}

/* A process that cannot be remembered must not outlive its lease. */
static void no_memory_kills_the_process_at_once(void **state)
{
    struct loop loop;
    struct spared_processes processes;
    pid_t child = waiting_child_start();
    int descriptor = pidfd_open_process(child);

    (void)state;
    assert_int_equal(loop_init(&loop, NULL), 0);
    spared_processes_init(&processes, &loop);
    failing_allocator_start(1);
    spared_processes_add(&processes, &own, child, descriptor, 1000);
    assert_true(failing_allocator_stop());
    assert_int_equal(signal_of(child), SIGKILL);
    assert_int_equal(close(descriptor), -1);
    assert_false(spared_processes_has(&processes, child));
    loop_finish(&loop);
}

/* It has become a program of root, for example, since it asked. */
static void a_process_of_another_user_is_left(void **state)
{
    const struct signal_right other = {.uid = geteuid() + 1};
    struct loop loop;
    struct spared_processes processes;
    pid_t child = waiting_child_start();

    (void)state;
    assert_int_equal(loop_init(&loop, NULL), 0);
    spared_processes_init(&processes, &loop);
    spared_processes_add(&processes, &other, child, pidfd_open_process(child), 1000);
    fire_due(&loop, 1000);
    assert_false(spared_processes_has(&processes, child));
    spared_processes_add(&processes, &other, child, pidfd_open_process(child), 1000);
    spared_processes_finish(&processes);
    assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
    waiting_child_end(child);
    loop_finish(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_is_killed_when_its_time_is_over),
        cmocka_unit_test(a_process_that_ends_by_itself_is_forgotten),
        cmocka_unit_test(a_process_of_another_user_is_left),
        cmocka_unit_test(no_memory_kills_the_process_at_once),
    };

    own.uid = geteuid();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
