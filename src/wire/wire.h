/* SPDX-License-Identifier: Apache-2.0
 *
 * What clients and the daemon say to each other, as plain values and as bytes. Pure functions over
 * memory: no I/O; any thread may call them. docs/PROTOCOL.md says what each message does.
 *
 * A message is one packet of a SEQPACKET socket, at most WIRE_MESSAGE_MAX bytes:
 *
 *     byte 0        u8   version: WIRE_VERSION
 *     byte 1        u8   type: enum wire_type, never 0
 *     byte 2, 3     u16  0; ignored by readers
 *     byte 4 to 7   u32  length: how many bytes follow the header
 *     byte 8 to 15  u64  number: chosen by the client for each thing it asks; what is said about
 *                        that thing carries the same number; 0 with WIRE_RELEASE, _CANCEL and
 *                        _STOP: no answer is wanted
 *     byte 16 on         fields, as codec/tagged.h describes them
 *
 * All types share one set of fields; each uses some and ignores the rest. Later versions add types
 * and tags. A client ignores types that it does not know; the daemon answers them with WIRE_REFUSED
 * and BERTH_ERROR_INVALID, since somebody waits for it.
 */
#ifndef WIRE_WIRE_H
#define WIRE_WIRE_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/string_list.h"
#include "base/text/text.h"
#include "model/device.h"
#include "model/machine_report.h"
#include "model/request.h"

#define WIRE_VERSION       1
#define WIRE_HEADER_SIZE   16
#define WIRE_MESSAGE_MAX   (128 * 1024)
#define WIRE_TEXT_MAX      4096
#define WIRE_MASKS_MAX     16
#define WIRE_PAGE_ITEMS    1024 /* of each kind in one message at most */
#define WIRE_GRANT_DEVICES 32   /* in one WIRE_GRANTED at most: 4 KiB for each */
/* What a message takes at most when it is read, whatever its bytes say. */
#define WIRE_MEMORY_MAX (2 * 1024 * 1024)

/* Never renumber, only append. */
enum wire_type {
    /* From the client. */
    WIRE_HELLO = 1,   /* what pool is this? -> POOL */
    WIRE_CLAIM = 2,   /* token, request, hold, parent, masks, command, inventory, resume
                         -> WAITING when it has to wait, then GRANTED or REFUSED; later NOTICE,
                         WARNING. With pid, started: for that process, which is running already */
    WIRE_RELEASE = 3, /* id, exit_code: the holder is done and nobody of it is left -> DONE */
    WIRE_CANCEL = 4,  /* id: take a waiting claim out of the queue -> DONE */
    WIRE_STOP = 5,    /* id: end a lease, whose command is stopped first -> DONE at once */
    WIRE_EXTEND = 6,  /* id, duration: move the time limit -> DONE with expires */
    WIRE_EXPLAIN = 7, /* id: -> WAITING as it is now */
    WIRE_WATCH = 8,   /* id: -> ENDED when the claim or lease is over */
    WIRE_TEST = 9,    /* request, parent, masks, inventory -> DONE once it would be granted at once;
                         with request.nonblock, or after request.wait: REFUSED */
    WIRE_LOOK = 10,   /* section, after, sections -> PAGE */
    WIRE_DRAIN = 11,  /* device_ids, text: out of service once their leases end -> DONE */
    WIRE_UNDRAIN = 12, /* device_ids: into service again -> DONE */
    WIRE_FOLLOW = 13,  /* epoch, after, kinds, duration -> NEWS, as soon as there is some */

    /* From the daemon. */
    WIRE_POOL = 64,    /* pool, socket, inventory, version_text, pid, capacity, pending, time,
                          epoch, history */
    WIRE_WAITING = 65, /* id, position; after EXPLAIN also text (why), estimate, pending */
    WIRE_GRANTED = 66, /* id, devices, replicas, granted, expires, vendors, socket, pool, mps_root;
                          `more`: another one with the next devices follows */
    WIRE_REFUSED = 67, /* error, text: the last word about this number */
    WIRE_DONE = 68,    /* id, expires */
    WIRE_PAGE = 69,    /* capacity, pending, time, socket, inventory, slots, leases, claims; section
                          and after of the next page, section 0: this was the last, and has
                          problems and tally */
    WIRE_NOTICE = 70,  /* id, end, force_at, duration (until then): the lease is to be given back */
    WIRE_ENDED = 71,   /* id, end, exit_code */
    WIRE_CLOSING = 72, /* error, text: the connection is closed for this; number 0 */
    WIRE_WARNING = 73, /* id, end, duration (until then): the lease will end so, unless somebody
                          does something about it */
    WIRE_NEWS = 74,    /* epoch, after, kinds, ended, lost, more, tally, time, pending */
};

