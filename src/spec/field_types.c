/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of values that every file format uses.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/quantity.h"
#include "base/string_list.h"
#include "model/optional.h"
#include "spec/field.h"

enum { TEXT_LONGEST = 255 };

/* The scalar's text once its length is right. */
static int take_text(const struct reading *reading, const struct field *field,
                     const struct node *node, const char **ret_text)
{
    size_t longest = field->most == 0 ? TEXT_LONGEST : (size_t)field->most;
    int code = field_scalar(reading, field, node, "a text", ret_text);

    if (code < 0)
        return code;
    if (node->length == 0 || node->length > longest)
        return document_error(reading->document, node, reading->error, BERTH_ERROR_RANGE,
                              "%s: wanted a text of 1 to %zu bytes, found %zu", field->name,
                              longest, node->length);
    return 0;
}

static int read_text(const struct reading *reading, const struct field *field,
                     const struct node *node, void *target)
{
    const char *text;
    int code = take_text(reading, field, node, &text);
    char *copy;

    if (code < 0)
        return code;
    copy = strdup(text);
    if (copy == NULL)
        return error_set_memory(reading->error);
    *(char **)target = copy;
    return 0;
}

static int take_number(const struct reading *reading, const struct field *field,
                       const struct node *node, uint64_t *ret_number)
{
    const char *text;
    int code = field_scalar(reading, field, node, "a whole number", &text);

    if (code < 0)
        return code;
    if (node->quoted)
        return document_error(reading->document, node, reading->error, BERTH_ERROR_SYNTAX,
                              "%s: wanted a whole number, found the text %s (leave out the quotes)",
                              field->name, node_describe(node).text);
    code = quantity_parse_number(text, field->least, field->most, ret_number, reading->error);
    return code < 0 ? field_wrap(reading, field, node, code) : 0;
}

static int read_number(const struct reading *reading, const struct field *field,
                       const struct node *node, void *target)
{
    uint64_t number = 0;
    int code = take_number(reading, field, node, &number);

    if (code == 0)
        *(struct optional_number *)target = optional_number_of(number);
    return code;
}

static int read_number32(const struct reading *reading, const struct field *field,
                         const struct node *node, void *target)
{
    uint64_t number = 0;
    int code = take_number(reading, field, node, &number);

    if (code == 0)
        *(uint32_t *)target = (uint32_t)number;
    return code;
}

static int read_size(const struct reading *reading, const struct field *field,
                     const struct node *node, void *target)
{
    uint64_t most = field->most == 0 ? INT64_MAX : field->most;
    const char *text;
    uint64_t size;
    int code = field_scalar(reading, field, node, "a size such as 8GiB", &text);

    if (code < 0)
        return code;
    code = quantity_parse_size(text, &size, reading->error);
    if (code == 0 && (size < field->least || size > most))
        code = error_set(reading->error, BERTH_ERROR_RANGE, "wanted a size from %s to %s, found %s",
                         quantity_format_size(field->least).text, quantity_format_size(most).text,
                         node_describe(node).text);
    if (code < 0)
        return field_wrap(reading, field, node, code);
    *(struct optional_number *)target = optional_number_of(size);
    return 0;
}

static int read_choice(const struct reading *reading, const struct field *field,
                       const struct node *node, void *target)
{
    struct text wanted = {0};
    const char *text;
    int code;

    if (node->kind == NODE_SCALAR && strlen(node->text) == node->length) {
        code = choice_parse(field->choices, node->text, target, reading->error);
        return code < 0 ? field_wrap(reading, field, node, code) : 0;
    }
    text_append(&wanted, "one of ");
    choice_list(&wanted, field->choices, ", ");
    code = text_failed(&wanted) ? error_set_memory(reading->error)
                                : field_scalar(reading, field, node, text_string(&wanted), &text);
    text_finish(&wanted);
    return code;
}

static int wanted_list(const struct reading *reading, const struct field *field,
                       const struct node *node)
{
    if (node->kind == NODE_LIST)
        return 0;
    return document_error(reading->document, node, reading->error, BERTH_ERROR_SYNTAX,
                          "%s: wanted a list, found %s", field->name, node_describe(node).text);
}

static int read_texts(const struct reading *reading, const struct field *field,
                      const struct node *node, void *target)
{
    int code = wanted_list(reading, field, node);

    for (size_t i = 0; i < node->count && code == 0; i++) {
        const char *text;

        code = take_text(reading, field, node->items[i], &text);
        if (code == 0 && string_list_append(target, text) < 0)
            code = error_set_memory(reading->error);
    }
    return code;
}

static int read_records(const struct reading *reading, const struct field *field,
                        const struct node *node, void *target)
{
    int code = wanted_list(reading, field, node);

    for (size_t i = 0; i < node->count && code == 0; i++) {
        void *item = field->append(target);

        code = item == NULL ? error_set_memory(reading->error)
                            : record_read(reading, field->record, node->items[i], item);
    }
    return code;
}

const struct field_type field_text = {.read = read_text};
const struct field_type field_number = {.read = read_number};
const struct field_type field_number32 = {.read = read_number32};
const struct field_type field_size = {.read = read_size};
const struct field_type field_choice = {.read = read_choice};
const struct field_type field_texts = {.read = read_texts};
const struct field_type field_records = {.read = read_records};
