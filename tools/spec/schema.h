/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the JSON Schema (draft 2020-12) of a file format from the tables that its reader uses.
 */
#ifndef TOOLS_SPEC_SCHEMA_H
#define TOOLS_SPEC_SCHEMA_H

#include "base/text/json.h"
#include "spec/field.h"

/* A test of one field. A null value counts as left out. */
enum condition_test {
    CONDITION_NONE,         /* ends the conditions of a row */
    CONDITION_GIVEN,        /* the field has a value */
    CONDITION_LEFT_OUT,     /* the field has no value */
    CONDITION_ONE_OF,       /* the field has one of the values */
    CONDITION_ANOTHER,      /* the field has a value, but none of these */
    CONDITION_NOT_GIVEN_AS, /* the field is left out or has another value */
};

struct condition {
    const char *path; /* from the top: "gpu.count" */
    enum condition_test test;
    const char *const *values; /* without quotes, ended by NULL */
};

#define CONDITIONS_MAX 4

/* Fields that do not go together. The schema refuses a file for which all conditions hold. */
struct contradiction {
    const char *sentence;
    struct condition conditions[CONDITIONS_MAX];
};

/* A record that may be in one of two places, but not in both. A path that leads into it
 * ("gpu.count") begins with `path` and means both places. The paths of the places themselves
 * ("gpu", "resources.gpu") mean one place each. */
struct movable {
    const char *path;
    const char *elsewhere;
};

/* The description of a schema. The caller owns everything. */
struct schema_source {
    const char *id; /* a URI */
    const char *title;
    const char *description;
    const struct record *record;                /* the whole file */
    const struct contradiction *contradictions; /* ended by a row without a sentence */
    const struct movable *movable;              /* a field of the record, and its other place */
};

/* Writes the schema as the next value. Nested records are in $defs, named after the fields that
 * hold them; fields with the same name must hold the same record. The order is that of the tables.
 * The text below `json` remembers a failed allocation. */
void schema_write(struct json *json, const struct schema_source *source);

/* Writes a default or an example, which is given as YAML, as JSON. Asserts that it is YAML. */
void schema_write_value(struct json *json, const char *text);

#endif
