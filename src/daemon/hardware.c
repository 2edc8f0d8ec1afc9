/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/hardware.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/count.h"
#include "base/error.h"
#include "daemon/devices.h"
#include "daemon/handover.h"
#include "daemon/news.h"
#include "daemon/notices.h"
#include "daemon/postponed.h"
#include "daemon/settle.h"
#include "engine/engine_report.h"
#include "probe/probe.h"

struct hardware {
    struct pool *pool;
    struct probe probe;
    struct watch answers; /* while the probe is open */
    struct timer timer;   /* of what is to be done next */
    int64_t deadline;     /* how long a look may take */
    bool is_asked;        /* an answer is due */
    bool is_whole;        /* and is about all devices */
    bool is_awaited;      /* claims wait for an answer about all devices */
    int64_t seen_at;      /* when the last answer about all devices was asked for */
    uint64_t looks;       /* that have ended */
    bool has_report;      /* there was one */
    uint64_t number;      /* of the request */
    int64_t asked_at;     /* the last time; times are the loop's */
    int64_t start_at;     /* when it is started, while it is not open */
    int64_t watched_at;
    unsigned failures;                      /* since the last report */
    char failure[BERTH_ERROR_MESSAGE_SIZE]; /* that was logged last */
    struct problem_list problems;
    struct machine_report first; /* the first report, until there is an engine */
    bool has_first;
};

int64_t hardware_interval(bool watched, bool busy)
{
    if (watched)
        return HARDWARE_WATCHED_EVERY;
    return busy ? HARDWARE_BUSY_EVERY : HARDWARE_IDLE_EVERY;
}

int64_t hardware_restart_after(unsigned failures)
{
    int64_t after = HARDWARE_RESTART_FIRST;

    while (failures-- > 1 && after < HARDWARE_RESTART_LAST)
        after *= 2;
    return after < HARDWARE_RESTART_LAST ? after : HARDWARE_RESTART_LAST;
}

/* ---- What came of a look ---- */

/* Those of the last look are forgotten; what is new is logged. */
static void take_problems(struct hardware *hardware, struct problem_list *found)
{
    struct pool *pool = hardware->pool;
    const struct problem *problem;

    vector_for_each (problem, found) {
        if (!machine_report_has_problem(&hardware->problems, problem->backend, problem->message))
            log_line(&pool->log, pool_now(pool), "problem", "backend=%s message=%s",
                     log_quote(problem->backend).text, log_quote(problem->message).text);
    }
    machine_report_finish_problems(&hardware->problems);
    hardware->problems = *found;
    *found = (struct problem_list){0};
}

/* Takes the report into the engine, which stays paused. */
static void take_devices(struct hardware *hardware, struct machine_report *report)
{
    struct problem_list problems = report->problems;
    struct berth_error error = BERTH_ERROR_INIT;

    report->problems = (struct problem_list){0};
    if (devices_take(hardware->pool, report, &error) < 0)
        machine_report_add_problem(&problems, "pool", "%s", error.message);
    take_problems(hardware, &problems);
}

static void take_report(struct hardware *hardware, struct machine_report *report)
{
    struct pool *pool = hardware->pool;

    if (pool->engine == NULL) {
        machine_report_finish(&hardware->first);
        hardware->first = *report;
        hardware->has_first = true;
        return;
    }
    take_devices(hardware, report);
    handover_looked(pool);
    engine_resume(pool->engine);
    notices_judge(pool);
    news_note(pool, WIRE_NEWS_LOAD);
    pool_settle(pool);
}

