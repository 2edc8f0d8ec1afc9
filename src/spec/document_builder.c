/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/document_builder.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/quantity.h"

int document_builder_fail(const struct document_builder *builder, struct text_position place,
                          int code, const char *format, ...)
{
    char sentence[BERTH_ERROR_MESSAGE_SIZE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sentence, sizeof(sentence), format, arguments);
    va_end(arguments);
    return error_set(builder->error, code, "%s:%zu:%zu: %s", builder->document->file, place.line,
                     place.column, sentence);
}

struct document_node *document_builder_create_node(struct document_builder *builder,
                                                   enum node_kind kind, struct text_position place)
{
    struct document_node *node = calloc(1, sizeof(*node));
    struct document_node **owner = node == NULL ? NULL : vector_append(&builder->document->nodes);

    if (owner == NULL) {
        free(node);
        return NULL;
    }
    *owner = node;
    node->kind = kind;
    node->line = (uint32_t)place.line;
    node->column = (uint32_t)place.column;
    node->weight = 1;
    node->height = kind == NODE_SCALAR ? 0 : 1;
    return node;
}

struct document_node *document_builder_create_scalar(struct document_builder *builder,
                                                     struct text_position place, const char *text,
                                                     size_t length, bool quoted)
{
    struct document_node *node = document_builder_create_node(builder, NODE_SCALAR, place);

    if (node == NULL)
        return NULL;
    node->text = malloc(length + 1);
    if (node->text == NULL)
        return NULL;
    memcpy(node->text, text, length);
    node->text[length] = '\0';
    node->length = length;
    node->bytes = length;
    node->quoted = quoted;
    return node;
}

int document_builder_attach(struct document_builder *builder, struct document_node *node,
                            struct text_position place)
{
    struct document_node *parent = builder->depth > 0 ? builder->path[builder->depth - 1] : NULL;
    struct document_node **added;

    if (node->weight > DOCUMENT_VALUES_MAX - builder->total)
        return document_builder_fail(
            builder, place, BERTH_ERROR_LIMIT,
            "expected at most %d values, with aliases written out, got more", DOCUMENT_VALUES_MAX);
    builder->total += node->weight;
    if (node->bytes > DOCUMENT_BYTES_MAX - builder->bytes)
        return document_builder_fail(
            builder, place, BERTH_ERROR_LIMIT,
            "expected at most %s of text, with aliases written out, got more",
            quantity_format_size(DOCUMENT_BYTES_MAX).text);
    builder->bytes += node->bytes;
    if (builder->depth + node->height > DOCUMENT_DEPTH_MAX)
        return document_builder_fail(builder, place, BERTH_ERROR_LIMIT,
                                     "expected at most %d levels of lists and mappings, got more",
                                     DOCUMENT_DEPTH_MAX);
    if (parent == NULL) {
        builder->document->root = node;
        return 0;
    }
    added = vector_append(parent);
    if (added == NULL)
        return error_set_memory(builder->error);
    *added = node;
    return 0;
}

void document_builder_open(struct document_builder *builder, struct document_node *node)
{
    node->open = true;
    builder->path[builder->depth++] = node;
}

/* Computes the weight, size and height of the collection, which is complete now. */
void document_builder_close(struct document_builder *builder)
{
    struct document_node *node = builder->path[--builder->depth];
    struct document_node **child;

    assert(node != NULL);
    vector_for_each (child, node) {
        node->weight += (*child)->weight;
        node->bytes += (*child)->bytes;
        if ((*child)->height + 1 > node->height)
            node->height = (*child)->height + 1;
    }
    node->open = false;
}
