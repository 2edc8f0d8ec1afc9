/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/system/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "support/assert_error.h"
#include "support/failing_allocator.h"
#include "support/temporary_directory.h"

/* The name of each test's file. The working directory is a temporary one, so that messages contain
 * the same path everywhere. */
static const char path[] = "machine.yaml";

enum { LIMIT = 1024 * 1024, LARGE = 100000 };

static void write_file(const void *bytes, size_t length)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, bytes, length), length);
    assert_int_equal(close(descriptor), 0);
}

/* Reads the file and compares it. */
static void check_content(const void *bytes, size_t length)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct text content = {0};

    text_append(&content, "what was there before");
    assert_int_equal(file_read(path, LIMIT, &content, &error), 0);
    assert_string_equal(error.message, "");
    assert_int_equal(content.length, length);
    assert_memory_equal(text_string(&content), bytes, length);
    assert_int_equal(text_string(&content)[length], '\0');
    text_finish(&content);
}

/* Checks that reading `name` fails with this error and leaves the text unchanged. */
static void check_failure(const char *name, size_t limit, int code, const char *message)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct text content = {0};

    text_append(&content, "before");
    assert_fails(file_read(name, limit, &content, &error), code, &error, message);
    assert_int_equal(file_read(name, limit, &content, NULL), code);
    assert_string_equal(text_string(&content), "before");
    assert_false(text_failed(&content));
    text_finish(&content);
}

/* Returns bytes whose values change with the position; the caller frees them. */
static char *make_bytes(size_t length)
{
    char *bytes = malloc(length);

    assert_non_null(bytes);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (char)(i % 251);
    return bytes;
}

static void a_regular_file_is_read(void **state)
{
    (void)state;
    write_file("devices: []\n", 12);
    check_content("devices: []\n", 12);
}

static void an_empty_file_is_empty(void **state)
{
    (void)state;
    write_file("", 0);
    check_content("", 0);
}

static void a_large_file_with_zero_bytes_is_read(void **state)
{
    char *bytes = make_bytes(LARGE);

    (void)state;
    write_file(bytes, LARGE);
    check_content(bytes, LARGE);
    free(bytes);
}

static void the_limit_is_exact(void **state)
{
    struct text content = {0};
    char *bytes = make_bytes(LARGE);

    (void)state;
    write_file(bytes, LARGE);
    free(bytes);
    assert_int_equal(file_read(path, LARGE, &content, NULL), 0);
    assert_int_equal(content.length, LARGE);
    assert_int_equal(file_read(path, SIZE_MAX, &content, NULL), 0);
    assert_int_equal(content.length, LARGE);
    text_finish(&content);
    check_failure(path, LARGE - 1, BERTH_ERROR_LIMIT,
                  "cannot read machine.yaml: larger than 97.6 KiB");
    check_failure(path, 64 * 1024, BERTH_ERROR_LIMIT,
                  "cannot read machine.yaml: larger than 64 KiB");
    check_failure(path, 1, BERTH_ERROR_LIMIT, "cannot read machine.yaml: larger than 1 B");
    check_failure(path, 0, BERTH_ERROR_LIMIT, "cannot read machine.yaml: larger than 0 B");
    write_file("", 0);
    assert_int_equal(file_read(path, 0, &content, NULL), 0);
    text_finish(&content);
}

static void an_endless_file_ends_at_the_limit(void **state)
{
    (void)state;
    check_failure("/dev/zero", LIMIT, BERTH_ERROR_LIMIT,
                  "cannot read /dev/zero: larger than 1 MiB");
}

static void what_is_open_is_read_from_where_it_stands(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct text content = {0};
    int descriptor;

    (void)state;
    write_file("abcdef", 6);
    descriptor = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(lseek(descriptor, 2, SEEK_SET), 2);
    assert_int_equal(file_read_open(descriptor, "the name", LIMIT, &content, &error), 0);
    assert_string_equal(text_string(&content), "cdef");
    assert_int_equal(lseek(descriptor, 0, SEEK_SET), 0);
    assert_fails(file_read_open(descriptor, "the name", 5, &content, &error), BERTH_ERROR_LIMIT,
                 &error, "cannot read the name: larger than 5 B");
    assert_string_equal(text_string(&content), "cdef");
    assert_int_equal(close(descriptor), 0);
    assert_fails(file_read_open(descriptor, "the name", 5, &content, &error), BERTH_ERROR_IO,
                 &error, "cannot read the name: Bad file descriptor");
    text_finish(&content);
}

