/* SPDX-License-Identifier: Apache-2.0
 *
 * The fields of journal records and the structs that they fill, by tables: one row for each tag.
 * engine/journal.h describes the bytes; only the journal includes this.
 */
#ifndef ENGINE_JOURNAL_FIELDS_H
#define ENGINE_JOURNAL_FIELDS_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

struct journal_field;

/* What is read from, in which kind of record, and where a failure is told. */
struct journal_reading {
    const unsigned char *bytes;
    uint32_t type_bit; /* EVENT_BIT of the record's type */
    struct berth_error *error;
};

/* Bytes by their places in the whole. */
struct journal_span {
    size_t at;
    size_t end;
};

/* A kind of value. `whole` is the struct that the table describes. */
struct journal_kind {
    /* Whether the member is what a reader takes when the field is missing. */
    bool (*is_default)(const struct journal_field *field, uint32_t type_bit, const void *whole);

    /* Appends the value. Returns 0 or BERTH_ERROR_INVALID; the text remembers a failed
     * allocation. */
    int (*write)(const struct journal_field *field, const void *whole, struct text *out);

    /* Makes a zeroed member the default; NULL: it is. */
    void (*reset)(const struct journal_field *field, uint32_t type_bit, void *whole);

    /* Reads the value. What it allocates is in the member even when it fails. */
    int (*read)(const struct journal_reading *reading, const struct journal_field *field,
                struct journal_span value, void *whole);

    /* Frees what `read` allocated; NULL: nothing. */
    void (*finish)(const struct journal_field *field, void *whole);
};

struct journal_table {
    const struct journal_field *fields; /* by tag; those without a kind are unknown */
    size_t count;                       /* at most 64 */
    size_t size;                        /* of the struct */
};

struct journal_field {
    const char *name; /* for messages */
    const struct journal_kind *kind;
    size_t offset; /* of the member */
    size_t size;   /* of a number, in bytes */
    uint64_t most; /* the largest number, the longest list or text */

    /* What a number is when the field is missing, in records of these types (0: all); 0 in
     * others. */
    uint64_t by_default;
    uint32_t default_types;

    size_t count_offset; /* of a list's number of items */
    size_t count_size;
    const struct journal_table *inner;
};

/* An unsigned or signed number, an enum or bool of `size` bytes, up to `most`. */
extern const struct journal_kind journal_number;
/* struct optional_number. */
extern const struct journal_kind journal_maybe;
/* struct capability. */
extern const struct journal_kind journal_capability;
/* char *, up to `most` bytes. */
extern const struct journal_kind journal_text;
/* const uint32_t * with the count elsewhere, up to `most`. */
extern const struct journal_kind journal_list;
/* struct device_id_list. */
extern const struct journal_kind journal_ids;
/* const struct device_id_list *, NULL: none. */
extern const struct journal_kind journal_maybe_ids;
/* A pointer to the struct of the table `inner`, NULL: none. */
extern const struct journal_kind journal_inner;

/* struct engine_event, but for type and time. */
extern const struct journal_table journal_event_table;

void journal_put(unsigned char *bytes, uint64_t number, size_t size);
uint64_t journal_get(const unsigned char *bytes, size_t size);

/* Appends the fields that are not at their defaults. Returns 0 or BERTH_ERROR_INVALID; the text
 * remembers a failed allocation. */
int journal_fields_write(const struct journal_table *table, uint32_t type_bit, const void *whole,
                         struct text *out);

/* Reads fields into a zeroed struct. Whatever it returns, the struct is to be finished. */
int journal_fields_read(const struct journal_reading *reading, const struct journal_table *table,
                        struct journal_span span, void *whole);
void journal_fields_finish(const struct journal_table *table, void *whole);

#endif
