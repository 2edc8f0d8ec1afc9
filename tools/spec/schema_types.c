/* SPDX-License-Identifier: Apache-2.0
 *
 * Keywords for strings do not apply to numbers, and keywords for numbers do not apply to strings.
 * So a value that may be either needs both sets of keywords, but no alternatives.
 */
#include "schema_types.h"

#include <assert.h>

#include "base/count.h"
#include "model/machine/device_id.h"
#include "model/request.h"
#include "pattern.h"
#include "spec/workload_types.h"

#define NAMES(...)        \
    (const char *const[]) \
    {                     \
        __VA_ARGS__, NULL \
    }

/* berth reads any scalar as text. */
#define SCALARS "string", "number", "boolean"

enum {
    TEXT_MAX = 255,
    NUMBER_DIGITS = 18, /* fits int64_t */
};

void schema_types_write(struct json *json, bool or_null, const char *const *names)
{
    bool only_one = names[1] == NULL && !or_null;

    json_key(json, "type");
    if (!only_one)
        json_array_begin(json);
    for (; *names != NULL; names++)
        json_string(json, *names);
    if (or_null)
        json_string(json, "null");
    if (!only_one)
        json_array_end(json);
}

static void write_bounds(struct json *json, uint64_t min, uint64_t max)
{
    json_number_member(json, "minimum", true, min);
    json_number_member(json, "maximum", true, max);
}

/* Writes the length limits of a text; the schema counts characters, berth counts bytes. */
static void write_length(struct json *json, uint64_t min, uint64_t max)
{
    if (min > 0)
        json_number_member(json, "minLength", true, min);
    json_number_member(json, "maxLength", true, max);
}

static void write_without_zero_bytes(struct json *json)
{
    json_string_member(json, "pattern", "^[^\\u0000]*$");
}

/* Writes a pattern for whole texts. Empties the text that holds it. */
static void write_pattern(struct json *json, struct text *pattern)
{
    struct text whole = {0};

    text_append_format(&whole, PATTERN_BEGIN "%s" PATTERN_END, text_string(pattern));
    json_string_member(json, "pattern", text_string(&whole));
    json->text->failed = json->text->failed || text_failed(pattern) || text_failed(&whole);
    text_finish(&whole);
    text_finish(pattern);
}

/* Returns the largest number of this many digits. */
static uint64_t largest_of(unsigned digits)
{
    uint64_t number = 0;

    while (digits-- > 0)
        number = number * 10 + 9;
    return number;
}

static void write_text(const struct field *field, bool or_null, struct json *json)
{
    uint64_t longest = field->max == 0 ? TEXT_MAX : field->max;

    schema_types_write(json, or_null, NAMES(SCALARS));
    write_length(json, 1, longest);
    write_without_zero_bytes(json);
    /* A number is read as text, too, so a short text also limits the digits of a number. */
    if (longest <= NUMBER_DIGITS) {
        json_key(json, "minimum");
        json_signed(json, -(int64_t)largest_of((unsigned)longest - 1));
        json_number_member(json, "maximum", true, largest_of((unsigned)longest));
    }
}

static void write_models(const struct field *field, bool or_null, struct json *json)
{
    (void)field;
    schema_types_write(json, or_null, NAMES(SCALARS));
    write_length(json, 1, TEXT_MAX);
    json_string_member(json, "pattern", "^[^|\\u0000]+(?:\\|[^|\\u0000]+)*$");
}

static void write_number(const struct field *field, bool or_null, struct json *json)
{
    schema_types_write(json, or_null, NAMES("integer"));
    write_bounds(json, field->min, field->max);
}

static void write_choice(const struct field *field, bool or_null, struct json *json)
{
    json_key(json, "enum");
    json_array_begin(json);
    for (const struct choice *choice = field->choices; choice->name != NULL; choice++)
        json_string(json, choice->name);
    if (or_null)
        json_null(json);
    json_array_end(json);
}

static void write_boolean(const struct field *field, bool or_null, struct json *json)
{
    (void)field;
    schema_types_write(json, or_null, NAMES("boolean"));
}

static void write_count(const struct field *field, bool or_null, struct json *json)
{
    struct text pattern = {0};

    (void)field;
    schema_types_write(json, or_null, NAMES("integer", "string"));
    write_bounds(json, 1, REQUEST_COUNT_MAX);
    text_append(&pattern, "(?:all|");
    pattern_append_whole(&pattern, 1, REQUEST_COUNT_MAX);
    text_append_char(&pattern, '|');
    pattern_append_elastic(&pattern, 1, REQUEST_COUNT_MAX);
    text_append_char(&pattern, ')');
    write_pattern(json, &pattern);
}

static void write_capability(const struct field *field, bool or_null, struct json *json)
{
    struct text pattern = {0};

    (void)field;
    schema_types_write(json, or_null, NAMES("string"));
    text_append(&pattern, "[0-9]{1,3}(?:\\.[0-9]{1,3})?");
    write_pattern(json, &pattern);
}

static void write_share(const struct field *field, bool or_null, struct json *json)
{
    (void)field;
    schema_types_write(json, or_null, NAMES("number"));
    json_number_member(json, "exclusiveMinimum", true, 0);
    json_number_member(json, "maximum", true, 1);
}

/* Appends a pattern that requires a digit other than 0, if the minimum is above 0. */
static void append_min(struct text *pattern, uint64_t min)
{
    if (min > 0)
        text_append(pattern, "(?=.*[1-9])");
}

