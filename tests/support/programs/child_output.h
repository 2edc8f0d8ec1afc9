/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads what the children of a supervisor print (support/programs/child_process.h), with a timeout.
 */
#ifndef TESTS_CHILD_OUTPUT_H
#define TESTS_CHILD_OUTPUT_H

#include "support/unit.h"

#include <berth/error.h>
#include <fcntl.h>
#include <poll.h>
#include <time.h>

#include "base/text/quantity.h"
#include "base/text/text.h"
#include "launch/supervise.h"
#include "support/programs/child_process.h"

#define CHILD_OUTPUT_TIMEOUT (30 * DURATION_SECOND)

static inline int64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * DURATION_SECOND + time.tv_nsec;
}

/* The lines that the children have printed, and their supervisor if it is in this process. */
struct child_output {
    int reader;
    struct text text;
    bool is_closed; /* no process is left that could print */
    struct launch_supervisor *supervisor;
};

static inline struct child_output child_output_open(void)
{
    struct child_output output = {0};
    int voice[2];

    assert_int_equal(pipe2(voice, O_CLOEXEC), 0);
    assert_int_equal(dup2(voice[1], CHILD_OUTPUT_FD), CHILD_OUTPUT_FD);
    close(voice[1]);
    output.reader = voice[0];
    return output;
}

static inline void child_output_supervise(struct child_output *output)
{
    struct berth_error error = BERTH_ERROR_INIT;

    assert_int_equal(launch_supervisor_create(&output->supervisor, &error), 0);
    assert_string_equal(error.message, "");
}

static inline void child_output_close(struct child_output *output)
{
    launch_supervisor_destroy(output->supervisor);
    close(output->reader);
    close(CHILD_OUTPUT_FD);
    text_finish(&output->text);
}

/* Waits for a line or for the supervisor, and handles it. */
static inline void child_output_wait(struct child_output *output, int64_t deadline)
{
    struct pollfd polled[2] = {{.fd = output->is_closed ? -1 : output->reader, .events = POLLIN},
                               {.fd = -1, .events = POLLIN}};
    int64_t until = deadline;
    int64_t rest;
    char bytes[256];

    assert_true(now() < deadline);
    if (output->supervisor != NULL) {
        polled[1].fd = launch_supervisor_descriptor(output->supervisor);
        if (launch_supervisor_next_time(output->supervisor) < until)
            until = launch_supervisor_next_time(output->supervisor);
    }
    rest = until - now();
    poll(polled, 2, rest < 0 ? 0 : (int)(rest / 1000000) + 1);
    if (polled[0].revents != 0) {
        ssize_t length = read(output->reader, bytes, sizeof(bytes));

        assert_true(length >= 0);
        output->is_closed = length == 0;
        text_append_bytes(&output->text, bytes, (size_t)length);
    }
    if (output->supervisor != NULL)
        launch_supervisor_dispatch(output->supervisor);
}

/* Returns how often this text was printed. */
static inline size_t times_printed(const struct child_output *output, const char *words)
{
    size_t count = 0;

    for (const char *at = text_string(&output->text); (at = strstr(at, words)) != NULL; at++)
        count++;
    return count;
}

static inline void until_printed(struct child_output *output, const char *words, size_t times)
{
    int64_t deadline = now() + CHILD_OUTPUT_TIMEOUT;

    while (times_printed(output, words) < times)
        child_output_wait(output, deadline);
}

static inline void until_done(struct child_output *output)
{
    int64_t deadline = now() + CHILD_OUTPUT_TIMEOUT;

    while (!launch_supervisor_is_done(output->supervisor))
        child_output_wait(output, deadline);
}

/* Waits until no child is left: each keeps the pipe open. */
static inline void until_closed(struct child_output *output)
{
    int64_t deadline = now() + CHILD_OUTPUT_TIMEOUT;

    close(CHILD_OUTPUT_FD);
    while (!output->is_closed)
        child_output_wait(output, deadline);
}

static inline void check_closed(struct child_output *output)
{
    struct pollfd polled = {.fd = output->reader, .events = POLLIN};
    char bytes[256];

    close(CHILD_OUTPUT_FD);
    for (;;) {
        assert_int_equal(poll(&polled, 1, 0), 1);
        if (read(output->reader, bytes, sizeof(bytes)) == 0)
            return;
    }
}

/* Returns the number after the last occurrence of this text. */
static inline long number_printed(const struct child_output *output, const char *words)
{
    const char *found = NULL;

    for (const char *at = text_string(&output->text); (at = strstr(at, words)) != NULL; at++)
        found = at;
    assert_non_null(found);
    return strtol(found + strlen(words), NULL, 10);
}

static inline int start_words(struct launch_supervisor *supervisor, const char *const *words,
                              const char *const *environment, struct berth_error *error)
{
    const struct launch_copy copy = {
        .arguments = (char *const *)words,
        .environment = (char *const *)environment,
    };

    return launch_supervisor_start(supervisor, &copy, error);
}

static inline void start(struct launch_supervisor *supervisor, const char *part,
                         const char *argument)
{
    const char *const words[] = {"/proc/self/exe", part, argument, NULL};
    struct berth_error error = BERTH_ERROR_INIT;

    assert_int_equal(start_words(supervisor, words, (const char *const *)environ, &error), 0);
    assert_string_equal(error.message, "");
}

#endif
