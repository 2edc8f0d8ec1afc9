/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine's events, as plain values. An event is a change of the state, not the call that caused
 * it. Events that are written to a journal (engine/journal/journal.h) and replayed
 * (engine_replay()) restore the same state without any decision. So a later version with other
 * policies restores it too.
 */
#ifndef ENGINE_EVENT_H
#define ENGINE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/request.h"

/* Numbers are part of the journal's format: never renumber, only append. */
enum event_type {
    /* A request was opened: what, party, request, share. */
    EVENT_REQUEST = 1,
    /* A request was freed: request. */
    EVENT_FORGOTTEN = 2,
    /* A claim waits: claim, request, deadline; `time` is its arrival. */
    EVENT_QUEUED = 3,
    /* A claim was granted: claim (0: it never waited), lease, request, slots, replicas, expires,
     * waited. */
    EVENT_GRANTED = 4,
    /* A waiting claim was refused or cancelled: claim, reason. */
    EVENT_REFUSED = 5,
    /* An opportunistic lease got notice: lease, expires (when the grace ends). */
    EVENT_NOTICE = 6,
    /* The grace is over: lease. It keeps its devices until it is released or vacated. */
    EVENT_REVOKED = 7,
    /* The time limit is over: lease. It keeps its devices until it is released or vacated. */
    EVENT_EXPIRED = 8,
    /* A lease ended, but its devices are not vacated yet: lease. */
    EVENT_DRAINING = 9,
    /* A lease is gone, and its devices are free: lease. */
    EVENT_RELEASED = 10,
    /* The time limit changed: lease, expires. */
    EVENT_EXTENDED = 11,
    /* A device changed: slot, blocks, health, present. */
    EVENT_DEVICE = 12,
    /* Devices were picked without a lease: lease (an id of its own), request, slots. */
    EVENT_PICKED = 13,
    /* The past of a slot: slot, lease (the scope; 0: the pool), stamp, served, affinity. Only in a
     * dump. */
    EVENT_SLOT = 14,
    /* The last ids: lease (of claims and leases), request. Only in a dump. */
    EVENT_COUNTERS = 15,
    /* A grant was withdrawn, and the lease is a waiting claim again: lease, claim (its old id, or
     * the lease's id if it never waited), request, deadline; `time` is its arrival. */
    EVENT_RETURNED = 16,
    EVENT_TYPES,
};

#define EVENT_BIT(type) (1U << (type))
#define EVENT_ALL       UINT32_MAX

enum refusal {
    REFUSAL_CANCELLED = 1,
    REFUSAL_TIMED_OUT = 2,
    REFUSAL_IMPOSSIBLE = 3,   /* a device is gone, a limit fell, or the rules changed */
    REFUSAL_PARENT_ENDED = 4, /* the lease that it was made within has ended */
};

/* Reasons why a device is not granted for now; bits of a set. */
enum block {
    BLOCK_SQUATTED = 1 << 0,  /* a process without a lease uses it */
    BLOCK_DIRTY = 1 << 1,     /* processes of an earlier lease still use it */
    BLOCK_DRAINED = 1 << 2,   /* taken out of service */
    BLOCK_ELSEWHERE = 1 << 3, /* held by another pool */
    BLOCK_ASLEEP = 1 << 4,    /* powered down, and must not be woken */
};
#define BLOCK_ALL 0x1FU

/* The party that makes a request. */
struct party {
    uint32_t uid;
    const uint32_t *groups; /* their limits and reserved devices apply too */
    size_t group_count;
    const struct device_id_list *mask; /* the inherited mask: only these devices; NULL: all */
    uint64_t parent;                   /* the lease that the request is made within; 0: none */
};

/* No deadline, no time limit. */
#define TIME_NEVER INT64_MAX

struct engine_event {
    enum event_type type;
    int64_t time; /* the engine's time, in nanoseconds since 1970 UTC */
    uint64_t claim;
    uint64_t lease;
    uint64_t request;           /* the number of a request */
    const struct request *what; /* of EVENT_REQUEST */
    const struct party *party;  /* of EVENT_REQUEST */
    const uint32_t *slots;      /* replica after replica */
    uint32_t slot_count;
    uint32_t replicas;
    int64_t expires;  /* of EVENT_GRANTED, _NOTICE, _EXTENDED; TIME_NEVER: no time limit */
    int64_t deadline; /* of EVENT_QUEUED, _RETURNED; TIME_NEVER: the claim has no timeout */
    enum refusal reason;
    uint32_t slot; /* of EVENT_DEVICE, _SLOT */
    uint32_t blocks;
    uint8_t health; /* enum health */
    bool present;
    bool waited; /* of EVENT_GRANTED: the claim waited in the queue */
    uint64_t stamp;
    uint64_t served;
    uint64_t affinity;
    uint32_t share; /* of EVENT_REQUEST: the share if the request names none; 0: by the rules */
};

/* The receiver of events. `notify` must not call the engine. The event, and everything that it
 * points to, is valid until `notify` returns. */
struct event_sink {
    void (*notify)(void *context, const struct engine_event *event);
    void *context;
    uint32_t wanted;  /* EVENT_BITs; other events cost nothing */
    bool waited_only; /* EVENT_GRANTED only for claims that waited; others return CLAIM_GRANTED */
};

#endif
