/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the JSON Schema of one value, by the type of its field. A schema checks the values that a
 * reader of YAML 1.2 (core schema) or JSON produces: 5 is a number even where berth reads a text.
 */
#ifndef TOOLS_SPEC_SCHEMA_TYPES_H
#define TOOLS_SPEC_SCHEMA_TYPES_H

#include "base/text/json.h"
#include "spec/field.h"

/* Writes the members that accept the values of the field into the open object; `or_null` also
 * accepts null. Asserts that the type of the field has a schema. */
void schema_types_write_field(const struct field *field, bool or_null, struct json *json);

/* Writes the member "type" with the names, which end with NULL, and null if `or_null`. One name
 * alone is written without a list. */
void schema_types_write(struct json *json, bool or_null, const char *const *names);

#endif