/* The probe is given up; a later one may do better. */
static void lose(struct hardware *hardware, const struct berth_error *error)
{
    struct pool *pool = hardware->pool;

    if (hardware->probe.is_open)
        loop_remove(&pool->loop, &hardware->answers);
    probe_finish(&hardware->probe);
    hardware->is_asked = false;
    hardware->failures++;
    hardware->start_at = loop_now(&pool->loop) + hardware_restart_after(hardware->failures);
    hardware->is_awaited = false;
    hardware->looks++;
    if (pool->engine != NULL)
        engine_mark_devices_old(pool->engine);
    if (pool->notices != NULL)
        notices_judge(pool);
    news_note(pool, WIRE_NEWS_LOAD);
    if (pool->handovers != NULL)
        handover_unanswered(pool);
    machine_report_add_problem(&hardware->problems, "probe", "%s", error->message);
    if (strcmp(hardware->failure, error->message) != 0)
        log_line(&pool->log, pool_now(pool), "probe", "what=lost reason=%s",
                 log_quote(error->message).text);
    snprintf(hardware->failure, sizeof(hardware->failure), "%s", error->message);
    /* Whoever waited for its answer goes on without. */
    postponed_deal_with(pool);
}

/* Takes in what has come. */
static void receive(struct hardware *hardware)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct probe_answer answer;
    int code;

    while (hardware->probe.is_open &&
           (code = probe_receive(&hardware->probe, &answer, &error)) != 0) {
        if (code < 0) {
            lose(hardware, &error);
        } else if (!hardware->is_asked || answer.number != hardware->number) {
            machine_report_finish(&answer.report);
        } else {
            hardware->is_asked = false;
            hardware->has_report = true;
            hardware->looks++;
            if (hardware->failures > 0)
                log_line(&hardware->pool->log, pool_now(hardware->pool), "probe", "what=back");
            hardware->failures = 0;
            hardware->failure[0] = '\0';
            if (hardware->is_whole) {
                hardware->seen_at = hardware->asked_at;
                hardware->is_awaited = false;
            }
            take_report(hardware, &answer.report);
            postponed_deal_with(hardware->pool);
        }
    }
}

/* ---- Asking ---- */

static void watch_out(struct hardware *hardware)
{
    bool has_unsent = probe_channel_has_unsent(&hardware->probe.channel);

    loop_change(&hardware->pool->loop, &hardware->answers,
                EPOLLIN | (has_unsent ? (uint32_t)EPOLLOUT : 0));
}

static void answers_are_ready(struct watch *watch, uint32_t events)
{
    struct hardware *hardware = container_of(watch, struct hardware, answers);

    if ((events & EPOLLOUT) != 0) {
        /* Whoever is not there any more is found by receiving. */
        probe_channel_flush(&hardware->probe.channel);
        watch_out(hardware);
    }
    receive(hardware);
}

/* Asks about all devices, or only about those that are being handed over. */
static void ask(struct hardware *hardware, bool whole)
{
    struct pool *pool = hardware->pool;
    struct berth_error error = BERTH_ERROR_INIT;
    struct probe_request request = {.deadline = (uint64_t)hardware->deadline};
    int code;

    if (pool->handovers != NULL)
        handover_ask(pool, whole ? NULL : &request.only);
    hardware->asked_at = loop_now(&pool->loop);
    hardware->is_whole = request.only.count == 0;
    code = probe_send(&hardware->probe, &request, &error);
    vector_finish(&request.only);
    if (code < 0) {
        lose(hardware, &error);
        return;
    }
    hardware->number = request.number;
    hardware->is_asked = true;
    if (probe_channel_has_unsent(&hardware->probe.channel))
        watch_out(hardware);
}

static void start(struct hardware *hardware)
{
    struct loop *loop = &hardware->pool->loop;
    struct berth_error error = BERTH_ERROR_INIT;
    int code = probe_start(&hardware->probe, &error);

    if (code == 0) {
        hardware->answers = (struct watch){
            .descriptor = hardware->probe.channel.descriptor,
            .ready = answers_are_ready,
        };
        code = loop_add(loop, &hardware->answers, EPOLLIN, &error);
        if (code < 0)
            probe_finish(&hardware->probe);
    }
    if (code < 0)
        lose(hardware, &error);
    else
        ask(hardware, true);
}

/* ---- The schedule ---- */

