/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses JSON. libyaml cannot do this: some JSON is not YAML, and libyaml reports other positions.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/text.h"
#include "base/text/utf8.h"
#include "spec/document_builder.h"

enum {
    FOUND = 1,
    NOT_JSON = 0, /* failures have negative codes */
};

struct json_reader {
    struct document_builder *builder;
    const char *at;
    const char *end;
    struct text_position place; /* the position of `at` */
    struct text text;           /* the string that is being read */
};

static char peek_byte(const struct json_reader *reader)
{
    return reader->at < reader->end ? *reader->at : '\0';
}

/* Advances by `length` bytes within one line. */
static void skip_bytes(struct json_reader *reader, size_t length)
{
    for (; length > 0; length--, reader->at++)
        reader->place.column += ((unsigned char)*reader->at & 0xC0) != 0x80;
}

static bool take_byte(struct json_reader *reader, char wanted)
{
    if (peek_byte(reader) != wanted || reader->at == reader->end)
        return false;
    skip_bytes(reader, 1);
    return true;
}

static void skip_blanks(struct json_reader *reader)
{
    for (;;) {
        char found = peek_byte(reader);

        if (found == '\n' || found == '\r') {
            bool both = found == '\r' && reader->end - reader->at > 1 && reader->at[1] == '\n';

            reader->at += both ? 2 : 1;
            reader->place.line++;
            reader->place.column = 1;
        } else if (found == ' ' || found == '\t') {
            skip_bytes(reader, 1);
        } else {
            return;
        }
    }
}

/* ---- Strings ---- */

/* Reads four hexadecimal digits. */
static bool read_unit(struct json_reader *reader, uint32_t *ret_unit)
{
    uint32_t unit = 0;

    for (unsigned i = 0; i < 4; i++) {
        static const char small[] = "0123456789abcdef";
        static const char large[] = "0123456789ABCDEF";
        char found = peek_byte(reader);
        const char *digit = found == '\0' ? NULL : strchr(small, found);

        if (found != '\0' && digit == NULL && strchr(large, found) != NULL)
            digit = small + (strchr(large, found) - large);
        if (digit == NULL)
            return false;
        unit = unit * 16 + (uint32_t)(digit - small);
        skip_bytes(reader, 1);
    }
    *ret_unit = unit;
    return true;
}

/* Reads the digits after \u; a character above 16 bits is a surrogate pair. */
static bool read_escaped_character(struct json_reader *reader)
{
    uint32_t unit, low;

    if (!read_unit(reader, &unit) || (unit >= 0xDC00 && unit <= 0xDFFF))
        return false;
    if (unit >= 0xD800 && unit <= 0xDBFF) {
        if (!take_byte(reader, '\\') || !take_byte(reader, 'u') || !read_unit(reader, &low) ||
            low < 0xDC00 || low > 0xDFFF)
            return false;
        unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    }
    utf8_append(&reader->text, unit);
    return true;
}

static bool read_escape(struct json_reader *reader)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    char found = peek_byte(reader);
    const char *letter = found == '\0' ? NULL : strchr(letters, found);

    if (take_byte(reader, 'u'))
        return read_escaped_character(reader);
    if (letter == NULL)
        return false;
    skip_bytes(reader, 1);
    text_append_char(&reader->text, meanings[letter - letters]);
    return true;
}

/* Reads a string up to its closing quote into the reader's text. */
static bool read_string(struct json_reader *reader)
{
    text_clear(&reader->text);
    while (!take_byte(reader, '"')) {
        const char *start = reader->at;
        size_t length = 0;

        if (take_byte(reader, '\\')) {
            if (!read_escape(reader))
                return false;
            continue;
        }
        while (start + length < reader->end && (unsigned char)start[length] >= ' ' &&
               start[length] != '"' && start[length] != '\\')
            length++;
        if (length == 0 || !utf8_is_valid(start, length))
            return false;
        text_append_bytes(&reader->text, start, length);
        skip_bytes(reader, length);
    }
    return true;
}

/* ---- Values ---- */

static int add_scalar(struct json_reader *reader, struct text_position place, const char *text,
                      size_t length, bool quoted)
{
    struct document_node *node =
        document_builder_create_scalar(reader->builder, place, text, length, quoted);
    int code = node == NULL ? error_set_memory(reader->builder->error)
                            : document_builder_attach(reader->builder, node, place);

    return code < 0 ? code : FOUND;
}

