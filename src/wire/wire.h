/* SPDX-License-Identifier: Apache-2.0
 *
 * The messages between clients and the daemon, and their encoding. Pure functions without I/O; any
 * thread may call them. docs/PROTOCOL.md describes what each message does.
 *
 * A message is one packet of a SEQPACKET socket, at most WIRE_MESSAGE_MAX bytes:
 *
 *     byte 0        u8   version: WIRE_VERSION
 *     byte 1        u8   type: enum wire_type, never 0
 *     byte 2, 3     u16  0; ignored by readers
 *     byte 4 to 7   u32  length: number of bytes after the header
 *     byte 8 to 15  u64  number: chosen by the client for each request; the daemon's messages about
 *                        that request have the same number; 0 with WIRE_RELEASE, _CANCEL and _STOP:
 *                        no answer is expected
 *     byte 16 on         fields (codec/tagged.h)
 *
 * All types share one set of fields. A table in wire_tables.c says which fields each type uses; the
 * decoder skips the others, as it skips unknown tags. Later versions add types and tags. A client
 * ignores unknown types. The daemon answers them with WIRE_REFUSED and BERTH_ERROR_INVALID, because
 * the client waits for an answer.
 */
#ifndef WIRE_WIRE_H
#define WIRE_WIRE_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/string_list.h"
#include "base/text/text.h"
#include "model/machine/device.h"
#include "model/machine/machine_report.h"
#include "model/pool_info.h"
#include "model/request.h"

#define WIRE_VERSION       1
#define WIRE_HEADER_SIZE   16
#define WIRE_MESSAGE_MAX   (128 * 1024)
#define WIRE_TEXT_MAX      4096
#define WIRE_MASKS_MAX     16
#define WIRE_PAGE_ITEMS    1024 /* maximum of each kind in one message */
#define WIRE_GRANT_DEVICES 32   /* maximum in one WIRE_GRANTED, with 4 KiB for each */
/* The maximum memory of a decoded message, whatever its bytes are. */
#define WIRE_MEMORY_MAX (2 * 1024 * 1024)

/* Never renumber, only append. */
enum wire_type {
    /* From the client. */
    WIRE_HELLO = 1,   /* requests the pool's facts -> POOL */
    WIRE_CLAIM = 2,   /* token, request, hold, parent, masks, command, inventory, resume
                         -> WAITING if it must wait, then GRANTED or REFUSED; later NOTICE, WARNING.
                         With pid and started: for that process, which already runs */
    WIRE_RELEASE = 3, /* id, exit_code: the holder has ended with all its processes -> DONE */
    WIRE_CANCEL = 4,  /* id: removes a waiting claim from the queue -> DONE */
    WIRE_STOP = 5,    /* id: ends a lease, and stops its command first -> DONE at once */
    WIRE_EXTEND = 6,  /* id, duration: moves the time limit -> DONE with expires */
    WIRE_EXPLAIN = 7, /* id: -> WAITING with the current state */
    WIRE_WATCH = 8,   /* id: -> ENDED when the claim or lease has ended */
    WIRE_TEST = 9,    /* request, parent, masks, inventory -> DONE once it would be granted at once;
                         with request.nonblock, or after request.wait: REFUSED */
    WIRE_LOOK = 10,   /* section, after, sections -> PAGE */
    WIRE_DRAIN = 11,  /* device_ids, text: drains devices -> DONE */
    WIRE_UNDRAIN = 12, /* device_ids: puts devices back into service -> DONE */
    WIRE_FOLLOW = 13,  /* epoch, after, kinds, duration: subscribes -> NEWS for each change */

    /* From the daemon. */
    WIRE_POOL = 64,    /* pool, socket, inventory, version_text, pid, capacity, pending, time,
                          epoch, history */
    WIRE_WAITING = 65, /* id, position; after EXPLAIN also text (why), estimate, pending */
    WIRE_GRANTED = 66, /* id, devices, replicas, granted, expires, vendors, socket, pool, mps_root;
                          `more`: another GRANTED with the next devices follows */
    WIRE_REFUSED = 67, /* error, text: the last message with this number */
    WIRE_DONE = 68,    /* id, expires */
    WIRE_PAGE = 69,    /* capacity, pending, time, socket, inventory, slots, leases, claims; section
                          and after of the next page; section 0: this is the last page, and has
                          problems and tally */
    WIRE_NOTICE = 70,  /* id, end, force_at, duration (until then): the holder must release the
                          lease */
    WIRE_ENDED = 71,   /* id, end, exit_code */
    WIRE_CLOSING = 72, /* error, text: why the daemon closes the connection; number 0 */
    WIRE_WARNING = 73, /* id, end, duration (until then): the lease will end for this reason, unless
                          the user prevents it */
    WIRE_NEWS = 74,    /* epoch, after, kinds, ended, lost, more, tally, time, pending */
};

