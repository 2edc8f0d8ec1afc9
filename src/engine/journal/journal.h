/* SPDX-License-Identifier: Apache-2.0
 *
 * Encodes the engine's events as bytes, and decodes them. A file keeps the bytes, and a later
 * version may replay them. Pure functions without I/O; any thread may call them.
 *
 * A journal is a sequence of records. All numbers are little-endian. A record is
 *
 *     byte 0       u8   the format: JOURNAL_FORMAT
 *     byte 1       u8   the type: enum event_type, never 0
 *     byte 2 to 5  u32  length: the number of bytes after the header, JOURNAL_TIME_SIZE to
 *                       JOURNAL_LENGTH_MAX
 *     byte 6, 7    u16  guard: the low half of the CRC-32C of bytes 0 to 5. It distinguishes a
 *                       damaged length from a record whose end is missing.
 *     byte 8 to 11 u32  checksum: the CRC-32C of the whole record without these four bytes
 *     byte 12 on   i64  the time: nanoseconds since 1970 UTC, two's complement
 *     byte 20 on        fields
 *
 * codec/tagged.h describes the fields. A reader reports a type that it does not know as unknown.
 * Types from JOURNAL_CUSTOM_TYPES on belong to the program that keeps the journal, not to the
 * engine. The number of a type never changes and is never reused.
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
    JOURNAL_WAITED = 15,   /* flag; 1 by default in EVENT_GRANTED */
    JOURNAL_STAMP = 16,    /* number */
    JOURNAL_SERVED = 17,   /* number */
    JOURNAL_AFFINITY = 18, /* number */
    JOURNAL_SHARE = 19,    /* number: millionths; 0: none */
};

/* The fields within JOURNAL_PARTY: the members of struct party. */
enum journal_party_tag {
    JOURNAL_PARTY_UID = 1,    /* number */
    JOURNAL_PARTY_GROUPS = 2, /* list, at most JOURNAL_GROUPS_MAX */
    JOURNAL_PARTY_MASK = 3,   /* ids; a missing field means no mask, not an empty one */
    JOURNAL_PARTY_PARENT = 4, /* number */
};

/* A decoded record. Zeroed memory is an empty record. May be moved in memory. */
struct journal_record {
    struct engine_event event; /* the record owns the memory that it points to */
    bool unknown; /* the type is EVENT_TYPES or above; the event has only type and time */
    const unsigned char *fields; /* of an unknown record: points into the decoded bytes */
    size_t fields_length;
};

void journal_record_finish(struct journal_record *record);

/* Appends one record. Fails with BERTH_ERROR_INVALID for an event that the format cannot hold (an
 * unknown type, a value beyond its limit or its enum), or with BERTH_ERROR_MEMORY, also if the text
 * has failed already. On an error the text is unchanged. */
int journal_encode(const struct engine_event *event, struct text *out);

/* Appends a record of a custom type, JOURNAL_CUSTOM_TYPES or above, with the members of `whole`
 * that the table names. Fails like journal_encode(), and with BERTH_ERROR_INVALID if the record is
 * longer than JOURNAL_LENGTH_MAX. */
int journal_encode_custom(unsigned type, int64_t time, const struct tagged_table *table,
                          const void *whole, struct text *out);

enum {
    JOURNAL_INCOMPLETE = 0, /* no bytes, or the beginning of a record: more bytes may complete it */
    JOURNAL_COMPLETE = 1,   /* a valid record */
};

/* Decodes the record at the beginning of `length` bytes. Returns JOURNAL_COMPLETE with the record,
 * which the caller finishes, and its number of bytes; or JOURNAL_INCOMPLETE. Fails with
 * BERTH_ERROR_SYNTAX if no further bytes can complete the record (the message counts bytes from
 * `bytes`), or with BERTH_ERROR_MEMORY. If it returns no record, *ret_record and *ret_used stay
 * unchanged. Allocates at most a few times `length` and a fixed amount. Only engine_replay() checks
 * whether the event fits the state. */
int journal_decode(const void *bytes, size_t length, struct journal_record *ret_record,
                   size_t *ret_used, struct berth_error *error);

/* Decodes the fields of an unknown record, whose bytes must still exist, into a zeroed struct. The
 * caller finishes the struct with tagged_finish(), also on failure. Fails with BERTH_ERROR_SYNTAX
 * or _MEMORY. */
int journal_decode_custom(const struct journal_record *record, const struct tagged_table *table,
                          void *ret_whole, struct berth_error *error);

/* Returns the name of a type, such as "granted" for EVENT_GRANTED; NULL for an unknown type. The
 * text is static. */
const char *journal_name(enum event_type type);

/* Appends a description of the event in one line, without a newline and without control characters:
 * "12.5 granted lease 7 of claim 3 request 2: slots 0,1". The time is in seconds. */
void journal_describe(const struct engine_event *event, struct text *out);

#endif
