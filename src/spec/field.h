/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads documents into C structs by tables: a record for each struct, a field for each key, a type
 * for each kind of value. The tables are the only description of a file format. The messages about
 * unknown, missing, repeated and wrong fields come from the tables.
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

/* The document that is being read, and the error of a failure. */
struct field_reading {
    const struct document *document;
    struct berth_error *error;
    const void *context; /* for the types of one format; NULL: none */
};

/* A kind of value. Types of scalars have `wanted` and `parse`, other types have `read`. */
struct field_type {
    const char *wanted; /* for messages and docs: "a size such as 8GiB" */
    bool bare;          /* refuse quotes: a number in quotes is a text */

    /* Parses a scalar that is not null and has no zero bytes into `target`, the member that the
     * field describes. Returns 0, or a negative code with a message without name and position. */
    int (*parse)(const struct field *field, const char *text, void *target,
                 struct berth_error *error);

    /* Reads `node`, which is not null, into `target`. Returns 0, or a negative code with
     * a message with name and position. */
    int (*read)(const struct field_reading *reading, const struct field *field,
                const struct document_node *node, void *target);
};

struct record {
    const char *what; /* for messages: "a device" */
    const struct field *fields;
    size_t field_count;

    /* Checks the whole record after all fields are read. Optional. */
    int (*check)(const struct field_reading *reading, const struct document_node *node,
                 void *target);
};

struct field {
    const char *name;
    const struct field_type *type;
    size_t offset; /* of the member in the record's struct */
    bool required;
    const char *help;         /* a sentence for docs/SPEC.md and the schema; NULL: none */
    const char *default_text; /* the default, for docs/SPEC.md; NULL: none */
    const char *example;      /* a value in YAML, for docs/SPEC.md */

    /* Parameters of the type; its comment names those that it uses. */
    uint64_t min;
    uint64_t max;
    unsigned decimals;
    const struct choice *choices;
    const struct record *record;
    void *(*append)(void *list);
};

/* char *: any scalar but null, of 1 to `max` bytes (0: 255) without zero bytes. Allocated; it
 * replaces and frees an earlier text. The owner of the struct frees it. */
extern const struct field_type field_text;

/* struct optional_number: a whole number from `min` to `max`, without quotes and leading zeros.
 * Some versions of YAML read numbers with leading zeros as octal. */
extern const struct field_type field_number;

/* uint32_t: a number as in field_number; `max` must fit into 32 bits. */
extern const struct field_type field_number32;

/* struct optional_number: a size from `min` to `max` bytes (0: INT64_MAX). */
extern const struct field_type field_size;

/* int64_t: a duration from `min` to `max` nanoseconds (0: no maximum). */
extern const struct field_type field_duration;

/* int or an enum: one of `choices`. */
extern const struct field_type field_choice;

/* bool: true or false as in YAML 1.2, without quotes. */
extern const struct field_type field_boolean;

/* struct string_list: a list of texts as field_text. */
extern const struct field_type field_texts;

/* A struct: a mapping, which `record` describes. */
extern const struct field_type field_record;

/* A list of structs: a list of mappings, which `record` describes. `append` adds a struct to the
 * list and returns it, or NULL if memory runs out. */
extern const struct field_type field_records;

/* Reads a mapping into `target`, an initialised struct. Its owner finishes it, also on failure. A
 * null value counts as left out. Fails with BERTH_ERROR_SYNTAX for an unknown, missing or repeated
 * field, and as the types do. */
int field_read_record(const struct field_reading *reading, const struct record *record,
                      const struct document_node *node, void *target);

/* Returns the value of the field `name`, or the mapping itself if the field is left out; either has
 * the position for a message. field_read_record must have accepted the mapping. */
const struct document_node *field_record_value(const struct document_node *record,
                                               const char *name);

/* For types of lists: fails if the node is not a list or has more than `max` items. `of` is the
 * word for the items in messages: "users". */
int field_require_list(const struct field_reading *reading, const struct field *field,
                       const struct document_node *node, const char *of, size_t max);

/* For types that read a part of their value as another type: reads `node` as `type` into `target`.
 * Messages have the name of `field`. */
int field_read(const struct field_reading *reading, const struct field_type *type,
               const struct field *field, const struct document_node *node, void *target);

#endif
