/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/restore.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/file.h"
#include "base/text/quantity.h"
#include "daemon/core/pidfd.h"
#include "daemon/journal/journal_read.h"
#include "daemon/leases/device_drain.h"
#include "daemon/leases/engine_events.h"
#include "daemon/leases/holder_identity.h"
#include "daemon/leases/job.h"
#include "daemon/leases/lease_ending.h"
#include "daemon/leases/lease_warnings.h"
#include "daemon/leases/lost_leases.h"
#include "daemon/leases/pool.h"
#include "daemon/leases/pool_news.h"
#include "daemon/leases/prolog_epilog.h"
#include "daemon/processes/leftovers.h"
#include "daemon/restore_records.h"

enum { JOURNAL_MAX = 1024 * 1024 * 1024 };

/* The number of ids that are skipped after a damaged journal. */
enum { IDS_SKIPPED = 1 << 20 };

/* Joins a lease that the engine knows to its job. */
static void join_lease(void *context, const struct lease_view *view)
{
    struct pool *pool = context;
    struct job *job = job_of_id(pool, view->claim != 0 ? view->claim : view->id);

    if (job == NULL)
        return;
    job_set_lease(pool, job, view->id);
    if (job->state != JOB_DRAINING)
        job->state = job->end != 0 ? JOB_ENDING : JOB_HELD;
}

/* Joins the jobs to the leases and claims that the engine knows. The other jobs are over. */
static void join_all(struct pool *pool)
{
    engine_each_lease(pool->engine, join_lease, pool);
    list_for_each (link, &pool->jobs) {
        struct job *job = container_of(link, struct job, in_pool);
        struct claim_view view;

        if (job->by_lease.id == 0 && !engine_get_claim(pool->engine, job->by_id.id, &view))
            job_free(pool, job);
    }
}

/* Claims and leases without a job. Either the journal ends before the job's record, and no client
 * was notified; or the journal is damaged, and lost_leases.h blocks the devices. */
struct strays {
    struct pool *pool;
    struct id_list claims;
    struct id_list leases;
    bool lost;
};

static void note_stray(struct strays *strays, struct id_list *list, uint64_t id)
{
    uint64_t *place = vector_append(list);

    if (place != NULL)
        *place = id;
    else
        strays->lost = true;
}

static void look_at_lease(void *context, const struct lease_view *view)
{
    struct strays *strays = context;

    if (job_of_lease(strays->pool, view->id) == NULL)
        note_stray(strays, &strays->leases, view->id);
}

static void look_at_claim(void *context, const struct claim_view *view)
{
    struct strays *strays = context;

    if (job_of_id(strays->pool, view->id) == NULL)
        note_stray(strays, &strays->claims, view->id);
}

static int end_strays(struct pool *pool, struct berth_error *error)
{
    struct strays strays = {.pool = pool};
    const uint64_t *id;

    engine_each_lease(pool->engine, look_at_lease, &strays);
    engine_each_claim(pool->engine, look_at_claim, &strays);
    vector_for_each (id, &strays.claims)
        engine_cancel(pool->engine, *id, NULL);
    vector_for_each (id, &strays.leases)
        engine_vacated(pool->engine, *id, NULL);
    vector_finish(&strays.claims);
    vector_finish(&strays.leases);
    return strays.lost ? error_set_memory(error) : 0;
}

/* Returns whether a process has the holder's number. */
static bool holder_lives(const struct job *job)
{
    int descriptor = pidfd_open_process(job->holder->pid);

    if (descriptor >= 0)
        close(descriptor);
    return descriptor >= 0;
}

/* Returns whether there is a lease that cannot be carried over to other devices. */
static bool has_held_lease(const struct pool *pool)
{
    list_for_each (link, &pool->jobs) {
        const struct job *job = container_of(link, struct job, in_pool);

        if (job->by_lease.id != 0 && (job->hold == LEASE_HOLD_NOTHING || holder_lives(job)))
            return true;
    }
    return false;
}

