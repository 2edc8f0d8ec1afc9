/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads any bytes as a journal: first unchanged, then as one record with the right length and
 * checksums, because hardly any other input passes these checks. An accepted record can be written
 * and read again. A refused one gets a message.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "engine/journal/journal.h"
#include "support/engine/events.h"
#include "support/require_output.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_describe(const struct engine_event *event)
{
    struct text line = {0};

    journal_describe(event, &line);
    require_lines(&line);
    require(strchr(line.bytes, '\n') == NULL);
    text_finish(&line);
}

/* Checks that writing gives the same event, in at most as many bytes. */
static void try_again(const struct journal_record *record, size_t used)
{
    struct journal_record again;
    struct text bytes = {0};
    size_t used_again;

    require(journal_encode(&record->event, &bytes) == 0 && bytes.length <= used);
    require(journal_decode(bytes.bytes, bytes.length, &again, &used_again, NULL) ==
            JOURNAL_COMPLETE);
    require(used_again == bytes.length && !again.unknown);
    require(event_equals(&record->event, &again.event));
    journal_record_finish(&again);
    text_finish(&bytes);
}

/* Reads one record. Returns its length in bytes, or 0 if there is none. */
static size_t try_decode(const uint8_t *data, size_t size)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct journal_record record;
    size_t used = 0;
    int code = journal_decode(data, size, &record, &used, &error);

    if (code < 0) {
        require_message(&error, code);
        require(code == BERTH_ERROR_SYNTAX && used == 0);
        return 0;
    }
    require(error.message[0] == '\0');
    if (code == JOURNAL_INCOMPLETE)
        return 0;
    require(used >= JOURNAL_HEADER_SIZE + JOURNAL_TIME_SIZE && used <= size);
    require(record.unknown == (record.event.type >= EVENT_TYPES));
    if (!record.unknown)
        try_again(&record, used);
    try_describe(&record.event);
    journal_record_finish(&record);
    return used;
}

static void put(uint8_t *bytes, uint32_t number, size_t size)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(number >> 8 * i);
}

static void try_repaired(const uint8_t *data, size_t size)
{
    uint8_t *copy;

    if (size < JOURNAL_HEADER_SIZE + JOURNAL_TIME_SIZE)
        return;
    copy = malloc(size);
    require(copy != NULL);
    memcpy(copy, data, size);
    copy[0] = JOURNAL_FORMAT;
    put(copy + 2, (uint32_t)(size - JOURNAL_HEADER_SIZE), 4);
    put(copy + 6, crc32c(0, copy, 6), 2);
    put(copy + 8, crc32c(crc32c(0, copy, 8), copy + 12, size - 12), 4);
    try_decode(copy, size);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t used;

    try_repaired(data, size);
    do {
        used = try_decode(data, size);
        data += used;
        size -= used;
    } while (used > 0);
    return 0;
}
