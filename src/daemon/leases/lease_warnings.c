/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/lease_warnings.h"

#include <inttypes.h>
#include <linux/capability.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "daemon/clients/connection.h"
#include "daemon/clients/quota.h"
#include "daemon/devices/probe_poll.h"
#include "daemon/leases/engine_events.h"
#include "daemon/leases/job.h"
#include "daemon/leases/lease_ending.h"
#include "daemon/leases/notify_program.h"
#include "daemon/leases/pool.h"
#include "daemon/stream/followers.h"

/* A lease is short if it is at most this many warning times long. */
enum { SHORT_TIMES = 4 };

struct lease_warnings {
    struct pool *pool;
    int64_t since;       /* the start of the daemon, in the loop's time */
    int64_t judged_at;   /* the time of the last check; 0: none */
    struct timer timer;  /* of the next warning */
    struct list watches; /* of struct lease_watch, those with a time limit */
    bool sees_all;       /* the probe sees the processes of every user */
};

/* ---- Holders ---- */

/* Formats a duration for a sentence, in whole seconds. */
static struct quantity_text format_seconds(int64_t duration)
{
    int64_t seconds = (duration + DURATION_SECOND / 2) / DURATION_SECOND;

    return quantity_format_duration(seconds * DURATION_SECOND);
}

/* Sends a warning to the holder. `left` 0: the lease goes on. */
static void warn_holder(struct pool *pool, const struct job *job, enum lease_end end, int64_t left)
{
    followers_note(pool->followers, WIRE_NEWS_LEASE);
    if (quota_may_log_lease(job->holder->quota))
        log_line(&pool->log, pool_clock_now(&pool->clock), "warning",
                 "id=%" PRIu64 " uid=%u reason=\"%s\"", job->by_id.id, job->holder->uid,
                 pool_info_describe_end(end));
    if (job->connection != NULL)
        connection_send(job->connection, &(struct wire_message){
                                             .type = WIRE_WARNING,
                                             .number = job->number,
                                             .id = job->by_id.id,
                                             .end = end,
                                             .duration = left > 0 ? (uint64_t)left : 0,
                                         });
}

bool lease_warnings_may_come(const struct pool *pool, const struct job *job)
{
    return pool->probe_poll != NULL && job->holder->parent == 0 &&
           (pool->rules.idle_warning != 0 || pool->rules.idle_reclaim != 0);
}

/* ---- Time limits ---- */

int64_t lease_warnings_limit_time(int64_t granted, int64_t expires, int64_t before)
{
    int64_t length = expires - granted;

    if (expires == TIME_NEVER || before == 0)
        return TIME_NEVER;
    if (length / SHORT_TIMES < before)
        before = length / SHORT_TIMES < DURATION_SECOND ? DURATION_SECOND : length / SHORT_TIMES;
    return before < length ? expires - before : TIME_NEVER;
}

static void warn_of_limit(struct pool *pool, const struct job *job)
{
    struct text what = {0};
    struct lease_view view;
    int64_t left;

    if (job->end != 0 || !engine_get_lease(pool->engine, job->by_lease.id, &view))
        return;
    left = view.expires - pool_clock_now(&pool->clock);
    if (left <= 0)
        return;
    warn_holder(pool, job, LEASE_END_EXPIRED, left);
    /* A reconnected client gets the warning again, but the notify program does not run again. */
    if (job->guard->warned_limit == view.expires)
        return;
    job->guard->warned_limit = view.expires;
    text_append_format(&what, "ends in %s by its time limit", format_seconds(left).text);
    notify_program_lease(pool, job, "ending", &what);
    text_finish(&what);
}

static void warnings_are_due(struct timer *timer)
{
    struct lease_warnings *warnings = container_of(timer, struct lease_warnings, timer);
    struct pool *pool = warnings->pool;
    int64_t next = TIME_NEVER;

    list_for_each (link, &warnings->watches) {
        struct lease_watch *guard = container_of(link, struct lease_watch, in_warnings);

        if (guard->warn_at > pool_clock_now(&pool->clock)) {
            next = guard->warn_at < next ? guard->warn_at : next;
            continue;
        }
        list_remove(&guard->in_warnings);
        /* A restored client gets the warning when it reconnects. */
        if (!guard->job->restored)
            warn_of_limit(pool, guard->job);
    }
    loop_set_timer(&pool->loop, timer, pool_clock_loop_time(&pool->clock, next));
}