/* What a lease is held by. */
enum wire_hold {
    WIRE_HOLD_CONNECTION = 0, /* it ends when the connection does */
    WIRE_HOLD_PROCESS = 1,    /* by the process that claimed, whatever program it becomes */
    WIRE_HOLD_NOTHING = 2,    /* it ends by its time limit or on request */
};

/* Why a lease or claim ends. */
enum wire_end {
    WIRE_END_RELEASED = 1,  /* its holder gave it back */
    WIRE_END_DIED = 2,      /* its holder is gone */
    WIRE_END_EXPIRED = 3,   /* the time limit */
    WIRE_END_REVOKED = 4,   /* it gave way */
    WIRE_END_STOPPED = 5,   /* somebody ended it: WIRE_STOP */
    WIRE_END_CANCELLED = 6, /* while it waited */
    WIRE_END_TIMED_OUT = 7, /* while it waited */
    WIRE_END_IMPOSSIBLE = 8,
    WIRE_END_PARENT = 9, /* the lease that it was within ended */
    WIRE_END_IDLE = 10,  /* it was held and not used */
};

/* released, died, ...: for programs; a daemon that is newer may say others. */
extern const struct choice wire_end_names[];

/* What a device is about, as `status` shows it. */
enum wire_state {
    WIRE_STATE_FREE = 0,
    WIRE_STATE_LEASED = 1,
    WIRE_STATE_SHARED = 2,
    WIRE_STATE_DRAINING = 3,
    WIRE_STATE_DRAINED = 4,
    WIRE_STATE_SICK = 5,
    WIRE_STATE_SQUATTED = 6,
    WIRE_STATE_ELSEWHERE = 7,
    WIRE_STATE_ASLEEP = 8,
    WIRE_STATE_GONE = 9,
};
/* free, leased, ...; a daemon that is newer may say others. */
extern const struct choice wire_state_names[];

/* Whether a device in this state is there to be granted: one that sleeps is, too. */
static inline bool wire_state_is_free(enum wire_state state)
{
    return state == WIRE_STATE_FREE || state == WIRE_STATE_ASLEEP;
}

/* Why a device is not granted for now; those that this version does not know are for later ones. */
enum wire_block {
    WIRE_BLOCK_SQUATTED = 1 << 0,  /* processes without a lease use it */
    WIRE_BLOCK_DIRTY = 1 << 1,     /* the lease before has not left it yet */
    WIRE_BLOCK_DRAINED = 1 << 2,   /* taken out of service */
    WIRE_BLOCK_ELSEWHERE = 1 << 3, /* held by another pool */
};

/* The parts of a look at the pool, in this order. */
enum wire_section {
    WIRE_SECTION_END = 0,
    WIRE_SECTION_DEVICES = 1, /* after: slot + 1 */
    WIRE_SECTION_LEASES = 2,  /* after: id */
    WIRE_SECTION_QUEUE = 3,   /* after: position */
};

/* What the event stream tells of: bits of `kinds`. */
enum wire_news {
    WIRE_NEWS_HELLO = 1 << 0, /* another pool, or other devices than before */
    WIRE_NEWS_LOAD = 1 << 1,  /* the devices were looked at, or are in another state */
    WIRE_NEWS_LEASE = 1 << 2, /* leases: granted, changed, ended */
    WIRE_NEWS_QUEUE = 1 << 3, /* claims that wait */
    WIRE_NEWS_ALL = (1 << 4) - 1,
};

struct wire_slot {
    struct device *device; /* never NULL in what was read */
    enum wire_state state; /* this and other enums in pages: perhaps none that we know */
    enum sharing sharing;  /* of its leases */
    uint32_t tenants;
    uint32_t share_used;  /* millionths */
    uint64_t memory_used; /* reserved */
    uint32_t blocks;      /* bits of enum wire_block: why it is not granted, or not any more */
    char *reason;         /* of one that is drained, for people; NULL: none was given */
    struct optional_number reason_uid; /* who drained it; unknown: the pool itself */
    int64_t reason_time;               /* when; 0: it is not drained */
};

struct wire_lease {
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
    enum wire_end end;           /* why it is being ended; 0: it is not */
    struct optional_number idle; /* nanoseconds since it was last seen to be used; unknown: it is
                                    used, or that cannot be told */
    bool idle_warned;            /* for longer than the configuration likes */
    bool adopted;                /* its process was there before it */
    bool preparing;              /* its devices are being checked before its holder is told */
    uint64_t judged_time;        /* nanoseconds for which it is known whether it was used */
    uint64_t idle_time;          /* of them: when it was not */
};

/* A lease that is over. */
struct wire_ended {
    struct wire_lease *lease; /* as it was; never NULL in what was read */
    enum wire_end end;
    int64_t time; /* when it ended */
    struct optional_number exit_code;
};

