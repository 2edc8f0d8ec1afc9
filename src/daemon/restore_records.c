/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/restore_records.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "daemon/journal/journal_records.h"
#include "daemon/leases/device_drain.h"
#include "daemon/leases/job.h"
#include "daemon/leases/lost_leases.h"
#include "daemon/leases/mps_events.h"
#include "daemon/leases/pool.h"
#include "daemon/leases/prolog_epilog.h"

/* Decodes the first record, which the caller finishes. Returns 1, 0 if it is of another boot, or an
 * error. */
static int read_pool(const struct journal_record *record, struct kept_pool *ret_kept,
                     struct berth_error *error)
{
    char *boot;
    bool is_ours;
    int code;

    if (!record->unknown || (int)record->event.type != KEEP_POOL)
        return error_set(error, BERTH_ERROR_SYNTAX, "the record of the pool is missing");
    code = journal_decode_custom(record, &kept_pool_tagged, ret_kept, error);
    if (code < 0)
        return code;
    boot = journal_records_boot_id();
    if (boot == NULL)
        return error_set_memory(error);
    is_ours = ret_kept->boot != NULL && strcmp(boot, ret_kept->boot) == 0;
    free(boot);
    return is_ours;
}

/* Takes the pool's name and clock from the first record. Returns as read_pool(). */
static int take_pool(struct replay *replay, const struct journal_record *record,
                     struct berth_error *error)
{
    struct pool *pool = replay->pool;
    struct kept_pool kept = {0};
    int code = read_pool(record, &kept, error);

    replay->has_pool = code == 1;
    if (replay->has_pool && kept.name != NULL) {
        free(pool->name);
        pool->name = kept.name;
        kept.name = NULL;
        pool->clock.offset = kept.clock_offset;
        replay->other_devices = kept.inventory_hash != pool->inventory_hash;
    }
    tagged_finish(&kept_pool_tagged, &kept);
    return code;
}

static void note_id(struct replay *replay, uint64_t id)
{
    if (id > replay->last_id)
        replay->last_id = id;
}

/* Restores a job from its last record. */
static int take_job(struct replay *replay, const struct journal_record *record,
                    struct berth_error *error)
{
    struct pool *pool = replay->pool;
    struct kept_job kept = {0};
    int code = journal_decode_custom(record, &kept_job_tagged, &kept, error);
    struct job *job = code < 0 ? NULL : job_of_id(pool, kept.id);
    struct holder *holder;

    note_id(replay, kept.id);
    if (job != NULL)
        job_free(pool, job);
    if (code == 0) {
        holder = job_holder_new(kept.uid, kept.pid, kept.parent, kept.command);
        job = holder == NULL ? NULL : job_new(pool, NULL, holder);
        if (holder != NULL) {
            holder->wait = kept.wait;
            holder->started = kept.started;
        }
        job_holder_release(holder);
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
        if (kept.force_at != TIME_NEVER && job_lease_watch(pool, job) != NULL)
            job->guard->force_at = kept.force_at;
    }
    tagged_finish(&kept_job_tagged, &kept);
    return code;
}

static int take_ended(struct replay *replay, const struct journal_record *record,
                      struct berth_error *error)
{
    struct kept_ended kept = {0};
    int code = journal_decode_custom(record, &kept_ended_tagged, &kept, error);
    const struct ended_job ended = {
        .id = kept.id, .uid = kept.uid, .end = kept.end, .exit_code = kept.exit_code};

    if (code == 0)
        job_remember_ended(replay->pool, &ended);
    return code;
}

static int take_drain(struct replay *replay, const struct journal_record *record,
                      struct berth_error *error)
{
    struct kept_drain kept = {0};
    int code = journal_decode_custom(record, &kept_drain_tagged, &kept, error);

    if (code == 0)
        device_drain_restore(replay->pool, &kept);
    tagged_finish(&kept_drain_tagged, &kept);
    return code;
}

static int take_epilog(struct replay *replay, const struct journal_record *record,
                       struct berth_error *error)
{
    struct kept_epilog kept = {0};
    int code = journal_decode_custom(record, &kept_epilog_tagged, &kept, error);

    if (code == 0)
        prolog_epilog_restore(replay->pool, &kept);
    tagged_finish(&kept_epilog_tagged, &kept);
    return code;
}

static int take_lost(struct replay *replay, const struct journal_record *record,
                     struct berth_error *error)
{
    struct kept_lost kept = {0};
    int code = journal_decode_custom(record, &kept_lost_tagged, &kept, error);

    if (code == 0)
        lost_leases_note(replay->pool, kept.is_lost);
    return code;
}

static int take_mps(struct replay *replay, const struct journal_record *record,
                    struct berth_error *error)
{
    struct kept_mps kept = {0};
    int code = journal_decode_custom(record, &kept_mps_tagged, &kept, error);

    if (code == 0)
        code = mps_events_restore(replay->pool, &kept, error);
    tagged_finish(&kept_mps_tagged, &kept);
    return code;
}

int restore_records_apply(void *context, const struct journal_record *record,
                          struct berth_error *error)
{
    struct replay *replay = context;
    int code = 0;

    if (!record->unknown) {
        note_id(replay, record->event.claim);
        note_id(replay, record->event.lease);
    }
    if (!replay->has_pool)
        return take_pool(replay, record, error);
    if (!record->unknown)
        code = engine_replay(replay->engine, &record->event, error);
    else if ((int)record->event.type == KEEP_JOB)
        code = take_job(replay, record, error);
    else if ((int)record->event.type == KEEP_ENDED)
        code = take_ended(replay, record, error);
    else if ((int)record->event.type == KEEP_DRAIN)
        code = take_drain(replay, record, error);
    else if ((int)record->event.type == KEEP_EPILOG)
        code = take_epilog(replay, record, error);
    else if ((int)record->event.type == KEEP_MPS)
        code = take_mps(replay, record, error);
    else if ((int)record->event.type == KEEP_LOST)
        code = take_lost(replay, record, error);
    return code < 0 ? code : 1;
}

/* Adds the devices of a record to the machine, or updates the facts of known ones. */
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

int restore_records_apply_devices(void *context, const struct journal_record *record,
                                  struct berth_error *error)
{
    struct replay *replay = context;
    struct kept_pool kept = {0};
    int code = 0;

    if (!replay->has_pool) {
        code = read_pool(record, &kept, error);
        replay->has_pool = code == 1;
        tagged_finish(&kept_pool_tagged, &kept);
        return code;
    }
    if (record->unknown && (int)record->event.type == KEEP_DEVICES)
        code = add_devices(replay->machine, record, error);
    return code < 0 ? code : 1;
}
