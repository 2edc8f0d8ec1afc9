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
 *                       JOURNAL_LENGTH_MAX
 *     byte 6, 7    u16  guard: the low half of the CRC-32C of bytes 0 to 5. So a damaged length is
 *                       told from a record of which the end is missing.
 *     byte 8 to 11 u32  checksum: the CRC-32C of the whole record without these four bytes
 *     byte 12 on   i64  the time: nanoseconds since 1970 UTC, two's complement
 *     byte 20 on        fields
 *
 * as codec/tagged.h describes them. A reader says of a type that it does not know that it is
 * unknown. Types from JOURNAL_CUSTOM_TYPES on are not the engine's but of the door that keeps the
 * journal. Numbers of types are never changed or used again.
 */
#ifndef ENGINE_JOURNAL_JOURNAL_H
#define ENGINE_JOURNAL_JOURNAL_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/text.h"
#include "codec/tagged.h"
#include "engine/event.h"

#define JOURNAL_FORMAT       0xB1
#define JOURNAL_HEADER_SIZE  12
#define JOURNAL_TIME_SIZE    8
#define JOURNAL_LENGTH_MAX   (UINT32_C(1) << 24)
#define JOURNAL_SLOTS_MAX    REQUEST_COUNT_MAX
#define JOURNAL_GROUPS_MAX   65536
#define JOURNAL_CUSTOM_TYPES 128 /* to 255 */

/* The fields of a record: the members of struct engine_event. */
enum journal_tag {
    JOURNAL_CLAIM = 1,     /* number */
    JOURNAL_LEASE = 2,     /* number */
    JOURNAL_REQUEST = 3,   /* number */
    JOURNAL_WHAT = 4,      /* fields: enum request_tag, codec/request_tags.h */
    JOURNAL_PARTY = 5,     /* fields: enum journal_party_tag */
    JOURNAL_SLOTS = 6,     /* list, at most JOURNAL_SLOTS_MAX */
    JOURNAL_REPLICAS = 7,  /* number; 1 by default in EVENT_GRANTED */
    JOURNAL_EXPIRES = 8,   /* number; TIME_NEVER by default in EVENT_GRANTED, _NOTICE, _EXTENDED */
    JOURNAL_DEADLINE = 9,  /* number; TIME_NEVER by default in EVENT_QUEUED, _RETURNED */
    JOURNAL_REASON = 10,   /* number: enum refusal, 0: none */
    JOURNAL_SLOT = 11,     /* number */
    JOURNAL_BLOCKS = 12,   /* number: a set of enum block */
    JOURNAL_HEALTH = 13,   /* number: enum health */
    JOURNAL_PRESENT = 14,  /* flag */
    JOURNAL_WAITED = 15,   /* flag; 1 by default in EVENT_GRANTED, which has more to say then */
    JOURNAL_STAMP = 16,    /* number */
    JOURNAL_SERVED = 17,   /* number */
    JOURNAL_AFFINITY = 18, /* number */
    JOURNAL_SHARE = 19,    /* number: millionths; 0: none */
};

/* The fields within JOURNAL_PARTY: the members of struct party. */
enum journal_party_tag {
    JOURNAL_PARTY_UID = 1,    /* number */
    JOURNAL_PARTY_GROUPS = 2, /* list, at most JOURNAL_GROUPS_MAX */
    JOURNAL_PARTY_MASK = 3,   /* ids; no mask if it is missing, which is not an empty one */
    JOURNAL_PARTY_PARENT = 4, /* number */
};

/* A record that was read. Zeroed memory is an empty one. It may be moved. */
struct journal_record {
    struct engine_event event; /* what it points to belongs to the record */
    bool unknown; /* the type is EVENT_TYPES or above; type and time are all there is */
    const unsigned char *fields; /* of an unknown record: within the bytes that were read */
    size_t fields_length;
};

void journal_record_finish(struct journal_record *record);

/* Appends one record. Fails with BERTH_ERROR_MEMORY, or with BERTH_ERROR_INVALID for an event that
 * the format has no room for: no type of this version, a value beyond its limit or its enum. The
 * text is as before then. One that failed before gives BERTH_ERROR_MEMORY. */
int journal_encode(const struct engine_event *event, struct text *out);

/* The same for a record of the door's: a type from JOURNAL_CUSTOM_TYPES on and what the table says
 * of `whole`. What is longer than JOURNAL_LENGTH_MAX is BERTH_ERROR_INVALID too. */
int journal_encode_custom(unsigned type, int64_t time, const struct tagged_table *table,
                          const void *whole, struct text *out);

enum {
    JOURNAL_INCOMPLETE = 0, /* the beginning of a record, or nothing: more bytes may make it one */
    JOURNAL_COMPLETE = 1,   /* a good record */
};

/* Reads the record at the beginning of `length` bytes. Returns JOURNAL_COMPLETE with the record,
 * which the caller finishes, and how many bytes it takes; or JOURNAL_INCOMPLETE. Fails with
 * BERTH_ERROR_SYNTAX for bytes that no others could make a record of (the message counts them from
 * `bytes`), or with BERTH_ERROR_MEMORY. Unless a record was read, *ret_record and *ret_used are
 * untouched. The memory it takes is at most a few times `length` and a fixed amount. Whether the
 * event makes sense, only engine_replay knows. */
int journal_decode(const void *bytes, size_t length, struct journal_record *ret_record,
                   size_t *ret_used, struct berth_error *error);

/* Reads the fields of an unknown record, whose bytes must still be there, into a zeroed struct,
 * which the caller finishes (tagged_finish), also on failure. Fails with BERTH_ERROR_SYNTAX or
 * _MEMORY. */
int journal_decode_custom(const struct journal_record *record, const struct tagged_table *table,
                          void *ret_whole, struct berth_error *error);

/* "granted" for EVENT_GRANTED; NULL for a type that this version does not know. The text is
 * static. */
const char *journal_name(enum event_type type);

/* Appends the event in one line for people, inert, with the time in seconds and without a newline:
 * "12.5 granted lease 7 of claim 3 request 2: slots 0,1". */
void journal_describe(const struct engine_event *event, struct text *out);

#endif
