/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds a document value by value and checks its limits. For the parsers of JSON and YAML.
 */
#ifndef SPEC_DOCUMENT_BUILDER_H
#define SPEC_DOCUMENT_BUILDER_H

#include <berth/error.h>

#include "spec/document.h"

/* A position in the text; both numbers start at 1. */
struct text_position {
    size_t line;
    size_t column; /* in characters */
};

/* A document that is being built, and the path to the place of the next value. Set the first two
 * members and zero all others. */
struct document_builder {
    struct document *document;
    struct berth_error *error;
    struct document_node *path[DOCUMENT_DEPTH_MAX];
    unsigned depth;
    size_t total; /* number of values so far, with expanded aliases */
    size_t bytes; /* size of the texts so far, with expanded aliases */
};

/* Sets the error as error_set does, with "file:line:column: " in front. Returns `code`. */
int document_builder_fail(const struct document_builder *builder, struct text_position place,
                          int code, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Returns a new node that the document owns, but that is not in its tree yet. NULL: out of
 * memory. */
struct document_node *document_builder_create_node(struct document_builder *builder,
                                                   enum node_kind kind, struct text_position place);

/* Returns a new scalar in the same way, with a copy of the text. */
struct document_node *document_builder_create_scalar(struct document_builder *builder,
                                                     struct text_position place, const char *text,
                                                     size_t length, bool quoted);

/* Counts the node with its expanded aliases and puts it into the tree at the place of the next
 * value. Fails with BERTH_ERROR_LIMIT or BERTH_ERROR_MEMORY. */
int document_builder_attach(struct document_builder *builder, struct document_node *node,
                            struct text_position place);

/* Opens an attached list or mapping: the next values go into it, until it is closed. */
void document_builder_open(struct document_builder *builder, struct document_node *node);
void document_builder_close(struct document_builder *builder);

/* Parses the text as strict JSON (RFC 8259) with a list or a mapping at the top. Returns 1 if it is
 * JSON, and 0 if it is not; the document is incomplete then. Fails as document_builder_attach.
 * Unlike YAML, JSON allows any character in a text, and surrogate pairs. */
int document_json_read(struct document_builder *builder, const char *text, size_t length);

#endif
