/* SPDX-License-Identifier: Apache-2.0
 *
 * The real berth-reader finds real processes that are left of a lease. Every test runs with the
 * queries of new kernels and without them.
 */
#include "support/unit.h"

#include "reader/reader.h"

#include <dirent.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "support/programs/marked_process.h"
#include "support/programs/reader_world.h"

/* ---- Leftovers ---- */

static void nothing_is_left(void **state)
{
    struct reader_request request = ask_leftovers(getuid());
    struct reader_answer answer = query_decided(*state, &request);

    assert_int_equal(answer.processes.count, 0);
    assert_false(answer.partial || answer.exit_code.known);
    reader_answer_finish(&answer);
}

static void a_marked_process_is_found_and_can_be_killed(void **state)
{
    pid_t pid = marked_process_start(&(struct marked_process){LEASE, pool_socket(), NULL, 0});
    struct reader_request request = ask_leftovers(getuid());
    struct reader_answer answer = query_decided(*state, &request);
    const struct reader_process *process = find_process(&answer, pid);
    siginfo_t information;

    assert_int_equal(answer.processes.count, 1);
    assert_non_null(process);
    assert_int_equal(process->state, READER_OURS);
    assert_true(process->uid.known && process->uid.value == getuid());
    assert_int_equal(process->lease, LEASE);
    assert_true(process->descriptor >= 0);
    assert_int_equal(fcntl(process->descriptor, F_GETFD), FD_CLOEXEC);
    assert_int_equal(syscall(SYS_pidfd_send_signal, process->descriptor, SIGKILL, NULL, 0), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &information, WEXITED), 0);
    reader_answer_finish(&answer);
    assert_int_equal(count_left(*state, getuid()), 0);
}

static void other_leases_and_pools_are_others(void **state)
{
    pid_t other = marked_process_start(&(struct marked_process){LEASE + 1, pool_socket(), NULL, 0});
    pid_t elsewhere = marked_process_start(&(struct marked_process){LEASE, "/other", NULL, 0});
    pid_t none = marked_process_start(&(struct marked_process){0, NULL, NULL, 0});

    assert_int_equal(count_left(*state, getuid()), 0);
    marked_process_end(other);
    marked_process_end(elsewhere);
    marked_process_end(none);
}

static void a_process_is_found_after_earlier_looks(void **state)
{
    for (int i = 0; i < 20; i++) {
        pid_t pid;

        assert_int_equal(count_left(*state, getuid()), 0);
        pid = marked_process_start(&(struct marked_process){LEASE, pool_socket(), NULL, 0});
        assert_int_equal(count_left(*state, getuid()), 1);
        marked_process_end(pid);
    }
}

static void descendants_belong_to_their_parents(void **state)
{
    static const char script[] = "env -i setpriv --pdeathsig KILL sh -c "
                                 "'setpriv --pdeathsig KILL sleep 60 & echo; wait' & wait";
    pid_t pid = marked_process_start(&(struct marked_process){LEASE, pool_socket(), script, 0});
    struct reader_request request = ask_leftovers(getuid());
    struct reader_answer answer = query_decided(*state, &request);
    const struct reader_process *process;

    /* The shell, the shell without a mark, and its sleep. */
    assert_int_equal(answer.processes.count, 3);
    assert_non_null(find_process(&answer, pid));
    vector_for_each (process, &answer.processes) {
        assert_int_equal(process->state, READER_OURS);
        assert_true(process->pid == (uint32_t)pid || process->lease == 0);
        if (process->pid != (uint32_t)pid)
            syscall(SYS_pidfd_send_signal, process->descriptor, SIGKILL, NULL, 0);
    }
    reader_answer_finish(&answer);
    marked_process_end(pid);
}

