/* SPDX-License-Identifier: Apache-2.0
 *
 * CRC-32C is linear: a wrong byte changes the checksum by a value (the syndrome) that depends only
 * on the difference and on the number of bytes behind it. Each step of the checksum over a zero
 * byte can be undone, so going back from the syndrome finds the byte in one pass.
 */
#include "daemon/journal/journal_repair.h"

#include <stdint.h>
#include <string.h>

#include "base/crc32c.h"
#include "engine/journal/journal.h"

/* Offsets in a record; journal.h describes them. */
enum { LENGTH_AT = 2, GUARD_AT = 6, CHECKSUM_AT = 8 };

/* A byte that may be the wrong one. */
struct candidate {
    size_t at;
    unsigned char difference;
    size_t count; /* the number of bytes that may be the wrong one */
};

/* The contribution of one byte to the checksum, and the byte by the highest byte of its
 * contribution. */
struct steps {
    uint32_t values[256];
    unsigned char by_high_byte[256];
};

static uint64_t read_number(const unsigned char *bytes, size_t size)
{
    uint64_t number = 0;

    for (size_t i = 0; i < size; i++)
        number |= (uint64_t)bytes[i] << (8 * i);
    return number;
}

static bool has_right_guard(const unsigned char *header)
{
    return read_number(header + GUARD_AT, CHECKSUM_AT - GUARD_AT) ==
           (crc32c(0, header, GUARD_AT) & 0xFFFF);
}

/* Returns the size of the record; 0 if it is longer than the bytes or than any record. */
static size_t find_size(const unsigned char *header, size_t length)
{
    size_t rest = (size_t)read_number(header + LENGTH_AT, GUARD_AT - LENGTH_AT);

    return rest <= JOURNAL_LENGTH_MAX && rest <= length - JOURNAL_HEADER_SIZE
               ? JOURNAL_HEADER_SIZE + rest
               : 0;
}

static uint32_t compute_checksum(const unsigned char *header, const unsigned char *record,
                                 size_t size)
{
    return crc32c(crc32c(0, header, CHECKSUM_AT), record + JOURNAL_HEADER_SIZE,
                  size - JOURNAL_HEADER_SIZE);
}

static uint32_t find_syndrome(const unsigned char *header, const unsigned char *record, size_t size)
{
    return compute_checksum(header, record, size) ^
           (uint32_t)read_number(header + CHECKSUM_AT, JOURNAL_HEADER_SIZE - CHECKSUM_AT);
}

/* ---- A wrong byte before the checksum ---- */

static void note_candidate(struct candidate *candidate, size_t at, unsigned char difference)
{
    candidate->at = at;
    candidate->difference = difference;
    candidate->count++;
}

/* Notes the difference if the header and the record's checksum are right with it. */
static void try_header(const unsigned char *record, size_t length, size_t at,
                       unsigned char difference, struct candidate *candidate)
{
    unsigned char header[JOURNAL_HEADER_SIZE];
    size_t size;

    memcpy(header, record, sizeof(header));
    header[at] ^= difference;
    if (header[0] != JOURNAL_FORMAT || !has_right_guard(header))
        return;
    size = find_size(header, length);
    if (size > 0 && find_syndrome(header, record, size) == 0)
        note_candidate(candidate, at, difference);
}

static void search_header(const unsigned char *record, size_t length, struct candidate *candidate)
{
    for (size_t at = 0; at < CHECKSUM_AT; at++) {
        for (unsigned difference = 1; difference <= UINT8_MAX; difference++)
            try_header(record, length, at, (unsigned char)difference, candidate);
    }
}

/* ---- A wrong byte in the checksum or behind it ---- */

static void search_checksum(uint32_t syndrome, struct candidate *candidate)
{
    for (unsigned i = 0; i < JOURNAL_HEADER_SIZE - CHECKSUM_AT; i++) {
        uint32_t byte = syndrome >> (8 * i) & UINT8_MAX;

        if (syndrome == byte << (8 * i))
            note_candidate(candidate, CHECKSUM_AT + i, (unsigned char)byte);
    }
}

static void fill_steps(struct steps *steps)
{
    for (unsigned byte = 0; byte <= UINT8_MAX; byte++) {
        unsigned char value = (unsigned char)byte;

        steps->values[byte] = ~crc32c(UINT32_MAX, &value, 1);
        steps->by_high_byte[steps->values[byte] >> 24] = value;
    }
}

static void search_fields(uint32_t syndrome, size_t size, struct candidate *candidate)
{
    struct steps steps = {0};

    fill_steps(&steps);
    for (size_t at = size; at-- > JOURNAL_HEADER_SIZE;) {
        unsigned char byte = steps.by_high_byte[syndrome >> 24];

        if (syndrome == steps.values[byte])
            note_candidate(candidate, at, byte);
        syndrome = (syndrome ^ steps.values[byte]) << 8 | byte;
    }
}

/* ---- The record ---- */

bool journal_repair(const char *bytes, size_t length, struct text *out)
{
    const unsigned char *record = (const unsigned char *)bytes;
    struct candidate candidate = {0};
    size_t start = out->length;
    size_t size = 0;

    if (length < JOURNAL_HEADER_SIZE)
        return false;
    if (record[0] != JOURNAL_FORMAT || !has_right_guard(record)) {
        search_header(record, length, &candidate);
    } else if ((size = find_size(record, length)) > 0) {
        uint32_t syndrome = find_syndrome(record, record, size);

        if (syndrome == 0)
            return false;
        search_checksum(syndrome, &candidate);
        search_fields(syndrome, size, &candidate);
    }
    if (candidate.count != 1)
        return false;
    if (size == 0) {
        unsigned char header[JOURNAL_HEADER_SIZE];

        memcpy(header, record, sizeof(header));
        header[candidate.at] ^= candidate.difference;
        size = find_size(header, length);
    }
    text_append_bytes(out, bytes, size);
    if (text_failed(out))
        return false;
    out->bytes[start + candidate.at] =
        (char)((unsigned char)out->bytes[start + candidate.at] ^ candidate.difference);
    return true;
}
