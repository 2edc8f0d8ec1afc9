/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/journal/journal.h"

#include <assert.h>

#include "base/count.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "codec/request_tags.h"
#include "model/machine/device.h"

/* ---- Tables: the members of an event by their tags ---- */

/* The values of enums in the journal never change. The largest value of each is the limit in the
 * tables below: raise the limit when a value is appended. */
_Static_assert(HEALTH_UNKNOWN == 0 && HEALTH_OK == 1 && HEALTH_SICK == 2,
               "enum health is part of the format");
_Static_assert(EVENT_RETURNED == 16 && REFUSAL_PARENT_ENDED == 4 && BLOCK_ALL == 0x1F,
               "the enums of events are part of the format");

static const struct tagged_field party_fields[] = {
    [JOURNAL_PARTY_UID] = {TAGGED_NUMBER(party, uid, UINT32_MAX)},
    [JOURNAL_PARTY_GROUPS] = {TAGGED_MEMBER(party, groups, list), .max = JOURNAL_GROUPS_MAX,
                              TAGGED_COUNTED_BY(party, group_count)},
    [JOURNAL_PARTY_MASK] = {TAGGED_MEMBER(party, mask, maybe_ids), .max = DEVICE_ID_LIST_MAX},
    [JOURNAL_PARTY_PARENT] = {TAGGED_NUMBER(party, parent, UINT64_MAX)},
};
_Static_assert(COUNT(party_fields) <= 64, "tags seen are bits of 64");

static const struct tagged_table party_table = TAGGED_TABLE(party, party_fields);

static const struct tagged_field event_fields[] = {
    [JOURNAL_CLAIM] = {TAGGED_NUMBER(engine_event, claim, UINT64_MAX)},
    [JOURNAL_LEASE] = {TAGGED_NUMBER(engine_event, lease, UINT64_MAX)},
    [JOURNAL_REQUEST] = {TAGGED_NUMBER(engine_event, request, UINT64_MAX)},
    [JOURNAL_WHAT] = {TAGGED_MEMBER(engine_event, what, inner), .inner = &request_tagged},
    [JOURNAL_PARTY] = {TAGGED_MEMBER(engine_event, party, inner), .inner = &party_table},
    [JOURNAL_SLOTS] = {TAGGED_MEMBER(engine_event, slots, list), .max = JOURNAL_SLOTS_MAX,
                       TAGGED_COUNTED_BY(engine_event, slot_count)},
    [JOURNAL_REPLICAS] = {TAGGED_NUMBER(engine_event, replicas, UINT32_MAX), .default_value = 1,
                          .default_types = EVENT_BIT(EVENT_GRANTED)},
    [JOURNAL_EXPIRES] = {TAGGED_NUMBER(engine_event, expires, UINT64_MAX),
                         .default_value = TIME_NEVER,
                         .default_types = EVENT_BIT(EVENT_GRANTED) | EVENT_BIT(EVENT_NOTICE) |
                                          EVENT_BIT(EVENT_EXTENDED)},
    [JOURNAL_DEADLINE] = {TAGGED_NUMBER(engine_event, deadline, UINT64_MAX),
                          .default_value = TIME_NEVER,
                          .default_types = EVENT_BIT(EVENT_QUEUED) | EVENT_BIT(EVENT_RETURNED)},
    [JOURNAL_REASON] = {TAGGED_NUMBER(engine_event, reason, REFUSAL_PARENT_ENDED)},
    [JOURNAL_SLOT] = {TAGGED_NUMBER(engine_event, slot, UINT32_MAX)},
    [JOURNAL_BLOCKS] = {TAGGED_NUMBER(engine_event, blocks, BLOCK_ALL)},
    [JOURNAL_HEALTH] = {TAGGED_NUMBER(engine_event, health, HEALTH_SICK)},
    [JOURNAL_PRESENT] = {TAGGED_NUMBER(engine_event, present, true)},
    [JOURNAL_WAITED] = {TAGGED_NUMBER(engine_event, waited, true), .default_value = true,
                        .default_types = EVENT_BIT(EVENT_GRANTED)},
    [JOURNAL_STAMP] = {TAGGED_NUMBER(engine_event, stamp, UINT64_MAX)},
    [JOURNAL_SERVED] = {TAGGED_NUMBER(engine_event, served, UINT64_MAX)},
    [JOURNAL_AFFINITY] = {TAGGED_NUMBER(engine_event, affinity, UINT64_MAX)},
    [JOURNAL_SHARE] = {TAGGED_NUMBER(engine_event, share, SHARE_WHOLE)},
};
_Static_assert(COUNT(event_fields) <= 64, "tags seen are bits of 64");

