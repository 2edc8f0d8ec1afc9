/* SPDX-License-Identifier: Apache-2.0 */
#include "libberth/local/probe_thread.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "base/system/clock.h"
#include "engine/engine_report.h"
#include "libberth/local/local_pool.h"

/* The longest that is slept in one piece. */
#define WAIT_MAX INT64_C(3600000000000)

int looker_open(struct looker *looker, struct machine *ret_machine, struct berth_error *error)
{
    struct probe_request request = {.without_processes = true};
    struct report report;
    int code;

    looker->end = eventfd(0, EFD_CLOEXEC);
    if (looker->end < 0)
        return error_set_errno(error, errno, "eventfd");
    looker->is_open = true;
    code = probe_deadline(&looker->deadline, error);
    if (code < 0)
        return code;
    request.deadline = (uint64_t)looker->deadline;
    code = probe_look(&looker->probe, &request, &report, error);
    if (code < 0 && code != BERTH_ERROR_MEMORY) {
        /* Whatever kept it from answering, the hardware could not be looked at. */
        if (error != NULL)
            error->code = BERTH_ERROR_IO;
        return BERTH_ERROR_IO;
    }
    if (code < 0)
        return code;
    *ret_machine = report.machine;
    report.machine = (struct machine){0};
    report_finish(&report);
    return 0;
}

/* Takes a report in, or that there is none. */
static void take(struct berth_pool *pool, struct report *report)
{
    /* What callers were told of devices stays as it is. */
    const struct report_taker taker = {.fixed = true};

    lock_take(&pool->lock);
    pool_advance(pool, clock_now());
    if (report == NULL) {
        engine_report_missing(pool->engine);
    } else {
        engine_pause(pool->engine);
        engine_report(pool->engine, report, &taker, NULL);
        engine_resume(pool->engine);
    }
    pool_leave(pool);
}

/* Sleeps until the time comes or the probe, if it is looked at, has said something. Returns false
 * when the thread is to end. */
static bool wait_until(const struct looker *looker, bool for_answer, int64_t until)
{
    struct pollfd waiting[] = {
        {.fd = looker->end, .events = POLLIN},
        {.fd = for_answer ? looker->probe.channel.descriptor : -1, .events = POLLIN},
    };
    int64_t left = until - clock_now();

    if (left > WAIT_MAX)
        left = WAIT_MAX;
    if (for_answer && channel_has_unsent(&looker->probe.channel))
        waiting[1].events |= POLLOUT;
    poll(waiting, COUNT(waiting), left <= 0 ? 0 : (int)(left / 1000000) + 1);
    return waiting[0].revents == 0;
}

enum look { LOOK_FAILED, LOOK_DONE, LOOK_ENDED };

/* Waits for the answer with this number and takes it in. */
static enum look await(struct berth_pool *pool, uint64_t number, int64_t until)
{
    struct looker *looker = &pool->looker;

    while (clock_now() < until) {
        struct probe_answer answer;
        int code;

        if (!wait_until(looker, true, until))
            return LOOK_ENDED;
        if (channel_flush(&looker->probe.channel) < 0)
            return LOOK_FAILED;
        code = probe_receive(&looker->probe, &answer, NULL);
        if (code < 0)
            return LOOK_FAILED;
        if (code == 0)
            continue;
        if (answer.number == number) {
            take(pool, &answer.report);
            return LOOK_DONE;
        }
        report_finish(&answer.report);
    }
    return LOOK_FAILED;
}

/* Looks once; a probe that does not answer is given up, and another one started the next time. */
static enum look look(struct berth_pool *pool)
{
    struct looker *looker = &pool->looker;
    struct probe_request request = {.deadline = (uint64_t)looker->deadline,
                                    .without_processes = true};
    enum look result = LOOK_FAILED;

    if (!looker->probe.is_open && probe_start(&looker->probe, NULL) < 0)
        return LOOK_FAILED;
    if (probe_ask(&looker->probe, &request, NULL) == 0)
        result = await(pool, request.number, clock_now() + looker->deadline + PROBE_LENIENCE);
    if (result != LOOK_DONE)
        probe_finish(&looker->probe);
    return result;
}

static void *keep_looking(void *argument)
{
    struct berth_pool *pool = argument;
    int64_t pause = LOOKER_RESTART_FIRST;
    int64_t next = clock_after(clock_now(), pool->sample_interval);

    pthread_setname_np(pthread_self(), "berth-looker");
    for (;;) {
        int64_t began;

        if (!wait_until(&pool->looker, false, next))
            break;
        if (clock_now() < next)
            continue;
        began = clock_now();
        switch (look(pool)) {
        case LOOK_DONE:
            pause = LOOKER_RESTART_FIRST;
            next = clock_after(began, pool->sample_interval);
            break;
        case LOOK_FAILED:
            take(pool, NULL);
            next = clock_after(clock_now(), pause);
            pause = pause * 2 < LOOKER_RESTART_LAST ? pause * 2 : LOOKER_RESTART_LAST;
            break;
        case LOOK_ENDED:
            return NULL;
        }
    }
    return NULL;
}

int looker_start(struct berth_pool *pool, struct berth_error *error)
{
    char reason[128];
    sigset_t all;
    sigset_t before;
    int failure;

    /* The program's signals are for its own threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failure = pthread_create(&pool->looker.thread, NULL, keep_looking, pool);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failure != 0)
        return error_set(error, BERTH_ERROR_MEMORY,
                         "wanted a thread to look at the hardware, found none: %s",
                         strerror_r(failure, reason, sizeof(reason)));
    pool->looker.is_running = true;
    return 0;
}

void looker_stop(struct looker *looker)
{
    if (!looker->is_running)
        return;
    eventfd_write(looker->end, 1);
    pthread_join(looker->thread, NULL);
    looker->is_running = false;
}

void looker_finish(struct looker *looker)
{
    if (looker->is_open)
        close(looker->end);
    probe_finish(&looker->probe);
    *looker = (struct looker){0};
}
