/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/devices/probe_poll.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/count.h"
#include "base/error.h"
#include "probe/probe.h"

/* The maximum number of late answers before a probe is given up. */
enum { IGNORED_MAX = 16 };

struct probe_poll {
    struct probe_poll_settings settings;
    struct probe probe;
    struct watch answers; /* while the probe is open */
    struct timer timer;   /* of the next action */
    int64_t deadline;     /* of a request */
    bool is_asked;        /* an answer is due */
    bool is_whole;        /* and is about all devices */
    bool is_awaited;      /* claims wait for an answer about all devices */
    int64_t seen_at;      /* when the last answer about all devices was requested */
    uint64_t reports;     /* that have come or failed */
    bool has_report;      /* there was one */
    uint64_t number;      /* of the request */
    int64_t asked_at;     /* of the last one; times are the loop's */
    int64_t start_at;     /* when the probe is started, while it is not open */
    int64_t watched_at;
    unsigned ignored;                       /* answers since the last report */
    unsigned failures;                      /* since the last report */
    char failure[BERTH_ERROR_MESSAGE_SIZE]; /* that was logged last */
    struct problem_list problems;
    struct machine_report first; /* until probe_poll_begin() */
    bool has_first;
    bool has_begun;
};

static int64_t now_of(const struct probe_poll *poll)
{
    return loop_now(poll->settings.loop);
}

int64_t probe_poll_interval(bool watched, bool busy)
{
    if (watched)
        return PROBE_POLL_WATCHED_EVERY;
    return busy ? PROBE_POLL_BUSY_EVERY : PROBE_POLL_IDLE_EVERY;
}

int64_t probe_poll_restart_after(unsigned failures)
{
    int64_t after = PROBE_POLL_RESTART_MIN;

    while (failures-- > 1 && after < PROBE_POLL_RESTART_MAX)
        after *= 2;
    return after < PROBE_POLL_RESTART_MAX ? after : PROBE_POLL_RESTART_MAX;
}

/* ---- Reports ---- */

/* Replaces the problems of the last report; logs the new ones. */
static void take_problems(struct probe_poll *poll, struct problem_list *found)
{
    const struct probe_poll_settings *settings = &poll->settings;
    const struct problem *problem;

    vector_for_each (problem, found) {
        if (!machine_report_has_problem(&poll->problems, problem->backend, problem->message))
            log_line(settings->log, pool_clock_now(settings->clock), "problem",
                     "backend=%s message=%s", log_quote(problem->backend).text,
                     log_quote(problem->message).text);
    }
    machine_report_finish_problems(&poll->problems);
    poll->problems = *found;
    *found = (struct problem_list){0};
}

static void pass_on(struct probe_poll *poll, struct machine_report *report)
{
    const struct probe_poll_events *events = &poll->settings.events;
    struct problem_list problems = report->problems;
    struct berth_error error = BERTH_ERROR_INIT;

    report->problems = (struct problem_list){0};
    if (events->take(events->context, report, &error) < 0)
        machine_report_add_problem(&problems, "pool", "%s", error.message);
    take_problems(poll, &problems);
}

static void take_report(struct probe_poll *poll, struct machine_report *report)
{
    if (poll->has_begun) {
        pass_on(poll, report);
        return;
    }
    machine_report_finish(&poll->first);
    poll->first = *report;
    poll->has_first = true;
}

/* Gives the probe up. Another one is started later. */
static void lose_probe(struct probe_poll *poll, const struct berth_error *error)
{
    const struct probe_poll_settings *settings = &poll->settings;

    if (poll->probe.is_open)
        loop_remove(settings->loop, &poll->answers);
    probe_finish(&poll->probe);
    poll->is_asked = false;
    poll->ignored = 0;
    poll->failures++;
    poll->start_at = now_of(poll) + probe_poll_restart_after(poll->failures);
    poll->is_awaited = false;
    poll->reports++;
    machine_report_add_problem(&poll->problems, "probe", "%s", error->message);
    if (strcmp(poll->failure, error->message) != 0)
        log_line(settings->log, pool_clock_now(settings->clock), "probe", "what=lost reason=%s",
                 log_quote(error->message).text);
    snprintf(poll->failure, sizeof(poll->failure), "%s", error->message);
    if (!poll->has_begun)
        return;
    settings->events.lost(settings->events.context);
    settings->events.answered(settings->events.context);
}

