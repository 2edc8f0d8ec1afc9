/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/processes/foreign_processes.h"

#include <fcntl.h>
#include <stdlib.h>

#include "daemon/core/pidfd.h"
#include "support/daemons/waiting_child.h"

enum { SOMEBODY = 1000, ANOTHER = 1001, LEASE = 7 };

struct world {
    struct loop loop;
    struct foreign_processes processes;
};

static int begin(void **state)
{
    struct world *world = calloc(1, sizeof(*world));

    assert_non_null(world);
    assert_int_equal(loop_init(&world->loop, NULL), 0);
    foreign_processes_init(&world->processes, &world->loop);
    *state = world;
    return 0;
}

static int end(void **state)
{
    struct world *world = *state;

    foreign_processes_finish(&world->processes);
    loop_finish(&world->loop);
    free(world);
    return 0;
}

/* Adds a process. Its number need not be that of the pidfd here. */
static int add(struct world *world, pid_t pid, pid_t child, uint32_t uid)
{
    int descriptor = pidfd_open_process(child);

    assert_true(descriptor >= 0);
    foreign_processes_add(&world->processes,
                          &(struct foreign_process){.pid = pid, .lease = LEASE, .uid = uid},
                          descriptor);
    return descriptor;
}

static void note_pid(void *context, const struct foreign_process *process)
{
    assert_int_equal(process->lease, LEASE);
    *(pid_t *)context = process->pid;
}

static pid_t last_pid(const struct world *world)
{
    pid_t pid = 0;

    foreign_processes_each(&world->processes, note_pid, &pid);
    return pid;
}

static void end_loop(void *context)
{
    ((struct world *)context)->loop.ended = true;
}

static void do_nothing(void *context)
{
    (void)context;
}

static void a_process_is_known_until_it_ends(void **state)
{
    struct world *world = *state;
    pid_t child = waiting_child_start();

    assert_int_equal(last_pid(world), 0);
    add(world, child, child, SOMEBODY);
    assert_int_equal(last_pid(world), child);
    waiting_child_end(child);
    loop_run(&world->loop, &(struct loop_turn){do_nothing, end_loop, world});
    assert_int_equal(last_pid(world), 0);
    assert_int_equal(world->processes.count, 0);
}

static void a_process_is_known_once(void **state)
{
    struct world *world = *state;
    pid_t child = waiting_child_start();
    int second;

    add(world, child, child, SOMEBODY);
    second = add(world, child, child, SOMEBODY);
    assert_int_equal(world->processes.count, 1);
    assert_int_equal(fcntl(second, F_GETFD), -1);
    waiting_child_end(child);
}

static void the_number_is_bounded(void **state)
{
    struct world *world = *state;
    pid_t child = waiting_child_start();

    for (pid_t pid = 1; pid <= 2 * FOREIGN_PROCESSES_OF_USER_MAX; pid++)
        add(world, pid, child, SOMEBODY);
    assert_int_equal(last_pid(world), FOREIGN_PROCESSES_OF_USER_MAX);
    /* One user's processes leave room for another's. */
    add(world, 100, child, ANOTHER);
    assert_int_equal(last_pid(world), 100);
    for (pid_t pid = 200; pid < 200 + 2 * FOREIGN_PROCESSES_MAX; pid++)
        add(world, pid, child, (uint32_t)pid);
    assert_int_equal(world->processes.count, FOREIGN_PROCESSES_MAX);
    waiting_child_end(child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_process_is_known_until_it_ends, begin, end),
        cmocka_unit_test_setup_teardown(a_process_is_known_once, begin, end),
        cmocka_unit_test_setup_teardown(the_number_is_bounded, begin, end),
    };

    return cmocka_run_group_tests_name("foreign_processes", tests, NULL, NULL);
}
