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
#include "base/system/backoff.h"
#include "base/system/clock.h"
#include "engine/engine_report.h"
#include "libberth/local/local_pool.h"

/* The longest single sleep. */
#define WAIT_MAX INT64_C(3600000000000)

int probe_thread_open(struct probe_thread *probe_thread, struct machine *ret_machine,
                      struct berth_error *error)
{
    struct probe_request request = {.without_processes = true};
    struct machine_report report;
    int code;

    probe_thread->stop_event = eventfd(0, EFD_CLOEXEC);
    if (probe_thread->stop_event < 0)
        return error_set_errno(error, errno, "cannot create an eventfd");
    probe_thread->is_open = true;
    code = probe_deadline(&probe_thread->deadline, error);
    if (code < 0)
        return code;
    request.deadline = (uint64_t)probe_thread->deadline;
    code = probe_query(&probe_thread->probe, &request, &report, error);
    if (code < 0 && code != BERTH_ERROR_MEMORY) {
        /* Every failure here means that the hardware could not be queried. */
        if (error != NULL)
            error->code = BERTH_ERROR_IO;
        return BERTH_ERROR_IO;
    }
    if (code < 0)
        return code;
    *ret_machine = report.machine;
    report.machine = (struct machine){0};
    machine_report_finish(&report);
    return 0;
}

/* Applies a report. NULL: there is none, and all facts become old. */
static void apply_report(struct berth_pool *pool, struct machine_report *report)
{
    /* Facts that callers have seen do not change. */
    const struct report_handler taker = {.fixed = true};

    lock_take(&pool->lock);
    local_pool_advance(pool, clock_now());
    if (report == NULL) {
        engine_mark_devices_old(pool->engine);
    } else {
        engine_pause(pool->engine);
        engine_apply_report(pool->engine, report, &taker, NULL);
        engine_resume(pool->engine);
    }
    local_pool_leave(pool);
}

/* Sleeps until the time comes or the probe answers. Returns false when the thread must end. */
static bool wait_until(const struct probe_thread *probe_thread, bool for_answer, int64_t until)
{
    struct pollfd waiting[] = {
        {.fd = probe_thread->stop_event, .events = POLLIN},
        {.fd = for_answer ? probe_thread->probe.channel.descriptor : -1, .events = POLLIN},
    };
    int64_t left = until - clock_now();

    if (left > WAIT_MAX)
        left = WAIT_MAX;
    if (for_answer && probe_channel_has_unsent(&probe_thread->probe.channel))
        waiting[1].events |= POLLOUT;
    poll(waiting, COUNT(waiting), left <= 0 ? 0 : (int)(left / 1000000) + 1);
    return waiting[0].revents == 0;
}

enum scan_result { SCAN_FAILED, SCAN_DONE, SCAN_ENDED };

/* Waits for the answer with this number and applies it. */
static enum scan_result await_answer(struct berth_pool *pool, uint64_t number, int64_t until)
{
    struct probe_thread *probe_thread = &pool->probe_thread;

    while (clock_now() < until) {
        struct probe_answer answer;
        int code;

        if (!wait_until(probe_thread, true, until))
            return SCAN_ENDED;
        if (probe_channel_flush(&probe_thread->probe.channel) < 0)
            return SCAN_FAILED;
        code = probe_receive(&probe_thread->probe, &answer, NULL);
        if (code < 0)
            return SCAN_FAILED;
        if (code == 0)
            continue;
        if (answer.number == number) {
            apply_report(pool, &answer.report);
            return SCAN_DONE;
        }
        machine_report_finish(&answer.report);
    }
    return SCAN_FAILED;
}

/* Queries once. A probe that does not answer is abandoned, and the next query starts another
 * one. */
static enum scan_result scan_hardware(struct berth_pool *pool)
{
    struct probe_thread *probe_thread = &pool->probe_thread;
    struct probe_request request = {.deadline = (uint64_t)probe_thread->deadline,
                                    .without_processes = true};
    enum scan_result result = SCAN_FAILED;

    if (!probe_thread->probe.is_open && probe_start(&probe_thread->probe, NULL) < 0)
        return SCAN_FAILED;
    if (probe_send(&probe_thread->probe, &request, NULL) == 0)
        result = await_answer(pool, request.number,
                              clock_now() + probe_thread->deadline + PROBE_DEADLINE_GRACE);
    if (result != SCAN_DONE)
        probe_finish(&probe_thread->probe);
    return result;
}

static void *run_probe_thread(void *argument)
{
    struct berth_pool *pool = argument;
    int64_t pause = 0;
    int64_t next = clock_after(clock_now(), pool->sample_interval);

    pthread_setname_np(pthread_self(), "berth-probing");
    for (;;) {
        int64_t began;

        if (!wait_until(&pool->probe_thread, false, next))
            break;
        if (clock_now() < next)
            continue;
        began = clock_now();
        switch (scan_hardware(pool)) {
        case SCAN_DONE:
            pause = 0;
            next = clock_after(began, pool->sample_interval);
            break;
        case SCAN_FAILED:
            apply_report(pool, NULL);
            pause = backoff_next(pause, PROBE_THREAD_BACKOFF_MIN, PROBE_THREAD_BACKOFF_MAX);
            next = clock_after(clock_now(), pause);
            break;
        case SCAN_ENDED:
            return NULL;
        }
    }
    return NULL;
}

int probe_thread_start(struct berth_pool *pool, struct berth_error *error)
{
    char reason[128];
    sigset_t all;
    sigset_t before;
    int failure;

    /* Block all signals: they are for the program's own threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failure = pthread_create(&pool->probe_thread.thread, NULL, run_probe_thread, pool);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failure != 0)
        return error_set(error, BERTH_ERROR_MEMORY,
                         "cannot start the thread that queries the hardware: %s",
                         strerror_r(failure, reason, sizeof(reason)));
    pool->probe_thread.is_running = true;
    return 0;
}

void probe_thread_stop(struct probe_thread *probe_thread)
{
    if (!probe_thread->is_running)
        return;
    eventfd_write(probe_thread->stop_event, 1);
    pthread_join(probe_thread->thread, NULL);
    probe_thread->is_running = false;
}

void probe_thread_finish(struct probe_thread *probe_thread)
{
    if (probe_thread->is_open)
        close(probe_thread->stop_event);
    probe_finish(&probe_thread->probe);
    *probe_thread = (struct probe_thread){0};
}
