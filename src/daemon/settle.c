/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/settle.h"

#include <stdlib.h>

#include "base/count.h"
#include "base/error.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "daemon/adoption.h"
#include "daemon/checks.h"
#include "daemon/connection.h"
#include "daemon/ending.h"
#include "daemon/jobs.h"
#include "daemon/keep.h"
#include "daemon/messages.h"
#include "daemon/mps.h"
#include "daemon/names.h"
#include "daemon/news.h"
#include "daemon/notices.h"
#include "daemon/past.h"
#include "daemon/process.h"
#include "daemon/recorder.h"
#include "daemon/users.h"
#include "model/machine/tiles.h"

/* Asking for all that test took long; how much longer the pause after it is. */
#define TESTS_LONG  (DURATION_SECOND / 10000)
#define TESTS_PAUSE 10

#define DEALT_WITH                                                                   \
    (EVENT_BIT(EVENT_GRANTED) | EVENT_BIT(EVENT_REFUSED) | EVENT_BIT(EVENT_NOTICE) | \
     EVENT_BIT(EVENT_REVOKED) | EVENT_BIT(EVENT_EXPIRED) | EVENT_BIT(EVENT_RELEASED))

static const enum lease_end end_of_refusal[] = {
    [REFUSAL_CANCELLED] = LEASE_END_CANCELLED,
    [REFUSAL_TIMED_OUT] = LEASE_END_TIMED_OUT,
    [REFUSAL_IMPOSSIBLE] = LEASE_END_IMPOSSIBLE,
    [REFUSAL_PARENT_ENDED] = LEASE_END_PARENT,
};

static const int code_of_end[] = {
    [LEASE_END_EXPIRED] = BERTH_ERROR_TIMED_OUT, /* before its holder was told of it */
    [LEASE_END_CANCELLED] = BERTH_ERROR_CANCELLED,   [LEASE_END_TIMED_OUT] = BERTH_ERROR_TIMED_OUT,
    [LEASE_END_IMPOSSIBLE] = BERTH_ERROR_IMPOSSIBLE, [LEASE_END_PARENT] = BERTH_ERROR_CANCELLED,
};

void pool_tell(void *context, const struct engine_event *event)
{
    struct pool *pool = context;
    struct happening *happening;

    if (pool->journaling)
        keep_event(pool, event);
    pool->changed = true;
    news_note_event(pool, event);
    /* Who was granted at once knows it by its call. */
    if ((EVENT_BIT(event->type) & DEALT_WITH) == 0 ||
        (event->type == EVENT_GRANTED && !event->waited))
        return;
    happening = vector_append(&pool->happenings);
    if (happening == NULL) {
        /* The journal knows; whoever reads it next will do what is to be done. */
        pool->lost = true;
        pool->loop.ended = true;
        return;
    }
    *happening = (struct happening){
        .type = event->type,
        .claim = event->claim,
        .lease = event->lease,
        .reason = event->reason,
        .expires = event->expires,
    };
}

static void append_ids(const struct pool *pool, const struct lease_view *view, struct text *out)
{
    const struct machine *machine = engine_machine(pool->engine);

    for (uint32_t i = 0; i < view->slot_count; i++) {
        text_append(out, i == 0 ? "" : ",");
        device_id_append(machine->devices.items[view->slots[i]].id, out);
    }
}

static void log_grant(struct pool *pool, const struct job *job, const struct lease_view *view)
{
    log_begin(&pool->log, view->granted, "granted");
    log_number(&pool->log, "id", job->by_id.id);
    log_number(&pool->log, "uid", job->holder->uid);
    log_number(&pool->log, "pid", (uint64_t)job->holder->pid);
    append_ids(pool, view, log_value(&pool->log, "devices"));
    log_number(&pool->log, "waited_ms", (uint64_t)(view->granted - job->since) / 1000000);
    log_end(&pool->log);
}

/* What launching needs to know of a device; who wants to know more looks. */
static struct device granted_device(const struct machine *machine, size_t slot)
{
    const struct device *device = &machine->devices.items[slot];
    struct device granted = {
        .id = device->id,
        .uuid = device->uuid,
        .parent = device->parent,
        .cpus = device->cpus,
        .pci = device->pci,
        .nodes = device->nodes,
    };

    if (device->id.vendor == VENDOR_INTEL) {
        struct tiles_position place = tiles_find_position(machine, slot);

        granted.tiles = device->tiles;
        granted.ordinal = optional_number_of(place.ordinal);
        granted.first_tile = optional_number_of(place.first_tile);
    }
    return granted;
}

/* Puts as many of the lease's devices into `devices` as one message takes. */
static uint32_t fill_grant(const struct machine *machine, const struct lease_view *view,
                           uint32_t start, struct device devices[WIRE_GRANT_DEVICES])
{
    uint32_t count = 0;
    size_t size = 0;

    while (count < WIRE_GRANT_DEVICES && start + count < view->slot_count &&
           size < WIRE_MESSAGE_MAX / 2) {
        devices[count] = granted_device(machine, view->slots[start + count]);
        size += look_device_size(&devices[count++]);
    }
    return count;
}

