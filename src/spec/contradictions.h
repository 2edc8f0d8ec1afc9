/* SPDX-License-Identifier: Apache-2.0
 *
 * What does not go together in a file, by tables: they drive the reader and the schema alike.
 */
#ifndef SPEC_CONTRADICTIONS_H
#define SPEC_CONTRADICTIONS_H

#include <stdbool.h>

#include "spec/field.h"

/* What is said of one field. A null value counts as left out. */
enum condition_test {
    CONDITION_NONE,         /* ends the conditions of a row */
    CONDITION_GIVEN,        /* the field has a value */
    CONDITION_LEFT_OUT,     /* it has none */
    CONDITION_EMPTY,        /* it is written down, with nothing as its value */
    CONDITION_ONE_OF,       /* it has one of the values */
    CONDITION_ANOTHER,      /* it has a value that is none of them */
    CONDITION_NOT_GIVEN_AS, /* left out, or another value */
};

struct condition {
    const char *path; /* from the top: "gpu.count" */
    enum condition_test test;
    const char *const *values; /* as they are written, with or without quotes, ended by NULL */
};

#define CONDITIONS_MAX 4

/* Fields that do not go together: when all conditions hold, the file is refused with the sentence,
 * at the place of the field `at`, or, when that was left out, of the record that it belongs to. */
struct contradiction {
    const char *at;
    const char *sentence;
    struct condition conditions[CONDITIONS_MAX];
};

/* A record that may stand in two places, though not in both at once. Paths that lead into it,
 * "gpu.count", begin with `path` for both; the paths of the two places themselves, "gpu" and
 * "resources.gpu", each mean that place only. */
struct movable {
    const char *path;
    const char *elsewhere;
};

/* Whether the condition holds for `root`, a mapping that field_read_record has accepted. Pure. */
bool contradictions_condition_holds(const struct document_node *root, const struct movable *movable,
                                    const struct condition *condition);

/* The record, wherever it stands; NULL when it is not written down. Pure. */
const struct document_node *contradictions_movable_value(const struct document_node *root,
                                                         const struct movable *movable);

/* The value of the field, also when that is null; NULL when it is not written down. Pure. */
const struct document_node *contradictions_path_value(const struct document_node *root,
                                                      const struct movable *movable,
                                                      const char *path);

/* The rest of a path that leads into the movable record: "count" of "gpu.count"; NULL for any
 * other. Pure. */
const char *contradictions_path_within(const struct movable *movable, const char *path);

/* Fails with BERTH_ERROR_INVALID for the first of the rows, which end with one that has no
 * sentence, whose conditions all hold. */
int contradictions_check(const struct field_reading *reading, const struct contradiction *rows,
                         const struct movable *movable, const struct document_node *root);

#endif
