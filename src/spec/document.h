/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses YAML or JSON into a tree of nodes with their positions. The text may be hostile: its size,
 * depth, number of values and the size of expanded aliases are limited, and an alias to a node that
 * contains it is refused.
 */
#ifndef SPEC_DOCUMENT_H
#define SPEC_DOCUMENT_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"

/* The maximum size of a file, and of its texts with expanded aliases, in bytes. */
#define DOCUMENT_BYTES_MAX      (64U << 20)
#define DOCUMENT_DEPTH_MAX      32      /* levels of lists and mappings */
#define DOCUMENT_VALUES_MAX     4000000 /* values, with expanded aliases */
#define DOCUMENT_ANCHORS_MAX    256
#define DOCUMENT_ALIASES_MAX    100000
#define DOCUMENT_DIRECTIVES_MAX 64 /* %TAG lines */

enum node_kind {
    NODE_SCALAR,
    NODE_LIST,
    NODE_MAPPING,
};

struct document_node {
    enum node_kind kind;
    bool quoted;     /* a scalar in quotes, which is always a text */
    bool open;       /* still being read */
    bool is_alias;   /* text and items belong to another node */
    uint32_t line;   /* from 1; for an alias, the position of the alias */
    uint32_t column; /* from 1, in characters */
    uint32_t height; /* number of levels, including this one; 0 for a scalar */
    size_t weight;   /* number of values with expanded aliases, including itself */
    size_t bytes;    /* size of the texts with expanded aliases */
    char *text;      /* of a scalar, with a terminator; it may contain zero bytes */
    size_t length;
    /* A list's values, or a mapping's keys and values: key, value, key, value ... */
    VECTOR_OF(struct document_node *);
};

struct document_node_list {
    VECTOR_OF(struct document_node *);
};

struct document {
    const char *file;                /* the name for messages; owned by the caller */
    struct document_node *root;      /* NULL: the text is empty */
    struct document_node_list nodes; /* owns all nodes */
};

/* Reads `length` bytes of text. `file` is the name used in messages and must live as long as the
 * document. Fails with BERTH_ERROR_SYNTAX, BERTH_ERROR_LIMIT or BERTH_ERROR_MEMORY and a message
 * "file:line:column: …"; *ret_document is untouched then. Never blocks. */
int document_parse(struct document *ret_document, const char *file, const char *text, size_t length,
                   struct berth_error *error);

/* Reads the file `path` and parses it; `path` must live as long as the document. Also fails as
 * file_read does. */
int document_read(struct document *ret_document, const char *path, struct berth_error *error);

void document_finish(struct document *document);

/* Sets the error as error_set does, with "file:line:column: " in front. Returns `code`. */
int document_error(const struct document *document, const struct document_node *node,
                   struct berth_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Puts "file:line:column: " before the message of the error. Returns `code`. */
int document_wrap(const struct document *document, const struct document_node *node,
                  struct berth_error *error, int code);

/* Returns whether the node is null in YAML 1.2: null, Null, NULL, ~ or an empty plain scalar. */
bool document_node_is_null(const struct document_node *node);

/* Describes a node for messages: "a list of 3", "a mapping", "nothing" or its quoted text. */
struct document_node_text {
    char text[80];
};
struct document_node_text document_node_describe(const struct document_node *node);

#endif
