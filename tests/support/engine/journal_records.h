/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes journal records by hand, from the format in engine/journal/journal.h.
 */
#ifndef TESTS_JOURNAL_RECORDS_H
#define TESTS_JOURNAL_RECORDS_H

#include "support/unit.h"

#include "base/crc32c.h"
#include "base/text/text.h"
#include "support/wire/tagged_bytes.h"

/* Returns a whole record: a header that gives the length as `length`, and these bytes. */
static inline struct text record_of_length(unsigned type, const void *bytes, size_t size,
                                           uint32_t length)
{
    struct text record = {0};
    struct text rest = {0};

    append_little(&record, 0xB1, 1);
    append_little(&record, type, 1);
    append_little(&record, length, 4);
    append_little(&record, crc32c(0, record.bytes, record.length) & 0xFFFF, 2);
    text_append_bytes(&rest, bytes, size);
    append_little(&record, crc32c(crc32c(0, record.bytes, record.length), rest.bytes, rest.length),
                  4);
    text_append_bytes(&record, rest.bytes, rest.length);
    assert_false(text_failed(&record) || text_failed(&rest));
    text_finish(&rest);
    return record;
}

/* Returns a record of these fields with the time 5 (nanoseconds). Finishes the fields. */
static inline struct text record_of(unsigned type, struct text *fields)
{
    struct text rest = {0};
    struct text record;

    append_little(&rest, 5, 8);
    text_append_bytes(&rest, fields->bytes, fields->length);
    record = record_of_length(type, rest.bytes, rest.length, (uint32_t)rest.length);
    text_finish(&rest);
    text_finish(fields);
    return record;
}

#endif