int restore_devices(struct pool *pool, struct machine *ret_machine, struct berth_error *error)
{
    struct machine machine = {0};
    struct replay replay = {.pool = pool, .machine = &machine};
    struct journal_contents contents;
    struct text content = {0};
    int code = file_read(pool->journal_path, JOURNAL_MAX, &content, error);

    /* Damage is reported by restore_read(). */
    if (code == 0)
        code = journal_read_all(&content, restore_records_apply_devices, &replay, &contents, error);
    text_finish(&content);
    if (code < 0 && code != BERTH_ERROR_NOT_FOUND) {
        machine_finish(&machine);
        return code;
    }
    *ret_machine = machine;
    return 0;
}

/* Continues far beyond the ids of the journal. A lost record may have had larger ones, and reusing
 * an id would end the processes of a former lease. If the journal has no ids, starts at the seconds
 * since 1970, which are more than the pool can have used. */
static int skip_ids(struct pool *pool, const struct replay *replay, struct berth_error *error)
{
    int64_t now = pool_clock_now(&pool->clock);
    const struct engine_event counters = {
        .type = EVENT_COUNTERS,
        .time = now,
        .lease = replay->last_id == 0 ? (uint64_t)(now / DURATION_SECOND)
                                      : replay->last_id + IDS_SKIPPED,
    };

    return engine_replay(pool->engine, &counters, error);
}

static void add_problem(struct pool *pool, const struct journal_contents *contents,
                        const char *kept)
{
    const char *effect =
        contents->damages > 0 || contents->is_empty
            ? "leases may be lost; their devices stay blocked until their processes end"
            : "nothing is lost";

    machine_report_add_problem(
        &pool->problems, "journal", "the pool's journal was damaged at byte %zu (%s); %s%s; %s",
        contents->first_damage, contents->reason.message,
        kept == NULL ? "it could not be kept" : "it is kept as ", kept == NULL ? "" : kept, effect);
}

static int report_damage(struct pool *pool, const struct replay *replay,
                         struct journal_contents *contents, struct berth_error *error)
{
    char *kept = journal_file_keep_damaged(pool->journal_path);

    if (contents->is_empty)
        error_set(&contents->reason, BERTH_ERROR_SYNTAX, "the file is empty");
    add_problem(pool, contents, kept);
    log_line(&pool->log, pool_clock_now(&pool->clock), "journal",
             "records=%zu repairs=%zu damages=%zu byte=%zu reason=%s kept=%s", contents->records,
             contents->repairs, contents->damages, contents->first_damage,
             log_quote(contents->reason.message).text,
             kept == NULL ? "none" : log_quote(kept).text);
    free(kept);
    if (contents->damages == 0 && !contents->is_empty)
        return 0;
    lost_leases_note(pool, true);
    return skip_ids(pool, replay, error);
}

int restore_read(struct pool *pool, struct berth_error *error)
{
    struct replay replay = {.pool = pool, .engine = pool->engine};
    struct journal_contents contents = {0};
    struct text content = {0};
    int code = file_read(pool->journal_path, JOURNAL_MAX, &content, error);

    if (code == BERTH_ERROR_NOT_FOUND) {
        if (error != NULL)
            *error = (struct berth_error)BERTH_ERROR_INIT;
        return 0;
    }
    if (code == 0)
        code = journal_read_all(&content, restore_records_apply, &replay, &contents, error);
    text_finish(&content);
    if (code == 0 && (contents.damages + contents.repairs > 0 || contents.is_empty))
        code = report_damage(pool, &replay, &contents, error);
    if (code < 0)
        return code;
    if (contents.is_torn)
        log_line(&pool->log, pool_clock_now(&pool->clock), "journal", "records=%zu torn=yes",
                 contents.records);
    join_all(pool);
    if (replay.has_pool && replay.other_devices && has_held_lease(pool))
        return error_set(error, BERTH_ERROR_BUSY,
                         "%s: has changed, and leases are held on its former devices; end these "
                         "leases first",
                         pool->settings.inventory == NULL ? "this machine's hardware"
                                                          : pool->settings.inventory);
    device_drain_restored(pool, !replay.has_pool || replay.other_devices);
    if (!replay.has_pool || replay.other_devices)
        prolog_epilog_forget(pool);
    if (replay.has_pool)
        log_line(&pool->log, pool_clock_now(&pool->clock), "restored",
                 "records=%zu jobs=%zu waiting=%zu", contents.records, pool->job_count,
                 engine_pending(pool->engine));
    return 0;
}

