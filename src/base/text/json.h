/* SPDX-License-Identifier: Apache-2.0
 *
 * A JSON writer (RFC 8259). It appends to a text and cannot produce an invalid document: strings
 * are escaped and broken UTF-8 is repaired, and calls in an order that JSON does not allow are
 * our own bug (assert). Characters that could steer a terminal (utf8_is_control) are escaped too,
 * so the document may be shown to people as it is. A failed allocation is remembered by the text;
 * check text_failed once at the end. Not for use by two threads at once.
 *
 *     struct json json;
 *     json_start(&json, &text, JSON_INDENTED);
 *     json_object_begin(&json);
 *     json_key(&json, "id");
 *     json_string(&json, "nvidia0");
 *     json_object_end(&json);
 *     json_finish(&json);
 */
#ifndef BASE_TEXT_JSON_H
#define BASE_TEXT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/text.h"

enum json_layout {
    JSON_COMPACT,  /* one line without blanks */
    JSON_INDENTED, /* two spaces a level; an array or object without content is [] or {} */
};

#define JSON_DEPTH_MAX 64

struct json {
    struct text *text;
    enum json_layout layout;
    unsigned depth;
    bool has_items[JSON_DEPTH_MAX]; /* whether this level needs a comma before the next item */
    bool is_object[JSON_DEPTH_MAX];
    bool after_key;
    bool done; /* the one top-level value is written */
};

void json_start(struct json *json, struct text *text, enum json_layout layout);

/* Checks that the document is complete and ends it with a line break. */
void json_finish(struct json *json);

void json_object_begin(struct json *json);
void json_object_end(struct json *json);
void json_array_begin(struct json *json);
void json_array_end(struct json *json);

/* The next value's name; only and always within an object. */
void json_key(struct json *json, const char *key);

/* `string` may be NULL, which writes null: unknown. */
void json_string(struct json *json, const char *string);
void json_unsigned(struct json *json, uint64_t value);
void json_signed(struct json *json, int64_t value);
void json_bool(struct json *json, bool value);
void json_null(struct json *json);

/* A decimal fraction, value / 10^decimals with decimals <= 18, written exactly and without
 * trailing zeros: (125, 3) is 0.125, (2000, 3) is 2. */
void json_decimal(struct json *json, int64_t value, unsigned decimals);

/* A member with such a value: its key, then the string, or the number if it is known, else null. */
void json_string_member(struct json *json, const char *key, const char *string);
void json_number_member(struct json *json, const char *key, bool known, uint64_t value);

#endif
