/* SPDX-License-Identifier: Apache-2.0
 *
 * A spec file: what a workload wants, in YAML or JSON. docs/SPEC.md, which is generated from the
 * tables here, lists the fields.
 */
#ifndef SPEC_WORKLOAD_H
#define SPEC_WORKLOAD_H

#include <berth/error.h>
#include <stddef.h>

#include "base/text/json.h"
#include "spec/contradictions.h"
#include "spec/field.h"
#include "spec/request_options.h"

/* What the fields of a spec file are read into. */
struct workload {
    struct request_options options;
    char *vendor; /* as it is written; NULL: nvidia */

    /* What is taken and does nothing. */
    int mode;
    struct optional_number time_slice_index;
    char *time_slicing_config_path;
};

/* The whole file; its target is a struct workload. */
extern const struct record workload_record;

/* The block `gpu`, which may also stand below `resources`. */
extern const struct movable workload_gpu;

/* What does not go together, ended by a row without a sentence. */
extern const struct contradiction workload_contradictions[];

/* What is worth a note, though nothing is wrong, ended by a row without a sentence. */
struct workload_note {
    const char *sentence;
    struct condition when; /* its path is the place of the note */
};
extern const struct workload_note workload_notes[];

/* Reads `length` bytes of text; `file` is the name for messages. *ret_options is as the file says,
 * with its command and notes; the strings are its own. Whatever is taken passes
 * request_options_resolve. Fails with BERTH_ERROR_SYNTAX, _INVALID or _RANGE (file:line:column:
 * sentence, with the nearest known name), _LIMIT or _MEMORY. The caller finishes *ret_options,
 * which is untouched on failure. */
int workload_parse(const char *file, const char *text, size_t length,
                   struct request_options *ret_options, struct berth_error *error);

/* What messages call the file of this path: "<stdin>" for "-", which is the standard input. */
const char *workload_file_name(const char *path);

/* Reads a file; "-" is the standard input. Also fails as file_read does. */
int workload_read(const char *path, struct request_options *ret_options, struct berth_error *error);

/* Writes the JSON Schema (draft 2020-12) that accepts and refuses the same files. */
void workload_write_schema(struct json *json);

/* Appends docs/SPEC.md. */
void workload_write_document(struct text *out);

#endif
