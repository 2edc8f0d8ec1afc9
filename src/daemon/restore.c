/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/restore.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/file.h"
#include "base/text/quantity.h"
#include "daemon/checks.h"
#include "daemon/drains.h"
#include "daemon/ending.h"
#include "daemon/jobs.h"
#include "daemon/keep.h"
#include "daemon/mps.h"
#include "daemon/notices.h"
#include "daemon/past.h"
#include "daemon/process.h"
#include "daemon/remains.h"
#include "daemon/settle.h"

enum { JOURNAL_MAX = 1024 * 1024 * 1024 };

struct reading {
    struct pool *pool;
    /* What is done with each record; returns 1 to go on, 0 when the journal is of no use, or a
     * code. */
    int (*take)(struct reading *reading, const struct journal_record *record,
                struct berth_error *error);
    struct engine *engine;   /* that the events are done in */
    struct machine *machine; /* that the devices are put into */
    bool has_pool;           /* the first record was there, and is of this boot */
    bool other_devices;      /* it is about other devices than there are now */
    size_t records;
};

/* ---- Records ---- */

/* Reads the first record. Returns whether it is that, and of this boot; the caller finishes it. */
static bool read_pool(const struct journal_record *record, struct kept_pool *ret_kept)
{
    char *boot = keep_boot_id();
    bool ours = record->unknown && (int)record->event.type == KEEP_POOL &&
                journal_decode_custom(record, &kept_pool_tagged, ret_kept, NULL) == 0 &&
                boot != NULL && ret_kept->boot != NULL && strcmp(boot, ret_kept->boot) == 0;

    free(boot);
    return ours;
}

/* Takes over the pool's name and clock. Returns false when the journal is of another boot. */
static bool take_pool(struct reading *reading, const struct journal_record *record)
{
    struct pool *pool = reading->pool;
    struct kept_pool kept = {0};
    bool ours = read_pool(record, &kept);

    if (ours && kept.name != NULL) {
        free(pool->name);
        pool->name = kept.name;
        kept.name = NULL;
        pool->clock_offset = kept.clock_offset;
        reading->other_devices = kept.inventory_hash != pool->inventory_hash;
    }
    tagged_finish(&kept_pool_tagged, &kept);
    return ours;
}

/* A job as it was written down last. */
static int take_job(struct reading *reading, const struct journal_record *record,
                    struct berth_error *error)
{
    struct pool *pool = reading->pool;
    struct kept_job kept = {0};
    int code = journal_decode_custom(record, &kept_job_tagged, &kept, error);
    struct job *job = code < 0 ? NULL : job_of_id(pool, kept.id);
    struct holder *holder;

    if (job != NULL)
        job_free(pool, job);
    if (code == 0) {
        holder = holder_new(kept.uid, kept.pid, kept.started, kept.parent, kept.command);
        job = holder == NULL ? NULL : job_new(pool, NULL, holder);
        if (holder != NULL)
            holder->wait = kept.wait;
        holder_release(holder);
        if (job == NULL)
            code = error_set_memory(error);
    }
    if (code == 0 && job != NULL) {
        job->by_token.id = kept.token[0];
        job->token_low = kept.token[1];
        job->hold = kept.hold;
        job->end = kept.end;
        job->state = kept.draining ? JOB_DRAINING : JOB_WAITING;
        job->since = kept.since;
        job->restored = true;
        job->adopted = kept.adopted;
        job->unprepared = kept.unprepared;
        job_add(pool, job, kept.id, 0);
        if (kept.force_at != TIME_NEVER && job_guard(pool, job) != NULL)
            job->guard->force_at = kept.force_at;
    }
    tagged_finish(&kept_job_tagged, &kept);
    return code;
}

static int take_ended(struct reading *reading, const struct journal_record *record,
                      struct berth_error *error)
{
    struct ended ended = {0};
    int code = journal_decode_custom(record, &kept_ended_tagged, &ended, error);

    if (code == 0)
        ended_remember(reading->pool, &ended);
    return code;
}

static int take_drain(struct reading *reading, const struct journal_record *record,
                      struct berth_error *error)
{
    struct kept_drain kept = {0};
    int code = journal_decode_custom(record, &kept_drain_tagged, &kept, error);

    if (code == 0)
        drain_restore(reading->pool, &kept);
    tagged_finish(&kept_drain_tagged, &kept);
    return code;
}

static int take_epilog(struct reading *reading, const struct journal_record *record,
                       struct berth_error *error)
{
    struct kept_epilog kept = {0};
    int code = journal_decode_custom(record, &kept_epilog_tagged, &kept, error);

    if (code == 0)
        checks_restore(reading->pool, &kept);
    tagged_finish(&kept_epilog_tagged, &kept);
    return code;
}

