/* SPDX-License-Identifier: Apache-2.0
 *
 * The real berth-reader describes real processes. Every test runs with the queries of new kernels
 * and without them.
 */
#include "support/unit.h"

#include "reader/reader.h"

#include <signal.h>
#include <sys/wait.h>

#include "support/programs/marked_process.h"
#include "support/programs/reader_world.h"

/* ---- Exit codes ---- */

static struct reader_answer describe(struct reader_world *world, pid_t pid, bool identity_only)
{
    struct reader_request request = {.question = READER_DESCRIBE, .identity_only = identity_only};
    struct reader_answer answer;

    add_number(&request.pids, (uint32_t)pid);
    answer = query_reader(world, &request);
    reader_request_finish(&request);
    assert_int_equal(answer.processes.count, 1);
    assert_int_equal(answer.processes.items[0].pid, pid);
    return answer;
}

static void check_exit_code(struct reader_world *world, int code, int signal)
{
    struct reader_request request = ask_leftovers(getuid());
    struct reader_answer answer;
    siginfo_t information;
    int ends[2];
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        char byte;

        close(ends[1]);
        if (read(ends[0], &byte, 1) == 0 && signal != 0)
            raise(signal);
        _exit(code);
    }
    answer = describe(world, pid, true);
    request.holder_pid = (uint32_t)pid;
    request.holder_started = answer.processes.items[0].started;
    request.wants_exit_code = true;
    assert_true(request.holder_started > 0);
    reader_answer_finish(&answer);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(waitid(P_PID, (id_t)pid, &information, WEXITED | WNOWAIT), 0);
    answer = query_reader(world, &request);
    assert_true(answer.exit_code.known);
    assert_int_equal(answer.exit_code.value, signal != 0 ? 128 + signal : code);
    reader_answer_finish(&answer);
    /* Another process with this number has not ended with this code. */
    request.holder_started++;
    answer = query_reader(world, &request);
    assert_false(answer.exit_code.known);
    reader_answer_finish(&answer);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    reader_request_finish(&request);
}

static void the_exit_code_of_a_zombie_is_known(void **state)
{
    check_exit_code(*state, 7, 0);
    check_exit_code(*state, 0, 0);
    check_exit_code(*state, 0, SIGKILL);
}

/* ---- Descriptions ---- */

static void a_process_is_described(void **state)
{
    struct reader_answer answer = describe(*state, getpid(), false);
    const struct reader_process *process = answer.processes.items;
    gid_t groups[256];
    int count = getgroups(256, groups);

    assert_int_equal(process->state, READER_FOUND);
    assert_true(process->descriptor >= 0);
    assert_true(process->uid.known && process->uid.value == getuid());
    assert_true(process->gid.known && process->gid.value == getgid());
    assert_int_equal(process->groups.count, count);
    for (int i = 0; i < count; i++)
        assert_int_equal(process->groups.items[i], groups[i]);
    assert_int_equal(process->parent, getppid());
    assert_true(process->ancestors.count >= 1);
    assert_int_equal(process->ancestors.items[0], getppid());
    assert_false(process->owner.known);
    assert_true(process->started > 0 && process->started <= (uint64_t)clock_read(CLOCK_BOOTTIME));
    reader_answer_finish(&answer);
}

static void a_mark_is_described(void **state)
{
    pid_t pid = marked_process_start(&(struct marked_process){LEASE, pool_socket(), NULL, 0});
    struct reader_answer answer = describe(*state, pid, false);

    while (answer.processes.items[0].lease == 0) { /* until it has its environment */
        reader_answer_finish(&answer);
        poll(NULL, 0, 1);
        answer = describe(*state, pid, false);
    }
    assert_int_equal(answer.processes.items[0].lease, LEASE);
    assert_string_equal(answer.processes.items[0].socket, pool_socket());
    assert_string_equal(answer.processes.items[0].devices, "nvidia0,nvidia1");
    reader_answer_finish(&answer);
    answer = describe(*state, pid, true);
    assert_int_equal(answer.processes.items[0].lease, 0);
    assert_true(answer.processes.items[0].started > 0 && !answer.processes.items[0].gid.known);
    reader_answer_finish(&answer);
    marked_process_end(pid);
    answer = describe(*state, pid, false);
    assert_int_equal(answer.processes.items[0].state, READER_GONE);
    assert_int_equal(answer.processes.items[0].descriptor, -1);
    reader_answer_finish(&answer);
}

static void marked_processes_are_listed(void **state)
{
    pid_t first = marked_process_start(&(struct marked_process){LEASE, pool_socket(), NULL, 0});
    pid_t second =
        marked_process_start(&(struct marked_process){LEASE + 1, pool_socket(), NULL, 0});
    pid_t other = marked_process_start(&(struct marked_process){LEASE, "/other", NULL, 0});
    struct reader_request request = {.question = READER_MARKED, .socket = strdup(pool_socket())};
    struct reader_answer answer;

    assert_non_null(request.socket);
    /* Wait until each of them has its environment. */
    while ((answer = query_reader(*state, &request)).processes.count < 2) {
        reader_answer_finish(&answer);
        poll(NULL, 0, 1);
    }
    assert_int_equal(answer.processes.count, 2);
    assert_true(find_process(&answer, first) != NULL && find_process(&answer, second) != NULL);
    assert_int_equal(find_process(&answer, second)->lease, LEASE + 1);
    assert_string_equal(find_process(&answer, first)->devices, "nvidia0,nvidia1");
    assert_int_equal(find_process(&answer, first)->uid.value, getuid());
    reader_answer_finish(&answer);
    reader_request_finish(&request);
    marked_process_end(first);
    marked_process_end(second);
    marked_process_end(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BOTH_KERNELS(the_exit_code_of_a_zombie_is_known),
        WITH_BOTH_KERNELS(a_process_is_described),
        WITH_BOTH_KERNELS(a_mark_is_described),
        WITH_BOTH_KERNELS(marked_processes_are_listed),
    };

    return cmocka_run_group_tests_name("reader_describe", tests, NULL, NULL);
}
