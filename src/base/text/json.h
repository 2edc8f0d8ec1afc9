/* SPDX-License-Identifier: Apache-2.0
 *
 * A JSON writer (RFC 8259), which appends to a text. It always writes a valid document: strings are
 * escaped, invalid UTF-8 is replaced, and calls in an order that JSON does not allow are bugs
 * (assert). Characters that control a terminal (utf8_is_control) are escaped too, so the document
 * can be printed safely. The text remembers a failed allocation: check text_failed once at the end.
 * Only one thread may use a writer at a time.
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
    JSON_INDENTED, /* two spaces per level; an empty array or object is [] or {} */
};

#define JSON_DEPTH_MAX 64

struct json {
    struct text *text;
    enum json_layout layout;
    unsigned depth;
    bool has_items[JSON_DEPTH_MAX]; /* the next item of this level needs a comma */
    bool is_object[JSON_DEPTH_MAX];
    bool after_key;
    bool done; /* the one top-level value is written */
};

void json_start(struct json *json, struct text *text, enum json_layout layout);

/* Ends the document with a line break. The document must be complete (assert). */
void json_finish(struct json *json);

void json_object_begin(struct json *json);
void json_object_end(struct json *json);
void json_array_begin(struct json *json);
void json_array_end(struct json *json);

/* Writes the key of the next value. Required before each value of an object. */
void json_key(struct json *json, const char *key);

/* Writes a string, or null when `string` is NULL. */
void json_string(struct json *json, const char *string);
void json_unsigned(struct json *json, uint64_t value);
void json_signed(struct json *json, int64_t value);
void json_bool(struct json *json, bool value);
void json_null(struct json *json);

/* Writes value / 10^decimals exactly and without trailing zeros: (125, 3) is 0.125, (2000, 3) is 2.
 * `decimals` is at most 18. */
void json_decimal(struct json *json, int64_t value, unsigned decimals);

/* Write a key and its value: the string, or null when it is NULL; the number or the time, or null
 * when it is not known. Times are nanoseconds since 1970 UTC. */
void json_string_member(struct json *json, const char *key, const char *string);
void json_number_member(struct json *json, const char *key, bool known, uint64_t value);
void json_time_member(struct json *json, const char *key, bool known, int64_t time);
void json_bool_member(struct json *json, const char *key, bool value);

#endif
