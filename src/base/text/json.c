/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/json.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/text/quantity.h"
#include "base/text/utf8.h"

enum { INDENT = 2 };

void json_start(struct json *json, struct text *text, enum json_layout layout)
{
    *json = (struct json){.text = text, .layout = layout};
}

void json_finish(struct json *json)
{
    assert(json->done && json->depth == 0);
    text_append_char(json->text, '\n');
}

static void break_line(struct json *json)
{
    if (json->layout == JSON_COMPACT)
        return;
    text_append_char(json->text, '\n');
    text_append_repeated(json->text, ' ', (size_t)json->depth * INDENT);
}

/* Separates the next item of the innermost array or object from the item before it. */
static void begin_item(struct json *json)
{
    bool *has_items = &json->has_items[json->depth - 1];

    if (*has_items)
        text_append_char(json->text, ',');
    *has_items = true;
    break_line(json);
}

/* Begins each value: separates it from the item before it, if there is one. */
static void begin_value(struct json *json)
{
    assert(!json->done);
    if (json->depth == 0) {
        json->done = true;
        return;
    }
    assert(json->after_key == json->is_object[json->depth - 1]);
    if (!json->after_key)
        begin_item(json);
    json->after_key = false;
}

static void begin_level(struct json *json, bool is_object)
{
    begin_value(json);
    assert(json->depth < JSON_DEPTH_MAX);
    json->done = false;
    json->has_items[json->depth] = false;
    json->is_object[json->depth] = is_object;
    json->depth++;
    text_append_char(json->text, is_object ? '{' : '[');
}

static void end_level(struct json *json, bool is_object)
{
    assert(json->depth > 0 && json->is_object[json->depth - 1] == is_object && !json->after_key);
    json->depth--;
    if (json->has_items[json->depth])
        break_line(json);
    text_append_char(json->text, is_object ? '}' : ']');
    json->done = json->depth == 0;
}

void json_object_begin(struct json *json)
{
    begin_level(json, true);
}

void json_object_end(struct json *json)
{
    end_level(json, true);
}

void json_array_begin(struct json *json)
{
    begin_level(json, false);
}

void json_array_end(struct json *json)
{
    end_level(json, false);
}

/* Returns the letter of a two-character escape, or 0 when the character has none. */
static char short_escape(uint32_t character)
{
    switch (character) {
    case '"':
    case '\\':
        return (char)character;
    case '\b':
        return 'b';
    case '\f':
        return 'f';
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    default:
        return 0;
    }
}

static void append_escaped(struct text *text, uint32_t character)
{
    char letter = short_escape(character);

    if (letter != 0) {
        text_append_char(text, '\\');
        text_append_char(text, letter);
    } else if (utf8_is_control(character)) {
        /* All of these are below U+10000, so one escape is enough. */
        text_append_format(text, "\\u%04" PRIx32, character);
    } else {
        utf8_append(text, character);
    }
}

static void append_string(struct text *text, const char *string)
{
    size_t length = strlen(string);
    uint32_t character;

    text_append_char(text, '"');
    for (size_t i = 0; i < length;) {
        i += utf8_decode(string + i, length - i, &character);
        append_escaped(text, character);
    }
    text_append_char(text, '"');
}

void json_key(struct json *json, const char *key)
{
    assert(key != NULL);
    assert(json->depth > 0 && json->is_object[json->depth - 1] && !json->after_key);
    begin_item(json);
    append_string(json->text, key);
    text_append(json->text, json->layout == JSON_COMPACT ? ":" : ": ");
    json->after_key = true;
}

void json_string(struct json *json, const char *string)
{
    if (string == NULL) {
        json_null(json);
        return;
    }
    begin_value(json);
    append_string(json->text, string);
}

void json_unsigned(struct json *json, uint64_t value)
{
    begin_value(json);
    text_append_format(json->text, "%" PRIu64, value);
}

void json_signed(struct json *json, int64_t value)
{
    begin_value(json);
    text_append_format(json->text, "%" PRId64, value);
}

void json_bool(struct json *json, bool value)
{
    begin_value(json);
    text_append(json->text, value ? "true" : "false");
}

void json_null(struct json *json)
{
    begin_value(json);
    text_append(json->text, "null");
}

void json_decimal(struct json *json, int64_t value, unsigned decimals)
{
    begin_value(json);
    text_append(json->text, quantity_format_decimal(value, decimals).text);
}

void json_string_member(struct json *json, const char *key, const char *string)
{
    json_key(json, key);
    json_string(json, string);
}

void json_number_member(struct json *json, const char *key, bool known, uint64_t value)
{
    json_key(json, key);
    if (known)
        json_unsigned(json, value);
    else
        json_null(json);
}

void json_time_member(struct json *json, const char *key, bool known, int64_t time)
{
    json_string_member(json, key, known ? quantity_format_time(time).text : NULL);
}

void json_bool_member(struct json *json, const char *key, bool value)
{
    json_key(json, key);
    json_bool(json, value);
}
