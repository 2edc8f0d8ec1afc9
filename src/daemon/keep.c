/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/keep.h"

#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/error.h"
#include "base/system/file.h"
#include "base/text/quote.h"
#include "codec/device_tags.h"
#include "daemon/checks.h"
#include "daemon/drains.h"
#include "daemon/jobs.h"
#include "daemon/mps.h"
#include "daemon/persona.h"

enum { BOOT_ID_MAX = 128 };

enum kept_pool_tag {
    KEPT_POOL_BOOT = 1,
    KEPT_POOL_NAME = 2,
    KEPT_POOL_CLOCK_OFFSET = 3,
    KEPT_POOL_INVENTORY_HASH = 4,
    KEPT_POOL_INVENTORY = 5,
};

static const struct tagged_field pool_fields[] = {
    [KEPT_POOL_BOOT] = {TAGGED_MEMBER(kept_pool, boot, text), .max = BOOT_ID_MAX},
    [KEPT_POOL_NAME] = {TAGGED_MEMBER(kept_pool, name, text), .max = BOOT_ID_MAX},
    [KEPT_POOL_CLOCK_OFFSET] = {TAGGED_NUMBER(kept_pool, clock_offset, UINT64_MAX)},
    [KEPT_POOL_INVENTORY_HASH] = {TAGGED_NUMBER(kept_pool, inventory_hash, UINT64_MAX)},
    [KEPT_POOL_INVENTORY] = {TAGGED_MEMBER(kept_pool, inventory, text), .max = WIRE_TEXT_MAX},
};

static struct tagged_digest kept_pool_tagged_digest;

const struct tagged_table kept_pool_tagged = {
    .digest = &kept_pool_tagged_digest,
    .fields = pool_fields,
    .count = COUNT(pool_fields),
    .size = sizeof(struct kept_pool),
};

enum kept_job_tag {
    KEPT_JOB_ID = 1,
    KEPT_JOB_TOKEN_HIGH = 2,
    KEPT_JOB_TOKEN_LOW = 3,
    KEPT_JOB_UID = 4,
    KEPT_JOB_PID = 5,
    KEPT_JOB_STARTED = 6,
    KEPT_JOB_HOLD = 7,
    KEPT_JOB_END = 8,
    KEPT_JOB_DRAINING = 9,
    KEPT_JOB_SINCE = 10,
    KEPT_JOB_FORCE_AT = 11,
    KEPT_JOB_PARENT = 12,
    KEPT_JOB_COMMAND = 13,
    KEPT_JOB_UNPREPARED = 14,
    KEPT_JOB_ADOPTED = 15,
    KEPT_JOB_WAIT = 16,
};

static const struct tagged_field job_fields[] = {
    [KEPT_JOB_ID] = {TAGGED_NUMBER(kept_job, id, UINT64_MAX)},
    [KEPT_JOB_TOKEN_HIGH] = {TAGGED_NUMBER(kept_job, token[0], UINT64_MAX)},
    [KEPT_JOB_TOKEN_LOW] = {TAGGED_NUMBER(kept_job, token[1], UINT64_MAX)},
    [KEPT_JOB_UID] = {TAGGED_NUMBER(kept_job, uid, UINT32_MAX)},
    [KEPT_JOB_PID] = {TAGGED_NUMBER(kept_job, pid, INT32_MAX)},
    [KEPT_JOB_STARTED] = {TAGGED_NUMBER(kept_job, started, UINT64_MAX)},
    [KEPT_JOB_HOLD] = {TAGGED_NUMBER(kept_job, hold, LEASE_HOLD_NOTHING)},
    [KEPT_JOB_END] = {TAGGED_NUMBER(kept_job, end, LEASE_END_IDLE)},
    [KEPT_JOB_DRAINING] = {TAGGED_NUMBER(kept_job, draining, true)},
    [KEPT_JOB_SINCE] = {TAGGED_NUMBER(kept_job, since, UINT64_MAX)},
    [KEPT_JOB_FORCE_AT] = {TAGGED_NUMBER(kept_job, force_at, UINT64_MAX),
                           .default_value = TIME_NEVER},
    [KEPT_JOB_PARENT] = {TAGGED_NUMBER(kept_job, parent, UINT64_MAX)},
    [KEPT_JOB_COMMAND] = {TAGGED_MEMBER(kept_job, command, text), .max = WIRE_TEXT_MAX},
    [KEPT_JOB_UNPREPARED] = {TAGGED_NUMBER(kept_job, unprepared, true)},
    [KEPT_JOB_ADOPTED] = {TAGGED_NUMBER(kept_job, adopted, true)},
    [KEPT_JOB_WAIT] = {TAGGED_NUMBER(kept_job, wait, UINT64_MAX), .default_value = TIME_NEVER},
};

