/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/journal.h"

#include "base/crc32c.h"
#include "base/error.h"
#include "engine/journal_fields.h"

/* Where the header's parts are. */
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

static void seal(unsigned char *record, size_t size, const struct engine_event *event)
{
    record[0] = JOURNAL_FORMAT;
    record[TYPE_AT] = (unsigned char)event->type;
    journal_put(record + LENGTH_AT, size - JOURNAL_HEADER_SIZE, 4);
    journal_put(record + GUARD_AT, guard_of(record), 2);
    journal_put(record + TIME_AT, (uint64_t)event->time, JOURNAL_TIME_SIZE);
    journal_put(record + CHECKSUM_AT, checksum_of(record, size), 4);
}

static void cut_back(struct text *text, size_t length)
{
    text->length = length;
    text->failed = false;
    if (text->bytes != NULL)
        text->bytes[length] = '\0';
}

int journal_encode(const struct engine_event *event, struct text *out)
{
    size_t start = out->length;
    int code;

    if (event->type < EVENT_REQUEST || event->type >= EVENT_TYPES)
        return BERTH_ERROR_INVALID;
    if (text_failed(out))
        return BERTH_ERROR_MEMORY;
    text_append_repeated(out, '\0', FIELDS_AT);
    code = journal_fields_write(&journal_event_table, EVENT_BIT(event->type), event, out);
    if (code == 0 && text_failed(out))
        code = BERTH_ERROR_MEMORY;
    if (code < 0)
        cut_back(out, start);
    else
        seal((unsigned char *)out->bytes + start, out->length - start, event);
    return code;
}

/* Looks at what the header alone tells. Returns JOURNAL_WHOLE with the size of the record that it
 * promises, JOURNAL_MORE or an error. */
static int take_header(const unsigned char *bytes, size_t length, size_t *ret_size,
                       struct berth_error *error)
{
    size_t rest;

    if (length > 0 && bytes[0] != JOURNAL_FORMAT)
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "journal: wanted a record of format 0x%02X, found 0x%02X at byte 0",
                         JOURNAL_FORMAT, bytes[0]);
    if (length < JOURNAL_HEADER_SIZE)
        return JOURNAL_MORE;
    if (journal_get(bytes + GUARD_AT, 2) != guard_of(bytes))
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "journal: wanted guard 0x%04X, found 0x%04X at byte %d", guard_of(bytes),
                         (unsigned)journal_get(bytes + GUARD_AT, 2), GUARD_AT);
    if (bytes[TYPE_AT] == 0)
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "journal: wanted a type above 0, found 0 at byte %d", TYPE_AT);
    rest = journal_get(bytes + LENGTH_AT, 4);
    if (rest < JOURNAL_TIME_SIZE || rest > JOURNAL_LENGTH_MOST)
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "journal: wanted a length from %d to %u, found %zu at byte %d",
                         JOURNAL_TIME_SIZE, JOURNAL_LENGTH_MOST, rest, LENGTH_AT);
    if (rest > length - JOURNAL_HEADER_SIZE)
        return JOURNAL_MORE;
    *ret_size = JOURNAL_HEADER_SIZE + rest;
    return JOURNAL_WHOLE;
}

static int check_sum(const unsigned char *bytes, size_t size, struct berth_error *error)
{
    uint32_t found = (uint32_t)journal_get(bytes + CHECKSUM_AT, 4);
    uint32_t wanted = checksum_of(bytes, size);

    if (found != wanted)
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "journal: wanted checksum 0x%08X, found 0x%08X at byte %d", wanted, found,
                         CHECKSUM_AT);
    return 0;
}

/* Reads a record that is whole and undamaged. */
static int take_record(const unsigned char *bytes, size_t size, struct journal_record *ret_record,
                       struct berth_error *error)
{
    uint32_t type = bytes[TYPE_AT];
    struct journal_record record = {
        .event = {.type = (enum event_type)type,
                  .time = (int64_t)journal_get(bytes + TIME_AT, JOURNAL_TIME_SIZE)},
        .unknown = type >= EVENT_TYPES,
    };
    int code = 0;

    if (!record.unknown) {
        struct journal_reading reading = {bytes, EVENT_BIT(type), error};
        struct journal_span fields = {FIELDS_AT, size};

        code = journal_fields_read(&reading, &journal_event_table, fields, &record.event);
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
    int code = take_header(bytes, length, &size, error);

    if (code != JOURNAL_WHOLE)
        return code;
    code = check_sum(bytes, size, error);
    if (code == 0)
        code = take_record(bytes, size, ret_record, error);
    if (code < 0)
        return code;
    *ret_used = size;
    return JOURNAL_WHOLE;
}

void journal_record_finish(struct journal_record *record)
{
    journal_fields_finish(&journal_event_table, &record->event);
    *record = (struct journal_record){0};
}
