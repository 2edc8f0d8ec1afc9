/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/core/log.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "support/temporary_directory.h"

static const char path[] = "log";

enum { READ_MAX = 16 * 1024 * 1024, LINES = 60000 };

static int open_log(void)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    assert_true(descriptor >= 0);
    return descriptor;
}

static void lines_have_a_time_and_a_word(void **state)
{
    struct loop loop;
    struct log log;
    struct text content = {0};
    int descriptor = open_log();

    (void)state;
    assert_int_equal(loop_init(&loop, NULL), 0);
    log_init(&log, &loop, descriptor, path);
    log_line(&log, 1500000000, "granted", "id=%d", 7);
    log_line(&log, 2000000000, "reloaded", "%s", "");
    log_begin(&log, 2007000000, "ended");
    log_number(&log, "id", 0);
    log_text(&log, "reason", "given back");
    text_append(log_value(&log, "devices"), "nvidia0");
    log_number(&log, "most", UINT64_MAX);
    log_end(&log);
    log_finish(&log);
    assert_int_equal(file_read(path, READ_MAX, &content, NULL), 0);
    assert_string_equal(text_string(&content), "1970-01-01T00:00:01.500Z granted id=7\n"
                                               "1970-01-01T00:00:02.000Z reloaded\n"
                                               "1970-01-01T00:00:02.007Z ended id=0 "
                                               "reason=\"given back\" devices=nvidia0 "
                                               "most=18446744073709551615\n");
    text_finish(&content);
    close(descriptor);
    loop_finish(&loop);
}

/* A lease of a thousand devices is logged completely. */
static void long_lines_are_whole(void **state)
{
    struct loop loop;
    struct log log;
    struct text devices = {0};
    struct text content = {0};
    int descriptor = open_log();

    (void)state;
    assert_int_equal(loop_init(&loop, NULL), 0);
    log_init(&log, &loop, descriptor, path);
    for (int i = 0; i < 1000; i++)
        text_append_format(&devices, "%snvidia%d", i == 0 ? "" : ",", i);
    log_line(&log, 0, "granted", "devices=%s waited_ms=%d", text_string(&devices), 3);
    log_finish(&log);
    assert_int_equal(file_read(path, READ_MAX, &content, NULL), 0);
    assert_int_equal(content.length,
                     strlen("1970-01-01T00:00:00.000Z granted devices= waited_ms=3\n") +
                         devices.length);
    assert_non_null(strstr(text_string(&content), ",nvidia999 waited_ms=3\n"));
    text_finish(&devices);
    text_finish(&content);
    close(descriptor);
    loop_finish(&loop);
}

static void texts_are_quoted(void **state)
{
    char longest[BERTH_ERROR_MESSAGE_SIZE];

    (void)state;
    assert_string_equal(log_quote("").text, "\"\"");
    assert_string_equal(log_quote("no 'such' file").text, "\"no 'such' file\"");
    assert_string_equal(log_quote("a \"b\" \\").text, "\"a \\\"b\\\" \\\\\"");
    assert_string_equal(log_quote("a\nb\033[1m\xff").text, "\"a?b?[1m?\"");
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    assert_int_equal(strlen(log_quote(longest).text), sizeof(longest) - 1 + 2);
    memset(longest, '"', sizeof(longest) - 1);
    assert_in_range(strlen(log_quote(longest).text), 900, sizeof(struct log_words) - 1);
}

static off_t size_of(const char *name)
{
    struct stat status;

    return stat(name, &status) == 0 ? status.st_size : -1;
}

static void a_long_file_is_put_aside(void **state)
{
    struct loop loop;
    struct log log;
    int descriptor = open_log();

    (void)state;
    assert_int_equal(loop_init(&loop, NULL), 0);
    log_init(&log, &loop, descriptor, path);
    for (int i = 0; i < LINES; i++)
        log_line(&log, i, "ended", "id=%d reason=\"a rather long one, to get there soon\"", i);
    log_finish(&log);
    assert_true(size_of("log.1") > 4 * 1024 * 1024);
    assert_in_range(size_of(path), 1, 4 * 1024 * 1024 + 64 * 1024);
    close(descriptor);
    loop_finish(&loop);
}

/* The daemon does not change a log of another owner, or a file with another link. */
static void what_is_not_ours_is_left_alone(void **state)
{
    struct loop loop;
    struct log log;
    int descriptor = open_log();

    (void)state;
    assert_int_equal(loop_init(&loop, NULL), 0);
    log_init(&log, &loop, descriptor, "another");
    for (int i = 0; i < LINES; i++)
        log_line(&log, i, "ended", "id=%d reason=\"a rather long one, to get there soon\"", i);
    log_finish(&log);
    assert_int_equal(size_of("log.1"), -1);
    assert_int_equal(size_of("another.1"), -1);
    assert_true(size_of(path) > 4 * 1024 * 1024);
    close(descriptor);
    loop_finish(&loop);
}

/* The daemon's user may write the file, but not its directory. */
static void file_that_cannot_be_put_aside_is_emptied(void **state)
{
    struct loop loop;
    struct log log;
    int descriptor = open_log();

    (void)state;
    assert_int_equal(mkdir("log.1", 0700), 0);
    assert_int_equal(loop_init(&loop, NULL), 0);
    log_init(&log, &loop, descriptor, path);
    for (int i = 0; i < LINES; i++)
        log_line(&log, i, "ended", "id=%d reason=\"a rather long one, to get there soon\"", i);
    log_finish(&log);
    assert_in_range(size_of(path), 1, 4 * 1024 * 1024 + 64 * 1024);
    close(descriptor);
    loop_finish(&loop);
}