static int64_t interval(const struct hardware *hardware)
{
    const struct pool *pool = hardware->pool;
    bool watched = loop_now(&pool->loop) - hardware->watched_at < HARDWARE_WATCHED_FOR;
    int64_t interval = hardware_interval(watched, pool->job_count > 0);
    int64_t followed = news_load_interval(pool);

    return followed != 0 && followed < interval ? followed : interval;
}

static int64_t next_time(const struct hardware *hardware)
{
    const struct pool *pool = hardware->pool;

    if (!hardware->probe.is_open)
        return hardware->start_at;
    if (hardware->is_asked)
        return hardware->asked_at + hardware->deadline + PROBE_DEADLINE_GRACE;
    if (hardware->is_awaited || handover_is_unasked(pool))
        return loop_now(&pool->loop);
    return hardware->seen_at + interval(hardware);
}

/* Whether it is time for a look at all devices. */
static bool is_whole_due(const struct hardware *hardware)
{
    return hardware->is_awaited || !handover_is_unasked(hardware->pool) ||
           loop_now(&hardware->pool->loop) >= hardware->seen_at + interval(hardware);
}

static void is_due(struct timer *timer)
{
    struct hardware *hardware = container_of(timer, struct hardware, timer);
    struct berth_error error = BERTH_ERROR_INIT;

    if (loop_now(&hardware->pool->loop) < next_time(hardware))
        return;
    if (!hardware->probe.is_open) {
        start(hardware);
    } else if (hardware->is_asked) {
        error_set(&error, BERTH_ERROR_TIMED_OUT,
                  "cannot read the hardware: berth-probe did not answer within %s",
                  quantity_format_duration(hardware->deadline).text);
        lose(hardware, &error);
    } else {
        ask(hardware, is_whole_due(hardware));
    }
}

void hardware_schedule(struct pool *pool)
{
    struct hardware *hardware = pool->hardware;
    int64_t next;

    if (hardware == NULL)
        return;
    next = next_time(hardware);
    if (hardware->timer.at != next || !list_is_linked(&hardware->timer.in_loop))
        timer_set_at(&pool->loop, &hardware->timer, next);
}

bool hardware_answers(const struct pool *pool)
{
    return pool->hardware != NULL && pool->hardware->probe.is_open;
}

uint64_t hardware_looks(const struct pool *pool)
{
    return pool->hardware == NULL ? 0 : pool->hardware->looks;
}

uint64_t hardware_looks_needed(const struct pool *pool)
{
    const struct hardware *hardware = pool->hardware;
    uint64_t coming = 0;

    if (hardware_answers(pool) && handover_is_pending(pool))
        coming = (hardware->is_asked ? 1 : 0) + (handover_is_unasked(pool) ? 1 : 0);
    return coming == 0 ? 0 : hardware->looks + coming;
}

bool hardware_is_awaited(const struct pool *pool)
{
    return pool->hardware != NULL && pool->hardware->is_awaited;
}

bool hardware_must_look(struct pool *pool, bool anew)
{
    struct hardware *hardware = pool->hardware;
    int64_t fresh = anew ? HARDWARE_NEW_FOR : HARDWARE_FRESH_FOR;

    if (!hardware_answers(pool) || (!anew && pool->rules.squatters == SQUATTING_IGNORED) ||
        loop_now(&pool->loop) - hardware->seen_at <= fresh)
        return false;
    hardware->is_awaited = true;
    if (!hardware->is_asked)
        ask(hardware, true);
    return hardware->is_awaited;
}

void hardware_watched(struct pool *pool)
{
    if (pool->hardware != NULL)
        pool->hardware->watched_at = loop_now(&pool->loop);
}

const struct problem_list *hardware_problems(const struct pool *pool)
{
    return pool->hardware == NULL ? NULL : &pool->hardware->problems;
}

void hardware_explain(const struct pool *pool, struct berth_error *error)
{
    const struct hardware *hardware = pool->hardware;
    const struct problem *problem;

    if (hardware == NULL || error->code != BERTH_ERROR_NO_DEVICE)
        return;
    if (hardware->problems.count > 0) {
        problem = &hardware->problems.items[0];
        error_set(error, BERTH_ERROR_NO_DEVICE, "this pool has no devices; %s: %s",
                  problem->backend, problem->message);
    } else if (!hardware->has_report) {
        error_set(error, BERTH_ERROR_NO_DEVICE,
                  "this pool has no devices yet: the hardware is still being probed");
    }
}

