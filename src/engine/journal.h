/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine's events as bytes, to be kept in a file and replayed later, perhaps by another
 * version. Pure functions over memory: no I/O, no time; any thread may call them.
 *
 * A journal is records one after the other. All numbers are little-endian. A record is
 *
 *     byte 0       u8   the format: JOURNAL_FORMAT
 *     byte 1       u8   the type: enum event_type, never 0
 *     byte 2 to 5  u32  length: how many bytes follow the header, JOURNAL_TIME_SIZE to
 *                       JOURNAL_LENGTH_MOST
 *     byte 6, 7    u16  guard: the low half of the CRC-32C of bytes 0 to 5. So a damaged length is
 *                       told from a record of which the end is missing.
 *     byte 8 to 11 u32  checksum: the CRC-32C of the whole record without these four bytes
 *     byte 12 on   i64  the time: nanoseconds since 1970 UTC, two's complement
 *     byte 20 on        fields
 *
 * and a field is
 *
 *     u16  tag
 *     u32  how many bytes the value has
 *          the value
 *
 * Fields come in any order. One that is missing has its default, which is 0, none or empty unless
 * said otherwise; writers leave those out. A known tag given twice is refused. A reader ignores
 * tags that it does not know, except from JOURNAL_MANDATORY on: those it must refuse, because the
 * record means something else without them. It says of a type that it does not know that it is
 * unknown. So later versions add tags and types, and read what earlier ones wrote. Numbers of tags,
 * types and enums are never changed or used again.
 *
 * Values, as named in the lists of tags below:
 *
 *     number  0 to 8 bytes: the zero bytes at the high end are left out (and accepted), so 0 has no
 *             byte. Negative ones are the 8 bytes of their two's complement.
 *     flag    a number, 0 or 1
 *     maybe   a number that is known if the field is there
 *     text    bytes without a zero byte, at most REQUEST_TEXT_LONGEST; none if the field is
 * missing, which is not the same as an empty one list    of u32 ids     device ids, at most
 * DEVICE_ID_LIST_MOST, each: u8 vendor, u32 index, u32 MIG instance (DEVICE_NO_MIG: a whole GPU)
 *     fields  fields within, with tags of their own
 *
 * A value that is longer or larger than its limit, or no value of its enum, is refused.
 */
#ifndef ENGINE_JOURNAL_H
#define ENGINE_JOURNAL_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "engine/event.h"

#define JOURNAL_FORMAT      0xB1
#define JOURNAL_HEADER_SIZE 12
#define JOURNAL_TIME_SIZE   8
#define JOURNAL_FIELD_SIZE  6 /* of a field without its value */
#define JOURNAL_LENGTH_MOST (UINT32_C(1) << 24)
#define JOURNAL_MANDATORY   0x8000 /* the first tag that is not to be ignored */
#define JOURNAL_SLOTS_MOST  REQUEST_COUNT_MOST
#define JOURNAL_GROUPS_MOST 65536

/* The fields of a record: the members of struct engine_event. */
enum journal_tag {
    JOURNAL_CLAIM = 1,     /* number */
    JOURNAL_LEASE = 2,     /* number */
    JOURNAL_REQUEST = 3,   /* number */
    JOURNAL_WHAT = 4,      /* fields: enum journal_request_tag */
    JOURNAL_PARTY = 5,     /* fields: enum journal_party_tag */
    JOURNAL_SLOTS = 6,     /* list, at most JOURNAL_SLOTS_MOST */
    JOURNAL_REPLICAS = 7,  /* number; 1 by default in EVENT_GRANTED */
    JOURNAL_EXPIRES = 8,   /* number; TIME_NEVER by default in EVENT_GRANTED, _NOTICE, _EXTENDED */
    JOURNAL_DEADLINE = 9,  /* number; TIME_NEVER by default in EVENT_QUEUED */
    JOURNAL_REASON = 10,   /* number: enum refusal, 0: none */
    JOURNAL_SLOT = 11,     /* number */
    JOURNAL_BLOCKS = 12,   /* number: a set of enum block */
    JOURNAL_HEALTH = 13,   /* number: enum health */
    JOURNAL_PRESENT = 14,  /* flag */
    JOURNAL_WAITED = 15,   /* flag; 1 by default in EVENT_GRANTED, which has more to say then */
    JOURNAL_STAMP = 16,    /* number */
    JOURNAL_SERVED = 17,   /* number */
    JOURNAL_AFFINITY = 18, /* number */
};

