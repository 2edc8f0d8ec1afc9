/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing down what must outlive the daemon: the engine's events and, for each claim, who made it.
 */
#ifndef DAEMON_KEEP_H
#define DAEMON_KEEP_H

#include "codec/tagged.h"
#include "daemon/pool.h"
#include "engine/journal/journal.h"

/* The daemon's own records in the journal. Never renumber, only append. */
enum keep_type {
    KEEP_POOL = JOURNAL_CUSTOM_TYPES,
    KEEP_JOB,
    KEEP_ENDED,
    KEEP_DEVICES,
    KEEP_DRAIN,
    KEEP_EPILOG,
    KEEP_MPS,
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

/* Devices of the hardware, in the order of their slots: all of them after the first record, later
 * those that came or changed. */
struct kept_devices {
    struct device_list devices;
};

/* A device that was taken out of service, or into it again. */
struct kept_drain {
    uint32_t slot;
    struct optional_number uid;
    int64_t time; /* 0: it is in service */
    char *reason;
};

/* An epilog that has to be run for a device, or has been. */
struct kept_epilog {
    uint32_t slot;
    bool is_due;
    uint64_t lease; /* its id for people */
    uint32_t uid;
    char *name;
};

/* The MPS control daemon of a device, or that there is none. */
struct kept_mps {
    uint32_t slot;
    bool is_there;
    uint32_t uid;
    uint32_t gid; /* PERSONA_NO_GROUP by default */
    int32_t pid;  /* 0: it is to be started again */
    uint64_t started;
    char *pipe;
    char *log;
};

extern const struct tagged_table kept_devices_tagged;
extern const struct tagged_table kept_drain_tagged;
extern const struct tagged_table kept_epilog_tagged;
extern const struct tagged_table kept_mps_tagged;
extern const struct tagged_table kept_pool_tagged;
extern const struct tagged_table kept_job_tagged;
extern const struct tagged_table kept_ended_tagged; /* struct ended */

void keep_event(struct pool *pool, const struct engine_event *event);
void keep_job(struct pool *pool, const struct job *job);
void keep_ended(struct pool *pool, const struct ended *ended);
/* A device of the hardware has come, or what is known of it has changed. */
void keep_device(struct pool *pool, uint32_t slot);

/* A device was taken out of service, or into it again. */
void keep_drain(struct pool *pool, uint32_t slot);

/* Whether the epilog of a device is due has changed. */
void keep_epilog(struct pool *pool, uint32_t slot);

/* The MPS control daemon of a device has changed. */
void keep_mps(struct pool *pool, uint32_t slot);

/* Makes the journal anew from what is there now. */
int keep_anew(struct pool *pool, struct berth_error *error);

/* The kernel's boot id; empty when it has none. The caller frees it; NULL: no memory. */
char *keep_boot_id(void);

#endif
