/* SPDX-License-Identifier: Apache-2.0
 *
 * The types of values that all file formats use.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/optional.h"
#include "base/string_list.h"
#include "base/text/quantity.h"
#include "base/text/quote.h"
#include "spec/field.h"

enum { TEXT_MAX = 255 };

static int parse_text(const struct field *field, const char *text, void *target,
                      struct berth_error *error)
{
    size_t longest = field->max == 0 ? TEXT_MAX : (size_t)field->max;
    char *copy;

    if (*text == '\0' || strlen(text) > longest)
        return error_set(error, BERTH_ERROR_RANGE, "expected a text of 1 to %zu bytes, got %zu",
                         longest, strlen(text));
    copy = strdup(text);
    if (copy == NULL)
        return error_set_memory(error);
    free(*(char **)target);
    *(char **)target = copy;
    return 0;
}

static int parse_number(const struct field *field, const char *text, void *target,
                        struct berth_error *error)
{
    struct optional_number number = {.known = true};
    int code = quantity_parse_number(text, field->min, field->max, &number.value, error);

    if (code < 0)
        return code;
    if (text[0] == '0' && text[1] != '\0')
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "expected a whole number without leading zeros, got %s", quote(text).text);
    *(struct optional_number *)target = number;
    return 0;
}

static int parse_number32(const struct field *field, const char *text, void *target,
                          struct berth_error *error)
{
    struct optional_number number = {0};
    int code = parse_number(field, text, &number, error);

    if (code == 0)
        *(uint32_t *)target = (uint32_t)number.value;
    return code;
}

static int parse_size(const struct field *field, const char *text, void *target,
                      struct berth_error *error)
{
    uint64_t max = field->max == 0 ? INT64_MAX : field->max;
    uint64_t size;
    int code = quantity_parse_size(text, &size, error);

    if (code < 0)
        return code;
    if (size < field->min || size > max)
        return error_set(error, BERTH_ERROR_RANGE, "expected a size from %s to %s, got %s",
                         quantity_format_size(field->min).text, quantity_format_size(max).text,
                         quote(text).text);
    *(struct optional_number *)target = optional_number_of(size);
    return 0;
}

static int parse_duration(const struct field *field, const char *text, void *target,
                          struct berth_error *error)
{
    int64_t duration;
    int code = quantity_parse_duration(text, &duration, error);

    if (code < 0)
        return code;
    if (duration < (int64_t)field->min)
        return error_set(error, BERTH_ERROR_RANGE, "expected at least %s, got %s",
                         quantity_format_duration((int64_t)field->min).text, quote(text).text);
    if (field->max != 0 && duration > (int64_t)field->max)
        return error_set(error, BERTH_ERROR_RANGE, "expected at most %s, got %s",
                         quantity_format_duration((int64_t)field->max).text, quote(text).text);
    *(int64_t *)target = duration;
    return 0;
}

static int parse_choice(const struct field *field, const char *text, void *target,
                        struct berth_error *error)
{
    return choice_parse(field->choices, text, target, error);
}

/* Reads a scalar. The message about any other node lists the field's choices. */
static int read_choice(const struct field_reading *reading, const struct field *field,
                       const struct document_node *node, void *target)
{
    struct text wanted = {0};
    struct field_type scalar = {.parse = parse_choice};
    int code;

    text_append(&wanted, "one of ");
    choice_list(&wanted, field->choices, ", ");
    scalar.wanted = text_string(&wanted);
    code = text_failed(&wanted) ? error_set_memory(reading->error)
                                : field_read(reading, &scalar, field, node, target);
    text_finish(&wanted);
    return code;
}

static int parse_boolean(const struct field *field, const char *text, void *target,
                         struct berth_error *error)
{
    static const struct choice spellings[] = {
        {"true", true},
        {"True", true},
        {"TRUE", true},
        {"false", false},
        {"False", false},
        {"FALSE", false},
        {0},
    };

    (void)field;
    for (const struct choice *spelling = spellings; spelling->name != NULL; spelling++) {
        if (strcmp(spelling->name, text) == 0) {
            *(bool *)target = spelling->value;
            return 0;
        }
    }
    return error_set(error, BERTH_ERROR_SYNTAX, "expected true or false, got %s", quote(text).text);
}

static int require_list(const struct field_reading *reading, const struct field *field,
                        const struct document_node *node)
{
    if (node->kind == NODE_LIST)
        return 0;
    return document_error(reading->document, node, reading->error, BERTH_ERROR_SYNTAX,
                          "%s: expected a list, got %s", field->name,
                          document_node_describe(node).text);
}

int field_require_list(const struct field_reading *reading, const struct field *field,
                       const struct document_node *node, const char *of, size_t max)
{
    if (node->kind != NODE_LIST)
        return document_error(reading->document, node, reading->error, BERTH_ERROR_SYNTAX,
                              "%s: expected a list of %s, got %s", field->name, of,
                              document_node_describe(node).text);
    if (node->count > max)
        return document_error(reading->document, node, reading->error, BERTH_ERROR_LIMIT,
                              "%s: expected at most %zu %s, got %zu", field->name, max, of,
                              node->count);
    return 0;
}

static int read_texts(const struct field_reading *reading, const struct field *field,
                      const struct document_node *node, void *target)
{
    struct string_list *list = target;
    int code = require_list(reading, field, node);

    for (size_t i = 0; i < node->count && code == 0; i++) {
        char **place = vector_append(list);

        code = place == NULL ? error_set_memory(reading->error)
                             : field_read(reading, &field_text, field, node->items[i], place);
    }
    return code;
}

static int read_record(const struct field_reading *reading, const struct field *field,
                       const struct document_node *node, void *target)
{
    return field_read_record(reading, field->record, node, target);
}

static int read_records(const struct field_reading *reading, const struct field *field,
                        const struct document_node *node, void *target)
{
    int code = require_list(reading, field, node);

    for (size_t i = 0; i < node->count && code == 0; i++) {
        void *item = field->append(target);

        code = item == NULL ? error_set_memory(reading->error)
                            : field_read_record(reading, field->record, node->items[i], item);
    }
    return code;
}

const struct field_type field_text = {.wanted = "a text", .parse = parse_text};
const struct field_type field_number = {
    .wanted = "a whole number", .bare = true, .parse = parse_number};
const struct field_type field_number32 = {
    .wanted = "a whole number", .bare = true, .parse = parse_number32};
const struct field_type field_size = {.wanted = "a size such as 8GiB", .parse = parse_size};
const struct field_type field_duration = {
    .wanted = "a duration such as 90s or 1h30m",
    .parse = parse_duration,
};
const struct field_type field_choice = {.read = read_choice};
const struct field_type field_boolean = {
    .wanted = "true or false", .bare = true, .parse = parse_boolean};
const struct field_type field_texts = {.read = read_texts};
const struct field_type field_record = {.read = read_record};
const struct field_type field_records = {.read = read_records};
