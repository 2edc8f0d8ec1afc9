/* SPDX-License-Identifier: Apache-2.0
 *
 * Readers of a made-up /proc, where the environment of a process is a named pipe: opening it never
 * returns, like that of a process inside execve().
 */
#include "support/unit.h"

#include "proc_reader/proc_reader.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "reader/reader.h"
#include "support/hardware/made_up_processes.h"
#include "support/temporary_directory.h"

static const char pool[] = "/run/test/berth.sock";

enum { FIRST = 400, STUCK = 401, LAST = 402, LEASE = 4711, USER = 1000, OTHER = 1001 };

/* Starts a reader of the working directory, as a child. */
static pid_t start(struct reader *reader)
{
    int file = memfd_create("progress", MFD_CLOEXEC);
    int ends[2];
    pid_t pid;

    assert_true(file >= 0 && ftruncate(file, sizeof(uint64_t)) == 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    pid = fork();
    if (pid == 0) {
        void *progress = mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        struct proc_files files = {
            .directory = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
            .progress = progress,
            .is_old_kernel = true,
            .open_process = made_up_open,
        };

        close(ends[0]);
        _exit(proc_reader_run(ends[1], &files, NULL) == 0 ? 0 : 1);
    }
    assert_true(pid > 0);
    close(ends[1]);
    assert_int_equal(reader_open(reader, ends[0], file, NULL), 0);
    close(file);
    return pid;
}

/* Kills the reader, and checks how it ended. */
static void finish(struct reader *reader, pid_t pid)
{
    int status;

    reader_finish(reader);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void write_environment(int pid, unsigned long lease)
{
    char text[256];

    snprintf(text, sizeof(text), "BERTH_LEASE=%lu\nBERTH_SOCKET=%s\n", lease, pool);
    made_up_environment(pid, text);
}

/* Three processes with marks; the environment of the second one cannot be opened. */
static void make_processes(uid_t uid_of_stuck)
{
    for (int pid = FIRST; pid <= LAST; pid++) {
        made_up_process(pid, pid == STUCK ? uid_of_stuck : USER);
        if (pid != STUCK)
            write_environment(pid, LEASE);
    }
    assert_int_equal(mkfifo("401/environ", 0644), 0);
    made_up_machine(LAST, 1000);
}

static struct reader_request ask(void)
{
    struct reader_request request = {
        .question = READER_LEFTOVERS, .uid = USER, .socket = strdup(pool)};
    struct reader_lease *lease = vector_append(&request.leases);

    assert_true(lease != NULL && request.socket != NULL);
    lease->id = LEASE;
    return request;
}

static struct reader_answer query(struct reader *reader, struct reader_request *request)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct reader_answer answer;

    if (reader_query(reader, request, clock_now() + 20 * DURATION_SECOND, &answer, &error) < 0)
        fail_msg("%s", error.message);
    return answer;
}

static void a_stuck_process_is_known_and_the_reader_can_be_killed(void **state)
{
    struct reader reader;
    struct reader_request request = ask();
    struct reader_answer answer;
    struct reader_touch touch;
    int64_t until = clock_now() + 20 * DURATION_SECOND;
    pid_t pid;
    uint32_t *stalled;

    (void)state;
    make_processes(USER);
    pid = start(&reader);
    assert_int_equal(reader_touch(&reader).pid, 0);
    assert_int_equal(reader_send(&reader, &request, NULL), 0);
    while ((touch = reader_touch(&reader)).pid != STUCK) {
        assert_true(clock_now() < until);
        poll(NULL, 0, 1);
    }
    poll(NULL, 0, 50);
    assert_int_equal(reader_touch(&reader).pid, STUCK);
    assert_int_equal(reader_touch(&reader).count, touch.count);
    assert_int_equal(reader_receive(&reader, &answer, NULL), 0);
    assert_int_equal(reader.pid, pid);
    finish(&reader, pid);

    /* Another one that knows of it answers. */
    pid = start(&reader);
    stalled = vector_append(&request.stalled);
    assert_non_null(stalled);
    *stalled = STUCK;
    answer = query(&reader, &request);
    assert_int_equal(answer.processes.count, 3);
    for (size_t i = 0; i < 3; i++) {
        const struct reader_process *process = &answer.processes.items[i];

        assert_int_equal(process->state, process->pid == STUCK ? READER_STALLED : READER_OURS);
    }
    assert_int_equal(reader_touch(&reader).pid, 0);
    reader_answer_finish(&answer);
    finish(&reader, pid);
    reader_request_finish(&request);
}

static void a_stuck_process_of_another_user_is_not_touched(void **state)
{
    struct reader reader;
    struct reader_request request;
    struct reader_answer answer;
    pid_t pid;

    (void)state;
    make_processes(OTHER);
    pid = start(&reader);
    request = ask();
    answer = query(&reader, &request);
    assert_int_equal(answer.processes.count, 2);
    reader_answer_finish(&answer);
    finish(&reader, pid);
    reader_request_finish(&request);
}

static void write_parent(int pid, int parent)
{
    char path[32];
    char text[64];

    snprintf(path, sizeof(path), "%d/status", pid);
    snprintf(text, sizeof(text), "Name:\tPPid:\\n1\nPPid:\t%d\nUid:\t1 1 1 1\n", parent);
    made_up_write(path, text);
}

/* The descendants of a lease of root's may belong to any user. */
static void of_other_users_roots_leases_read_only_the_parent(void **state)
{
    struct reader reader;
    struct reader_request request;
    struct reader_answer answer;
    bool found_descendant = false;
    pid_t pid;

    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: only root can make files of others\n");
        skip();
    }
    made_up_process(FIRST, 0);
    write_environment(FIRST, LEASE);
    made_up_process(STUCK, OTHER);
    assert_int_equal(mkfifo("401/environ", 0644), 0);
    assert_int_equal(mkfifo("401/stat", 0644), 0);
    write_parent(STUCK, 1);
    made_up_process(LAST, OTHER);
    assert_int_equal(mkfifo("402/environ", 0644), 0);
    assert_int_equal(mkfifo("402/stat", 0644), 0);
    write_parent(LAST, FIRST);
    made_up_machine(LAST, 1000);
    pid = start(&reader);
    request = ask();
    request.uid = 0;
    answer = query(&reader, &request);
    assert_int_equal(answer.processes.count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(answer.processes.items[i].state, READER_OURS);
        found_descendant |= answer.processes.items[i].pid == LAST;
    }
    assert_true(found_descendant);
    reader_answer_finish(&answer);
    finish(&reader, pid);
    reader_request_finish(&request);
}