static int take_mps(struct reading *reading, const struct journal_record *record,
                    struct berth_error *error)
{
    struct kept_mps kept = {0};
    int code = journal_decode_custom(record, &kept_mps_tagged, &kept, error);

    if (code == 0)
        mps_restore(reading->pool, &kept);
    tagged_finish(&kept_mps_tagged, &kept);
    return code;
}

/* Does what a record says. */
static int take_record(struct reading *reading, const struct journal_record *record,
                       struct berth_error *error)
{
    int code = 0;

    if (!reading->has_pool) {
        reading->has_pool = take_pool(reading, record);
        return reading->has_pool;
    }
    if (!record->unknown)
        code = engine_replay(reading->engine, &record->event, error);
    else if ((int)record->event.type == KEEP_JOB)
        code = take_job(reading, record, error);
    else if ((int)record->event.type == KEEP_ENDED)
        code = take_ended(reading, record, error);
    else if ((int)record->event.type == KEEP_DRAIN)
        code = take_drain(reading, record, error);
    else if ((int)record->event.type == KEEP_EPILOG)
        code = take_epilog(reading, record, error);
    else if ((int)record->event.type == KEEP_MPS)
        code = take_mps(reading, record, error);
    return code < 0 ? code : 1;
}

/* Adds the devices of a record to the machine, or gives those that are there their newer facts. */
static int add_devices(struct machine *machine, const struct journal_record *record,
                       struct berth_error *error)
{
    struct kept_devices kept = {0};
    int code = journal_decode_custom(record, &kept_devices_tagged, &kept, error);
    struct device *device;

    vector_for_each (device, &kept.devices) {
        size_t slot = device_list_find(&machine->devices, device->id);
        struct device *place = slot < machine->devices.count ? &machine->devices.items[slot]
                                                             : vector_append(&machine->devices);

        if (code < 0 || place == NULL) {
            code = code < 0 ? code : error_set_memory(error);
            break;
        }
        device_finish(place);
        *place = *device;
        place->old = true;
        *device = (struct device){0};
    }
    tagged_finish(&kept_devices_tagged, &kept);
    return code;
}

/* Does what a record says of devices; the events are not looked at. */
static int take_devices(struct reading *reading, const struct journal_record *record,
                        struct berth_error *error)
{
    struct kept_pool kept = {0};
    int code = 0;

    if (!reading->has_pool) {
        reading->has_pool = read_pool(record, &kept);
        tagged_finish(&kept_pool_tagged, &kept);
        return reading->has_pool;
    }
    if (record->unknown && (int)record->event.type == KEEP_DEVICES)
        code = add_devices(reading->machine, record, error);
    return code < 0 ? code : 1;
}

static int read_all(struct reading *reading, const struct text *content, struct berth_error *error)
{
    size_t at = 0;
    int code = 1;

    /* After the last record come zeros, or one that its writer did not finish. */
    while (code == 1 && at < content->length && content->bytes[at] != '\0') {
        struct journal_record record;
        size_t used;

        code = journal_decode(content->bytes + at, content->length - at, &record, &used, error);
        if (code != JOURNAL_COMPLETE)
            break;
        code = reading->take(reading, &record, error);
        journal_record_finish(&record);
        at += used;
        reading->records++;
    }
    return code == BERTH_ERROR_MEMORY ? code : 0;
}

/* ---- After reading ---- */

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

/* Joins the jobs to the leases and claims that the engine knows; those that left no trace there are
 * over. */
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

/* Claims and leases without a job: the journal ends before it, so nobody was ever told of them. */
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

static bool holder_lives(const struct job *job)
{
    int descriptor = process_open(job->holder->pid, job->holder->started);

    if (descriptor >= 0)
        close(descriptor);
    return descriptor >= 0;
}

/* Whether somebody holds a lease that cannot be carried over to other devices. */
static bool anybody_holds(const struct pool *pool)
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
    struct reading reading = {.pool = pool, .take = take_devices, .machine = &machine};
    struct berth_error torn = BERTH_ERROR_INIT; /* restore_read says so */
    struct text content = {0};
    int code = file_read(pool->journal_path, JOURNAL_MAX, &content, error);

    if (code == 0 && read_all(&reading, &content, &torn) < 0)
        code = error_set_memory(error);
    text_finish(&content);
    if (code < 0 && code != BERTH_ERROR_NOT_FOUND) {
        machine_finish(&machine);
        return code;
    }
    *ret_machine = machine;
    return 0;
}

