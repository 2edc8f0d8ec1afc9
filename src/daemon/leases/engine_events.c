/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/engine_events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/error.h"
#include "base/text/quantity.h"
#include "daemon/clients/connection.h"
#include "daemon/clients/quota.h"
#include "daemon/core/pidfd.h"
#include "daemon/devices/device_locks.h"
#include "daemon/leases/job.h"
#include "daemon/leases/journal_write.h"
#include "daemon/leases/lease_ending.h"
#include "daemon/leases/lease_warnings.h"
#include "daemon/leases/mps_tenants.h"
#include "daemon/leases/pool.h"
#include "daemon/leases/pool_facts.h"
#include "daemon/leases/pool_news.h"
#include "daemon/leases/prolog_epilog.h"
#include "daemon/mps/mps.h"
#include "daemon/mps/mps_site.h"
#include "daemon/stream/followers.h"
#include "daemon/stream/recorder_process.h"
#include "model/machine/tiles.h"

/* If a round of tests takes longer than this, the next round waits for this multiple of its
 * duration. */
#define TESTS_LONG  (DURATION_SECOND / 10000)
#define TESTS_PAUSE 10

#define HANDLED_EVENTS                                                               \
    (EVENT_BIT(EVENT_GRANTED) | EVENT_BIT(EVENT_REFUSED) | EVENT_BIT(EVENT_NOTICE) | \
     EVENT_BIT(EVENT_REVOKED) | EVENT_BIT(EVENT_EXPIRED) | EVENT_BIT(EVENT_RELEASED))

static const enum lease_end end_of_refusal[] = {
    [REFUSAL_CANCELLED] = LEASE_END_CANCELLED,
    [REFUSAL_TIMED_OUT] = LEASE_END_TIMED_OUT,
    [REFUSAL_IMPOSSIBLE] = LEASE_END_IMPOSSIBLE,
    [REFUSAL_PARENT_ENDED] = LEASE_END_PARENT,
};

static const int code_of_end[] = {
    [LEASE_END_EXPIRED] = BERTH_ERROR_TIMED_OUT, /* before its holder was notified */
    [LEASE_END_CANCELLED] = BERTH_ERROR_CANCELLED,   [LEASE_END_TIMED_OUT] = BERTH_ERROR_TIMED_OUT,
    [LEASE_END_IMPOSSIBLE] = BERTH_ERROR_IMPOSSIBLE, [LEASE_END_PARENT] = BERTH_ERROR_CANCELLED,
};

