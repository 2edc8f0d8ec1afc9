/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading documents into C structs by tables: one record per struct, one field per key, one type
 * per kind of value. The tables are the only description of a file format; every message about
 * unknown, missing, doubled and wrong fields comes from them.
 */
#ifndef SPEC_FIELD_H
#define SPEC_FIELD_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/choice.h"
#include "spec/document.h"

struct field;

/* What is being read from and where a failure is told. */
struct field_reading {
    const struct document *document;
    struct berth_error *error;
};

/* A kind of value. Scalars give `wanted` and `parse`, all others `read`. */
struct field_type {
    const char *wanted; /* for messages and docs: "a size such as 8GiB" */
    bool bare;          /* quotes are refused: a number in quotes is a text */

    /* Parses a scalar that is not null and has no zero bytes into `target`, the member that the
     * field describes. Returns 0 or a negative code; the message needs neither name nor place. */
    int (*parse)(const struct field *field, const char *text, void *target,
                 struct berth_error *error);

    /* Reads `node`, which is not null, into `target`. Returns 0 or a negative code with
     * reading->error set, name and position included. */
    int (*read)(const struct field_reading *reading, const struct field *field,
                const struct document_node *node, void *target);
};

struct record {
    const char *what; /* for messages: "a device" */
    const struct field *fields;
    size_t field_count;

    /* Optional: what one field alone cannot tell, after all fields are read. */
    int (*check)(const struct field_reading *reading, const struct document_node *node,
                 void *target);
};

struct field {
    const char *name;
    const struct field_type *type;
    size_t offset; /* of the member in the record's struct */
    bool required;
    const char *help;         /* a sentence for docs and schema; files that have them need one */
    const char *default_text; /* what it is when left out, for docs; NULL: nothing to say */
    const char *example;      /* a value as it is written, for docs */

    /* What the type asks for; its comment says which. */
    uint64_t min;
    uint64_t max;
    unsigned decimals;
    const struct choice *choices;
    const struct record *record;
    void *(*append)(void *list);
};

/* char *, any scalar but null; up to `most` bytes (0: 255) without zero bytes, at least one.
 * Allocated, in place of an earlier one; the owner of the struct frees it. */
extern const struct field_type field_text;

/* struct optional_number, a whole number from `least` to `most`, unquoted and without leading
 * zeros, which some versions of YAML take for octal numbers. */
extern const struct field_type field_number;

/* uint32_t, the same; most fits it. */
extern const struct field_type field_number32;

/* struct optional_number, a size from `least` to `most` bytes (0: INT64_MAX). */
extern const struct field_type field_size;

/* int64_t, a duration from `least` to `most` nanoseconds (0: any). */
extern const struct field_type field_duration;

/* int or an enum, one of `choices`. */
extern const struct field_type field_choice;

/* bool, true or false as YAML 1.2 knows them, unquoted. */
extern const struct field_type field_boolean;

/* struct string_list, a list of texts as field_text. */
extern const struct field_type field_texts;

/* A mapping, read by `record` into the member. */
extern const struct field_type field_record;

/* A list of mappings, each read by `record` into the struct that `append` adds to the member and
 * returns (NULL: out of memory). */
extern const struct field_type field_records;

/* Reads a mapping into `target`, an initialised struct that its owner finishes, also on failure.
 * A null value counts as left out. Fails with BERTH_ERROR_SYNTAX for an unknown, missing or
 * doubled field, and as the types do. */
int field_read_record(const struct field_reading *reading, const struct record *record,
                      const struct document_node *node, void *target);

/* For checks: the value of the field `name` of a mapping whose keys field_read_record has accepted,
 * to tell its position; the mapping itself when the field was left out. */
const struct document_node *field_record_value(const struct document_node *record,
                                               const char *name);

/* For types of lists: fails unless the node is one of at most `most`. `of` says what it holds, for
 * messages: "users". */
int field_require_list(const struct field_reading *reading, const struct field *field,
                       const struct document_node *node, const char *of, size_t max);

/* For types that read parts of their value as another type: reads `node` as `type` into `target`,
 * under the name of `field`. */
int field_read(const struct field_reading *reading, const struct field_type *type,
               const struct field *field, const struct document_node *node, void *target);

#endif