static const struct tagged_table event_table = TAGGED_TABLE(engine_event, event_fields);

/* ---- Records ---- */

/* Offsets in a record. */
enum {
    TYPE_AT = 1,
    LENGTH_AT = 2,
    GUARD_AT = 6,
    CHECKSUM_AT = 8,
    TIME_AT = JOURNAL_HEADER_SIZE,
    FIELDS_AT = TIME_AT + JOURNAL_TIME_SIZE,
};

static uint32_t guard_of(const unsigned char *record)
{
    return crc32c(0, record, GUARD_AT) & 0xFFFF;
}

static uint32_t checksum_of(const unsigned char *record, size_t size)
{
    return crc32c(crc32c(0, record, CHECKSUM_AT), record + TIME_AT, size - TIME_AT);
}

static void seal_record(unsigned char *record, size_t size, unsigned type, int64_t time)
{
    record[0] = JOURNAL_FORMAT;
    record[TYPE_AT] = (unsigned char)type;
    tagged_put(record + LENGTH_AT, size - JOURNAL_HEADER_SIZE, 4);
    tagged_put(record + GUARD_AT, guard_of(record), 2);
    tagged_put(record + TIME_AT, (uint64_t)time, JOURNAL_TIME_SIZE);
    tagged_put(record + CHECKSUM_AT, checksum_of(record, size), 4);
}

static void truncate_text(struct text *text, size_t length)
{
    text->length = length;
    text->failed = false;
    if (text->bytes != NULL)
        text->bytes[length] = '\0';
}

static int encode_record(unsigned type, int64_t time, uint32_t type_bit,
                         const struct tagged_table *table, const void *whole, struct text *out)
{
    size_t start = out->length;
    int code;

    if (text_failed(out))
        return BERTH_ERROR_MEMORY;
    text_append_repeated(out, '\0', FIELDS_AT);
    code = tagged_write(table, type_bit, whole, out);
    if (code == 0 && text_failed(out))
        code = BERTH_ERROR_MEMORY;
    if (code == 0 && out->length - start - JOURNAL_HEADER_SIZE > JOURNAL_LENGTH_MAX)
        code = BERTH_ERROR_INVALID;
    if (code < 0)
        truncate_text(out, start);
    else
        seal_record((unsigned char *)out->bytes + start, out->length - start, type, time);
    return code;
}

int journal_encode(const struct engine_event *event, struct text *out)
{
    if (event->type < EVENT_REQUEST || event->type >= EVENT_TYPES)
        return BERTH_ERROR_INVALID;
    return encode_record(event->type, event->time, EVENT_BIT(event->type), &event_table, event,
                         out);
}

int journal_encode_custom(unsigned type, int64_t time, const struct tagged_table *table,
                          const void *whole, struct text *out)
{
    assert(type >= JOURNAL_CUSTOM_TYPES && type <= UINT8_MAX);
    return encode_record(type, time, TAGGED_ALL_TYPES, table, whole, out);
}

/* Checks the header. Returns JOURNAL_COMPLETE with the size of the whole record,
 * JOURNAL_INCOMPLETE or an error. */
static int decode_header(const unsigned char *bytes, size_t length, size_t *ret_size,
                         struct berth_error *error)
{
    size_t rest;