static void write_size(const struct field *field, bool or_null, struct json *json)
{
    static const char prefixes[] = "KkMmGgTt";
    unsigned digits = WORKLOAD_SIZE_DIGITS;
    struct text pattern = {0};

    schema_types_write(json, or_null, NAMES("integer", "string"));
    write_bounds(json, field->min, largest_of(digits));
    append_min(&pattern, field->min);
    text_append(&pattern, "(?:");
    pattern_append_whole(&pattern, 0, largest_of(digits));
    text_append_format(&pattern, "|[0-9]{1,%u} ?[Bb]", digits);
    for (const char *prefix = prefixes; *prefix != '\0'; prefix += 2) {
        digits -= 3;
        text_append_format(&pattern, "|[0-9]{1,%u}(?:\\.[0-9]{1,%d})? ?[%.2s](?:[Ii]?[Bb])?",
                           digits, WORKLOAD_FRACTION_DIGITS, prefix);
    }
    text_append_char(&pattern, ')');
    write_pattern(json, &pattern);
}

/* Appends a pattern for parts with units, the largest unit first. The last part may have a
 * fraction.
 */
static void append_parts(struct text *pattern)
{
    text_append(pattern, "(?=[0-9])");
    for (const struct workload_part *part = workload_parts; part->unit != NULL; part++)
        text_append_format(pattern, "(?:[0-9]{1,%u}(?:\\.[0-9]{1,%d}(?=[a-z]*$))?%s)?",
                           part->digits, WORKLOAD_FRACTION_DIGITS, part->unit);
}

static void write_duration(const struct field *field, bool or_null, struct json *json)
{
    struct text pattern = {0};

    schema_types_write(json, or_null, NAMES("integer", "string"));
    write_bounds(json, field->min, WORKLOAD_SECONDS_MAX);
    append_min(&pattern, field->min);
    text_append(&pattern, "(?:");
    pattern_append_whole(&pattern, 0, WORKLOAD_SECONDS_MAX);
    text_append_char(&pattern, '|');
    append_parts(&pattern);
    text_append_format(&pattern,
                       "|(?:[0-9]{1,%u}-(?:[01]?[0-9]|2[0-3])|[0-9]{1,%u})(?::[0-5]?[0-9]){2})",
                       WORKLOAD_DAYS_DIGITS, WORKLOAD_HOURS_DIGITS);
    write_pattern(json, &pattern);
}

/* Appends a pattern for a device id, as device_id_parse() reads it: only NVIDIA ids have a MIG
 * number. */
static void append_id(struct text *pattern)
{
    struct text index = {0};

    pattern_append_whole(&index, 0, DEVICE_INDEX_MAX);
    text_append_format(pattern, "(?:nvidia%s(?:\\.%s)?|(?:", text_string(&index),
                       text_string(&index));
    for (const struct choice *vendor = vendor_names; vendor->name != NULL; vendor++) {
        if (vendor->value != VENDOR_NVIDIA)
            text_append_format(pattern, "%s%s", vendor->name, vendor[1].name == NULL ? ")" : "|");
    }
    text_append_format(pattern, "%s)", text_string(&index));
    pattern->failed = pattern->failed || text_failed(&index);
    text_finish(&index);
}

static void write_device_ids(const struct field *field, bool or_null, struct json *json)
{
    struct text one = {0};
    struct text several = {0};

    (void)field;
    append_id(&one);
    text_append_format(&several, "%s(?:,%s)*", text_string(&one), text_string(&one));
    schema_types_write(json, or_null, NAMES("string", "array"));
    write_length(json, 0, WORKLOAD_IDS_MAX);
    write_pattern(json, &several);
    json_number_member(json, "minItems", true, 1);
    json_number_member(json, "maxItems", true, DEVICE_ID_LIST_MAX);
    json_key(json, "items");
    json_object_begin(json);
    schema_types_write(json, false, NAMES("string"));
    write_pattern(json, &one);
    json_object_end(json);
}

static void write_directory(const struct field *field, bool or_null, struct json *json)
{
    schema_types_write(json, or_null, NAMES("string"));
    write_length(json, 0, field->max);
    json_string_member(json, "pattern", "^/[^\\u0000]*$");
}

/* Writes the schema of one argument of a command. Only the first must not be empty. */
static void write_word(struct json *json, bool first)
{
    json_object_begin(json);
    schema_types_write(json, false, NAMES(SCALARS));
    write_length(json, first ? 1 : 0, WORKLOAD_ARGUMENT_MAX);
    write_without_zero_bytes(json);
    json_object_end(json);
}

static void write_command(const struct field *field, bool or_null, struct json *json)
{
    (void)field;
    schema_types_write(json, or_null, NAMES("array", SCALARS));
    json_number_member(json, "minItems", true, 1);
    json_number_member(json, "maxItems", true, WORKLOAD_ARGUMENTS_MAX);
    json_key(json, "prefixItems");
    json_array_begin(json);
    write_word(json, true);
    json_array_end(json);
    json_key(json, "items");
    write_word(json, false);
    write_length(json, 1, WORKLOAD_ARGUMENT_MAX);
    write_without_zero_bytes(json);
}

static const struct {
    const struct field_type *type;
    void (*write)(const struct field *field, bool or_null, struct json *json);
} writers[] = {
    {&field_text, write_text},
    {&field_number, write_number},
    {&field_number32, write_number},
    {&field_choice, write_choice},
    {&field_boolean, write_boolean},
    {&workload_models, write_models},
    {&workload_count, write_count},
    {&workload_capability, write_capability},
    {&workload_share, write_share},
    {&workload_size, write_size},
    {&workload_duration, write_duration},
    {&workload_device_ids, write_device_ids},
    {&workload_directory, write_directory},
    {&workload_command, write_command},
};

void schema_types_write_field(const struct field *field, bool or_null, struct json *json)
{
    size_t i = 0;

    while (i < COUNT(writers) && writers[i].type != field->type)
        i++;
    assert(i < COUNT(writers));
    writers[i].write(field, or_null, json);
}