static void a_missing_file_is_not_found(void **state)
{
    (void)state;
    check_failure(path, LIMIT, BERTH_ERROR_NOT_FOUND,
                  "cannot read machine.yaml: No such file or directory");
    write_file("", 0);
    check_failure("machine.yaml/x", LIMIT, BERTH_ERROR_NOT_FOUND,
                  "cannot read machine.yaml/x: Not a directory");
}

static void a_directory_is_refused(void **state)
{
    (void)state;
    check_failure(".", LIMIT, BERTH_ERROR_IO, "cannot read .: it is a directory");
}

static void an_unreadable_file_is_a_matter_of_permission(void **state)
{
    (void)state;
    if (geteuid() == 0) {
        print_message("skip: root reads everything\n");
        skip();
    }
    write_file("secret", 6);
    assert_int_equal(chmod(path, 0), 0);
    check_failure(path, LIMIT, BERTH_ERROR_PERMISSION,
                  "cannot read machine.yaml: Permission denied");
}

static void a_failing_read_is_reported(void **state)
{
    (void)state;
    /* The first page of a process is never mapped. */
    check_failure("/proc/self/mem", LIMIT, BERTH_ERROR_IO,
                  "cannot read /proc/self/mem: Input/output error");
}

static void files_that_claim_no_size_are_read(void **state)
{
    struct text content = {0};

    (void)state;
    assert_int_equal(file_read("/proc/self/status", LIMIT, &content, NULL), 0);
    assert_non_null(strstr(text_string(&content), "Pid:"));
    text_finish(&content);
}

static void names_cannot_steer_a_terminal(void **state)
{
    (void)state;
    check_failure("a\nb", LIMIT, BERTH_ERROR_NOT_FOUND,
                  "cannot read a?b: No such file or directory");
}

/* The bytes to write into a pipe, and the number of signals to wait for before that. */
struct feed {
    const char *bytes;
    size_t length;
    sem_t *signals;
    int signal_count;
};

/* Runs in a thread. If it fails, the reader gets fewer bytes than it expects. */
static void *feed_pipe(void *context)
{
    const struct feed *feed = context;
    int descriptor = open(path, O_WRONLY | O_CLOEXEC);
    size_t sent = 0;

    for (int i = 0; i < feed->signal_count; i++) {
        while (sem_wait(feed->signals) < 0)
            continue;
    }
    while (descriptor >= 0 && sent < feed->length) {
        ssize_t written = write(descriptor, feed->bytes + sent, feed->length - sent);

        if (written < 0)
            break;
        sent += (size_t)written;
    }
    close(descriptor);
    return NULL;
}

static void a_pipe_is_read_to_its_end(void **state)
{
    char *bytes = make_bytes(LARGE);
    struct feed feed = {.bytes = bytes, .length = LARGE};
    pthread_t thread;

    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(pthread_create(&thread, NULL, feed_pipe, &feed), 0);
    check_content(bytes, LARGE);
    assert_int_equal(pthread_join(thread, NULL), 0);
    free(bytes);
}

static sem_t alarms;

static void count_alarm(int number)
{
    (void)number;
    sem_post(&alarms);
}

/* Starts an alarm every millisecond, which interrupts the calls of this thread only: other threads
 * are started while the signal is blocked, and keep it blocked. */
static void start_alarms(void)
{
    const struct itimerval interval = {{0, 1000}, {0, 1000}};
    const struct sigaction action = {.sa_handler = count_alarm};

    assert_int_equal(sem_init(&alarms, 0, 0), 0);
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &interval, NULL), 0);
}

static void stop_alarms(void)
{
    const struct itimerval never = {0};

    setitimer(ITIMER_REAL, &never, NULL);
    signal(SIGALRM, SIG_IGN);
    sem_destroy(&alarms);
}