void settle_send_grant(struct pool *pool, struct job *job)
{
    struct device devices[WIRE_GRANT_DEVICES];
    struct lease_view view;
    struct text mps_root = {0};
    uint32_t count;

    if (job->connection == NULL || !engine_get_lease(pool->engine, job->by_lease.id, &view))
        return;
    if (engine_request_what(view.request)->sharing == SHARING_MPS)
        mps_append_root(pool, job->holder->uid, &mps_root);
    for (uint32_t start = 0; start < view.slot_count; start += count) {
        struct wire_message message = {
            .type = WIRE_GRANTED,
            .number = job->number,
            .id = job->by_id.id,
            .replicas = view.replicas,
            .granted = view.granted,
            .vendors = pool->vendors,
            .stay = notices_may_come(pool, job),
            .about.socket = (char *)pool->settings.socket,
            .about.pool = pool->name,
            .mps_root = mps_root.bytes,
        };

        count = fill_grant(engine_machine(pool->engine), &view, start, devices);
        message.devices.items = devices;
        message.devices.count = count;
        message.more = start + count < view.slot_count;
        if (view.expires != TIME_NEVER)
            message.expires = optional_number_of((uint64_t)view.expires);
        connection_send(job->connection, &message);
    }
    text_finish(&mps_root);
}

void settle_granted(struct pool *pool, struct job *job)
{
    struct lease_view view;
    int process = -1;

    job->state = JOB_HELD;
    /* Its client went while it waited, and it was granted before it could be cancelled. */
    if (job->connection == NULL && !job->restored) {
        job->end = LEASE_END_DIED;
        ending_done(pool, job);
        return;
    }
    if (engine_get_lease(pool->engine, job->by_lease.id, &view))
        log_grant(pool, job, &view);
    if (job->hold == LEASE_HOLD_PROCESS) {
        pool->has_granted = true;
        process = job->connection != NULL && !job->adopted
                      ? process_open_peer(job->connection->watch.descriptor, job->holder->pid)
                      : process_open(job->holder->pid, job->holder->started);
        if (!ending_watch(pool, job, process)) {
            ending_holder_gone(pool, job);
            return;
        }
    }
    if (!checks_prepare(pool, job) && !mps_prepare(pool, job))
        settle_told(pool, job);
    else if (job->end == 0)
        settle_send_waiting(job);
}

void settle_send_waiting(const struct job *job)
{
    if (job->connection != NULL)
        connection_send(job->connection, &(struct wire_message){
                                             .type = WIRE_WAITING,
                                             .number = job->number,
                                             .id = job->by_id.id,
                                         });
}

void settle_told(struct pool *pool, struct job *job)
{
    if (mps_prepare(pool, job))
        return;
    if (job->unprepared) {
        job->unprepared = false;
        keep_job(pool, job);
        news_note(pool, WIRE_NEWS_LEASE);
    }
    past_lease(pool, job);
    recorder_want(pool);
    notice_limit(pool, job);
    settle_send_grant(pool, job);
    /* Nobody would ever know of a reservation whose claimer hung up before it was told. */
    if (job->hold == LEASE_HOLD_NOTHING && job->connection != NULL && job->connection->closing)
        ending_holder_gone(pool, job);
}

static void tell_ended(struct pool *pool, const struct ended *ended)
{
    list_for_each (link, &pool->watchers) {
        struct watcher *watcher = container_of(link, struct watcher, in_pool);

        if (watcher->id != ended->id)
            continue;
        connection_send(watcher->connection, &(struct wire_message){
                                                 .type = WIRE_ENDED,
                                                 .number = watcher->number,
                                                 .id = ended->id,
                                                 .end = ended->end,
                                                 .exit_code = ended->exit_code,
                                             });
        watcher_free(watcher);
    }
}

/* The job is over: remembers it, tells who waits for it, forgets the rest. */
static void finish_job(struct pool *pool, struct job *job, enum lease_end end)
{
    struct ended ended = {
        .id = job->by_id.id,
        .uid = job->holder->uid,
        .end = end,
    };

    if (job->exit_code != NO_EXIT_CODE)
        ended.exit_code = optional_number_of((uint64_t)job->exit_code);
    if (job->by_lease.id != 0 || user_may_log(job->holder->user)) {
        log_begin(&pool->log, pool_now(pool), "ended");
        log_number(&pool->log, "id", ended.id);
        log_number(&pool->log, "uid", ended.uid);
        log_text(&pool->log, "reason", pool_info_describe_end(end));
        log_end(&pool->log);
    }
    if (job->by_lease.id != 0 && !job_is_preparing(job))
        past_ended(pool, job, end);
    else
        tally_gone(pool, end);
    if (ended.exit_code.known)
        keep_ended(pool, &ended);
    ended_remember(pool, &ended);
    tell_ended(pool, &ended);
    job_free(pool, job);
}

