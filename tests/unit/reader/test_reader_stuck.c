/* SPDX-License-Identifier: Apache-2.0
 *
 * The real berth-reader beside processes that are inside execve() for as long as their FUSE server
 * likes. Every test runs with the queries of new kernels and without them.
 */
#include "support/unit.h"

#include "reader/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "support/programs/reader_world.h"
#include "support/temporary_directory.h"

enum { STUCK = 3 };

struct server {
    pid_t pid;
    pid_t stuck[STUCK];
};

static void skip_with(const char *reason)
{
    print_message("skipped: %s\n", reason);
    skip();
}

_Noreturn static void run_server(int output, const char *directory)
{
    char lease[64];
    char socket[128];
    int input[2];

    snprintf(lease, sizeof(lease), "BERTH_LEASE=%d", LEASE);
    snprintf(socket, sizeof(socket), "BERTH_SOCKET=%s", pool_socket());
    /* An input that does not end, because the server has its other end. */
    if (pipe(input) < 0 || dup2(input[0], STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
        setgid(SOMEBODY) < 0 || setuid(SOMEBODY) < 0)
        _exit(1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 1);
    execl(STUCK_PROCESSES, "stuck-processes", "exec", "3", "30", "fuse", directory, lease, socket,
          NULL);
    _exit(127);
}

/* Starts stuck processes of another user, which carry the mark of the test's lease. */
static void start_server(struct server *server)
{
    int ends[2];
    FILE *output;

    if (geteuid() != 0)
        skip_with("only root can start processes of others");
    if (access("/dev/fuse", F_OK) < 0)
        skip_with("no FUSE here");
    assert_int_equal(chmod(".", 0755), 0);
    assert_int_equal(mkdir("mount", 0755), 0);
    assert_int_equal(chown("mount", SOMEBODY, SOMEBODY), 0);
    if (mknod("fuse", S_IFCHR | 0666, makedev(10, 229)) < 0 || chmod("fuse", 0666) < 0)
        skip_with("cannot make a device node");
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    server->pid = fork();
    if (server->pid == 0)
        run_server(ends[1], "mount");
    close(ends[1]);
    output = fdopen(ends[0], "r");
    assert_non_null(output);
    if (fscanf(output, "stuck %d %d %d", &server->stuck[0], &server->stuck[1], &server->stuck[2]) !=
        STUCK) {
        fclose(output);
        assert_int_equal(waitpid(server->pid, NULL, 0), server->pid);
        skip_with("no user namespace or no FUSE for ordinary users");
    }
    fclose(output);
}

static void end_server(const struct server *server)
{
    kill(server->pid, SIGKILL);
    assert_int_equal(waitpid(server->pid, NULL, 0), server->pid);
}

static bool is_stuck(const struct server *server, pid_t pid)
{
    for (size_t i = 0; i < STUCK; i++) {
        if (server->stuck[i] == pid)
            return true;
    }
    return false;
}

/* Runs `test` with a reader in the temporary directory. */
static void with_reader(void (*test)(struct reader_world *, const struct server *), bool is_old)
{
    struct server server = {0};
    void *world;

    start_server(&server);
    reader_world_begin(&world, is_old);
    test(world, &server);
    reader_world_finish(&world);
    end_server(&server);
}

static void check_others(struct reader_world *world, const struct server *server)
{
    (void)server;
    assert_int_equal(count_left(world, SOMEBODY + 1), 0);
    assert_int_equal(count_left(world, 0), 0);
    assert_int_equal(world->stalls, 0);
}

static void their_user(struct reader_world *world, const struct server *server)
{
    struct reader_request request = ask_leftovers(SOMEBODY);
    struct reader_answer answer;
    struct reader_touch touch;
    struct pollfd waiting;

    world->stall_timeout = DURATION_SECOND / 10;
    /* The first one names the process. */
    assert_int_equal(reader_send(&world->reader, &request, NULL), 0);
    assert_false(await_answer(world, &answer, &touch));
    assert_true(is_stuck(server, touch.pid));
    assert_true(world->reader.process >= 0);
    waiting = (struct pollfd){.fd = dup(world->reader.process), .events = POLLIN};
    assert_true(waiting.fd >= 0);
    reader_finish(&world->reader);
    assert_int_equal(poll(&waiting, 1, 20000), 1);
    close(waiting.fd);

    /* Each of the others stalls one more reader; then there is an answer. */
    add_number(&request.stalled, (uint32_t)touch.pid);
    reader_world_restart(world);
    answer = query_reader(world, &request);
    assert_int_equal(world->stalls, STUCK - 1);
    assert_int_equal(answer.processes.count, STUCK);
    for (size_t i = 0; i < STUCK; i++) {
        const struct reader_process *process = find_process(&answer, server->stuck[i]);

        assert_non_null(process);
        assert_int_equal(process->state, READER_STALLED);
        assert_int_equal(process->uid.value, SOMEBODY);
    }
    reader_answer_finish(&answer);
    reader_request_finish(&request);
}

static void others_do_not_notice_stuck_processes(void **state)
{
    (void)state;
    with_reader(check_others, false);
}

static void others_do_not_notice_stuck_processes_on_an_old_kernel(void **state)
{
    (void)state;
    with_reader(check_others, true);
}

static void a_stuck_process_is_named_and_left_alone(void **state)
{
    (void)state;
    with_reader(their_user, false);
}

static void a_stuck_process_is_named_and_left_alone_on_an_old_kernel(void **state)
{
    (void)state;
    with_reader(their_user, true);
}

int main(void)
{
#define IN_A_DIRECTORY(test) \
    cmocka_unit_test_setup_teardown(test, temporary_directory_enter, temporary_directory_leave)
    const struct CMUnitTest tests[] = {
        IN_A_DIRECTORY(others_do_not_notice_stuck_processes),
        IN_A_DIRECTORY(others_do_not_notice_stuck_processes_on_an_old_kernel),
        IN_A_DIRECTORY(a_stuck_process_is_named_and_left_alone),
        IN_A_DIRECTORY(a_stuck_process_is_named_and_left_alone_on_an_old_kernel),
    };

    return cmocka_run_group_tests_name("reader_stuck", tests, NULL, NULL);
}