/* Counts an answer without a request. Very many of them would keep the daemon busy. */
static void ignore_answer(struct probe_poll *poll, struct probe_answer *answer)
{
    struct berth_error error = BERTH_ERROR_INIT;

    machine_report_finish(&answer->report);
    if (++poll->ignored <= IGNORED_MAX)
        return;
    error_set(&error, BERTH_ERROR_SYNTAX,
              "berth-probe: expected one answer to each request, got more");
    lose_probe(poll, &error);
}

/* Receives the answers that have arrived. */
static void receive_answers(struct probe_poll *poll)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct probe_answer answer;
    int code;

    while (poll->probe.is_open && (code = probe_receive(&poll->probe, &answer, &error)) != 0) {
        if (code < 0) {
            lose_probe(poll, &error);
        } else if (!poll->is_asked || answer.number != poll->number) {
            ignore_answer(poll, &answer);
        } else {
            poll->is_asked = false;
            poll->ignored = 0;
            poll->has_report = true;
            poll->reports++;
            if (poll->failures > 0)
                log_line(poll->settings.log, pool_clock_now(poll->settings.clock), "probe",
                         "what=back");
            poll->failures = 0;
            poll->failure[0] = '\0';
            if (poll->is_whole) {
                poll->seen_at = poll->asked_at;
                poll->is_awaited = false;
            }
            take_report(poll, &answer.report);
            if (poll->has_begun)
                poll->settings.events.answered(poll->settings.events.context);
        }
    }
}

/* ---- Asking ---- */

static void watch_out(struct probe_poll *poll)
{
    bool has_unsent = probe_channel_has_unsent(&poll->probe.channel);

    loop_change(poll->settings.loop, &poll->answers,
                EPOLLIN | (has_unsent ? (uint32_t)EPOLLOUT : 0));
}

static void answers_are_ready(struct watch *watch, uint32_t events)
{
    struct probe_poll *poll = container_of(watch, struct probe_poll, answers);

    if ((events & EPOLLOUT) != 0) {
        /* A probe that has ended is noticed by receiving. */
        probe_channel_flush(&poll->probe.channel);
        watch_out(poll);
    }
    receive_answers(poll);
}

/* Asks about all devices, or only about those that need a report. */
static void request_report(struct probe_poll *poll, bool whole)
{
    const struct probe_poll_events *events = &poll->settings.events;
    struct berth_error error = BERTH_ERROR_INIT;
    struct probe_request request = {.deadline = (uint64_t)poll->deadline};
    int code;

    if (poll->has_begun)
        events->request(events->context, whole ? NULL : &request.only);
    poll->asked_at = now_of(poll);
    poll->is_whole = request.only.count == 0;
    code = probe_send(&poll->probe, &request, &error);
    vector_finish(&request.only);
    if (code < 0) {
        lose_probe(poll, &error);
        return;
    }
    poll->number = request.number;
    poll->is_asked = true;
    if (probe_channel_has_unsent(&poll->probe.channel))
        watch_out(poll);
}

static int start_program(struct probe_poll *poll, struct berth_error *error)
{
    const struct probe_poll_settings *settings = &poll->settings;

    return settings->spawn == NULL
               ? probe_start(&poll->probe, error)
               : probe_start_with(&poll->probe, settings->spawn, settings->spawn_context, error);
}

static void start_probe(struct probe_poll *poll)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int code = start_program(poll, &error);

    if (code == 0) {
        poll->answers = (struct watch){
            .descriptor = poll->probe.channel.descriptor,
            .ready = answers_are_ready,
        };
        code = loop_add(poll->settings.loop, &poll->answers, EPOLLIN, &error);
        if (code < 0)
            probe_finish(&poll->probe);
    }
    if (code < 0)
        lose_probe(poll, &error);
    else
        request_report(poll, true);
}

