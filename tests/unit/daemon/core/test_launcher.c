/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/core/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/string_list.h"
#include "base/text/text.h"

/* Writes what the function was given to its last descriptor. */
static void write_words(const struct launcher_work *work)
{
    struct string_list words = {0};
    struct text said = {0};
    char *const *word;
    int number = launcher_read_words(work, &words);

    text_append_format(&said, "%s %s %d %zu", (const char *)work->context,
                       getppid() == work->daemon ? "child" : "other", number, words.count);
    vector_for_each (word, &words)
        text_append_format(&said, " %s", *word);
    if (write(work->descriptors[work->descriptor_count - 1], said.bytes, said.length) < 0)
        _exit(1);
    string_list_finish(&words);
    text_finish(&said);
}

static void run_and_end(const struct launcher_work *work)
{
    write_words(work);
    _exit(7);
}

/* Runs in the launcher itself. */
static void write_pid(const struct launcher_work *work)
{
    char pid[32];
    int length = snprintf(pid, sizeof(pid), "%d", (int)getpid());

    if (write(work->descriptors[0], pid, (size_t)length) < 0)
        _exit(1);
}

static void run_for_long(const struct launcher_work *work)
{
    (void)work;
    for (;;)
        pause();
}

static const struct launcher_entry entries[LAUNCHER_PROGRAMS] = {
    [LAUNCHER_READER] = {.start = write_pid},
    [LAUNCHER_PROBE] = {.run = run_for_long},
    [LAUNCHER_MPS_CONTROL] = {.run = run_and_end, .context = "control"},
};

static int fail_to_prepare(void *context)
{
    (void)context;
    return EPERM;
}

static int prepare(void *context)
{
    return context == NULL || kill(getppid(), 0) == 0 ? 0 : errno;
}

/* A launcher and a pipe. */
struct stage {
    struct launcher launcher;
    int ends[2];
};

static int begin(void **state, bool is_separate)
{
    static struct stage stage;

    launcher_init(&stage.launcher, entries);
    assert_int_equal(pipe2(stage.ends, O_CLOEXEC), 0);
    if (is_separate)
        assert_int_equal(launcher_begin(&stage.launcher, prepare, NULL, NULL), 0);
    *state = &stage;
    return 0;
}

static int begin_separate(void **state)
{
    return begin(state, true);
}

static int begin_here(void **state)
{
    return begin(state, false);
}

static int end(void **state)
{
    struct stage *stage = *state;

    launcher_finish(&stage->launcher);
    if (stage->launcher.pid > 0)
        assert_int_equal(waitpid(stage->launcher.pid, NULL, 0), stage->launcher.pid);
    close(stage->ends[0]);
    close(stage->ends[1]);
    return 0;
}

static void assert_said(const struct stage *stage, const char *wanted)
{
    char said[256];
    struct pollfd poller = {.fd = stage->ends[0], .events = POLLIN};
    ssize_t length;

    assert_int_equal(poll(&poller, 1, 30000), 1);
    length = read(stage->ends[0], said, sizeof(said) - 1);
    assert_true(length > 0);
    said[length] = '\0';
    assert_string_equal(said, wanted);
}

/* Waits for the child, which must be one of this process. Returns its status. */
static int reap(pid_t pid, int process)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(process);
    return status;
}

