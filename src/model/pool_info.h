/* SPDX-License-Identifier: Apache-2.0
 *
 * The types that describe a pool to its readers: its name, the state of each slot, the leases, the
 * waiting claims, the ended leases, and counters.
 */
#ifndef MODEL_POOL_INFO_H
#define MODEL_POOL_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/optional.h"
#include "base/text/choice.h"
#include "base/vector.h"
#include "model/machine/device.h"
#include "model/machine/machine_report.h"
#include "model/request.h"

/* The holder that keeps a lease alive. */
enum lease_hold {
    LEASE_HOLD_CONNECTION = 0, /* the lease ends when the connection ends */
    LEASE_HOLD_PROCESS = 1,    /* the process that claimed it, also after exec */
    LEASE_HOLD_NOTHING = 2,    /* no holder: it ends by its time limit or on request */
};

/* The reason why a lease or claim ends. */
enum lease_end {
    LEASE_END_RELEASED = 1,   /* its holder released it */
    LEASE_END_DIED = 2,       /* its holder ended without releasing it */
    LEASE_END_EXPIRED = 3,    /* its time limit has passed */
    LEASE_END_REVOKED = 4,    /* it was preempted */
    LEASE_END_STOPPED = 5,    /* it was ended by request: WIRE_STOP */
    LEASE_END_CANCELLED = 6,  /* the claim was cancelled while it waited */
    LEASE_END_TIMED_OUT = 7,  /* the claim has waited as long as it may */
    LEASE_END_IMPOSSIBLE = 8, /* no device of the pool can serve the claim any more */
    LEASE_END_PARENT = 9,     /* the lease around it ended */
    LEASE_END_IDLE = 10,      /* it was held but not used */
};

/* released, died, ...: machine-readable names. A newer daemon may send values without a name
 * here. */
extern const struct choice lease_end_names[];

/* The state of a device, as `status` shows it. */
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
/* free, leased, ... A newer daemon may send values without a name here. */
extern const struct choice slot_state_names[];

/* Returns whether a device in this state can be granted. A device that is asleep can. */
static inline bool pool_info_state_is_free(enum slot_state state)
{
    return state == SLOT_STATE_FREE || state == SLOT_STATE_ASLEEP;
}

/* The reasons for not granting a device. Later versions may add more. */
enum slot_block {
    SLOT_BLOCK_SQUATTED = 1 << 0,  /* processes without a lease use it */
    SLOT_BLOCK_DIRTY = 1 << 1,     /* processes of an ended lease still use it */
    SLOT_BLOCK_DRAINED = 1 << 2,   /* out of service */
    SLOT_BLOCK_ELSEWHERE = 1 << 3, /* held by another pool */
};

struct slot_info {
    struct device *device; /* never NULL in a decoded message */
    enum slot_state state; /* this and the other enums may have values unknown to this version */
    enum sharing sharing;  /* of its leases */
    uint32_t tenants;
    uint32_t share_used;  /* millionths */
    uint64_t memory_used; /* reserved */
    uint32_t blocks;      /* bits of enum slot_block */
    char *reason;         /* why it was drained; NULL: not drained, or no reason was given */
    struct optional_number reason_uid; /* the user who drained it; unknown: the pool itself */
    int64_t reason_time;               /* when it was drained; 0: it is not drained */
    struct optional_number name_uid;   /* the other process that holds its kernel-wide name */
    struct optional_number name_pid;
};

struct lease_info {
    uint64_t id;
    uint64_t parent; /* 0: none */
    uint32_t uid;
    int32_t pid; /* 0: no process holds it */
    char *name;
    char *command;
    struct device_id_list devices; /* replica after replica */
    uint32_t replicas;
    uint32_t share; /* millionths of each */
    struct optional_number memory;
    enum sharing sharing;
    enum priority priority;
    bool opportunistic;
    bool draining; /* ended, but some of its processes are left */
    int64_t granted;
    int64_t since;                  /* the time of the claim */
    struct optional_number expires; /* nanoseconds since 1970 */
    struct optional_number force_at;
    enum lease_end end;          /* why the lease is being ended; 0: it is not */
    struct optional_number idle; /* nanoseconds since its devices were last used; unknown: they are
                                    in use, or their use is not known */
    bool idle_warned;            /* it is idle for longer than the configuration's idle_warning */
    bool adopted;                /* its process ran before the lease was granted */
    bool preparing;              /* the prolog runs; the holder is not notified yet */
    uint64_t judged_time;        /* nanoseconds for which the devices' use is known */
    uint64_t idle_time;          /* the part of judged_time without use */
};

/* The bytes of an ended lease's command line that are kept. */
#define ENDED_COMMAND_MAX 256

/* A lease that has ended. */
struct ended_lease {
    struct lease_info *lease; /* as it was; never NULL in a decoded message */
    enum lease_end end;
    int64_t time; /* when it ended */
    struct optional_number exit_code;
};

/* A histogram of durations. Each bucket counts the durations above the previous bound, up to its
 * own bound. The last bucket counts those above all bounds. */
#define HISTOGRAM_BUCKETS 13
struct duration_histogram {
    uint64_t counts[HISTOGRAM_BUCKETS];
    uint64_t sum; /* nanoseconds */
};
/* The bounds in nanoseconds, in ascending order. */
extern const int64_t histogram_bounds[HISTOGRAM_BUCKETS - 1];

/* Counters since the daemon's start. */
struct pool_tally {
    uint64_t granted;
    uint64_t impossible;
    uint64_t refused; /* invalid, or not permitted */
    uint64_t busy;    /* nonblock, and no device was free */
    uint64_t timed_out;
    uint64_t cancelled;
    struct duration_histogram *waited; /* waiting times of granted claims; NULL: none yet */
    struct duration_histogram *held;   /* durations of ended leases; NULL: none yet */
};

struct claim_info {
    uint64_t id;
    uint64_t parent;
    uint32_t uid;
    int32_t pid;
    uint32_t position; /* from 1 */
    char *name;
    char *command;
    char *request; /* as request_describe writes it */
    int64_t since;
    char *why;
    struct optional_number estimate; /* nanoseconds from now */
    enum priority priority;
    bool opportunistic;
};

/* The facts that identify a pool. */
struct pool_about {
    char *pool; /* changes only when ids start again from 1 */
    char *socket;
    char *inventory; /* the file with the pool's devices, absolute; NULL: the host's devices */
    char *version_text;
    char *history; /* the file of past leases; NULL: none */
};

/* A pool's devices, leases and queue at one moment, or a part of them. */
struct pool_snapshot {
    uint32_t capacity; /* number of devices */
    uint32_t pending;  /* number of claims */
    int64_t time;      /* now */
    struct {
        VECTOR_OF(struct slot_info);
    } slots;
    struct {
        VECTOR_OF(struct lease_info);
    } leases;
    struct {
        VECTOR_OF(struct claim_info);
    } claims;
    struct problem_list problems; /* of the last probe of the hardware */
};

/* Free what these own, with all items. */
void pool_info_finish_about(struct pool_about *about);
void pool_info_finish_snapshot(struct pool_snapshot *snapshot);
void pool_info_finish_ended(struct ended_lease *ended);

/* Describes why a lease or claim ended: "released by its holder", "the time limit", ... A value
 * unknown to this version gives "it ended". The string is static. */
const char *pool_info_describe_end(enum lease_end end);

#endif