void engine_events_receive(void *context, const struct engine_event *event)
{
    struct pool *pool = context;
    struct pending_event *pending;

    if (pool->journaling)
        journal_write_event(pool, event);
    pool->changed = true;
    followers_note_event(pool->followers, event);
    /* engine_claim() returns the lease of a claim that is granted at once. */
    if ((EVENT_BIT(event->type) & HANDLED_EVENTS) == 0 ||
        (event->type == EVENT_GRANTED && !event->waited))
        return;
    pending = vector_append(&pool->pending_events);
    if (pending == NULL) {
        /* The journal has the event, so the next daemon processes it. */
        pool->lost = true;
        pool->loop.ended = true;
        return;
    }
    *pending = (struct pending_event){
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
    if (!quota_may_log_lease(job->holder->quota))
        return;
    log_begin(&pool->log, view->granted, "granted");
    log_number(&pool->log, "id", job->by_id.id);
    log_number(&pool->log, "uid", job->holder->uid);
    if (job->holder->account != job->holder->uid)
        log_number(&pool->log, "account", job->holder->account);
    log_number(&pool->log, "pid", (uint64_t)job->holder->pid);
    append_ids(pool, view, log_value(&pool->log, "devices"));
    log_number(&pool->log, "waited_ms", (uint64_t)(view->granted - job->since) / 1000000);
    /* A lease may have very many devices. */
    quota_charge_line(job->holder->quota, log_end(&pool->log));
}

/* Returns the facts of a device that a launch needs. A client gets all others by LOOK. */
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

/* Fills `devices` with as many of the lease's devices as fit into one message; returns the number.
 */
static uint32_t fill_grant(const struct machine *machine, const struct lease_view *view,
                           uint32_t start, struct device devices[WIRE_GRANT_DEVICES])
{
    uint32_t count = 0;
    size_t size = 0;

    while (count < WIRE_GRANT_DEVICES && start + count < view->slot_count &&
           size < WIRE_MESSAGE_MAX / 2) {
        devices[count] = granted_device(machine, view->slots[start + count]);
        size += pool_facts_device_size(&devices[count++]);
    }
    return count;
}

void engine_events_send_grant(struct pool *pool, struct job *job)
{
    struct device devices[WIRE_GRANT_DEVICES];
    struct lease_view view;
    struct text mps_root = {0};
    uint32_t count;

    if (job->connection == NULL || !engine_get_lease(pool->engine, job->by_lease.id, &view))
        return;
    if (engine_request_what(view.request)->sharing == SHARING_MPS)
        mps_site_append_root(mps_base(pool->mps), job->holder->uid, &mps_root);
    for (uint32_t start = 0; start < view.slot_count; start += count) {
        struct wire_message message = {
            .type = WIRE_GRANTED,
            .number = job->number,
            .id = job->by_id.id,
            .replicas = view.replicas,
            .granted = view.granted,
            .vendors = pool->vendors,
            .stay = lease_warnings_may_come(pool, job),
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

/* Watches the process that holds the lease. */
static bool watch_holder(struct pool *pool, struct job *job, struct berth_error *error)
{
    int process = job->connection != NULL && !job->adopted
                      ? pidfd_open_peer(job->connection->watch.descriptor, job->holder->pid)
                      : pidfd_open_process(job->holder->pid);

    if (process >= 0 && lease_ending_watch(pool, job, process))
        return true;
    error_set_errno(error, errno, "cannot watch process %d", (int)job->holder->pid);
    return false;
}

/* Ends a lease whose client was never notified. */
static void take_back_grant(struct pool *pool, struct job *job, const struct berth_error *error)
{
    struct lease_watch *guard = job_lease_watch(pool, job);

    if (guard != NULL && guard->refusal == NULL)
        guard->refusal = strdup(error->message);
    job->unprepared = true;
    job->end = LEASE_END_DIED;
    lease_ending_done(pool, job);
}

void engine_events_granted(struct pool *pool, struct job *job)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct lease_view view;

    job->state = JOB_HELD;
    /* The client hung up while the claim waited, and the grant came before the cancellation. */
    if (job->connection == NULL && !job->restored) {
        job->end = LEASE_END_DIED;
        lease_ending_done(pool, job);
        return;
    }
    if (engine_get_lease(pool->engine, job->by_lease.id, &view))
        log_grant(pool, job, &view);
    if (job->hold == LEASE_HOLD_PROCESS) {
        pool->clients.is_deferring = true;
        if (!watch_holder(pool, job, &error)) {
            take_back_grant(pool, job, &error);
            return;
        }
    }
    if (!prolog_epilog_prepare(pool, job) && !mps_tenants_prepare(pool, job))
        engine_events_notify_holder(pool, job);
    else if (job->end == 0)
        engine_events_send_waiting(job);
}

void engine_events_send_waiting(const struct job *job)
{
    if (job->connection != NULL)
        connection_send(job->connection, &(struct wire_message){
                                             .type = WIRE_WAITING,
                                             .number = job->number,
                                             .id = job->by_id.id,
                                         });
}

void engine_events_notify_holder(struct pool *pool, struct job *job)
{
    if (mps_tenants_prepare(pool, job))
        return;
    if (job->unprepared) {
        job->unprepared = false;
        journal_write_job(pool, job);
        followers_note(pool->followers, WIRE_NEWS_LEASE);
    }
    pool_news_lease_changed(pool, job);
    recorder_process_want(pool->recorder_process);
    lease_warnings_limit(pool, job);
    engine_events_send_grant(pool, job);
    /* No client knows the id of a reservation whose claimer hung up before the answer. */
    if (job->hold == LEASE_HOLD_NOTHING && job->connection != NULL && job->connection->closing)
        lease_ending_holder_gone(pool, job);
}

static void notify_watchers(struct pool *pool, const struct ended_job *ended)
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

/* Records the end of the job, notifies its watchers, and frees it. */
static void finish_job(struct pool *pool, struct job *job, enum lease_end end)
{
    struct ended_job ended = {
        .id = job->by_id.id,
        .uid = job->holder->uid,
        .end = end,
    };

    if (job->exit_code != NO_EXIT_CODE)
        ended.exit_code = optional_number_of((uint64_t)job->exit_code);
    if (job->by_lease.id != 0 ? quota_may_log_lease(job->holder->quota)
                              : quota_may_log(job->holder->quota)) {
        log_begin(&pool->log, pool_clock_now(&pool->clock), "ended");
        log_number(&pool->log, "id", ended.id);
        log_number(&pool->log, "uid", ended.uid);
        log_text(&pool->log, "reason", pool_info_describe_end(end));
        log_end(&pool->log);
    }
    if (job->by_lease.id != 0 && !job_is_preparing(job))
        pool_news_lease_ended(pool, job, end);
    else
        pool_counts_add_gone(&pool->counts, end);
    if (ended.exit_code.known)
        journal_write_ended(pool, &ended);
    job_remember_ended(pool, &ended);
    notify_watchers(pool, &ended);
    job_free(pool, job);
}

/* Refuses the client's claim with the reason of its end. */
static void refuse_claim(const struct job *job, enum lease_end end)
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

static void end_refused_claim(struct pool *pool, struct job *job, enum refusal reason)
{
    refuse_claim(job, end_of_refusal[reason]);
    finish_job(pool, job, end_of_refusal[reason]);
}

static void end_released_lease(struct pool *pool, struct job *job)
{
    enum lease_end end = job->end != 0 ? job->end : LEASE_END_PARENT;

    if (job_is_preparing(job)) {
        refuse_claim(job, end);
        finish_job(pool, job, end);
        return;
    }
    /* The job ended with its outer lease, which also ends its processes. */
    if (job->end == 0 && job->connection != NULL)
        lease_ending_send_notice(pool, job, end, pool_clock_now(&pool->clock) + pool->rules.grace);
    finish_job(pool, job, end);
}

static void process_event(struct pool *pool, const struct pending_event *pending)
{
    struct job *job = pending->type == EVENT_GRANTED || pending->type == EVENT_REFUSED
                          ? job_of_id(pool, pending->claim)
                          : job_of_lease(pool, pending->lease);

    if (job == NULL) {
        /* A restored claim without a job was granted before its cancellation. */
        if (pending->type == EVENT_GRANTED)
            engine_vacated(pool->engine, pending->lease, NULL);
        return;
    }
    switch (pending->type) {
    case EVENT_GRANTED:
        job_set_lease(pool, job, pending->lease);
        engine_events_granted(pool, job);
        break;
    case EVENT_REFUSED:
        end_refused_claim(pool, job, pending->reason);
        break;
    case EVENT_NOTICE:
        lease_ending_begin(pool, job, LEASE_END_REVOKED, pending->expires);
        break;
    case EVENT_REVOKED:
        /* A supervisor knows the deadline and enforces it itself; it gets a little more time. */
        if (job->connection == NULL)
            lease_ending_force(pool, job);
        break;
    case EVENT_EXPIRED:
        lease_ending_begin(pool, job, LEASE_END_EXPIRED,
                           pool_clock_now(&pool->clock) + pool->rules.grace);
        break;
    default:
        end_released_lease(pool, job);
    }
}

/* Answers a test, if it can be decided. Returns false if it still waits. */
static bool answer_test(struct pool *pool, struct watcher *watcher)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int code = engine_would_grant(pool->engine, watcher->cached->request, &error);

    if (code == CLAIM_WAITS && watcher->deadline > pool_clock_now(&pool->clock))
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

/* Repeats all tests. Many tests must not delay the other clients after each change: if one round
 * took long, the next one comes after a pause of ten times its duration. */
static void answer_tests(struct pool *pool)
{
    int64_t next = TIME_NEVER;
    int64_t began = -1; /* the clock costs a system call, and most often there is no test */
    int64_t spent;

    if (pool->tests_again > loop_now(&pool->loop)) {
        loop_set_timer(&pool->loop, &pool->test_timer, pool->tests_again);
        return;
    }
    list_for_each (link, &pool->watchers) {
        struct watcher *watcher = container_of(link, struct watcher, in_pool);

        if (watcher->cached == NULL && watcher->adopting == NULL)
            continue;
        if (began < 0)
            began = loop_processor_time(&pool->loop);
        if (watcher->adopting != NULL ? pool->handlers.retry_adoption(watcher)
                                      : answer_test(pool, watcher))
            watcher_free(watcher);
        else if (watcher->deadline < next)
            next = watcher->deadline;
    }
    spent = began < 0 ? 0 : loop_processor_time(&pool->loop) - began;
    if (spent > TESTS_LONG)
        pool->tests_again = loop_now(&pool->loop) + TESTS_PAUSE * spent;
    loop_set_timer(&pool->loop, &pool->test_timer,
                   next == TIME_NEVER ? LOOP_NEVER : pool_clock_loop_time(&pool->clock, next));
}

void engine_events_settle(struct pool *pool)
{
    while (pool->pending_events.count > 0) {
        for (size_t i = 0; i < pool->pending_events.count; i++) {
            struct pending_event pending = pool->pending_events.items[i];

            process_event(pool, &pending);
        }
        pool->pending_events.count = 0;
        device_locks_update(pool->device_locks);
    }
    if (pool->changed && !list_is_empty(&pool->watchers))
        answer_tests(pool);
    pool->changed = false;
}