/* ---- The schedule ---- */

static bool needs_report(const struct probe_poll *poll)
{
    const struct probe_poll_events *events = &poll->settings.events;

    return poll->has_begun && events->needs_report(events->context);
}

static int64_t find_interval(const struct probe_poll *poll)
{
    const struct probe_poll_events *events = &poll->settings.events;
    bool watched = now_of(poll) - poll->watched_at < PROBE_POLL_WATCHED_FOR;
    int64_t interval = probe_poll_interval(watched, events->is_busy(events->context));
    int64_t followed = events->followed_interval(events->context);

    if (followed != 0 && followed < PROBE_POLL_WATCHED_EVERY)
        followed = PROBE_POLL_WATCHED_EVERY;
    return followed != 0 && followed < interval ? followed : interval;
}

static int64_t next_time(const struct probe_poll *poll)
{
    if (!poll->probe.is_open)
        return poll->start_at;
    if (poll->is_asked)
        return poll->asked_at + poll->deadline + PROBE_DEADLINE_GRACE;
    if (poll->is_awaited || needs_report(poll))
        return now_of(poll);
    return poll->seen_at + find_interval(poll);
}

/* Returns whether the next request must be about all devices. */
static bool is_whole_due(const struct probe_poll *poll)
{
    return poll->is_awaited || !needs_report(poll) ||
           now_of(poll) >= poll->seen_at + find_interval(poll);
}

static void act_when_due(struct timer *timer)
{
    struct probe_poll *poll = container_of(timer, struct probe_poll, timer);
    struct berth_error error = BERTH_ERROR_INIT;

    if (now_of(poll) < next_time(poll))
        return;
    if (!poll->probe.is_open) {
        start_probe(poll);
    } else if (poll->is_asked) {
        error_set(&error, BERTH_ERROR_TIMED_OUT,
                  "cannot read the hardware: berth-probe did not answer within %s",
                  quantity_format_duration(poll->deadline).text);
        lose_probe(poll, &error);
    } else {
        request_report(poll, is_whole_due(poll));
    }
}

void probe_poll_schedule(struct probe_poll *poll)
{
    int64_t next;

    if (poll == NULL)
        return;
    next = next_time(poll);
    if (poll->timer.at != next || !list_is_linked(&poll->timer.in_loop))
        loop_set_timer(poll->settings.loop, &poll->timer, next);
}

bool probe_poll_answers(const struct probe_poll *poll)
{
    return poll != NULL && poll->probe.is_open;
}

uint64_t probe_poll_report_count(const struct probe_poll *poll)
{
    return poll == NULL ? 0 : poll->reports;
}

uint64_t probe_poll_reports_needed(const struct probe_poll *poll)
{
    uint64_t coming = 0;

    if (probe_poll_answers(poll) &&
        poll->settings.events.awaits_report(poll->settings.events.context))
        coming = (poll->is_asked ? 1 : 0) + (needs_report(poll) ? 1 : 0);
    return coming == 0 ? 0 : poll->reports + coming;
}

bool probe_poll_is_awaited(const struct probe_poll *poll)
{
    return poll != NULL && poll->is_awaited;
}

bool probe_poll_must_wait(struct probe_poll *poll, bool anew)
{
    int64_t fresh = anew ? PROBE_POLL_NEW_FOR : PROBE_POLL_FRESH_FOR;

    if (!probe_poll_answers(poll) || now_of(poll) - poll->seen_at <= fresh)
        return false;
    poll->is_awaited = true;
    if (!poll->is_asked)
        request_report(poll, true);
    return poll->is_awaited;
}

void probe_poll_watched(struct probe_poll *poll)
{
    if (poll != NULL)
        poll->watched_at = now_of(poll);
}

const struct problem_list *probe_poll_problems(const struct probe_poll *poll)
{
    return poll == NULL ? NULL : &poll->problems;
}

