/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/journal/journal_records.h"

#include "base/count.h"
#include "base/system/file.h"
#include "codec/device_tags.h"
#include "daemon/core/become_user.h"

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
    [KEPT_ENDED_ID] = {TAGGED_NUMBER(kept_ended, id, UINT64_MAX)},
    [KEPT_ENDED_UID] = {TAGGED_NUMBER(kept_ended, uid, UINT32_MAX)},
    [KEPT_ENDED_END] = {TAGGED_NUMBER(kept_ended, end, LEASE_END_IDLE)},
    [KEPT_ENDED_EXIT_CODE] = {TAGGED_MEMBER(kept_ended, exit_code, maybe), .max = UINT64_MAX},
};

static struct tagged_digest kept_ended_tagged_digest;

const struct tagged_table kept_ended_tagged = {
    .digest = &kept_ended_tagged_digest,
    .fields = ended_fields,
    .count = COUNT(ended_fields),
    .size = sizeof(struct kept_ended),
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
    [KEPT_MPS_GID] = {TAGGED_NUMBER(kept_mps, gid, UINT32_MAX),
                      .default_value = USER_IDENTITY_NO_GROUP},
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

enum kept_lost_tag {
    KEPT_LOST_IS_LOST = 1,
};

static const struct tagged_field lost_fields[] = {
    [KEPT_LOST_IS_LOST] = {TAGGED_NUMBER(kept_lost, is_lost, true)},
};

static struct tagged_digest kept_lost_tagged_digest;

const struct tagged_table kept_lost_tagged = {
    .digest = &kept_lost_tagged_digest,
    .fields = lost_fields,
    .count = COUNT(lost_fields),
    .size = sizeof(struct kept_lost),
};

char *journal_records_boot_id(void)
{
    struct text content = {0};

    if (file_read("/proc/sys/kernel/random/boot_id", BOOT_ID_MAX, &content, NULL) < 0)
        text_clear(&content);
    if (content.length > 0 && content.bytes[content.length - 1] == '\n')
        content.bytes[--content.length] = '\0';
    text_append(&content, "");
    return text_detach(&content);
}