static struct tagged_digest kept_job_tagged_digest;

const struct tagged_table kept_job_tagged = {
    .digest = &kept_job_tagged_digest,
    .fields = job_fields,
    .count = COUNT(job_fields),
    .size = sizeof(struct kept_job),
};

enum kept_ended_tag {
    KEPT_ENDED_ID = 1,
    KEPT_ENDED_UID = 2,
    KEPT_ENDED_END = 3,
    KEPT_ENDED_EXIT_CODE = 4,
};

static const struct tagged_field ended_fields[] = {
    [KEPT_ENDED_ID] = {TAGGED_NUMBER(ended, id, UINT64_MAX)},
    [KEPT_ENDED_UID] = {TAGGED_NUMBER(ended, uid, UINT32_MAX)},
    [KEPT_ENDED_END] = {TAGGED_NUMBER(ended, end, LEASE_END_IDLE)},
    [KEPT_ENDED_EXIT_CODE] = {TAGGED_MEMBER(ended, exit_code, maybe), .max = UINT64_MAX},
};

static struct tagged_digest kept_ended_tagged_digest;

const struct tagged_table kept_ended_tagged = {
    .digest = &kept_ended_tagged_digest,
    .fields = ended_fields,
    .count = COUNT(ended_fields),
    .size = sizeof(struct ended),
};

enum kept_devices_tag {
    KEPT_DEVICES_ITEMS = 1,
};

static const struct tagged_field devices_fields[] = {
    [KEPT_DEVICES_ITEMS] = {TAGGED_MEMBER(kept_devices, devices, items), .max = REQUEST_COUNT_MAX,
                            .inner = &device_tagged},
};

static struct tagged_digest kept_devices_tagged_digest;

const struct tagged_table kept_devices_tagged = {
    .digest = &kept_devices_tagged_digest,
    .fields = devices_fields,
    .count = COUNT(devices_fields),
    .size = sizeof(struct kept_devices),
};

enum kept_drain_tag {
    KEPT_DRAIN_SLOT = 1,
    KEPT_DRAIN_UID = 2,
    KEPT_DRAIN_TIME = 3,
    KEPT_DRAIN_REASON = 4,
};

static const struct tagged_field drain_fields[] = {
    [KEPT_DRAIN_SLOT] = {TAGGED_NUMBER(kept_drain, slot, UINT32_MAX)},
    [KEPT_DRAIN_UID] = {TAGGED_MEMBER(kept_drain, uid, maybe), .max = UINT32_MAX},
    [KEPT_DRAIN_TIME] = {TAGGED_NUMBER(kept_drain, time, UINT64_MAX)},
    [KEPT_DRAIN_REASON] = {TAGGED_MEMBER(kept_drain, reason, text), .max = WIRE_TEXT_MAX},
};

static struct tagged_digest kept_drain_tagged_digest;

const struct tagged_table kept_drain_tagged = {
    .digest = &kept_drain_tagged_digest,
    .fields = drain_fields,
    .count = COUNT(drain_fields),
    .size = sizeof(struct kept_drain),
};

enum kept_epilog_tag {
    KEPT_EPILOG_SLOT = 1,
    KEPT_EPILOG_IS_DUE = 2,
    KEPT_EPILOG_LEASE = 3,
    KEPT_EPILOG_UID = 4,
    KEPT_EPILOG_NAME = 5,
};

static const struct tagged_field epilog_fields[] = {
    [KEPT_EPILOG_SLOT] = {TAGGED_NUMBER(kept_epilog, slot, UINT32_MAX)},
    [KEPT_EPILOG_IS_DUE] = {TAGGED_NUMBER(kept_epilog, is_due, true)},
    [KEPT_EPILOG_LEASE] = {TAGGED_NUMBER(kept_epilog, lease, UINT64_MAX)},
    [KEPT_EPILOG_UID] = {TAGGED_NUMBER(kept_epilog, uid, UINT32_MAX)},
    [KEPT_EPILOG_NAME] = {TAGGED_MEMBER(kept_epilog, name, text), .max = WIRE_TEXT_MAX},
};

