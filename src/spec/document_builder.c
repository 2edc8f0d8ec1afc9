/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/document_builder.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/quantity.h"

int builder_fail(const struct builder *builder, struct place place, int code, const char *format,
                 ...)
{
    char sentence[BERTH_ERROR_MESSAGE_SIZE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sentence, sizeof(sentence), format, arguments);
    va_end(arguments);
    return error_set(builder->error, code, "%s:%zu:%zu: %s", builder->document->file, place.line,
                     place.column, sentence);
}

struct node *builder_node(struct builder *builder, enum node_kind kind, struct place place)
{
    struct node *node = calloc(1, sizeof(*node));
    struct node **owner = node == NULL ? NULL : vector_append(&builder->document->nodes);

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

struct node *builder_scalar(struct builder *builder, struct place place, const char *text,
                            size_t length, bool quoted)
{
    struct node *node = builder_node(builder, NODE_SCALAR, place);

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

int builder_attach(struct builder *builder, struct node *node, struct place place)
{
    struct node *parent = builder->depth > 0 ? builder->path[builder->depth - 1] : NULL;
    struct node **added;

    if (node->weight > DOCUMENT_MAX - builder->total)
        return builder_fail(builder, place, BERTH_ERROR_LIMIT,
                            "wanted at most %d values, with aliases written out, found more",
                            DOCUMENT_MAX);
    builder->total += node->weight;
    if (node->bytes > DOCUMENT_LARGEST - builder->bytes)
        return builder_fail(builder, place, BERTH_ERROR_LIMIT,
                            "wanted at most %s of text, with aliases written out, found more",
                            quantity_format_size(DOCUMENT_LARGEST).text);
    builder->bytes += node->bytes;
    if (builder->depth + node->height > DOCUMENT_DEEPEST)
        return builder_fail(builder, place, BERTH_ERROR_LIMIT,
                            "wanted at most %d levels of lists and mappings, found more",
                            DOCUMENT_DEEPEST);
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

void builder_open(struct builder *builder, struct node *node)
{
    node->open = true;
    builder->path[builder->depth++] = node;
}

/* Only now is it known how heavy and how deep the collection is. */
void builder_close(struct builder *builder)
{
    struct node *node = builder->path[--builder->depth];
    struct node **child;

    assert(node != NULL);
    vector_for_each (child, node) {
        node->weight += (*child)->weight;
        node->bytes += (*child)->bytes;
        if ((*child)->height + 1 > node->height)
            node->height = (*child)->height + 1;
    }
    node->open = false;
}
