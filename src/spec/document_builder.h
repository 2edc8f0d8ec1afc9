/* SPDX-License-Identifier: Apache-2.0
 *
 * Putting a document together, value by value and within its limits; for those who read one.
 */
#ifndef SPEC_DOCUMENT_BUILDER_H
#define SPEC_DOCUMENT_BUILDER_H

#include <berth/error.h>

#include "spec/document.h"

/* A place in the text, both from 1. */
struct place {
    size_t line;
    size_t column; /* in characters */
};

/* The document and the way down to where the next value goes. Starts zeroed but for the first two
 * members. */
struct builder {
    struct document *document;
    struct berth_error *error;
    struct node *path[DOCUMENT_DEEPEST];
    unsigned depth;
    size_t total; /* values so far, aliases written out */
    size_t bytes; /* text so far, the same */
};

/* error_set with "file:line:column: " in front. Returns `code`. */
int builder_fail(const struct builder *builder, struct place place, int code, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));

/* A new node, owned by the document and not yet part of its tree; NULL: out of memory. */
struct node *builder_node(struct builder *builder, enum node_kind kind, struct place place);

/* The same of a scalar, with a copy of the text. */
struct node *builder_scalar(struct builder *builder, struct place place, const char *text,
                            size_t length, bool quoted);

/* Counts the node with all that it stands for and hangs it where the next value goes. Fails with
 * BERTH_ERROR_LIMIT or BERTH_ERROR_MEMORY. */
int builder_attach(struct builder *builder, struct node *node, struct place place);

/* From now on values go into this list or mapping, which is attached; until it is closed. */
void builder_open(struct builder *builder, struct node *node);
void builder_close(struct builder *builder);

/* Reads the text, if it is JSON by the book (RFC 8259), with a list or a mapping at its top.
 * Returns 1 when it was, 0 when it is something else, whatever was built then; else as
 * builder_attach. Reads what YAML does not: any character in a text, and pairs of surrogates. */
int builder_read_json(struct builder *builder, const char *text, size_t length);

#endif