    if (length > 0 && bytes[0] != JOURNAL_FORMAT)
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "journal: expected a record of format 0x%02X, got 0x%02X at byte 0",
                         JOURNAL_FORMAT, bytes[0]);
    if (length < JOURNAL_HEADER_SIZE)
        return JOURNAL_INCOMPLETE;
    if (tagged_get(bytes + GUARD_AT, 2) != guard_of(bytes))
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "journal: expected guard 0x%04X, got 0x%04X at byte %d", guard_of(bytes),
                         (unsigned)tagged_get(bytes + GUARD_AT, 2), GUARD_AT);
    if (bytes[TYPE_AT] == 0)
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "journal: expected a type above 0, got 0 at byte %d", TYPE_AT);
    rest = tagged_get(bytes + LENGTH_AT, 4);
    if (rest < JOURNAL_TIME_SIZE || rest > JOURNAL_LENGTH_MAX)
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "journal: expected a length from %d to %u, got %zu at byte %d",
                         JOURNAL_TIME_SIZE, JOURNAL_LENGTH_MAX, rest, LENGTH_AT);
    if (rest > length - JOURNAL_HEADER_SIZE)
        return JOURNAL_INCOMPLETE;
    *ret_size = JOURNAL_HEADER_SIZE + rest;
    return JOURNAL_COMPLETE;
}

static int check_sum(const unsigned char *bytes, size_t size, struct berth_error *error)
{
    uint32_t found = (uint32_t)tagged_get(bytes + CHECKSUM_AT, 4);
    uint32_t wanted = checksum_of(bytes, size);

    if (found != wanted)
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "journal: expected checksum 0x%08X, got 0x%08X at byte %d", wanted, found,
                         CHECKSUM_AT);
    return 0;
}

static int read_fields(const struct tagged_reading *reading, const struct tagged_table *table,
                       struct tagged_span span, void *whole)
{
    int code = tagged_read(reading, table, span, whole);

    return code == BERTH_ERROR_SYNTAX ? error_wrap(reading->error, code, "journal") : code;
}

/* Decodes a record whose checksum is right. */
static int decode_record(const unsigned char *bytes, size_t size, struct journal_record *ret_record,
                         struct berth_error *error)
{
    uint32_t type = bytes[TYPE_AT];
    struct journal_record record = {
        .event = {.type = (enum event_type)type,
                  .time = (int64_t)tagged_get(bytes + TIME_AT, JOURNAL_TIME_SIZE)},
        .unknown = type >= EVENT_TYPES,
    };
    int code = 0;

    if (record.unknown) {
        record.fields = bytes + FIELDS_AT;
        record.fields_length = size - FIELDS_AT;
    }

    if (!record.unknown) {
        struct tagged_reading reading = {bytes, EVENT_BIT(type), error};
        struct tagged_span fields = {FIELDS_AT, size};

        code = read_fields(&reading, &event_table, fields, &record.event);
    }
    if (code < 0)
        journal_record_finish(&record);
    else
        *ret_record = record;
    return code;
}

int journal_decode(const void *bytes, size_t length, struct journal_record *ret_record,
                   size_t *ret_used, struct berth_error *error)
{
    size_t size = 0;
    int code = decode_header(bytes, length, &size, error);

    if (code != JOURNAL_COMPLETE)
        return code;
    code = check_sum(bytes, size, error);
    if (code == 0)
        code = decode_record(bytes, size, ret_record, error);
    if (code < 0)
        return code;
    *ret_used = size;
    return JOURNAL_COMPLETE;
}

int journal_decode_custom(const struct journal_record *record, const struct tagged_table *table,
                          void *ret_whole, struct berth_error *error)
{
    struct tagged_reading reading = {record->fields, TAGGED_ALL_TYPES, error};

    return read_fields(&reading, table, (struct tagged_span){0, record->fields_length}, ret_whole);
}

void journal_record_finish(struct journal_record *record)
{
    tagged_finish(&event_table, &record->event);
    *record = (struct journal_record){0};
}
