/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/journal_write.h"

#include <stdlib.h>

#include "base/error.h"
#include "daemon/journal/journal_records.h"
#include "daemon/leases/device_drain.h"
#include "daemon/leases/job.h"
#include "daemon/leases/lost_leases.h"
#include "daemon/leases/mps_events.h"
#include "daemon/leases/pool.h"
#include "daemon/leases/prolog_epilog.h"

/* ---- Writing ---- */

/* Appends the record. A record that cannot be encoded for want of memory is lost for the next
 * daemon, so this one ends without another answer, and restarts. */
static void write_record(struct pool *pool, int code)
{
    if (code < 0) {
        pool->lost = true;
        pool->loop.ended = true;
        return;
    }
    journal_file_append(&pool->journal, pool->record.bytes, pool->record.length);
}

void journal_write_event(struct pool *pool, const struct engine_event *event)
{
    text_clear(&pool->record);
    write_record(pool, journal_encode(event, &pool->record));
}

static int encode_job(struct pool *pool, const struct job *job, struct text *out)
{
    const struct kept_job kept = {
        .id = job->by_id.id,
        .token = {job->by_token.id, job->token_low},
        .uid = job->holder->uid,
        .pid = job->holder->pid,
        .started = job->holder->started,
        .hold = job->hold,
        .end = job->end,
        .draining = job_is_over(job),
        .since = job->since,
        .force_at = job->guard != NULL ? job->guard->force_at : TIME_NEVER,
        .parent = job->holder->parent,
        .command = job->holder->command,
        .adopted = job->adopted,
        .unprepared = job->unprepared,
        /* Only a lease whose holder was not notified may have to wait again. */
        .wait = job->unprepared ? job->holder->wait : TIME_NEVER,
    };

    return journal_encode_custom(KEEP_JOB, pool_clock_now(&pool->clock), &kept_job_tagged, &kept,
                                 out);
}

void journal_write_job(struct pool *pool, const struct job *job)
{
    text_clear(&pool->record);
    write_record(pool, encode_job(pool, job, &pool->record));
}

static int encode_ended(struct pool *pool, const struct ended_job *ended, struct text *out)
{
    const struct kept_ended kept = {
        .id = ended->id, .uid = ended->uid, .end = ended->end, .exit_code = ended->exit_code};

    return journal_encode_custom(KEEP_ENDED, pool_clock_now(&pool->clock), &kept_ended_tagged,
                                 &kept, out);
}

void journal_write_ended(struct pool *pool, const struct ended_job *ended)
{
    text_clear(&pool->record);
    write_record(pool, encode_ended(pool, ended, &pool->record));
}

/* Returns the device's permanent facts; the next report has the others. The copy borrows. */
static struct device facts_of(const struct device *device)
{
    struct device facts = *device;

    facts.load = (struct load){0};
    facts.health_reason = NULL;
    facts.processes = (struct device_process_list){0};
    facts.asleep = facts.old = false;
    return facts;
}

static int encode_devices(struct pool *pool, size_t first, size_t count, struct text *out)
{
    const struct device_list *devices = &engine_machine(pool->engine)->devices;
    struct kept_devices kept = {0};
    int code = vector_reserve(&kept.devices, count);

    for (size_t slot = first; code == 0 && slot < first + count; slot++)
        kept.devices.items[kept.devices.count++] = facts_of(&devices->items[slot]);
    if (code == 0)
        code = journal_encode_custom(KEEP_DEVICES, pool_clock_now(&pool->clock),
                                     &kept_devices_tagged, &kept, out);
    vector_finish(&kept.devices);
    return code;
}

void journal_write_device(struct pool *pool, uint32_t slot)
{
    text_clear(&pool->record);
    write_record(pool, encode_devices(pool, slot, 1, &pool->record));
}

static int encode_drain(struct pool *pool, uint32_t slot, struct text *out)
{
    const struct device_drain *drain = device_drain_of(pool, slot);
    const struct kept_drain kept = {
        .slot = slot, .uid = drain->uid, .time = drain->time, .reason = drain->reason};

    return journal_encode_custom(KEEP_DRAIN, pool_clock_now(&pool->clock), &kept_drain_tagged,
                                 &kept, out);
}

void journal_write_drain(struct pool *pool, uint32_t slot)
{
    text_clear(&pool->record);
    write_record(pool, encode_drain(pool, slot, &pool->record));
}

static int encode_epilog(struct pool *pool, const struct kept_epilog *kept, struct text *out)
{
    return journal_encode_custom(KEEP_EPILOG, pool_clock_now(&pool->clock), &kept_epilog_tagged,
                                 kept, out);
}