static void a_reader_ends_with_its_parent(void **state)
{
    struct reader reader;
    struct reader_request request = ask();
    struct reader_answer answer;
    int status;
    pid_t pid;

    (void)state;
    made_up_machine(LAST, 1000);
    pid = start(&reader);
    answer = query(&reader, &request);
    reader_answer_finish(&answer);
    shutdown(reader.descriptor, SHUT_RDWR);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    reader_finish(&reader);
    reader_request_finish(&request);
}

static void a_damaged_request_ends_the_reader(void **state)
{
    struct reader reader;
    int status;
    pid_t pid;

    (void)state;
    made_up_machine(LAST, 1000);
    pid = start(&reader);
    assert_int_equal(send(reader.descriptor, "garbage", 7, MSG_NOSIGNAL), 7);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    reader_finish(&reader);
}

int main(void)
{
#define IN_A_DIRECTORY(test) \
    cmocka_unit_test_setup_teardown(test, temporary_directory_enter, temporary_directory_leave)
    const struct CMUnitTest tests[] = {
        IN_A_DIRECTORY(a_stuck_process_is_known_and_the_reader_can_be_killed),
        IN_A_DIRECTORY(a_stuck_process_of_another_user_is_not_touched),
        IN_A_DIRECTORY(of_other_users_roots_leases_read_only_the_parent),
        IN_A_DIRECTORY(a_reader_ends_with_its_parent),
        IN_A_DIRECTORY(a_damaged_request_ends_the_reader),
    };

    return cmocka_run_group_tests_name("proc_reader", tests, NULL, NULL);
}
