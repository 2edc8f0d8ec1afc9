/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the tests of the supervisor hear what the puppets say, and wait for it with a deadline.
 */
#ifndef TESTS_STAGE_H
#define TESTS_STAGE_H

#include "support/unit.h"

#include <berth/error.h>
#include <fcntl.h>
#include <poll.h>
#include <time.h>

#include "base/text/quantity.h"
#include "base/text/text.h"
#include "launch/supervise.h"
#include "support/puppet.h"

#define STAGE_MAX (30 * DURATION_SECOND)

static inline int64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * DURATION_SECOND + time.tv_nsec;
}

/* The stage: what the puppets say, and the supervisor if it is in this process. */
struct stage {
    int ear;
    struct text said;
    bool is_silent; /* nobody is left who could speak */
    struct launch_supervisor *supervisor;
};

static inline struct stage stage_open(void)
{
    struct stage stage = {0};
    int voice[2];

    assert_int_equal(pipe2(voice, O_CLOEXEC), 0);
    assert_int_equal(dup2(voice[1], PUPPET_VOICE), PUPPET_VOICE);
    close(voice[1]);
    stage.ear = voice[0];
    return stage;
}

static inline void stage_supervise(struct stage *stage)
{
    struct berth_error error = BERTH_ERROR_INIT;

    assert_int_equal(launch_supervisor_create(&stage->supervisor, &error), 0);
    assert_string_equal(error.message, "");
}

static inline void stage_close(struct stage *stage)
{
    launch_supervisor_destroy(stage->supervisor);
    close(stage->ear);
    close(PUPPET_VOICE);
    text_finish(&stage->said);
}

/* Waits for something to be said or done, and takes note of it. */
static inline void stage_turn(struct stage *stage, int64_t deadline)
{
    struct pollfd polled[2] = {{.fd = stage->is_silent ? -1 : stage->ear, .events = POLLIN},
                               {.fd = -1, .events = POLLIN}};
    int64_t until = deadline;
    int64_t rest;
    char bytes[256];

    assert_true(now() < deadline);
    if (stage->supervisor != NULL) {
        polled[1].fd = launch_supervisor_descriptor(stage->supervisor);
        if (launch_supervisor_next_time(stage->supervisor) < until)
            until = launch_supervisor_next_time(stage->supervisor);
    }
    rest = until - now();
    poll(polled, 2, rest < 0 ? 0 : (int)(rest / 1000000) + 1);
    if (polled[0].revents != 0) {
        ssize_t length = read(stage->ear, bytes, sizeof(bytes));

        assert_true(length >= 0);
        stage->is_silent = length == 0;
        text_append_bytes(&stage->said, bytes, (size_t)length);
    }
    if (stage->supervisor != NULL)
        launch_supervisor_dispatch(stage->supervisor);
}

/* How often it was said. */
static inline size_t times_said(const struct stage *stage, const char *words)
{
    size_t count = 0;

    for (const char *at = text_string(&stage->said); (at = strstr(at, words)) != NULL; at++)
        count++;
    return count;
}

static inline void until_said(struct stage *stage, const char *words, size_t times)
{
    int64_t deadline = now() + STAGE_MAX;

    while (times_said(stage, words) < times)
        stage_turn(stage, deadline);
}

static inline void until_done(struct stage *stage)
{
    int64_t deadline = now() + STAGE_MAX;

    while (!launch_supervisor_is_done(stage->supervisor))
        stage_turn(stage, deadline);
}

/* That no puppet is left: each holds its voice. */
static inline void until_silent(struct stage *stage)
{
    int64_t deadline = now() + STAGE_MAX;

    close(PUPPET_VOICE);
    while (!stage->is_silent)
        stage_turn(stage, deadline);
}

static inline void check_silent(struct stage *stage)
{
    struct pollfd polled = {.fd = stage->ear, .events = POLLIN};
    char bytes[256];

    close(PUPPET_VOICE);
    for (;;) {
        assert_int_equal(poll(&polled, 1, 0), 1);
        if (read(stage->ear, bytes, sizeof(bytes)) == 0)
            return;
    }
}

/* The number after the last such words. */
static inline long number_said(const struct stage *stage, const char *words)
{
    const char *found = NULL;

    for (const char *at = text_string(&stage->said); (at = strstr(at, words)) != NULL; at++)
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
