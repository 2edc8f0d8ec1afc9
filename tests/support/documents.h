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

#include "base/text.h"
#include "spec/document.h"
#include "support/exact_copy.h"

#define FILE_NAME "file.yaml"

/* The bytes of a string constant that may hold zeros: BYTES("a\0b"). */
#define BYTES(constant) (constant), sizeof(constant) - 1

/* Parses the text, which must be good; the caller finishes the document. */
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

/* Parses the text, which must be refused with this code and message. */
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
