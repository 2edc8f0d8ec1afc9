/* SPDX-License-Identifier: Apache-2.0
 *
 * Putting a document together, value by value and within its limits; for those who read one.
 */
#ifndef SPEC_DOCUMENT_BUILDER_H
#define SPEC_DOCUMENT_BUILDER_H

#include <berth/error.h>

#include "spec/document.h"

/* A place in the text, both from 1. */
struct text_position {
    size_t line;
    size_t column; /* in characters */
};

/* The document and the way down to where the next value goes. Starts zeroed but for the first two
 * members. */
struct document_builder {
    struct document *document;
    struct berth_error *error;
    struct document_node *path[DOCUMENT_DEPTH_MAX];
    unsigned depth;
    size_t total; /* values so far, aliases written out */
    size_t bytes; /* text so far, the same */
};

/* error_set with "file:line:column: " in front. Returns `code`. */
int document_builder_fail(const struct document_builder *builder, struct text_position place,
                          int code, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* A new node, owned by the document and not yet part of its tree; NULL: out of memory. */
struct document_node *document_builder_create_node(struct document_builder *builder,
                                                   enum node_kind kind, struct text_position place);

/* The same of a scalar, with a copy of the text. */
struct document_node *document_builder_create_scalar(struct document_builder *builder,
                                                     struct text_position place, const char *text,
                                                     size_t length, bool quoted);

/* Counts the node with all that it stands for and hangs it where the next value goes. Fails with
 * BERTH_ERROR_LIMIT or BERTH_ERROR_MEMORY. */
int document_builder_attach(struct document_builder *builder, struct document_node *node,
                            struct text_position place);

/* From now on values go into this list or mapping, which is attached; until it is closed. */
void document_builder_open(struct document_builder *builder, struct document_node *node);
void document_builder_close(struct document_builder *builder);

/* Reads the text, if it is JSON by the book (RFC 8259), with a list or a mapping at its top.
 * Returns 1 when it was, 0 when it is something else, whatever was built then; else as
 * document_builder_attach. Reads what YAML does not: any character in a text, and pairs of
 * surrogates. */
int document_json_read(struct document_builder *builder, const char *text, size_t length);

#endif
