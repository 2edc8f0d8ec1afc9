/* SPDX-License-Identifier: Apache-2.0
 *
 * Spec files: the request and the command of a job, in YAML or JSON. docs/SPEC.md, which
 * tools/spec writes from the tables here, lists the fields.
 */
#ifndef SPEC_WORKLOAD_H
#define SPEC_WORKLOAD_H

#include <berth/error.h>
#include <stddef.h>

#include "spec/field.h"
#include "spec/request_options.h"

/* The target of the fields of a spec file. */
struct workload {
    struct request_options options;
    char *vendor; /* as written in the file; NULL: nvidia */

    /* Fields that are accepted for compatibility and ignored. */
    int mode;
    struct optional_number time_slice_index;
    char *time_slicing_config_path;
};

/* The whole file; its target is a struct workload. */
extern const struct record workload_record;

/* A note about a field of the block `gpu` that is accepted but has no effect. */
struct workload_note {
    const char *field;
    bool is_empty; /* true: for a field without a value; false: for a field with one */
    const char *sentence;
};

/* All notes, ended by a row without a sentence. */
extern const struct workload_note workload_notes[];

/* Reads `length` bytes of text into *ret_options, with the command and the notes of the file. The
 * options own their strings, and the caller finishes them. `file` is the name for messages.
 * request_options_resolve accepts every result. Fails with BERTH_ERROR_SYNTAX, _INVALID or _RANGE
 * and a message FILE:LINE:COLUMN: MESSAGE, or with _LIMIT or _MEMORY; *ret_options is untouched
 * then. */
int workload_parse(const char *file, const char *text, size_t length,
                   struct request_options *ret_options, struct berth_error *error);

/* Returns the name of a file for messages: "<stdin>" for "-", otherwise the path. */
const char *workload_file_name(const char *path);

/* Reads a file; "-" is standard input, which may block. Also fails as file_read does. */
int workload_read(const char *path, struct request_options *ret_options, struct berth_error *error);

#endif