void lease_warnings_limit(struct pool *pool, struct job *job)
{
    struct lease_warnings *warnings = pool->lease_warnings;
    struct lease_view view;
    int64_t at;

    if (!engine_get_lease(pool->engine, job->by_lease.id, &view))
        return;
    at = lease_warnings_limit_time(view.granted, view.expires, pool->rules.time_warning);
    if (job->guard != NULL)
        list_remove(&job->guard->in_warnings);
    if (at == TIME_NEVER || job_lease_watch(pool, job) == NULL)
        return;
    job->guard->warn_at = at;
    list_append(&warnings->watches, &job->guard->in_warnings);
    if (!list_is_linked(&warnings->timer.in_loop) ||
        pool_clock_loop_time(&pool->clock, at) < warnings->timer.at)
        loop_set_timer(&pool->loop, &warnings->timer, pool_clock_loop_time(&pool->clock, at));
}

/* ---- Leases that are not used ---- */

enum device_use lease_warnings_use_of(const struct device *device, bool has_process, bool sees_all)
{
    if (device->old || device->health == HEALTH_SICK)
        return DEVICE_USE_UNKNOWN;
    if (device->asleep)
        return DEVICE_UNUSED;
    if (device->load.utilization.known)
        return device->load.utilization.value > 0 ? DEVICE_USED : DEVICE_UNUSED;
    if (has_process)
        return DEVICE_USED;
    return sees_all ? DEVICE_UNUSED : DEVICE_USE_UNKNOWN;
}

/* Returns whether the process may belong to the job: it belongs to the job or to a lease within it,
 * or its lease is unknown. */
static bool may_belong_to(const struct pool *pool, const struct device_process *process,
                          const struct job *job)
{
    const struct job *owner = process->lease == 0 ? job : job_of_id(pool, process->lease);

    while (owner != NULL && owner != job && owner->holder->parent != 0)
        owner = job_of_id(pool, owner->holder->parent);
    return owner == job;
}

static enum device_use get_device_use(const struct pool *pool, const struct job *job, uint32_t slot)
{
    const struct device *device = &engine_machine(pool->engine)->devices.items[slot];
    bool sees_all =
        job->holder->pid > 0 && (pool->lease_warnings->sees_all || job->holder->uid == pool->owner);
    const struct device_process *process;
    struct slot_view carried;
    bool has_process = false;

    engine_get_slot(pool->engine, slot, &carried);
    if (!carried.present)
        return DEVICE_USE_UNKNOWN;
    vector_for_each (process, &device->processes)
        has_process = has_process || may_belong_to(pool, process, job);
    return lease_warnings_use_of(device, has_process, sees_all);
}

/* Returns whether the lease is used: it is used if one device is, and unused if all are unused. */
static enum device_use get_lease_use(const struct pool *pool, const struct job *job,
                                     const struct lease_view *view)
{
    enum device_use all = DEVICE_UNUSED;

    for (uint32_t i = 0; i < view->slot_count && all != DEVICE_USED; i++) {
        enum device_use use = get_device_use(pool, job, view->slots[i]);

        if (use != DEVICE_UNUSED)
            all = use;
    }
    return all;
}

/* Adds the time since the last check to the lease's known and idle time. */
static void add_use_time(struct lease_watch *guard, enum device_use use, int64_t since, int64_t now)
{
    if (use != DEVICE_USE_UNKNOWN && since < now) {
        guard->judged_time += (uint64_t)(now - since);
        if (use == DEVICE_UNUSED)
            guard->idle_time += (uint64_t)(now - since);
    }
    guard->judged_at = now;
}

static void warn_of_idleness(struct pool *pool, struct job *job, int64_t idle)
{
    int64_t reclaim = pool->rules.idle_reclaim;
    int64_t left = reclaim > idle ? reclaim - idle : 0;
    struct text what = {0};

    job->guard->idle_warned = true;
    warn_holder(pool, job, LEASE_END_IDLE, left);
    text_append_format(&what, "has not been used for %s", format_seconds(idle).text);
    if (left > 0)
        text_append_format(&what, "; it is reclaimed in %s", format_seconds(left).text);
    notify_program_lease(pool, job, "idle", &what);
    text_finish(&what);
}

