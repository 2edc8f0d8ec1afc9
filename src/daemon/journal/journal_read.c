/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/journal/journal_read.h"

#include <string.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "daemon/journal/journal_repair.h"

/* A record that ends in this many zero bytes was not finished. */
enum { UNWRITTEN = 8 };

struct journal_reading {
    const char *bytes;
    size_t length;
    journal_read_function *take;
    void *context;
    struct text repaired; /* the last record that was repaired */
    struct journal_contents contents;
};

/* Returns where the zeros at the end begin. */
static size_t find_end(const struct text *bytes)
{
    size_t end = bytes->length;

    while (end > 0 && bytes->bytes[end - 1] == '\0')
        end--;
    return end;
}

/* Notes a damage or a repair. */
static void note_reason(struct journal_reading *reading, size_t at,
                        const struct berth_error *reason)
{
    if (reading->contents.damages + reading->contents.repairs > 0)
        return;
    reading->contents.first_damage = at;
    reading->contents.reason = *reason;
}

static void note_damage(struct journal_reading *reading, size_t at,
                        const struct berth_error *reason)
{
    note_reason(reading, at, reason);
    reading->contents.damages++;
}

/* Returns the next place from `at` on where a valid record begins; the end if there is none. */
static size_t find_record(const struct journal_reading *reading, size_t at)
{
    while (at < reading->length) {
        const char *found = memchr(reading->bytes + at, JOURNAL_FORMAT, reading->length - at);
        struct journal_record record = {0};
        size_t used;

        if (found == NULL)
            break;
        at = (size_t)(found - reading->bytes);
        if (journal_decode(found, reading->length - at, &record, &used, NULL) == JOURNAL_COMPLETE) {
            journal_record_finish(&record);
            return at;
        }
        at++;
    }
    return reading->length;
}

/* Returns whether the bytes from `at` on are the beginning of a record whose end was not written.
 * `end`: where the zeros begin. */
static bool is_torn(const struct journal_reading *reading, size_t at, size_t end)
{
    const unsigned char *header = (const unsigned char *)reading->bytes + at;
    unsigned guard;
    size_t length = 0;

    if (reading->length - at < JOURNAL_HEADER_SIZE || end - at < JOURNAL_HEADER_SIZE)
        return header[0] == JOURNAL_FORMAT;
    guard = header[6] | (unsigned)header[7] << 8;
    for (size_t i = 0; i < 4; i++)
        length |= (size_t)header[2 + i] << (8 * i);
    return guard == (crc32c(0, header, 6) & 0xFFFF) &&
           end + UNWRITTEN <= at + JOURNAL_HEADER_SIZE + length;
}

/* Passes the record on, and finishes it. */
static int take_record(struct journal_reading *reading, struct journal_record *record, size_t at)
{
    struct berth_error why = BERTH_ERROR_INIT;
    int code = reading->take(reading->context, record, &why);

    journal_record_finish(record);
    if (code == BERTH_ERROR_MEMORY)
        return code;
    if (code < 0)
        note_damage(reading, at, &why);
    else
        reading->contents.records += code == 1;
    return code == 0 ? 0 : 1;
}

/* Decodes the record at `at` with its one wrong byte put right. */
static int decode_repaired(struct journal_reading *reading, size_t at,
                           struct journal_record *ret_record, size_t *ret_used)
{
    text_clear(&reading->repaired);
    if (!journal_repair(reading->bytes + at, reading->length - at, &reading->repaired))
        return text_failed(&reading->repaired) ? BERTH_ERROR_MEMORY : BERTH_ERROR_SYNTAX;
    return journal_decode(reading->repaired.bytes, reading->repaired.length, ret_record, ret_used,
                          NULL);
}

/* Deals with a record that cannot be decoded: repairs it, or goes to the next one. */
static int skip_damage(struct journal_reading *reading, size_t *at, size_t end,
                       const struct berth_error *why)
{
    struct journal_record record;
    size_t next = find_record(reading, *at + 1);
    size_t used;
    int code;

    reading->contents.is_torn = next == reading->length && is_torn(reading, *at, end);
    if (!reading->contents.is_torn) {
        code = decode_repaired(reading, *at, &record, &used);
        if (code == BERTH_ERROR_MEMORY)
            return code;
        note_reason(reading, *at, why);
        if (code == JOURNAL_COMPLETE) {
            reading->contents.repairs++;
            code = take_record(reading, &record, *at);
            *at += used;
            return code;
        }
        reading->contents.damages++;
    }
    *at = next;
    return 1;
}

/* Reads one record. Returns 1 to go on, 0 if the rest is of no use, or BERTH_ERROR_MEMORY. */
static int read_next(struct journal_reading *reading, size_t *at, size_t end)
{
    struct berth_error why = BERTH_ERROR_INIT;
    struct journal_record record;
    size_t used;
    int code = journal_decode(reading->bytes + *at, reading->length - *at, &record, &used, &why);

    if (code == BERTH_ERROR_MEMORY)
        return code;
    if (code == JOURNAL_INCOMPLETE)
        error_set(&why, BERTH_ERROR_SYNTAX, "the end of a record is missing");
    if (code != JOURNAL_COMPLETE)
        return skip_damage(reading, at, end, &why);
    code = take_record(reading, &record, *at);
    *at += used;
    return code;
}

int journal_read_all(const struct text *bytes, journal_read_function *take, void *context,
                     struct journal_contents *ret_contents, struct berth_error *error)
{
    struct journal_reading reading = {
        .bytes = bytes->bytes, .length = bytes->length, .take = take, .context = context};
    size_t end = find_end(bytes);
    size_t at = 0;
    int code = 1;

    while (code > 0 && at < end)
        code = read_next(&reading, &at, end);
    text_finish(&reading.repaired);
    if (code < 0)
        return error_set_memory(error);
    reading.contents.is_empty = end == 0;
    *ret_contents = reading.contents;
    return 0;
}