static void an_adopted_process_needs_no_mark(void **state)
{
    static const char script[] = "setpriv --pdeathsig KILL sleep 60 & echo; wait";
    pid_t pid = marked_process_start(&(struct marked_process){0, NULL, script, 0});
    struct reader_request request = ask_leftovers(getuid());
    struct reader_answer answer;
    const struct reader_process *process;

    request.root_pid = (uint32_t)pid;
    answer = query_decided(*state, &request);
    assert_int_equal(answer.processes.count, 2);
    assert_non_null(find_process(&answer, pid));
    vector_for_each (process, &answer.processes) {
        assert_int_equal(process->state, READER_OURS);
        if (process->pid != (uint32_t)pid)
            syscall(SYS_pidfd_send_signal, process->descriptor, SIGKILL, NULL, 0);
    }
    reader_answer_finish(&answer);
    marked_process_end(pid);
}

static void spared_and_older_processes_are_left_out(void **state)
{
    pid_t pid = marked_process_start(&(struct marked_process){LEASE, pool_socket(), NULL, 0});
    struct reader_request request = ask_leftovers(getuid());
    struct reader_answer answer;

    add_number(&request.spared, (uint32_t)pid);
    answer = query_decided(*state, &request);
    assert_int_equal(answer.processes.count, 0);
    reader_answer_finish(&answer);
    /* The answer showed the reader that the process is there before this moment. */
    request = ask_leftovers(getuid());
    request.since = (uint64_t)clock_read(CLOCK_BOOTTIME);
    answer = query_decided(*state, &request);
    assert_int_equal(answer.processes.count, 0);
    reader_answer_finish(&answer);
    assert_int_equal(count_left(*state, getuid()), 1);
    marked_process_end(pid);
}

static void a_stalled_process_is_named_and_not_touched(void **state)
{
    pid_t pid = marked_process_start(&(struct marked_process){LEASE, pool_socket(), NULL, 0});
    struct reader_request request = ask_leftovers(getuid());
    struct reader_answer answer;
    const struct reader_process *process;

    add_number(&request.stalled, (uint32_t)pid);
    answer = query_decided(*state, &request);
    process = find_process(&answer, pid);
    assert_non_null(process);
    assert_int_equal(process->state, READER_STALLED);
    assert_true(process->descriptor >= 0 && process->lease == 0);
    reader_answer_finish(&answer);
    marked_process_end(pid);
}

static void a_mark_of_another_user_does_not_count(void **state)
{
    pid_t pid;

    skip_unless_root();
    pid = marked_process_start(&(struct marked_process){LEASE, pool_socket(), NULL, SOMEBODY});
    assert_int_equal(count_left(*state, SOMEBODY + 1), 0);
    assert_int_equal(count_left(*state, 0), 0);
    assert_int_equal(count_left(*state, SOMEBODY), 1);
    marked_process_end(pid);
    /* Root's processes may carry any mark, too. */
    pid = marked_process_start(&(struct marked_process){LEASE, pool_socket(), NULL, 0});
    assert_int_equal(count_left(*state, SOMEBODY), 0);
    assert_int_equal(count_left(*state, 0), 1);
    marked_process_end(pid);
}

/* Counts the processes of root that are reported beside an ordinary user's lease. */
static size_t count_foreign(struct reader_world *world, pid_t session)
{
    struct reader_request request = ask_leftovers(SOMEBODY);
    struct reader_answer answer;
    const struct reader_process *process;
    size_t count;

    request.session = (uint32_t)session;
    answer = query_decided(world, &request);
    count = answer.processes.count;
    vector_for_each (process, &answer.processes) {
        assert_int_equal(process->state, READER_FOREIGN);
        assert_true(process->descriptor >= 0 && process->lease == LEASE);
    }
    reader_answer_finish(&answer);
    return count;
}