static void interrupted_calls_go_on(void **state)
{
    struct feed feed = {.bytes = "after all", .length = 9, .signals = &alarms, .signal_count = 5};
    pthread_t thread;
    sigset_t only_alarm;

    (void)state;
    sigemptyset(&only_alarm);
    sigaddset(&only_alarm, SIGALRM);
    assert_int_equal(mkfifo(path, 0600), 0);
    pthread_sigmask(SIG_BLOCK, &only_alarm, NULL);
    start_alarms();
    assert_int_equal(pthread_create(&thread, NULL, feed_pipe, &feed), 0);
    pthread_sigmask(SIG_UNBLOCK, &only_alarm, NULL);
    check_content("after all", 9);
    assert_int_equal(pthread_join(thread, NULL), 0);
    stop_alarms();
}

static int read_attempt(void *context)
{
    struct text *content = context;
    struct berth_error error = BERTH_ERROR_INIT;
    int code = file_read(path, LIMIT, content, &error);

    if (code < 0)
        assert_string_equal(error.message, "cannot read machine.yaml: out of memory");
    assert_string_equal(text_string(content), code < 0 ? "before" : "new");
    return code;
}

static void out_of_memory_is_reported(void **state)
{
    struct text content = {0};

    (void)state;
    write_file("new", 3);
    text_append(&content, "before");
    assert_int_equal(failing_allocator_try_all(read_attempt, &content), 1);
    text_finish(&content);
}

/* More bytes than fit into a pipe. */
enum { SENT = 300 * 1000 };

static void *drain_pipe(void *data)
{
    const int *descriptor = data;
    size_t *total = calloc(1, sizeof(*total));
    char bytes[1000];
    ssize_t got;

    while (total != NULL && (got = read(*descriptor, bytes, sizeof(bytes))) > 0) {
        for (ssize_t i = 0; i < got; i++)
            *total += bytes[i] == (char)(*total % 251);
    }
    return total;
}

static void all_is_written_however_little_is_taken(void **state)
{
    char *bytes = malloc(SENT);
    void *total = NULL;
    pthread_t thread;
    int ends[2];

    (void)state;
    assert_non_null(bytes);
    for (size_t i = 0; i < SENT; i++)
        bytes[i] = (char)(i % 251);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pthread_create(&thread, NULL, drain_pipe, &ends[0]), 0);
    assert_int_equal(file_write(ends[1], bytes, SENT), 0);
    assert_int_equal(file_write(ends[1], bytes, 0), 0);
    close(ends[1]);
    assert_int_equal(pthread_join(thread, &total), 0);
    assert_non_null(total);
    assert_int_equal(*(size_t *)total, SENT);
    close(ends[0]);
    free(total);
    free(bytes);
}

static void a_failing_write_is_reported(void **state)
{
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

    (void)state;
    assert_int_equal(file_write(-1, "x", 1), EBADF);
    if (full < 0) {
        print_message("skip: no /dev/full\n");
        skip();
    }
    assert_int_equal(file_write(full, "x", 1), ENOSPC);
    close(full);
}

#define file_test(function) \
    cmocka_unit_test_setup_teardown(function, temporary_directory_enter, temporary_directory_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        file_test(a_regular_file_is_read),
        file_test(an_empty_file_is_empty),
        file_test(a_large_file_with_zero_bytes_is_read),
        file_test(the_limit_is_exact),
        file_test(an_endless_file_ends_at_the_limit),
        file_test(what_is_open_is_read_from_where_it_stands),
        file_test(a_missing_file_is_not_found),
        file_test(a_directory_is_refused),
        file_test(an_unreadable_file_is_a_matter_of_permission),
        file_test(a_failing_read_is_reported),
        file_test(files_that_claim_no_size_are_read),
        file_test(names_cannot_steer_a_terminal),
        file_test(a_pipe_is_read_to_its_end),
        file_test(interrupted_calls_go_on),
        file_test(out_of_memory_is_reported),
        file_test(all_is_written_however_little_is_taken),
        file_test(a_failing_write_is_reported),
    };

    return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}