void probe_poll_explain(const struct probe_poll *poll, struct berth_error *error)
{
    const struct problem *problem;

    if (poll == NULL || error->code != BERTH_ERROR_NO_DEVICE)
        return;
    if (poll->problems.count > 0) {
        problem = &poll->problems.items[0];
        error_set(error, BERTH_ERROR_NO_DEVICE, "this pool has no devices; %s: %s",
                  problem->backend, problem->message);
    } else if (!poll->has_report) {
        error_set(error, BERTH_ERROR_NO_DEVICE,
                  "this pool has no devices yet: the hardware is still being probed");
    }
}

/* ---- Start and end ---- */

int probe_poll_create(struct probe_poll **ret_poll, const struct probe_poll_settings *settings,
                      struct berth_error *error)
{
    struct probe_poll *poll = calloc(1, sizeof(*poll));
    struct berth_error ignored = BERTH_ERROR_INIT;

    if (poll == NULL)
        return error_set_memory(error);
    poll->settings = *settings;
    poll->timer.fire = act_when_due;
    poll->watched_at = -PROBE_POLL_WATCHED_FOR;
    poll->deadline = PROBE_DEADLINE_DEFAULT;
    if (probe_deadline(&poll->deadline, &ignored) < 0)
        log_line(settings->log, pool_clock_now(settings->clock), "error", "reason=%s",
                 log_quote(ignored.message).text);
    start_probe(poll);
    *ret_poll = poll;
    return 0;
}

/* Waits for the answer until then, and no longer than its deadline. Returns false when `signals` is
 * readable: the daemon must end. */
static bool await_answer(struct probe_poll *waiting, int signals, int64_t until)
{
    if (until > waiting->asked_at + waiting->deadline + PROBE_DEADLINE_GRACE)
        until = waiting->asked_at + waiting->deadline + PROBE_DEADLINE_GRACE;
    while (waiting->is_asked) {
        struct pollfd descriptors[] = {
            {.fd = waiting->probe.channel.descriptor, .events = POLLIN},
            {.fd = signals, .events = POLLIN},
        };
        int64_t left = until - now_of(waiting);

        if (left <= 0)
            return true;
        poll(descriptors, COUNT(descriptors), (int)(left / 1000000) + 1);
        if (descriptors[1].revents != 0)
            return false;
        receive_answers(waiting);
    }
    return true;
}

/* Returns whether the report has no devices because a driver took too long: a library may need many
 * seconds to start. Without a further wait, claims would be refused for want of a device. */
static bool is_premature(const struct probe_poll *poll)
{
    const struct machine_report *first = &poll->first;
    int64_t taken = now_of(poll) - poll->asked_at;

    return poll->has_first && first->machine.devices.count == 0 && first->listed != VENDORS_ALL &&
           taken > poll->deadline / 2;
}

void probe_poll_await(struct probe_poll *poll, int signals)
{
    int64_t until;
    bool goes_on;

    if (poll == NULL)
        return;
    until = now_of(poll) + PROBE_POLL_START_TIMEOUT;
    goes_on = await_answer(poll, signals, until);
    while (goes_on && is_premature(poll) && now_of(poll) < until) {
        request_report(poll, true);
        goes_on = await_answer(poll, signals, until);
    }
    if (!poll->has_first)
        log_line(poll->settings.log, pool_clock_now(poll->settings.clock), "probe", "what=late");
}

size_t probe_poll_first_count(const struct probe_poll *poll)
{
    return poll == NULL ? 0 : poll->first.machine.devices.count;
}

void probe_poll_begin(struct probe_poll *poll)
{
    if (poll == NULL)
        return;
    poll->has_begun = true;
    if (!poll->has_first)
        return;
    poll->has_first = false;
    pass_on(poll, &poll->first);
    poll->first = (struct machine_report){0};
}

void probe_poll_destroy(struct probe_poll *poll)
{
    if (poll == NULL)
        return;
    if (poll->probe.is_open)
        loop_remove(poll->settings.loop, &poll->answers);
    probe_finish(&poll->probe);
    loop_set_timer(poll->settings.loop, &poll->timer, LOOP_NEVER);
    machine_report_finish_problems(&poll->problems);
    machine_report_finish(&poll->first);
    free(poll);
}