static void roots_processes_are_named_in_the_holders_session(void **state)
{
    pid_t marked;
    pid_t other;

    skip_unless_root();
    marked = marked_process_start(&(struct marked_process){LEASE, pool_socket(), NULL, 0});
    other = marked_process_start(&(struct marked_process){LEASE + 1, pool_socket(), NULL, 0});
    assert_int_equal(count_foreign(*state, getsid(0)), 1);
    assert_int_equal(count_foreign(*state, 0), 0);
    assert_int_equal(count_foreign(*state, getsid(0) + 1), 0);
    /* Root's own lease ends it. */
    assert_int_equal(count_left(*state, 0), 1);
    marked_process_end(marked);
    marked_process_end(other);
}

static void a_subordinate_uid_counts_as_its_user(void **state)
{
    struct reader_request request;
    struct reader_answer answer;
    struct reader_range *range;
    pid_t inside;
    pid_t behind;

    skip_unless_root();
    inside = marked_process_start(
        &(struct marked_process){LEASE, pool_socket(), NULL, SUBORDINATE + 65535});
    behind = marked_process_start(
        &(struct marked_process){LEASE, pool_socket(), NULL, SUBORDINATE + 65536});
    request = ask_leftovers(SOMEBODY);
    range = vector_append(&request.ranges);
    assert_non_null(range);
    *range = (struct reader_range){SUBORDINATE, 65536};
    answer = query_decided(*state, &request);
    assert_int_equal(answer.processes.count, 1);
    assert_non_null(find_process(&answer, inside));
    reader_answer_finish(&answer);
    marked_process_end(inside);
    marked_process_end(behind);
}

static void other_users_may_descend_from_roots_processes(void **state)
{
    static const char script[] =
        "setpriv --reuid 71001 --clear-groups --pdeathsig KILL sleep 60 & "
        "until [ \"$(stat -c %u /proc/$!)\" = 71001 ]; do :; done; echo; wait";
    struct reader_request request;
    struct reader_answer answer;
    const struct reader_process *process;
    pid_t pid;

    skip_unless_root();
    pid = marked_process_start(&(struct marked_process){LEASE, pool_socket(), script, 0});
    request = ask_leftovers(0);
    answer = query_decided(*state, &request);
    assert_int_equal(answer.processes.count, 2);
    vector_for_each (process, &answer.processes) {
        if (process->pid != (uint32_t)pid)
            assert_int_equal(process->uid.value, SOMEBODY);
        if (process->pid != (uint32_t)pid)
            syscall(SYS_pidfd_send_signal, process->descriptor, SIGKILL, NULL, 0);
    }
    reader_answer_finish(&answer);
    marked_process_end(pid);
}

static void many_leftovers_come_in_pages(void **state)
{
    enum { MANY = 2 * READER_PAGE_MAX + 7 };
    static const char script[] = "i=0; while [ $i -lt 406 ]; do setpriv --pdeathsig KILL sleep 60 "
                                 "& i=$((i+1)); done; echo; wait";
    pid_t pid = marked_process_start(&(struct marked_process){LEASE, pool_socket(), script, 0});
    struct reader_request request = ask_leftovers(getuid());
    struct reader_answer answer = query_decided(*state, &request);
    const struct reader_process *process;

    assert_int_equal(answer.processes.count, MANY);
    assert_false(answer.partial);
    vector_for_each (process, &answer.processes) {
        assert_true(process->descriptor >= 0);
        if (process->pid != (uint32_t)pid)
            syscall(SYS_pidfd_send_signal, process->descriptor, SIGKILL, NULL, 0);
    }
    reader_answer_finish(&answer);
    marked_process_end(pid);
}

/* ---- The program ---- */

static void it_is_killed_with_the_reader(void **state)
{
    struct reader_world *world = *state;
    struct pollfd waiting;

    nothing_is_left(state);
    assert_true(world->reader.pid > 0);
    /* It is not a child of this process. */
    assert_int_equal(waitpid(world->reader.pid, NULL, WNOHANG | __WALL), -1);
    waiting = (struct pollfd){.fd = dup(world->reader.process), .events = POLLIN};
    assert_true(waiting.fd >= 0);
    reader_finish(&world->reader);
    assert_int_equal(poll(&waiting, 1, 20000), 1);
    close(waiting.fd);
}

