/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engine says, as plain values. Events are decisions, never inputs: written down
 * (engine/journal/journal.h) and replayed (engine_replay) they restore the same state without
 * deciding anything anew, so a later version with other policies restores it too.
 */
#ifndef ENGINE_EVENT_H
#define ENGINE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/request.h"

/* Numbers are part of the journal's format: never renumber, only append. */
enum event_type {
    /* A request became known: request, party; its number; share. */
    EVENT_REQUEST = 1,
    /* A request is not used any more: its number. */
    EVENT_FORGOTTEN = 2,
    /* A claim waits: claim, request number, deadline; `time` is its arrival. */
    EVENT_QUEUED = 3,
    /* A claim became a lease: claim (0: it never waited), lease, request number, slots, expires. */
    EVENT_GRANTED = 4,
    /* A waiting claim is gone without a lease: claim, reason. */
    EVENT_REFUSED = 5,
    /* An opportunistic lease is to be given back: lease, expires (when force comes). */
    EVENT_NOTICE = 6,
    /* The grace is over: lease. Its devices stay until it is released or vacated. */
    EVENT_REVOKED = 7,
    /* The time limit is over: lease. Its devices stay until it is released or vacated. */
    EVENT_EXPIRED = 8,
    /* A lease ended but its devices are not vacated yet: lease. */
    EVENT_DRAINING = 9,
    /* A lease is gone and its devices are free of it: lease. */
    EVENT_RELEASED = 10,
    /* The time limit moved: lease, expires. */
    EVENT_EXTENDED = 11,
    /* A device changed: slot, blocks, health, present. */
    EVENT_DEVICE = 12,
    /* Advice was given: lease (the stamp, from the same counter), slots. */
    EVENT_PICKED = 13,
    /* What a slot remembers: slot, stamp, served, affinity. Only in a dump. */
    EVENT_SLOT = 14,
    /* The numbers to go on from: lease (the last number given out), request. Only in a dump. */
    EVENT_COUNTERS = 15,
    /* A grant was undone, and the lease is a waiting claim again: lease, claim (that it was, or the
     * lease's own number when it never waited), request number, deadline; `time` is its arrival. */
    EVENT_RETURNED = 16,
    EVENT_TYPES,
};

#define EVENT_BIT(type) (1U << (type))
#define EVENT_ALL       UINT32_MAX

enum refusal {
    REFUSAL_CANCELLED = 1,
    REFUSAL_TIMED_OUT = 2,
    REFUSAL_IMPOSSIBLE = 3,   /* a device went away, a limit fell, other rules */
    REFUSAL_PARENT_ENDED = 4, /* the lease that it was made within ended */
};

/* Why a device is not given out for now; bits of a set. */
enum block {
    BLOCK_SQUATTED = 1 << 0,  /* somebody without a lease uses it */
    BLOCK_DIRTY = 1 << 1,     /* something of an earlier lease is left on it */
    BLOCK_DRAINED = 1 << 2,   /* taken out of service */
    BLOCK_ELSEWHERE = 1 << 3, /* held by another pool */
    BLOCK_ASLEEP = 1 << 4,    /* powered down, and not to be woken */
};
#define BLOCK_ALL 0x1FU

/* Who makes a request. */
struct party {
    uint32_t uid;
    const uint32_t *groups; /* whose limits count too */
    size_t group_count;
    const struct device_id_list *mask; /* the inherited mask: only these; NULL: all */
    uint64_t parent;                   /* the lease that it is made within; 0: none */
};

/* No deadline, no time limit. */
#define TIME_NEVER INT64_MAX

struct engine_event {
    enum event_type type;
    int64_t time; /* nanoseconds since 1970 UTC, as the engine was told */
    uint64_t claim;
    uint64_t lease;
    uint64_t request;           /* the number of a request */
    const struct request *what; /* of EVENT_REQUEST */
    const struct party *party;  /* of EVENT_REQUEST */
    const uint32_t *slots;      /* replica after replica */
    uint32_t slot_count;
    uint32_t replicas;
    int64_t expires;  /* EVENT_GRANTED, _NOTICE, _EXTENDED: when; TIME_NEVER */
    int64_t deadline; /* EVENT_QUEUED, _RETURNED: when it gives up; TIME_NEVER */
    enum refusal reason;
    uint32_t slot; /* EVENT_DEVICE, _SLOT */
    uint32_t blocks;
    uint8_t health; /* enum health */
    bool present;
    bool waited; /* EVENT_GRANTED: the claim was queued before */
    uint64_t stamp;
    uint64_t served;
    uint64_t affinity;
    uint32_t
        share; /* EVENT_REQUEST: of each device, where the request names none; 0: by the rules */
};

/* Who is told. The engine must not be called from within `tell`; what the event points to is good
 * until it returns. */
struct event_sink {
    void (*notify)(void *context, const struct engine_event *event);
    void *context;
    uint32_t wanted;  /* EVENT_BITs; the others cost nothing */
    bool waited_only; /* EVENT_GRANTED only for claims that waited: the others know by their call */
};

#endif