/* How long things took: how many took no longer than each bound, and longer than the one before;
 * the last are those above all bounds. */
#define WIRE_BUCKETS 13
struct wire_histogram {
    uint64_t counts[WIRE_BUCKETS];
    uint64_t sum; /* nanoseconds */
};
/* The bounds in nanoseconds; WIRE_BUCKETS - 1 of them, each longer than the one before. */
extern const int64_t wire_bucket_bounds[WIRE_BUCKETS - 1];

/* What the daemon has counted since it started. */
struct wire_tally {
    uint64_t granted;
    uint64_t impossible;
    uint64_t refused; /* wrong, or not allowed */
    uint64_t busy;    /* nonblock */
    uint64_t timed_out;
    uint64_t cancelled;
    struct wire_histogram *waited; /* by claims that were granted; NULL: none was */
    struct wire_histogram *held;   /* leases that are over; NULL: none is */
};

struct wire_claim {
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

struct wire_message {
    enum wire_type type;
    uint64_t number;

    uint64_t id; /* of a claim; its lease keeps it */
    uint64_t parent;
    uint64_t token[2]; /* chosen by the client, the same after reconnecting; [0] is not 0 */
    struct request *request;
    enum wire_hold hold;
    bool resume;              /* the command runs already: do not queue anew */
    struct string_list masks; /* inherited, as NAME=VALUE */
    char *command;            /* for people */
    char *inventory;          /* the file that is wanted, absolute; NULL: any */
    uint64_t duration;        /* nanoseconds */
    uint64_t started;         /* when the process `pid` began, in clock ticks since boot */
    bool present;             /* the devices that it uses already; no request was made */
    struct device_id_list device_ids;
    uint32_t section;
    uint64_t after;

    uint32_t error; /* the berth_error_code, positive */
    char *text;
    uint32_t position;
    struct optional_number estimate; /* nanoseconds from now */
    struct device_list devices;      /* replica after replica */
    uint32_t replicas;               /* 0 is 1 */
    bool more;
    int64_t granted;
    struct optional_number expires;
    bool stay;      /* its holder may be told something later, and is to stay to hear it */
    char *mps_root; /* of a lease that shares by MPS: see model/mps_directories.h; NULL: it does not
                     */
    uint32_t vendors; /* bits of enum vendor: what the host has */
    char *socket;
    char *pool; /* the same as long as ids go on counting */
    char *version_text;
    int32_t pid;
    int64_t force_at;
    enum wire_end end;
    struct optional_number exit_code;

    uint32_t capacity;
    uint32_t pending;
    int64_t time; /* now */
    struct {
        VECTOR_OF(struct wire_slot);
    } slots;
    struct {
        VECTOR_OF(struct wire_lease);
    } leases;
    struct {
        VECTOR_OF(struct wire_claim);
    } claims;
    struct problem_list problems; /* of the last look at the hardware */

    uint64_t epoch;    /* another one for each start of the daemon */
    uint32_t kinds;    /* bits of enum wire_news */
    uint32_t sections; /* bits 1 << enum wire_section that are looked at; 0: all */
    char *history;     /* the file of past leases; NULL: none is kept */
    struct {
        VECTOR_OF(struct wire_ended);
    } ended;
    uint64_t lost; /* leases that ended and are not told of any more */
    struct wire_tally *tally;
};

/* Frees what a decoded message owns and zeroes it. */
void wire_message_finish(struct wire_message *message);

/* Appends the message as bytes. What only people read (command, text, version_text, and the texts
 * of leases and claims) is cut when it is longer than WIRE_TEXT_MAX. Fails with
 * BERTH_ERROR_LIMIT (too long), _INVALID (a value beyond its limit) or _MEMORY; the text is as
 * before then. */
int wire_encode(const struct wire_message *message, struct text *out, struct berth_error *error);

/* Reads one packet. The caller finishes *ret_message, which is untouched on failure. Fails with
 * BERTH_ERROR_SYNTAX, _LIMIT (longer than WIRE_MESSAGE_MAX) or _MEMORY. A type that this version
 * does not know is no failure: its fields are read as far as they are known. Nor is a state, end,
 * sharing, priority, health or section beyond those: they stay the numbers that they are. Whether
 * all is there that a type needs (a request, a token), and whether it makes sense, the caller
 * looks. */
int wire_decode(const void *bytes, size_t length, struct wire_message *ret_message,
                struct berth_error *error);

/* "claim" for WIRE_CLAIM; NULL for a type that this version does not know. Static. */
const char *wire_type_name(enum wire_type type);

/* "given back", "the time limit", ...: why something ended, for people; "it ended" for one that
 * this version does not know. Static. */
const char *wire_end_describe(enum wire_end end);

#endif