/* The sections of a snapshot, in this order. */
enum wire_section {
    WIRE_SECTION_END = 0,
    WIRE_SECTION_DEVICES = 1, /* after: slot + 1 */
    WIRE_SECTION_LEASES = 2,  /* after: id */
    WIRE_SECTION_QUEUE = 3,   /* after: position */
};

/* The kinds of events that a client can subscribe to: bits of `kinds`. */
enum wire_news {
    WIRE_NEWS_HELLO = 1 << 0, /* the pool or its list of devices has changed */
    WIRE_NEWS_LOAD = 1 << 1,  /* the devices were sampled, or their state has changed */
    WIRE_NEWS_LEASE = 1 << 2, /* leases were granted, changed or ended */
    WIRE_NEWS_QUEUE = 1 << 3, /* the queue has changed */
    WIRE_NEWS_ALL = (1 << 4) - 1,
};

struct wire_message {
    enum wire_type type;
    uint64_t number;

    struct pool_about about; /* WIRE_CLAIM and _TEST: only the inventory that the pool must have */
    struct pool_snapshot snapshot;

    uint64_t id; /* of a claim; its lease has the same id */
    uint64_t parent;
    uint64_t token[2]; /* chosen by the client, the same after reconnecting; [0] is not 0 */
    struct request *request;
    enum lease_hold hold;
    bool resume;              /* the command already runs: do not queue it again */
    struct string_list masks; /* inherited device masks, as NAME=VALUE */
    char *command;            /* shown to users */
    uint64_t duration;        /* nanoseconds */
    uint64_t started;         /* the start of the process `pid`, in clock ticks since boot */
    bool present;             /* claims the devices that the process already uses; no request */
    struct device_id_list device_ids;
    uint32_t section;
    uint64_t after;

    uint32_t error; /* the berth_error_code, positive */
    char *text;
    uint32_t position;
    struct optional_number estimate; /* nanoseconds from now */
    struct device_list devices;      /* replica after replica */
    uint32_t replicas;               /* 0 means 1 */
    bool more;
    int64_t granted;
    struct optional_number expires;
    bool stay;        /* later messages may follow, so the holder must keep the connection */
    char *mps_root;   /* of a lease that shares by MPS (model/mps_directories.h); else NULL */
    uint32_t vendors; /* bits of enum vendor: the vendors of the host's devices */
    int32_t pid;
    int64_t force_at;
    enum lease_end end;
    struct optional_number exit_code;

    uint64_t epoch;    /* changes with each start of the daemon */
    uint32_t kinds;    /* bits of enum wire_news */
    uint32_t sections; /* bits 1 << enum wire_section: the requested sections; 0: all */
    struct {
        VECTOR_OF(struct ended_lease);
    } ended;
    uint64_t lost; /* number of ended leases that the daemon has forgotten */
    struct pool_tally *tally;
};

/* Frees what a decoded message owns and zeroes it. */
void wire_message_finish(struct wire_message *message);

/* Appends the encoded message, which must set only fields that its type uses. Texts that are only
 * shown (command, text, version_text, and the texts of leases and claims) are cut to WIRE_TEXT_MAX
 * bytes. Fails with BERTH_ERROR_LIMIT (too long), _INVALID (a value above its limit) or _MEMORY;
 * `out` is unchanged then. */
int wire_encode(const struct wire_message *message, struct text *out, struct berth_error *error);

/* Decodes one packet. The caller finishes *ret_message, which is untouched on failure. Fails with
 * BERTH_ERROR_SYNTAX, _LIMIT (longer than WIRE_MESSAGE_MAX) or _MEMORY. Fields that the type does
 * not use keep their default, and unknown types use none. Unknown values of state, end, sharing,
 * priority, health and section are accepted and kept. The caller checks that the fields which a
 * type needs (a request, a token) are present and make sense. */
int wire_decode(const void *bytes, size_t length, struct wire_message *ret_message,
                struct berth_error *error);

/* Returns the name of a type, "claim" for WIRE_CLAIM, or NULL for an unknown type. The string is
 * static. */
const char *wire_type_name(enum wire_type type);

#endif