static int take_string(struct json_reader *reader)
{
    struct text_position place = reader->place;

    if (!take_byte(reader, '"') || !read_string(reader))
        return NOT_JSON;
    if (text_failed(&reader->text))
        return error_set_memory(reader->builder->error);
    return add_scalar(reader, place, text_string(&reader->text), reader->text.length, true);
}

static size_t digits_at(const char *at, const char *end)
{
    size_t count = 0;

    while (at + count < end && at[count] >= '0' && at[count] <= '9')
        count++;
    return count;
}

/* Returns the length of the number at `start`; 0 if there is none. */
static size_t number_length(const char *start, const char *end)
{
    const char *at = start + (start < end && *start == '-');
    size_t digits = digits_at(at, end);

    if (digits == 0 || (digits > 1 && *at == '0'))
        return 0;
    at += digits;
    if (at < end && *at == '.') {
        digits = digits_at(at + 1, end);
        if (digits == 0)
            return 0;
        at += 1 + digits;
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at += 1 + (end - at > 1 && (at[1] == '+' || at[1] == '-'));
        digits = digits_at(at, end);
        if (digits == 0)
            return 0;
        at += digits;
    }
    return (size_t)(at - start);
}

static int take_word(struct json_reader *reader)
{
    static const char *const words[] = {"true", "false", "null", NULL};
    size_t left = (size_t)(reader->end - reader->at);
    size_t length = number_length(reader->at, reader->end);
    struct text_position place = reader->place;
    const char *start = reader->at;

    for (const char *const *word = words; *word != NULL && length == 0; word++) {
        if (left >= strlen(*word) && memcmp(start, *word, strlen(*word)) == 0)
            length = strlen(*word);
    }
    if (length == 0)
        return NOT_JSON;
    skip_bytes(reader, length);
    return add_scalar(reader, place, start, length, false);
}

static int take_value(struct json_reader *reader);

static int take_pair(struct json_reader *reader)
{
    int code = take_string(reader);

    if (code != FOUND)
        return code;
    skip_blanks(reader);
    if (!take_byte(reader, ':'))
        return NOT_JSON;
    skip_blanks(reader);
    return take_value(reader);
}

/* Recursive; the depth is that of the document, which is limited. */
static int take_items(struct json_reader *reader, enum node_kind kind)
{
    char closing = kind == NODE_LIST ? ']' : '}';
    int code = FOUND;

    skip_blanks(reader);
    if (take_byte(reader, closing))
        return FOUND;
    for (;;) {
        code = kind == NODE_LIST ? take_value(reader) : take_pair(reader);
        if (code != FOUND)
            return code;
        skip_blanks(reader);
        if (take_byte(reader, closing))
            return FOUND;
        if (!take_byte(reader, ','))
            return NOT_JSON;
        skip_blanks(reader);
    }
}

static int take_collection(struct json_reader *reader, enum node_kind kind)
{
    struct text_position place = reader->place;
    struct document_node *node = document_builder_create_node(reader->builder, kind, place);
    int code = node == NULL ? error_set_memory(reader->builder->error)
                            : document_builder_attach(reader->builder, node, place);

    if (code < 0)
        return code;
    skip_bytes(reader, 1);
    document_builder_open(reader->builder, node);
    code = take_items(reader, kind);
    document_builder_close(reader->builder);
    return code;
}

static int take_value(struct json_reader *reader)
{
    switch (peek_byte(reader)) {
    case '{':
        return take_collection(reader, NODE_MAPPING);
    case '[':
        return take_collection(reader, NODE_LIST);
    case '"':
        return take_string(reader);
    default:
        return take_word(reader);
    }
}

int document_json_read(struct document_builder *builder, const char *text, size_t length)
{
    struct json_reader reader = {
        .builder = builder,
        .at = text,
        .end = text + length,
        .place = {.line = 1, .column = 1},
    };
    int code;

    if (length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
        reader.at += 3;
    skip_blanks(&reader);
    if (peek_byte(&reader) != '{' && peek_byte(&reader) != '[')
        return NOT_JSON;
    code = take_value(&reader);
    skip_blanks(&reader);
    if (code == FOUND && reader.at != reader.end)
        code = NOT_JSON;
    text_finish(&reader.text);
    return code;
}