static void fork_words(struct stage *stage)
{
    struct text bytes = {0};
    pid_t pid;
    int process;
    int status;

    launcher_append_word(&bytes, "a word");
    launcher_append_number(&bytes, 4711);
    launcher_append_word(&bytes, "");
    assert_int_equal(launcher_fork(&stage->launcher, LAUNCHER_MPS_CONTROL, &bytes, &stage->ends[1],
                                   1, &pid, &process),
                     0);
    text_finish(&bytes);
    assert_said(stage, "control child 0 3 a word 4711 ");
    status = reap(pid, process);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

/* The child is a child of the daemon, which gets its exit code. */
static void it_runs_functions_in_children(void **state)
{
    struct stage *stage = *state;

    assert_true(launcher_is_separate(&stage->launcher));
    fork_words(stage);
    fork_words(stage);
    assert_false(launcher_has_ended(&stage->launcher));
}

static void without_a_process_it_forks_here(void **state)
{
    struct stage *stage = *state;

    assert_false(launcher_is_separate(&stage->launcher));
    fork_words(stage);
}

static void it_starts_programs_itself(void **state)
{
    struct stage *stage = *state;
    char pid[32];

    snprintf(pid, sizeof(pid), "%d", (int)stage->launcher.pid);
    assert_int_equal(launcher_start(&stage->launcher, LAUNCHER_READER, &stage->ends[1], 1), 0);
    assert_said(stage, pid);
}

/* Only what the table has: no entry, and no entry of the other kind. */
static void it_refuses_other_orders(void **state)
{
    struct stage *stage = *state;
    struct text bytes = {0};
    pid_t pid;
    int process;

    text_append(&bytes, "x");
    assert_int_equal(
        launcher_fork(&stage->launcher, LAUNCHER_MPS_QUERY, &bytes, NULL, 0, &pid, &process),
        EINVAL);
    assert_int_equal(
        launcher_fork(&stage->launcher, LAUNCHER_READER, &bytes, NULL, 0, &pid, &process), EINVAL);
    assert_int_equal(
        launcher_fork(&stage->launcher, LAUNCHER_PROGRAMS, &bytes, NULL, 0, &pid, &process),
        EINVAL);
    text_append_repeated(&bytes, 'x', LAUNCHER_BYTES_MAX);
    assert_int_equal(
        launcher_fork(&stage->launcher, LAUNCHER_MPS_CONTROL, &bytes, NULL, 0, &pid, &process),
        E2BIG);
    text_finish(&bytes);
    assert_false(launcher_has_ended(&stage->launcher));
}

/* Packets that are no orders, as an attacker in the daemon may send, do not end the launcher. */
static void it_ignores_broken_messages(void **state)
{
    struct stage *stage = *state;

    assert_int_equal(send(stage->launcher.socket, "xyz", 3, 0), 3);
    assert_int_equal(send(stage->launcher.socket, "", 1, 0), 1);
    fork_words(stage);
}

static void words_without_an_end_are_refused(void **state)
{
    struct launcher_work work = {.bytes = "one\0two", .length = 7};
    struct string_list words = {0};

    (void)state;
    assert_int_equal(launcher_read_words(&work, &words), EINVAL);
    work.length = 8;
    assert_int_equal(launcher_read_words(&work, &words), 0);
    assert_int_equal(words.count, 2);
    string_list_finish(&words);
}

static void it_ends_with_its_connection(void **state)
{
    struct stage *stage = *state;
    struct pollfd poller = {.fd = stage->launcher.socket, .events = POLLIN};
    struct text bytes = {0};
    pid_t pid;
    int process;

    kill(stage->launcher.pid, SIGTERM); /* of the daemon's terminal */
    fork_words(stage);
    kill(stage->launcher.pid, SIGKILL);
    assert_int_equal(poll(&poller, 1, 30000), 1);
    assert_true(launcher_has_ended(&stage->launcher));
    launcher_append_word(&bytes, "late");
    assert_int_equal(
        launcher_fork(&stage->launcher, LAUNCHER_MPS_CONTROL, &bytes, NULL, 0, &pid, &process),
        EPIPE);
    text_finish(&bytes);
    assert_int_equal(launcher_start(&stage->launcher, LAUNCHER_READER, &stage->ends[1], 1), EPIPE);
}

/* Orders a child that never ends by itself. Returns the launcher's error. */
static int fork_for_long(struct stage *stage)
{
    struct text bytes = {0};
    pid_t pid;
    int process;
    int number;

    launcher_append_word(&bytes, "x");
    number =
        launcher_fork(&stage->launcher, LAUNCHER_PROBE, &bytes, &stage->ends[1], 1, &pid, &process);
    text_finish(&bytes);
    return number;
}

/* Waits until no child has the pipe any more. */
static void await_end_of_child(struct stage *stage)
{
    struct pollfd poller = {.fd = stage->ends[0], .events = POLLIN};

    close(stage->ends[1]);
    assert_int_equal(poll(&poller, 1, 30000), 1);
    assert_true((poller.revents & POLLHUP) != 0);
    stage->ends[1] = dup(stage->ends[0]); /* for end() */
}

/* A launcher that is stopped delays the daemon for a bounded time. Its late child is ended. */
static void a_stopped_launcher_is_not_waited_for(void **state)
{
    struct stage *stage = *state;
    struct pollfd poller = {.fd = stage->launcher.socket, .events = POLLIN};
    int status;

    kill(stage->launcher.pid, SIGSTOP);
    assert_int_equal(waitpid(stage->launcher.pid, &status, WUNTRACED), stage->launcher.pid);
    assert_int_equal(fork_for_long(stage), ETIMEDOUT);
    kill(stage->launcher.pid, SIGCONT);
    assert_int_equal(poll(&poller, 1, 30000), 1);
    assert_false(launcher_has_ended(&stage->launcher));
    fork_words(stage);
    await_end_of_child(stage);
}

/* If the daemon has no free descriptor for the child, the child is ended. */
static void a_child_without_a_pidfd_is_ended(void **state)
{
    struct stage *stage = *state;
    struct rlimit before;
    int lowest = dup(0);

    assert_true(lowest >= 0);
    close(lowest);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){(rlim_t)lowest, before.rlim_max}),
                     0);
    assert_int_equal(fork_for_long(stage), EMFILE);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    await_end_of_child(stage);
}

static void a_launcher_that_cannot_prepare_is_reported(void **state)
{
    struct launcher launcher;
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    launcher_init(&launcher, entries);
    assert_int_equal(launcher_begin(&launcher, fail_to_prepare, NULL, &error),
                     BERTH_ERROR_PERMISSION);
    assert_non_null(strstr(error.message, "cannot start berth-launcher"));
    assert_false(launcher_is_separate(&launcher));
    assert_int_equal(waitpid(launcher.pid, NULL, 0), launcher.pid);
}

#define SEPARATE(test) cmocka_unit_test_setup_teardown(test, begin_separate, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEPARATE(it_runs_functions_in_children),
        cmocka_unit_test_setup_teardown(without_a_process_it_forks_here, begin_here, end),
        SEPARATE(it_starts_programs_itself),
        SEPARATE(it_refuses_other_orders),
        SEPARATE(it_ignores_broken_messages),
        cmocka_unit_test(words_without_an_end_are_refused),
        SEPARATE(it_ends_with_its_connection),
        SEPARATE(a_stopped_launcher_is_not_waited_for),
        SEPARATE(a_child_without_a_pidfd_is_ended),
        cmocka_unit_test(a_launcher_that_cannot_prepare_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
