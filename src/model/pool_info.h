/* SPDX-License-Identifier: Apache-2.0
 *
 * What a pool tells its readers: the state of each slot, the leases, the claims that wait, the
 * leases that have ended, and counters.
 */
#ifndef MODEL_POOL_INFO_H
#define MODEL_POOL_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text/choice.h"
#include "model/device.h"
#include "model/optional.h"
#include "model/request.h"

/* What a lease is held by. */
enum lease_hold {
    LEASE_HOLD_CONNECTION = 0, /* it ends when the connection does */
    LEASE_HOLD_PROCESS = 1,    /* by the process that claimed, whatever program it becomes */
    LEASE_HOLD_NOTHING = 2,    /* it ends by its time limit or on request */
};

/* Why a lease or claim ends. */
enum lease_end {
    LEASE_END_RELEASED = 1,  /* its holder gave it back */
    LEASE_END_DIED = 2,      /* its holder is gone */
    LEASE_END_EXPIRED = 3,   /* the time limit */
    LEASE_END_REVOKED = 4,   /* it gave way */
    LEASE_END_STOPPED = 5,   /* somebody ended it: WIRE_STOP */
    LEASE_END_CANCELLED = 6, /* while it waited */
    LEASE_END_TIMED_OUT = 7, /* while it waited */
    LEASE_END_IMPOSSIBLE = 8,
    LEASE_END_PARENT = 9, /* the lease that it was within ended */
    LEASE_END_IDLE = 10,  /* it was held and not used */
};

/* released, died, ...: for programs; a daemon that is newer may say others. */
extern const struct choice lease_end_names[];

/* What a device is about, as `status` shows it. */
enum slot_state {
    SLOT_STATE_FREE = 0,
    SLOT_STATE_LEASED = 1,
    SLOT_STATE_SHARED = 2,
    SLOT_STATE_DRAINING = 3,
    SLOT_STATE_DRAINED = 4,
    SLOT_STATE_SICK = 5,
    SLOT_STATE_SQUATTED = 6,
    SLOT_STATE_ELSEWHERE = 7,
    SLOT_STATE_ASLEEP = 8,
    SLOT_STATE_GONE = 9,
};
/* free, leased, ...; a daemon that is newer may say others. */
extern const struct choice slot_state_names[];

/* Whether a device in this state is there to be granted: one that sleeps is, too. */
static inline bool pool_info_state_is_free(enum slot_state state)
{
    return state == SLOT_STATE_FREE || state == SLOT_STATE_ASLEEP;
}

/* Why a device is not granted for now; those that this version does not know are for later ones. */
enum slot_block {
    SLOT_BLOCK_SQUATTED = 1 << 0,  /* processes without a lease use it */
    SLOT_BLOCK_DIRTY = 1 << 1,     /* the lease before has not left it yet */
    SLOT_BLOCK_DRAINED = 1 << 2,   /* taken out of service */
    SLOT_BLOCK_ELSEWHERE = 1 << 3, /* held by another pool */
};

struct slot_info {
    struct device *device; /* never NULL in what was read */
    enum slot_state state; /* this and other enums in pages: perhaps none that we know */
    enum sharing sharing;  /* of its leases */
    uint32_t tenants;
    uint32_t share_used;  /* millionths */
    uint64_t memory_used; /* reserved */
    uint32_t blocks;      /* bits of enum slot_block: why it is not granted, or not any more */
    char *reason;         /* of one that is drained, for people; NULL: none was given */
    struct optional_number reason_uid; /* who drained it; unknown: the pool itself */
    int64_t reason_time;               /* when; 0: it is not drained */
};

struct lease_info {
    uint64_t id;
    uint64_t parent; /* 0: none */
    uint32_t uid;
    int32_t pid; /* 0: held by no process */
    char *name;
    char *command;
    struct device_id_list devices; /* replica after replica */
    uint32_t replicas;
    uint32_t share; /* millionths of each */
    struct optional_number memory;
    enum sharing sharing;
    enum priority priority;
    bool opportunistic;
    bool draining; /* ended, and something of it is left */
    int64_t granted;
    int64_t since;                  /* when it was claimed */
    struct optional_number expires; /* nanoseconds since 1970 */
    struct optional_number force_at;
    enum lease_end end;          /* why it is being ended; 0: it is not */
    struct optional_number idle; /* nanoseconds since it was last seen to be used; unknown: it is
                                    used, or that cannot be told */
    bool idle_warned;            /* for longer than the configuration likes */
    bool adopted;                /* its process was there before it */
    bool preparing;              /* its devices are being checked before its holder is told */
    uint64_t judged_time;        /* nanoseconds for which it is known whether it was used */
    uint64_t idle_time;          /* of them: when it was not */
};

/* A lease that is over. */
struct ended_lease {
    struct lease_info *lease; /* as it was; never NULL in what was read */
    enum lease_end end;
    int64_t time; /* when it ended */
    struct optional_number exit_code;
};

/* How long things took: how many took no longer than each bound, and longer than the one before;
 * the last are those above all bounds. */
#define HISTOGRAM_BUCKETS 13
struct duration_histogram {
    uint64_t counts[HISTOGRAM_BUCKETS];
    uint64_t sum; /* nanoseconds */
};
/* The bounds in nanoseconds; HISTOGRAM_BUCKETS - 1 of them, each longer than the one before. */
extern const int64_t histogram_bounds[HISTOGRAM_BUCKETS - 1];

/* What the daemon has counted since it started. */
struct pool_tally {
    uint64_t granted;
    uint64_t impossible;
    uint64_t refused; /* wrong, or not allowed */
    uint64_t busy;    /* nonblock */
    uint64_t timed_out;
    uint64_t cancelled;
    struct duration_histogram *waited; /* by claims that were granted; NULL: none was */
    struct duration_histogram *held;   /* leases that are over; NULL: none is */
};

struct claim_info {
    uint64_t id;
    uint64_t parent;
    uint32_t uid;
    int32_t pid;
    uint32_t position; /* from 1 */
    char *name;
    char *command;
    char *request; /* in words */
    int64_t since;
    char *why;
    struct optional_number estimate; /* nanoseconds from now */
    enum priority priority;
    bool opportunistic;
};

/* "given back", "the time limit", ...: why something ended, for people; "it ended" for one that
 * this version does not know. Static. */
const char *pool_info_describe_end(enum lease_end end);

#endif
