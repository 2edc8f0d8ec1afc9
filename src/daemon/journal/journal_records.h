/* SPDX-License-Identifier: Apache-2.0
 *
 * The daemon's own records in the journal, as values and as the tables that encode them. A value
 * that is written borrows its texts and lists; one that was decoded owns them.
 */
#ifndef DAEMON_JOURNAL_JOURNAL_RECORDS_H
#define DAEMON_JOURNAL_JOURNAL_RECORDS_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/optional.h"
#include "base/text/text.h"
#include "codec/tagged.h"
#include "engine/journal/journal.h"
#include "model/machine/device.h"
#include "model/pool_info.h"
#include "wire/wire.h"

/* The daemon's own records in the journal. Never renumber, only append. */
enum keep_type {
    KEEP_POOL = JOURNAL_CUSTOM_TYPES,
    KEEP_JOB,
    KEEP_ENDED,
    KEEP_DEVICES,
    KEEP_DRAIN,
    KEEP_EPILOG,
    KEEP_MPS,
    KEEP_LOST,
};

/* The first record: which boot and which devices it is about. */
struct kept_pool {
    char *boot;           /* the kernel's boot id */
    char *name;           /* the pool's */
    int64_t clock_offset; /* from CLOCK_BOOTTIME */
    uint64_t inventory_hash;
    char *inventory;
};

/* One claim; a later record of the same id replaces it. */
struct kept_job {
    uint64_t id;
    uint64_t token[2];
    uint32_t uid;
    int32_t pid;
    uint64_t started;
    enum lease_hold hold;
    enum lease_end end;
    bool draining;
    int64_t since;
    int64_t force_at; /* TIME_NEVER by default */
    uint64_t parent;
    char *command;
    bool adopted;
    bool unprepared;
    int64_t wait; /* TIME_NEVER by default */
};

/* The end of a job whose exit code is known: it outlives the daemon. */
struct kept_ended {
    uint64_t id;
    uint32_t uid;
    enum lease_end end;
    struct optional_number exit_code;
};

/* Devices of the hardware, in the order of their slots: all of them after the first record, later
 * those that came or changed. */
struct kept_devices {
    struct device_list devices;
};

/* A device that was drained, or put back into service. */
struct kept_drain {
    uint32_t slot;
    struct optional_number uid;
    int64_t time; /* 0: it is in service */
    char *reason;
};

/* Whether an epilog is due for a device. */
struct kept_epilog {
    uint32_t slot;
    bool is_due;
    uint64_t lease; /* its id for people */
    uint32_t uid;
    char *name;
};

/* The MPS control daemon of a device, if it has one. */
struct kept_mps {
    uint32_t slot;
    bool is_there;
    uint32_t uid;
    uint32_t gid; /* USER_IDENTITY_NO_GROUP by default */
    int32_t pid;  /* 0: it must be started again */
    uint64_t started;
    char *pipe;
    char *log;
};

/* Whether records of an earlier journal were lost and the search for the processes of their leases
 * is not over. */
struct kept_lost {
    bool is_lost;
};

extern const struct tagged_table kept_devices_tagged;
extern const struct tagged_table kept_drain_tagged;
extern const struct tagged_table kept_epilog_tagged;
extern const struct tagged_table kept_lost_tagged;
extern const struct tagged_table kept_mps_tagged;
extern const struct tagged_table kept_pool_tagged;
extern const struct tagged_table kept_job_tagged;
extern const struct tagged_table kept_ended_tagged;

/* Returns the kernel's boot id, empty if there is none. The caller frees it; NULL: no memory. */
char *journal_records_boot_id(void);

#endif