static struct tagged_digest kept_epilog_tagged_digest;

const struct tagged_table kept_epilog_tagged = {
    .digest = &kept_epilog_tagged_digest,
    .fields = epilog_fields,
    .count = COUNT(epilog_fields),
    .size = sizeof(struct kept_epilog),
};

enum kept_mps_tag {
    KEPT_MPS_SLOT = 1,
    KEPT_MPS_IS_THERE = 2,
    KEPT_MPS_UID = 3,
    KEPT_MPS_GID = 4,
    KEPT_MPS_PID = 5,
    KEPT_MPS_STARTED = 6,
    KEPT_MPS_PIPE = 7,
    KEPT_MPS_LOG = 8,
};

static const struct tagged_field mps_fields[] = {
    [KEPT_MPS_SLOT] = {TAGGED_NUMBER(kept_mps, slot, UINT32_MAX)},
    [KEPT_MPS_IS_THERE] = {TAGGED_NUMBER(kept_mps, is_there, true)},
    [KEPT_MPS_UID] = {TAGGED_NUMBER(kept_mps, uid, UINT32_MAX)},
    [KEPT_MPS_GID] = {TAGGED_NUMBER(kept_mps, gid, UINT32_MAX), .default_value = PERSONA_NO_GROUP},
    [KEPT_MPS_PID] = {TAGGED_NUMBER(kept_mps, pid, INT32_MAX)},
    [KEPT_MPS_STARTED] = {TAGGED_NUMBER(kept_mps, started, UINT64_MAX)},
    [KEPT_MPS_PIPE] = {TAGGED_MEMBER(kept_mps, pipe, text), .max = WIRE_TEXT_MAX},
    [KEPT_MPS_LOG] = {TAGGED_MEMBER(kept_mps, log, text), .max = WIRE_TEXT_MAX},
};

static struct tagged_digest kept_mps_tagged_digest;

const struct tagged_table kept_mps_tagged = {
    .digest = &kept_mps_tagged_digest,
    .fields = mps_fields,
    .count = COUNT(mps_fields),
    .size = sizeof(struct kept_mps),
};

char *keep_boot_id(void)
{
    struct text content = {0};

    if (file_read("/proc/sys/kernel/random/boot_id", BOOT_ID_MAX, &content, NULL) < 0)
        text_clear(&content);
    if (content.length > 0 && content.bytes[content.length - 1] == '\n')
        content.bytes[--content.length] = '\0';
    text_append(&content, "");
    return text_detach(&content);
}

/* ---- Writing ---- */

/* What cannot even be encoded, for want of memory, is as bad as an event that is lost: whoever
 * reads the journal next would not know. Nothing is answered any more, and the pool starts anew. */
static void write_record(struct pool *pool, int code)
{
    if (code < 0) {
        pool->lost = true;
        pool->loop.ended = true;
        return;
    }
    journal_file_append(&pool->journal, pool->record.bytes, pool->record.length);
}

void keep_event(struct pool *pool, const struct engine_event *event)
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
        .draining = job->state == JOB_DRAINING,
        .since = job->since,
        .force_at = job->guard != NULL ? job->guard->force_at : TIME_NEVER,
        .parent = job->holder->parent,
        .command = job->holder->command,
        .adopted = job->adopted,
        .unprepared = job->unprepared,
        /* Only a lease that nobody was told of may have to wait again. */
        .wait = job->unprepared ? job->holder->wait : TIME_NEVER,
    };

    return journal_encode_custom(KEEP_JOB, pool_now(pool), &kept_job_tagged, &kept, out);
}

void keep_job(struct pool *pool, const struct job *job)
{
    text_clear(&pool->record);
    write_record(pool, encode_job(pool, job, &pool->record));
}

void keep_ended(struct pool *pool, const struct ended *ended)
{
    text_clear(&pool->record);
    write_record(pool, journal_encode_custom(KEEP_ENDED, pool_now(pool), &kept_ended_tagged, ended,
                                             &pool->record));
}