/* ---- Starting and ending ---- */

int hardware_open(struct pool *pool, struct berth_error *error)
{
    struct hardware *hardware = calloc(1, sizeof(*hardware));
    struct berth_error ignored = BERTH_ERROR_INIT;

    if (hardware == NULL)
        return error_set_memory(error);
    pool->hardware = hardware;
    hardware->pool = pool;
    hardware->timer.fire = is_due;
    hardware->watched_at = -HARDWARE_WATCHED_FOR;
    hardware->deadline = PROBE_DEADLINE_DEFAULT;
    if (probe_deadline(&hardware->deadline, &ignored) < 0)
        log_line(&pool->log, pool_now(pool), "error", "reason=%s", log_quote(ignored.message).text);
    start(hardware);
    return 0;
}

/* Waits for the answer, at most until then, and no longer than it may take. Returns false when the
 * daemon is to end. */
static bool await_answer(struct hardware *hardware, int64_t until)
{
    struct pool *pool = hardware->pool;

    if (until > hardware->asked_at + hardware->deadline + PROBE_DEADLINE_GRACE)
        until = hardware->asked_at + hardware->deadline + PROBE_DEADLINE_GRACE;
    while (hardware->is_asked) {
        struct pollfd waiting[] = {
            {.fd = hardware->probe.channel.descriptor, .events = POLLIN},
            {.fd = pool->signals.descriptor, .events = POLLIN},
        };
        int64_t left = until - loop_now(&pool->loop);

        if (left <= 0)
            return true;
        poll(waiting, COUNT(waiting), (int)(left / 1000000) + 1);
        if (waiting[1].revents != 0)
            return false;
        receive(hardware);
    }
    return true;
}

/* Whether nothing was found because somebody took too long to say: a library may take many seconds
 * to begin. Who claims meanwhile would be told that there is no device. */
static bool is_premature(const struct hardware *hardware)
{
    const struct machine_report *first = &hardware->first;
    int64_t taken = loop_now(&hardware->pool->loop) - hardware->asked_at;

    return hardware->has_first && first->machine.devices.count == 0 &&
           first->listed != VENDORS_ALL && taken > hardware->deadline / 2;
}

void hardware_await(struct pool *pool)
{
    struct hardware *hardware = pool->hardware;
    int64_t began = loop_now(&pool->loop);
    bool goes_on = await_answer(hardware, began + HARDWARE_START_TIMEOUT);

    while (goes_on && is_premature(hardware) &&
           loop_now(&pool->loop) < began + HARDWARE_START_TIMEOUT) {
        ask(hardware, true);
        goes_on = await_answer(hardware, began + HARDWARE_START_TIMEOUT);
    }
    if (!hardware->has_first)
        log_line(&pool->log, pool_now(pool), "probe", "what=late");
}

size_t hardware_first_count(const struct pool *pool)
{
    return pool->hardware == NULL ? 0 : pool->hardware->first.machine.devices.count;
}

void hardware_take_first(struct pool *pool)
{
    struct hardware *hardware = pool->hardware;

    if (hardware == NULL || !hardware->has_first)
        return;
    hardware->has_first = false;
    take_devices(hardware, &hardware->first);
    handover_looked(pool);
}

void hardware_finish(struct pool *pool)
{
    struct hardware *hardware = pool->hardware;

    if (hardware == NULL)
        return;
    if (hardware->probe.is_open)
        loop_remove(&pool->loop, &hardware->answers);
    probe_finish(&hardware->probe);
    timer_set_at(&pool->loop, &hardware->timer, LOOP_NEVER);
    machine_report_finish_problems(&hardware->problems);
    machine_report_finish(&hardware->first);
    free(hardware);
    pool->hardware = NULL;
}
