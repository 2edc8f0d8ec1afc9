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
#include "model/pool_info.h"
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

struct wire_message {
    enum wire_type type;
    uint64_t number;

    uint64_t id; /* of a claim; its lease keeps it */
    uint64_t parent;
    uint64_t token[2]; /* chosen by the client, the same after reconnecting; [0] is not 0 */
    struct request *request;
    enum lease_hold hold;
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
    enum lease_end end;
    struct optional_number exit_code;

    uint32_t capacity;
    uint32_t pending;
    int64_t time; /* now */
    struct {
        VECTOR_OF(struct slot_info);
    } slots;
    struct {
        VECTOR_OF(struct lease_info);
    } leases;
    struct {
        VECTOR_OF(struct claim_info);
    } claims;
    struct problem_list problems; /* of the last look at the hardware */

    uint64_t epoch;    /* another one for each start of the daemon */
    uint32_t kinds;    /* bits of enum wire_news */
    uint32_t sections; /* bits 1 << enum wire_section that are looked at; 0: all */
    char *history;     /* the file of past leases; NULL: none is kept */
    struct {
        VECTOR_OF(struct ended_lease);
    } ended;
    uint64_t lost; /* leases that ended and are not told of any more */
    struct pool_tally *tally;
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

#endif