/* The fields within JOURNAL_WHAT: the members of struct request. */
enum journal_request_tag {
    JOURNAL_REQUEST_LEAST = 1,          /* number; 1 by default */
    JOURNAL_REQUEST_MOST = 2,           /* number; 1 by default */
    JOURNAL_REQUEST_ALL = 3,            /* flag */
    JOURNAL_REQUEST_REPLICAS = 4,       /* number; 1 by default */
    JOURNAL_REQUEST_WANTED = 5,         /* ids */
    JOURNAL_REQUEST_AVOIDED = 6,        /* ids */
    JOURNAL_REQUEST_VENDOR_RULE = 7,    /* number: enum vendor_rule */
    JOURNAL_REQUEST_VENDOR = 8,         /* number: enum vendor */
    JOURNAL_REQUEST_MODEL = 9,          /* text */
    JOURNAL_REQUEST_MIN_FREE = 10,      /* maybe */
    JOURNAL_REQUEST_MIN_MEMORY = 11,    /* maybe */
    JOURNAL_REQUEST_MIN_CAP = 12,       /* maybe: major * 65536 + minor */
    JOURNAL_REQUEST_SHARING = 13,       /* number: enum sharing */
    JOURNAL_REQUEST_SHARE = 14,         /* maybe */
    JOURNAL_REQUEST_MEMORY = 15,        /* maybe */
    JOURNAL_REQUEST_SCHEDULING = 16,    /* number: enum scheduling */
    JOURNAL_REQUEST_PRIORITY = 17,      /* number: enum priority */
    JOURNAL_REQUEST_POLICY = 18,        /* text */
    JOURNAL_REQUEST_AFFINITY = 19,      /* text */
    JOURNAL_REQUEST_OPPORTUNISTIC = 20, /* flag */
    JOURNAL_REQUEST_RANKS = 21,         /* flag */
    JOURNAL_REQUEST_OR_CPU = 22,        /* flag */
    JOURNAL_REQUEST_NONBLOCK = 23,      /* flag */
    JOURNAL_REQUEST_WAIT = 24,          /* maybe */
    JOURNAL_REQUEST_TIME = 25,          /* maybe */
    JOURNAL_REQUEST_NAME = 26,          /* text */
    JOURNAL_REQUEST_CPUS = 27,          /* maybe */
    JOURNAL_REQUEST_HOST_MEMORY = 28,   /* maybe */
};

/* The fields within JOURNAL_PARTY: the members of struct party. */
enum journal_party_tag {
    JOURNAL_PARTY_UID = 1,    /* number */
    JOURNAL_PARTY_GROUPS = 2, /* list, at most JOURNAL_GROUPS_MOST */
    JOURNAL_PARTY_MASK = 3,   /* ids; no mask if it is missing, which is not an empty one */
    JOURNAL_PARTY_PARENT = 4, /* number */
};

/* A record that was read. Zeroed memory is an empty one. It may be moved. */
struct journal_record {
    struct engine_event event; /* what it points to belongs to the record */
    bool unknown; /* the type is EVENT_TYPES or above; type and time are all there is */
};

void journal_record_finish(struct journal_record *record);

/* Appends one record. Fails with BERTH_ERROR_MEMORY, or with BERTH_ERROR_INVALID for an event that
 * the format has no room for: no type of this version, a value beyond its limit or its enum. The
 * text is as before then. One that failed before gives BERTH_ERROR_MEMORY. */
int journal_encode(const struct engine_event *event, struct text *out);

enum {
    JOURNAL_MORE = 0,  /* the beginning of a record, or nothing: more bytes may make it one */
    JOURNAL_WHOLE = 1, /* a good record */
};

/* Reads the record at the beginning of `length` bytes. Returns JOURNAL_WHOLE with the record, which
 * the caller finishes, and how many bytes it takes; or JOURNAL_MORE. Fails with BERTH_ERROR_SYNTAX
 * for bytes that no others could make a record of (the message counts them from `bytes`), or with
 * BERTH_ERROR_MEMORY. Unless a record was read, *ret_record and *ret_used are untouched. The memory
 * it takes is at most a few times `length` and a fixed amount. Whether the event makes sense, only
 * engine_replay knows. */
int journal_decode(const void *bytes, size_t length, struct journal_record *ret_record,
                   size_t *ret_used, struct berth_error *error);

/* "granted" for EVENT_GRANTED; NULL for a type that this version does not know. The text is
 * static. */
const char *journal_name(enum event_type type);

/* Appends the event in one line for people, inert, with the time in seconds and without a newline:
 * "12.5 granted lease 7 of claim 3 request 2: slots 0,1". */
void journal_describe(const struct engine_event *event, struct text *out);

#endif
