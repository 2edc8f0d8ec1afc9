/* SPDX-License-Identifier: Apache-2.0
 *
 * A spec file: what a workload wants, in YAML or JSON. docs/SPEC.md, which is generated from the
 * tables here, lists the fields.
 */
#ifndef SPEC_WORKLOAD_H
#define SPEC_WORKLOAD_H

#include <berth/error.h>
#include <stddef.h>

#include "base/json.h"
#include "spec/field.h"
#include "spec/request_options.h"

/* The whole file; its target is a struct request_options. */
extern const struct record workload_record;

/* What does not go together, ended by a row without a sentence. */
extern const struct contradiction workload_contradictions[];

/* Reads `length` bytes of text; `file` is the name for messages. *ret_options is as the file says,
 * with its command and notes; the strings are its own. Fails with BERTH_ERROR_SYNTAX, _INVALID or
 * _RANGE (file:line:column: sentence, with the nearest known name), _LIMIT or _MEMORY. The caller
 * finishes *ret_options, which is untouched on failure. */
int workload_parse(const char *file, const char *text, size_t length,
                   struct request_options *ret_options, struct berth_error *error);

/* Reads a file; "-" is the standard input. Also fails as file_read does. */
int workload_read(const char *path, struct request_options *ret_options, struct berth_error *error);

/* Writes the JSON Schema (draft 2020-12) that accepts and refuses the same files. */
void workload_write_schema(struct json *json);

/* Appends docs/SPEC.md. */
void workload_write_document(struct text *out);

#endif
