/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON Schema (draft 2020-12) of a file format, from the tables that its reader works by.
 */
#ifndef SPEC_SCHEMA_H
#define SPEC_SCHEMA_H

#include "base/text/json.h"
#include "spec/contradictions.h"
#include "spec/field.h"

/* What a schema is made from; all is the caller's. */
struct schema_source {
    const char *id; /* a URI */
    const char *title;
    const char *description;
    const struct record *record; /* the whole file */
    const struct contradiction *contradictions;
    const struct movable *movable; /* a field of the record, and its other place */
};

/* Writes the schema as the next value. Records within others are found in $defs under the names of
 * the fields that hold them; fields of one name hold the same record. The order is that of the
 * tables. A failed allocation is remembered by the text below `json`. */
void schema_write(struct json *json, const struct schema_source *source);

/* Writes a value as it is written in a file, in JSON: for defaults and examples. Text that is no
 * YAML is our own bug (assert). */
void schema_write_value(struct json *json, const char *text);

#endif