/* What stays of a device: how it is doing will be seen anew. The copy borrows from it. */
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
        code =
            journal_encode_custom(KEEP_DEVICES, pool_now(pool), &kept_devices_tagged, &kept, out);
    vector_finish(&kept.devices);
    return code;
}

void keep_device(struct pool *pool, uint32_t slot)
{
    text_clear(&pool->record);
    write_record(pool, encode_devices(pool, slot, 1, &pool->record));
}

static int encode_drain(struct pool *pool, uint32_t slot, struct text *out)
{
    const struct drain *drain = drain_of(pool, slot);
    const struct kept_drain kept = {
        .slot = slot, .uid = drain->uid, .time = drain->time, .reason = drain->reason};

    return journal_encode_custom(KEEP_DRAIN, pool_now(pool), &kept_drain_tagged, &kept, out);
}

void keep_drain(struct pool *pool, uint32_t slot)
{
    text_clear(&pool->record);
    write_record(pool, encode_drain(pool, slot, &pool->record));
}

static int encode_epilog(struct pool *pool, const struct kept_epilog *kept, struct text *out)
{
    return journal_encode_custom(KEEP_EPILOG, pool_now(pool), &kept_epilog_tagged, kept, out);
}

void keep_epilog(struct pool *pool, uint32_t slot)
{
    struct kept_epilog kept;

    checks_kept(pool, slot, &kept);
    text_clear(&pool->record);
    write_record(pool, encode_epilog(pool, &kept, &pool->record));
}

static int encode_mps(struct pool *pool, const struct kept_mps *kept, struct text *out)
{
    return journal_encode_custom(KEEP_MPS, pool_now(pool), &kept_mps_tagged, kept, out);
}

void keep_mps(struct pool *pool, uint32_t slot)
{
    struct kept_mps kept;

    mps_kept(pool, slot, &kept);
    text_clear(&pool->record);
    write_record(pool, encode_mps(pool, &kept, &pool->record));
}

/* ---- Making it anew ---- */

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
        .boot = keep_boot_id(),
        .name = pool->name,
        .clock_offset = pool->clock_offset,
        .inventory_hash = pool->inventory_hash,
        .inventory = (char *)pool->settings.inventory,
    };
    int code = kept.boot == NULL ? BERTH_ERROR_MEMORY
                                 : journal_encode_custom(KEEP_POOL, pool_now(pool),
                                                         &kept_pool_tagged, &kept, out);

    free(kept.boot);
    return code;
}

/* Those whose exit code is known outlive the daemon. */
static int dump_ended(struct pool *pool, const struct ended_ring *ring, struct text *out)
{
    int code = 0;

    for (size_t i = 0; i < ENDED_KEPT && i < ring->count && code == 0; i++) {
        if (ring->items[i].exit_code.known)
            code = journal_encode_custom(KEEP_ENDED, pool_now(pool), &kept_ended_tagged,
                                         &ring->items[i], out);
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

    if (dumping.code == 0 && pool->hardware != NULL && devices > 0)
        dumping.code = encode_devices(pool, 0, devices, out);

    if (dumping.code == 0 && engine_dump(pool->engine, &sink) < 0)
        dumping.code = BERTH_ERROR_MEMORY;
    list_for_each (link, &pool->jobs) {
        if (dumping.code == 0)
            dumping.code = encode_job(pool, container_of(link, struct job, in_pool), out);
    }
    for (uint32_t slot = 0; slot < devices && dumping.code == 0; slot++) {
        if (drain_of(pool, slot)->time != 0)
            dumping.code = encode_drain(pool, slot, out);
        if (dumping.code == 0 && checks_kept(pool, slot, &epilog))
            dumping.code = encode_epilog(pool, &epilog, out);
    }
    for (uint32_t slot = 0; slot < engine_slots_max(pool->engine) && dumping.code == 0; slot++) {
        if (mps_kept(pool, slot, &mps))
            dumping.code = encode_mps(pool, &mps, out);
    }
    for (size_t i = 0; i < ENDED_RINGS && dumping.code == 0; i++)
        dumping.code = dump_ended(pool, &pool->ended[i], out);
    return dumping.code;
}

int keep_anew(struct pool *pool, struct berth_error *error)
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