void journal_write_epilog(struct pool *pool, uint32_t slot)
{
    struct kept_epilog kept;

    prolog_epilog_kept(pool, slot, &kept);
    text_clear(&pool->record);
    write_record(pool, encode_epilog(pool, &kept, &pool->record));
}

static int encode_mps(struct pool *pool, const struct kept_mps *kept, struct text *out)
{
    return journal_encode_custom(KEEP_MPS, pool_clock_now(&pool->clock), &kept_mps_tagged, kept,
                                 out);
}

void journal_write_mps(struct pool *pool, const struct kept_mps *kept)
{
    text_clear(&pool->record);
    write_record(pool, encode_mps(pool, kept, &pool->record));
}

static int encode_lost(struct pool *pool, bool is_lost, struct text *out)
{
    return journal_encode_custom(KEEP_LOST, pool_clock_now(&pool->clock), &kept_lost_tagged,
                                 &(struct kept_lost){.is_lost = is_lost}, out);
}

void journal_write_lost(struct pool *pool, bool is_lost)
{
    text_clear(&pool->record);
    write_record(pool, encode_lost(pool, is_lost, &pool->record));
}

/* ---- Checkpoints ---- */

struct dumping {
    struct text *out;
    int code;
};

static void dump_event(void *context, const struct engine_event *event)
{
    struct dumping *dumping = context;

    if (dumping->code == 0)
        dumping->code = journal_encode(event, dumping->out);
}

static int dump_pool(struct pool *pool, struct text *out)
{
    struct kept_pool kept = {
        .boot = journal_records_boot_id(),
        .name = pool->name,
        .clock_offset = pool->clock.offset,
        .inventory_hash = pool->inventory_hash,
        .inventory = (char *)pool->settings.inventory,
    };
    int code = kept.boot == NULL ? BERTH_ERROR_MEMORY : 0;

    /* The rest cannot be read without this record, so a second copy protects it from damage. */
    for (int copy = 0; copy < 2 && code == 0; copy++)
        code = journal_encode_custom(KEEP_POOL, pool_clock_now(&pool->clock), &kept_pool_tagged,
                                     &kept, out);
    free(kept.boot);
    return code;
}

/* Writes the ended jobs whose exit code is known, oldest first, as the next daemon remembers them.
 */
static int dump_ended(struct pool *pool, const struct ended_job_ring *ring, struct text *out)
{
    size_t first = ring->count > ENDED_KEPT ? ring->count - ENDED_KEPT : 0;
    int code = 0;

    for (size_t i = first; i < ring->count && code == 0; i++) {
        const struct ended_job *ended = &ring->items[i % ENDED_KEPT];

        if (ended->exit_code.known)
            code = encode_ended(pool, ended, out);
    }
    return code;
}

static int dump_all(struct pool *pool, struct text *out)
{
    struct dumping dumping = {out, dump_pool(pool, out)};
    struct event_sink sink = {.notify = dump_event, .context = &dumping, .wanted = EVENT_ALL};
    size_t devices = engine_machine(pool->engine)->devices.count;
    struct kept_epilog epilog;
    struct kept_mps mps;

    if (dumping.code == 0 && lost_leases_are_sought(pool))
        dumping.code = encode_lost(pool, true, out);
    if (dumping.code == 0 && pool->probe_poll != NULL && devices > 0)
        dumping.code = encode_devices(pool, 0, devices, out);

    if (dumping.code == 0 && engine_dump(pool->engine, &sink) < 0)
        dumping.code = BERTH_ERROR_MEMORY;
    list_for_each (link, &pool->jobs) {
        if (dumping.code == 0)
            dumping.code = encode_job(pool, container_of(link, struct job, in_pool), out);
    }
    for (uint32_t slot = 0; slot < devices && dumping.code == 0; slot++) {
        if (device_drain_of(pool, slot)->time != 0)
            dumping.code = encode_drain(pool, slot, out);
        if (dumping.code == 0 && prolog_epilog_kept(pool, slot, &epilog))
            dumping.code = encode_epilog(pool, &epilog, out);
    }
    for (uint32_t slot = 0; slot < engine_slots_max(pool->engine) && dumping.code == 0; slot++) {
        if (mps_events_kept(pool, slot, &mps))
            dumping.code = encode_mps(pool, &mps, out);
    }
    for (size_t i = 0; i < ENDED_RINGS && dumping.code == 0; i++)
        dumping.code = dump_ended(pool, &pool->ended[i], out);
    return dumping.code;
}

int journal_write_checkpoint(struct pool *pool, struct berth_error *error)
{
    struct text content = {0};
    int code = dump_all(pool, &content);

    if (code < 0)
        error_set(error, code, "cannot write the pool's journal: %s", berth_error_describe(code));
    else
        code = journal_file_make(&pool->journal, pool->journal_path, &content, error);
    text_finish(&content);
    return code;
}