static void a_lost_program_is_reported(void **state)
{
    struct reader_world *world = *state;
    struct reader_request request = ask_leftovers(getuid());
    struct berth_error error = BERTH_ERROR_INIT;
    struct reader_answer answer;
    struct pollfd waiting;

    nothing_is_left(state);
    assert_int_equal(syscall(SYS_pidfd_send_signal, world->reader.process, SIGKILL, NULL, 0), 0);
    waiting = (struct pollfd){.fd = world->reader.process, .events = POLLIN};
    assert_int_equal(poll(&waiting, 1, 20000), 1);
    assert_int_equal(reader_query(&world->reader, &request, in_time(), &answer, &error),
                     BERTH_ERROR_IO);
    assert_string_equal(error.message, "cannot read /proc: berth-reader has ended");
    reader_request_finish(&request);
}

static void a_program_that_is_missing_is_reported(void **state)
{
    struct reader reader = READER_INIT;
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    assert_int_equal(setenv("BERTH_READER", "/nowhere/reader", 1), 0);
    assert_int_equal(reader_start(&reader, &error), BERTH_ERROR_NOT_FOUND);
    assert_memory_equal(error.message, "cannot start /nowhere/reader", 28);
    reader_finish(&reader);
}

static size_t count_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    size_t count = 0;

    assert_non_null(directory);
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count;
}

static void without_free_descriptors_an_answer_is_partial(void **state)
{
    struct reader_world *world = *state;
    pid_t pid = marked_process_start(&(struct marked_process){LEASE, pool_socket(), NULL, 0});
    struct reader_request request;
    struct reader_answer answer;
    struct rlimit before;
    struct rlimit few;
    size_t count;

    assert_int_equal(count_left(world, getuid()), 1);
    count = count_descriptors();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){0, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    request = ask_leftovers(getuid());
    answer = query_reader(world, &request);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(answer.partial);
    assert_int_equal(answer.processes.count, 1);
    assert_int_equal(answer.processes.items[0].descriptor, -1);
    reader_answer_finish(&answer);
    assert_int_equal(count_descriptors(), count);
    reader_request_finish(&request);
    marked_process_end(pid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BOTH_KERNELS(nothing_is_left),
        WITH_BOTH_KERNELS(a_marked_process_is_found_and_can_be_killed),
        WITH_BOTH_KERNELS(other_leases_and_pools_are_others),
        WITH_BOTH_KERNELS(a_process_is_found_after_earlier_looks),
        WITH_BOTH_KERNELS(descendants_belong_to_their_parents),
        WITH_BOTH_KERNELS(an_adopted_process_needs_no_mark),
        WITH_BOTH_KERNELS(spared_and_older_processes_are_left_out),
        WITH_BOTH_KERNELS(a_stalled_process_is_named_and_not_touched),
        WITH_BOTH_KERNELS(a_mark_of_another_user_does_not_count),
        WITH_BOTH_KERNELS(roots_processes_are_named_in_the_holders_session),
        WITH_BOTH_KERNELS(a_subordinate_uid_counts_as_its_user),
        WITH_BOTH_KERNELS(other_users_may_descend_from_roots_processes),
        WITH_BOTH_KERNELS(many_leftovers_come_in_pages),
        cmocka_unit_test_setup_teardown(it_is_killed_with_the_reader, reader_world_start,
                                        reader_world_finish),
        cmocka_unit_test_setup_teardown(a_lost_program_is_reported, reader_world_start,
                                        reader_world_finish),
        cmocka_unit_test(a_program_that_is_missing_is_reported),
        cmocka_unit_test_setup_teardown(without_free_descriptors_an_answer_is_partial,
                                        reader_world_start, reader_world_finish),
    };

    return cmocka_run_group_tests_name("reader", tests, NULL, NULL);
}
