/* SPDX-License-Identifier: Apache-2.0
 *
 * The schemas of kinds of values: functions for struct field_type's `schema`, and what they are
 * made of. A schema judges what a reader of YAML 1.2 (core schema) or JSON makes of a file: 5 is a
 * number whether or not a text was meant.
 */
#ifndef SPEC_SCHEMA_TYPES_H
#define SPEC_SCHEMA_TYPES_H

#include "spec/field.h"

/* Of the types in field.h. */
void schema_type_text(const struct field *field, bool or_null, struct json *json);
void schema_type_number(const struct field *field, bool or_null, struct json *json);
void schema_type_choice(const struct field *field, bool or_null, struct json *json);
void schema_type_boolean(const struct field *field, bool or_null, struct json *json);

/* Of the types in workload_types.h. */
void schema_type_count(const struct field *field, bool or_null, struct json *json);
void schema_type_capability(const struct field *field, bool or_null, struct json *json);
void schema_type_share(const struct field *field, bool or_null, struct json *json);
void schema_type_size(const struct field *field, bool or_null, struct json *json);
void schema_type_duration(const struct field *field, bool or_null, struct json *json);
void schema_type_device_ids(const struct field *field, bool or_null, struct json *json);
void schema_type_directory(const struct field *field, bool or_null, struct json *json);
void schema_type_command(const struct field *field, bool or_null, struct json *json);

/* The member "type": the names, ended by NULL, and null. A single one stands by itself. */
void schema_types_write(struct json *json, bool or_null, const char *const *names);

#endif