static void reclaim_lease(struct pool *pool, struct job *job, int64_t idle)
{
    struct text what = {0};

    text_append_format(&what, "was not used for %s and is reclaimed", format_seconds(idle).text);
    notify_program_lease(pool, job, "reclaimed", &what);
    text_finish(&what);
    lease_ending_begin(pool, job, LEASE_END_IDLE, pool_clock_now(&pool->clock) + pool->rules.grace);
}

/* Returns the start of the time that the first check judges. The time before the daemon's start is
 * unknown. */
static int64_t first_used_at(const struct pool *pool, const struct lease_view *view)
{
    int64_t since = pool->lease_warnings->since + pool->clock.offset;

    return view->granted > since ? view->granted : since;
}

/* Checks one lease. `unseen` is the time without checks, which does not count as idle. */
static void check_lease(struct pool *pool, struct job *job, const struct lease_view *view,
                        int64_t gap)
{
    const struct configuration *rules = &pool->rules;
    struct lease_watch *guard = job_lease_watch(pool, job);
    int64_t now = pool_clock_now(&pool->clock);
    enum device_use use;
    int64_t idle;

    if (guard == NULL)
        return;
    use = get_lease_use(pool, job, view);
    add_use_time(guard, use,
                 guard->judged_at == 0 ? first_used_at(pool, view) : guard->judged_at + gap, now);
    if (guard->used_at == 0)
        guard->used_at = first_used_at(pool, view);
    guard->used_at = guard->used_at + gap > now ? now : guard->used_at + gap;
    guard->is_idle = use == DEVICE_UNUSED;
    if (!guard->is_idle) {
        guard->used_at = now;
        guard->idle_warned = false;
        return;
    }
    idle = now - guard->used_at;
    if (rules->idle_reclaim != 0 && idle >= rules->idle_reclaim)
        reclaim_lease(pool, job, idle);
    else if (rules->idle_warning != 0 && idle >= rules->idle_warning && !guard->idle_warned)
        warn_of_idleness(pool, job, idle);
}

void lease_warnings_check(struct pool *pool)
{
    struct lease_warnings *warnings = pool->lease_warnings;
    int64_t now = loop_now(&pool->loop);
    int64_t gap = warnings->judged_at == 0 ? 0 : now - warnings->judged_at;

    /* A longer gap means that the machine was suspended. */
    if (gap <= PROBE_POLL_IDLE_EVERY)
        gap = 0;
    warnings->judged_at = now;
    list_for_each (link, &pool->jobs) {
        struct job *job = container_of(link, struct job, in_pool);
        struct lease_view view;

        if (job->state == JOB_HELD && job->end == 0 && job->holder->parent == 0 &&
            !job_is_preparing(job) && engine_get_lease(pool->engine, job->by_lease.id, &view))
            check_lease(pool, job, &view, gap);
    }
}

struct optional_number lease_warnings_idle_time(const struct pool *pool, const struct job *job)
{
    const struct lease_watch *guard = job->guard;

    if (guard == NULL || !guard->is_idle || pool_clock_now(&pool->clock) < guard->used_at)
        return (struct optional_number){0};
    return optional_number_of((uint64_t)(pool_clock_now(&pool->clock) - guard->used_at));
}

/* ---- Beginning and end ---- */

int lease_warnings_init(struct pool *pool, struct berth_error *error)
{
    struct lease_warnings *warnings = calloc(1, sizeof(*warnings));

    if (warnings == NULL)
        return error_set_memory(error);
    warnings->pool = pool;
    warnings->timer.fire = warnings_are_due;
    warnings->since = loop_now(&pool->loop);
    warnings->sees_all = (pool->privileges.launcher & UINT32_C(1) << CAP_SYS_PTRACE) != 0;
    list_init(&warnings->watches);
    pool->lease_warnings = warnings;
    return 0;
}

void lease_warnings_finish(struct pool *pool)
{
    if (pool->lease_warnings == NULL)
        return;
    loop_set_timer(&pool->loop, &pool->lease_warnings->timer, LOOP_NEVER);
    free(pool->lease_warnings);
    pool->lease_warnings = NULL;
}