/* Watches the process that has the holder's number. It is confirmed to be the holder later. */
static bool watch_holder(struct pool *pool, struct job *job)
{
    if (!lease_ending_watch(pool, job, pidfd_open_process(job->holder->pid)))
        return false;
    job->guard->is_unconfirmed = true;
    return true;
}

/* Returns the lease's force time and clears it; the caller sets it again with a timer. TIME_NEVER:
 * it has none. */
static int64_t take_force_time(const struct job *job)
{
    int64_t force_at = job->guard == NULL ? TIME_NEVER : job->guard->force_at;

    if (job->guard != NULL)
        job->guard->force_at = TIME_NEVER;
    return force_at;
}

static void restore_lease(struct pool *pool, struct job *job)
{
    int64_t force_at = take_force_time(job);

    /* A lease that is over waits for no client: it ends when its processes have. */
    job->restored = false;
    if (job->state == JOB_DRAINING) {
        lease_ending_holder_gone(pool, job);
        return;
    }
    if (job->hold == LEASE_HOLD_CONNECTION
            ? !holder_lives(job)
            : job->hold == LEASE_HOLD_PROCESS && !watch_holder(pool, job)) {
        lease_ending_holder_gone(pool, job);
        return;
    }
    /* A process that holds the lease may have become a program that does not reconnect. A client
     * that holds the lease by its connection reconnects. */
    job->restored = job->hold == LEASE_HOLD_CONNECTION;
    if (job_is_preparing(job)) {
        /* The client was not notified yet, and reconnects for that. */
        job->restored = true;
        if (!prolog_epilog_prepare_again(pool, job))
            engine_events_notify_holder(pool, job);
        return;
    }
    lease_warnings_limit(pool, job);
    if (job->state == JOB_ENDING)
        lease_ending_begin(
            pool, job, job->end,
            force_at != TIME_NEVER ? force_at : pool_clock_now(&pool->clock) + pool->rules.grace);
}

static void abandon_job(struct pool *pool, struct job *job)
{
    log_line(&pool->log, pool_clock_now(&pool->clock), "abandoned", "id=%" PRIu64, job->by_id.id);
    job->restored = false;
    if (job->by_lease.id == 0) {
        engine_cancel(pool->engine, job->by_id.id, NULL);
        return;
    }
    /* The lease was held by a connection, or its client was never notified. */
    job->end = LEASE_END_DIED;
    lease_ending_done(pool, job);
}

static void timeout_is_over(struct timer *timer)
{
    struct pool *pool = container_of(timer, struct pool, restore_timer);

    /* Claims first: they must not get the devices of the leases that end here. */
    for (int leases = 0; leases < 2; leases++) {
        list_for_each (link, &pool->jobs) {
            struct job *job = container_of(link, struct job, in_pool);

            if (job->restored && job->connection == NULL &&
                (job->by_lease.id != 0) == (leases != 0))
                abandon_job(pool, job);
        }
        engine_events_settle(pool);
    }
}

int restore_holders(struct pool *pool, struct berth_error *error)
{
    bool waits = false;
    int code = end_strays(pool, error);

    if (code < 0)
        return code;
    /* Claims of dead clients first: they must not get the devices of the leases that end here. */
    list_for_each (link, &pool->jobs) {
        const struct job *job = container_of(link, struct job, in_pool);

        if (job->by_lease.id == 0 && !holder_lives(job))
            engine_cancel(pool->engine, job->by_id.id, NULL);
    }
    list_for_each (link, &pool->jobs) {
        struct job *job = container_of(link, struct job, in_pool);

        if (job->by_lease.id != 0 && !job_is_preparing(job))
            pool_news_lease_changed(pool, job);
        if (job->by_lease.id != 0)
            restore_lease(pool, job);
        waits = waits || job->restored;
    }
    holder_identity_confirm(pool);
    pool->restore_timer.fire = timeout_is_over;
    if (waits)
        loop_set_timer(&pool->loop, &pool->restore_timer, loop_now(&pool->loop) + RESTORE_TIMEOUT);
    return 0;
}