int restore_read(struct pool *pool, struct berth_error *error)
{
    struct reading reading = {.pool = pool, .take = take_record, .engine = pool->engine};
    struct text content = {0};
    int code = file_read(pool->journal_path, JOURNAL_MAX, &content, error);

    if (code == BERTH_ERROR_NOT_FOUND)
        return 0;
    if (code == 0)
        code = read_all(&reading, &content, error);
    text_finish(&content);
    if (code < 0)
        return code;
    if (error != NULL && error->message[0] != '\0')
        log_line(&pool->log, pool_now(pool), "journal", "records=%zu end=%s", reading.records,
                 log_quote(error->message).text);
    if (error != NULL)
        *error = (struct berth_error)BERTH_ERROR_INIT;
    join_all(pool);
    if (reading.has_pool && reading.other_devices && anybody_holds(pool))
        return error_set(error, BERTH_ERROR_BUSY,
                         "%s: has changed, and leases are held on its former devices; end these "
                         "leases first",
                         pool->settings.inventory == NULL ? "this machine's hardware"
                                                          : pool->settings.inventory);
    drains_restored(pool, !reading.has_pool || reading.other_devices);
    if (!reading.has_pool || reading.other_devices)
        checks_forget(pool);
    if (reading.has_pool)
        log_line(&pool->log, pool_now(pool), "restored", "records=%zu jobs=%zu waiting=%zu",
                 reading.records, pool->job_count, engine_pending(pool->engine));
    return 0;
}

static bool watch_holder(struct pool *pool, struct job *job)
{
    return ending_watch(pool, job, process_open(job->holder->pid, job->holder->started));
}

static void restore_lease(struct pool *pool, struct job *job)
{
    if (job->state == JOB_DRAINING) {
        ending_holder_gone(pool, job);
        return;
    }
    if (job->hold == LEASE_HOLD_CONNECTION
            ? !holder_lives(job)
            : job->hold == LEASE_HOLD_PROCESS && !watch_holder(pool, job)) {
        ending_holder_gone(pool, job);
        return;
    }
    /* A process may have become another program, which does not come back; whoever holds by a
     * connection does. */
    job->restored = job->hold == LEASE_HOLD_CONNECTION;
    if (job_is_preparing(job)) {
        /* Nobody was told yet: its client comes back for that. */
        job->restored = true;
        if (!checks_prepare_again(pool, job))
            settle_told(pool, job);
        return;
    }
    notice_limit(pool, job);
    if (job->state == JOB_ENDING)
        ending_begin(pool, job, job->end,
                     job->guard != NULL && job->guard->force_at != TIME_NEVER
                         ? job->guard->force_at
                         : pool_now(pool) + pool->rules.grace);
}

static void abandon(struct pool *pool, struct job *job)
{
    log_line(&pool->log, pool_now(pool), "abandoned", "id=%" PRIu64, job->by_id.id);
    job->restored = false;
    if (job->by_lease.id == 0) {
        engine_cancel(pool->engine, job->by_id.id, NULL);
        return;
    }
    /* It was a connection's, or granted after the restart, and nobody was ever told. */
    job->end = LEASE_END_DIED;
    ending_done(pool, job);
}

static void timeout_is_over(struct timer *timer)
{
    struct pool *pool = container_of(timer, struct pool, restore_timer);

    /* Claims first: what leases leave must not go to them. */
    for (int leases = 0; leases < 2; leases++) {
        list_for_each (link, &pool->jobs) {
            struct job *job = container_of(link, struct job, in_pool);

            if (job->restored && job->connection == NULL &&
                (job->by_lease.id != 0) == (leases != 0) &&
                !(job->by_lease.id != 0 && job->hold == LEASE_HOLD_NOTHING))
                abandon(pool, job);
        }
        pool_settle(pool);
    }
}

int restore_holders(struct pool *pool, struct berth_error *error)
{
    bool waits = false;
    int code = end_strays(pool, error);

    if (code < 0)
        return code;
    /* Claims first: what leases leave must not go to the dead. */
    list_for_each (link, &pool->jobs) {
        const struct job *job = container_of(link, struct job, in_pool);

        if (job->by_lease.id == 0 && !holder_lives(job))
            engine_cancel(pool->engine, job->by_id.id, NULL);
    }
    list_for_each (link, &pool->jobs) {
        struct job *job = container_of(link, struct job, in_pool);

        if (job->by_lease.id != 0 && !job_is_preparing(job))
            past_lease(pool, job);
        if (job->by_lease.id != 0)
            restore_lease(pool, job);
        waits = waits || job->restored;
    }
    pool->restore_timer.fire = timeout_is_over;
    if (waits)
        timer_set_at(&pool->loop, &pool->restore_timer, loop_now(&pool->loop) + RESTORE_TIMEOUT);
    return 0;
}