/* Tells whoever claimed that there will be no lease. */
static void refuse(const struct job *job, enum lease_end end)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int code = (size_t)end < COUNT(code_of_end) ? code_of_end[end] : 0;

    if (job->connection == NULL)
        return;
    if (job->guard != NULL && job->guard->refusal != NULL)
        error_set(&error, BERTH_ERROR_IO, "%s", job->guard->refusal);
    else
        error_set(&error, code != 0 ? code : BERTH_ERROR_CANCELLED, "%s",
                  pool_info_describe_end(end));
    connection_refuse(job->connection, job->number, &error);
}

static void claim_refused(struct pool *pool, struct job *job, enum refusal reason)
{
    refuse(job, end_of_refusal[reason]);
    finish_job(pool, job, end_of_refusal[reason]);
}

static void lease_released(struct pool *pool, struct job *job)
{
    enum lease_end end = job->end != 0 ? job->end : LEASE_END_PARENT;

    if (job_is_preparing(job)) {
        refuse(job, end);
        finish_job(pool, job, end);
        return;
    }
    /* Nobody ended it but the lease around it; its processes are the outer lease's to end. */
    if (job->end == 0 && job->connection != NULL)
        ending_send_notice(pool, job, end, pool_now(pool) + pool->rules.grace);
    finish_job(pool, job, end);
}

static void deal_with(struct pool *pool, const struct happening *happening)
{
    struct job *job = happening->type == EVENT_GRANTED || happening->type == EVENT_REFUSED
                          ? job_of_id(pool, happening->claim)
                          : job_of_lease(pool, happening->lease);

    if (job == NULL) {
        /* Granted to one that was restored without a job before it could be cancelled. */
        if (happening->type == EVENT_GRANTED)
            engine_vacated(pool->engine, happening->lease, NULL);
        return;
    }
    switch (happening->type) {
    case EVENT_GRANTED:
        job_set_lease(pool, job, happening->lease);
        settle_granted(pool, job);
        break;
    case EVENT_REFUSED:
        claim_refused(pool, job, happening->reason);
        break;
    case EVENT_NOTICE:
        ending_begin(pool, job, LEASE_END_REVOKED, happening->expires);
        break;
    case EVENT_REVOKED:
        /* A supervisor knew the time, and has a little more. */
        if (job->connection == NULL)
            ending_force(pool, job);
        break;
    case EVENT_EXPIRED:
        ending_begin(pool, job, LEASE_END_EXPIRED, pool_now(pool) + pool->rules.grace);
        break;
    default:
        lease_released(pool, job);
    }
}

/* Whether one that tests has its answer. */
static bool test_answered(struct pool *pool, struct watcher *watcher)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int code = engine_would_grant(pool->engine, watcher->asked->request, &error);

    if (code == CLAIM_WAITS && watcher->deadline > pool_now(pool))
        return false;
    if (code == CLAIM_WAITS)
        code = error_set(&error, BERTH_ERROR_TIMED_OUT, "not granted within %s (--wait)",
                         quantity_format_duration(watcher->wait).text);
    if (code < 0)
        connection_refuse(watcher->connection, watcher->number, &error);
    else
        connection_send(watcher->connection, &(struct wire_message){
                                                 .type = WIRE_DONE,
                                                 .number = watcher->number,
                                             });
    return true;
}

/* Many that test must not keep everybody else waiting with every change: when asking for all of
 * them took long, the next time comes not before ten times as long has passed. */
static void answer_tests(struct pool *pool)
{
    int64_t next = TIME_NEVER;
    int64_t began = clock_now();

    if (pool->tests_again > loop_now(&pool->loop)) {
        timer_set_at(&pool->loop, &pool->test_timer, pool->tests_again);
        return;
    }
    list_for_each (link, &pool->watchers) {
        struct watcher *watcher = container_of(link, struct watcher, in_pool);

        if (watcher->asked == NULL && watcher->adopting == NULL)
            continue;
        if (watcher->adopting != NULL ? adoption_answered(watcher) : test_answered(pool, watcher))
            watcher_free(watcher);
        else if (watcher->deadline < next)
            next = watcher->deadline;
    }
    if (clock_now() - began > TESTS_LONG)
        pool->tests_again = loop_now(&pool->loop) + TESTS_PAUSE * (clock_now() - began);
    timer_set_at(&pool->loop, &pool->test_timer,
                 next == TIME_NEVER ? LOOP_NEVER : pool_loop_time(pool, next));
}

void pool_settle(struct pool *pool)
{
    while (pool->happenings.count > 0) {
        for (size_t i = 0; i < pool->happenings.count; i++) {
            struct happening happening = pool->happenings.items[i];

            deal_with(pool, &happening);
        }
        pool->happenings.count = 0;
        names_update(pool);
    }
    if (pool->changed && !list_is_empty(&pool->watchers))
        answer_tests(pool);
    pool->changed = false;
}
