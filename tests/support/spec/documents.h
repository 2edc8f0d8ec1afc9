/* SPDX-License-Identifier: Apache-2.0
 *
 * YAML and JSON texts for tests: parsed from copies that are exactly as long as the text, so that
 * a sanitizer sees a read beyond it. Every text is called FILE_NAME in messages.
 */
#ifndef TESTS_DOCUMENTS_H
#define TESTS_DOCUMENTS_H

#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "spec/document.h"
#include "support/exact_copy.h"

#define FILE_NAME "file.yaml"

/* The bytes of a string constant that may hold zeros: BYTES("a\0b"). */
#define BYTES(constant) (constant), sizeof(constant) - 1

/* Parses the text, which must be valid. The caller finishes the document. */
static inline struct document parse_bytes(const char *bytes, size_t length)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct document document;
    char *copy = exact_copy(bytes, length);
    int code = document_parse(&document, FILE_NAME, copy, length, &error);

    free(copy);
    assert_string_equal(error.message, "");
    assert_int_equal(code, 0);
    return document;
}

static inline struct document parse_string(const char *string)
{
    return parse_bytes(string, strlen(string));
}

/* Writes a node as one line with kinds, texts and positions, for example "@1:1[@1:2'a']". */
static inline void write_node(const struct document_node *node, struct text *out)
{
    static const char brackets[] = "[]{}";
    const char *pair = node->kind == NODE_LIST ? brackets : brackets + 2;

    text_append_format(out, "@%u:%u", node->line, node->column);
    if (node->kind == NODE_SCALAR) {
        text_append_format(out, "%c%s%c", node->quoted ? '\'' : '(', node->text,
                           node->quoted ? '\'' : ')');
        assert_int_equal(strlen(node->text), node->length);
        return;
    }
    text_append_format(out, "%c", pair[0]);
    for (size_t i = 0; i < node->count; i++) {
        text_append(out, i == 0 ? "" : " ");
        write_node(node->items[i], out);
    }
    text_append_format(out, "%c", pair[1]);
}

/* Checks that the text is valid, and that write_node() writes its tree as `wanted`. */
static inline void check_tree(const char *bytes, size_t length, const char *wanted)
{
    struct document document = parse_bytes(bytes, length);
    struct text shown = {0};

    assert_non_null(document.root);
    write_node(document.root, &shown);
    assert_string_equal(text_string(&shown), wanted);
    text_finish(&shown);
    document_finish(&document);
}

/* Checks that parsing the text fails with this code and message. */
static inline void check_refused_bytes(const char *bytes, size_t length, int code,
                                       const char *message)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct document document = {.file = "untouched"};
    char *copy = exact_copy(bytes, length);
    int found = document_parse(&document, FILE_NAME, copy, length, &error);

    assert_int_equal(document_parse(&document, FILE_NAME, copy, length, NULL), found);
    free(copy);
    assert_string_equal(error.message, message);
    assert_int_equal(found, code);
    assert_int_equal(error.code, code);
    assert_string_equal(document.file, "untouched");
}

static inline void check_refused_text(const struct text *text, int code, const char *message)
{
    assert_false(text_failed(text));
    check_refused_bytes(text_string(text), text->length, code, message);
}

#endif
