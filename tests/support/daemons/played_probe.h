/* SPDX-License-Identifier: Apache-2.0
 *
 * Lets a test play the probe: these functions take the place of src/daemon/devices/probe_poll.c in
 * the test program that includes this header, so that nothing is started. The test sets what the
 * poll says, and calls its events.
 */
#ifndef TESTS_PLAYED_PROBE_H
#define TESTS_PLAYED_PROBE_H

#include "support/unit.h"

#include <stdlib.h>

#include "daemon/devices/probe_poll.h"

struct probe_poll {
    struct probe_poll_settings settings;

    /* Answers of the poll; set by the test. */
    bool answers;
    bool must_wait;
    bool is_awaited;
    uint64_t report_count;
    uint64_t reports_needed;
    size_t first_count;
    struct problem_list problems;           /* freed with the poll */
    void (*begin)(struct probe_poll *poll); /* passes on the first report; NULL: there is none */

    /* Calls of the poll. */
    bool last_anew; /* of probe_poll_must_wait() */
    int watched;    /* calls of probe_poll_watched() */
    int scheduled;
    int explained;
    int awaited_signals; /* of probe_poll_await(); -1: not called */
};

int probe_poll_create(struct probe_poll **ret_poll, const struct probe_poll_settings *settings,
                      struct berth_error *error)
{
    struct probe_poll *poll = calloc(1, sizeof(*poll));

    (void)error;
    if (poll == NULL)
        return BERTH_ERROR_MEMORY;
    poll->settings = *settings;
    poll->answers = true;
    poll->awaited_signals = -1;
    *ret_poll = poll;
    return 0;
}

void probe_poll_destroy(struct probe_poll *poll)
{
    if (poll == NULL)
        return;
    machine_report_finish_problems(&poll->problems);
    free(poll);
}

void probe_poll_await(struct probe_poll *poll, int signals)
{
    poll->awaited_signals = signals;
}

size_t probe_poll_first_count(const struct probe_poll *poll)
{
    return poll == NULL ? 0 : poll->first_count;
}

void probe_poll_begin(struct probe_poll *poll)
{
    if (poll != NULL && poll->begin != NULL)
        poll->begin(poll);
}

void probe_poll_watched(struct probe_poll *poll)
{
    if (poll != NULL)
        poll->watched++;
}

bool probe_poll_must_wait(struct probe_poll *poll, bool anew)
{
    if (poll == NULL)
        return false;
    poll->last_anew = anew;
    return poll->must_wait;
}

bool probe_poll_is_awaited(const struct probe_poll *poll)
{
    return poll != NULL && poll->is_awaited;
}

uint64_t probe_poll_report_count(const struct probe_poll *poll)
{
    return poll == NULL ? 0 : poll->report_count;
}

uint64_t probe_poll_reports_needed(const struct probe_poll *poll)
{
    return poll == NULL ? 0 : poll->reports_needed;
}

bool probe_poll_answers(const struct probe_poll *poll)
{
    return poll != NULL && poll->answers;
}

void probe_poll_schedule(struct probe_poll *poll)
{
    if (poll != NULL)
        poll->scheduled++;
}

const struct problem_list *probe_poll_problems(const struct probe_poll *poll)
{
    return poll == NULL ? NULL : &poll->problems;
}

void probe_poll_explain(const struct probe_poll *poll, struct berth_error *error)
{
    (void)error;
    if (poll != NULL)
        ((struct probe_poll *)poll)->explained++;
}

int64_t probe_poll_interval(bool watched, bool busy)
{
    (void)watched;
    (void)busy;
    return PROBE_POLL_IDLE_EVERY;
}

int64_t probe_poll_restart_after(unsigned failures)
{
    (void)failures;
    return PROBE_POLL_RESTART_MIN;
}

#endif