/* Without a new file, lines must not go on into the file that was moved aside. */
static void file_that_has_no_successor_is_emptied(void **state)
{
    struct loop loop;
    struct log log;
    int descriptor = open_log();

    (void)state;
    assert_int_equal(mkdir("log.new", 0700), 0);
    assert_int_equal(loop_init(&loop, NULL), 0);
    log_init(&log, &loop, descriptor, path);
    for (int i = 0; i < LINES; i++)
        log_line(&log, i, "ended", "id=%d reason=\"a rather long one, to get there soon\"", i);
    log_finish(&log);
    assert_in_range(size_of(path), 1, 4 * 1024 * 1024 + 64 * 1024);
    assert_int_equal(size_of("log.1"), -1);
    close(descriptor);
    loop_finish(&loop);
}

/* As on a full disk: the file gets no longer. */
static void lines_beyond_a_full_disk_are_counted(void **state)
{
    const struct rlimit small = {.rlim_cur = 100, .rlim_max = RLIM_INFINITY};
    struct rlimit large;
    struct loop loop;
    struct log log;
    struct text content = {0};
    int descriptor = open_log();

    (void)state;
    assert_int_equal(loop_init(&loop, NULL), 0);
    log_init(&log, &loop, descriptor, path);
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &large), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (int i = 0; i < 10; i++)
        log_line(&log, 0, "ended", "id=%d", i);
    log_flush(&log);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &large), 0);
    log_line(&log, 0, "ended", "id=%d", 10);
    log_finish(&log);
    assert_int_equal(file_read(path, READ_MAX, &content, NULL), 0);
    assert_string_equal(text_string(&content), "1970-01-01T00:00:00.000Z ended id=0\n"
                                               "1970-01-01T00:00:00.000Z ended id=1\n"
                                               "1970-01-01T00:00:00.000Z end\n"
                                               "1970-01-01T00:00:00.000Z log left_out=8\n"
                                               "1970-01-01T00:00:00.000Z ended id=10\n");
    text_finish(&content);
    close(descriptor);
    loop_finish(&loop);
}

/* Reads until the writer has ended. */
static void drain(int descriptor, struct text *out)
{
    char bytes[4096];
    ssize_t count;

    while ((count = read(descriptor, bytes, sizeof(bytes))) > 0)
        text_append_bytes(out, bytes, (size_t)count);
}

/* Takes what is there without waiting. */
static void take(int descriptor, struct text *out)
{
    assert_int_equal(fcntl(descriptor, F_SETFL, O_NONBLOCK), 0);
    drain(descriptor, out);
}

/* Returns how many lines the text has, with those that it says are missing. */
static size_t count_all(const struct text *lines)
{
    size_t count = 0;

    for (const char *line = text_string(lines); *line != '\0'; line = strchr(line, '\n') + 1) {
        const char *missing = strstr(line, " log left_out=");
        const char *whole = strstr(line, " ended id=");

        assert_non_null(strchr(line, '\n'));
        if (missing != NULL && missing < strchr(line, '\n'))
            count += strtoul(missing + strlen(" log left_out="), NULL, 10);
        else if (whole != NULL && whole < strchr(line, '\n') && strchr(line, '\n')[-1] == '.')
            count++;
    }
    return count;
}

/* Nobody reads, as a service manager's log that was stopped. The log may not wait, nor change the
 * descriptor, which other programs have as well. */
static void check_that_nobody_reads(const int ends[2])
{
    struct loop loop;
    struct log log;
    struct text lines = {0};
    int flags = fcntl(ends[1], F_GETFL);

    assert_int_equal(loop_init(&loop, NULL), 0);
    log_init(&log, &loop, ends[1], NULL);
    for (int i = 0; i < LINES; i++)
        log_line(&log, i, "ended", "id=%d reason=%0*d.", i, i % 100 == 0 ? 2 * PIPE_BUF : 1, i);
    log_flush(&log);
    assert_true(log.left_out > 0);
    take(ends[0], &lines);
    log_line(&log, 0, "ended", "id=%d.", LINES);
    log_finish(&log);
    assert_int_equal(fcntl(ends[1], F_GETFL), flags);
    close(ends[1]);
    drain(ends[0], &lines);
    close(ends[0]);
    assert_int_equal(count_all(&lines), LINES + 1);
    assert_non_null(strstr(text_string(&lines), " log left_out="));
    text_finish(&lines);
    loop_finish(&loop);
}

static void pipe_that_nobody_reads_delays_nothing(void **state)
{
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    check_that_nobody_reads(ends);
}

static void socket_that_nobody_reads_delays_nothing(void **state)
{
    int ends[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    check_that_nobody_reads(ends);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_quoted),
        cmocka_unit_test(pipe_that_nobody_reads_delays_nothing),
        cmocka_unit_test(socket_that_nobody_reads_delays_nothing),
        cmocka_unit_test_setup_teardown(file_that_has_no_successor_is_emptied,
                                        temporary_directory_enter, temporary_directory_leave),
        cmocka_unit_test_setup_teardown(lines_beyond_a_full_disk_are_counted,
                                        temporary_directory_enter, temporary_directory_leave),
        cmocka_unit_test_setup_teardown(long_lines_are_whole, temporary_directory_enter,
                                        temporary_directory_leave),
        cmocka_unit_test_setup_teardown(lines_have_a_time_and_a_word, temporary_directory_enter,
                                        temporary_directory_leave),
        cmocka_unit_test_setup_teardown(a_long_file_is_put_aside, temporary_directory_enter,
                                        temporary_directory_leave),
        cmocka_unit_test_setup_teardown(file_that_cannot_be_put_aside_is_emptied,
                                        temporary_directory_enter, temporary_directory_leave),
        cmocka_unit_test_setup_teardown(what_is_not_ours_is_left_alone, temporary_directory_enter,
                                        temporary_directory_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
