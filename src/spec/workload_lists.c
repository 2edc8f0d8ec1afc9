/* SPDX-License-Identifier: Apache-2.0
 *
 * Types of values in spec files: device ids, directories and commands.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/string_list.h"
#include "base/text/quote.h"
#include "model/machine/device_id.h"
#include "spec/workload_types.h"

/* ---- Device ids ---- */

static int parse_ids(const struct field *field, const char *text, void *target,
                     struct berth_error *error)
{
    (void)field;
    if (strlen(text) > WORKLOAD_IDS_MAX)
        return error_set(error, BERTH_ERROR_RANGE,
                         "expected a text of at most %d bytes (or a list), got %zu",
                         WORKLOAD_IDS_MAX, strlen(text));
    return device_id_list_parse(target, text, error);
}

static const char ids_wanted[] = "device ids such as nvidia0,nvidia2, or a list of them";

static const struct field_type type_ids = {
    .wanted = ids_wanted,
    .parse = parse_ids,
};

static int parse_id(const struct field *field, const char *text, void *target,
                    struct berth_error *error)
{
    struct device_id_list *list = target;
    struct device_id *place;
    struct device_id id;
    int code = device_id_parse(text, &id, error);

    (void)field;
    if (code < 0 || device_id_list_has(list, id))
        return code;
    place = vector_append(list);
    if (place == NULL)
        return error_set_memory(error);
    *place = id;
    return 0;
}

static const struct field_type type_id = {
    .wanted = "a device id such as nvidia0",
    .parse = parse_id,
};

static int read_ids(const struct field_reading *reading, const struct field *field,
                    const struct document_node *node, void *target)
{
    int code;

    if (node->kind == NODE_SCALAR)
        return field_read(reading, &type_ids, field, node, target);
    if (node->kind == NODE_MAPPING || node->count == 0)
        return document_error(reading->document, node, reading->error, BERTH_ERROR_SYNTAX,
                              "%s: expected %s, got %s", field->name, type_ids.wanted,
                              document_node_describe(node).text);
    code = field_require_list(reading, field, node, "device ids", DEVICE_ID_LIST_MAX);
    for (size_t i = 0; i < node->count && code == 0; i++)
        code = field_read(reading, &type_id, field, node->items[i], target);
    return code;
}

const struct field_type workload_device_ids = {
    .wanted = ids_wanted,
    .read = read_ids,
};

/* ---- Directories ---- */

static int parse_directory(const struct field *field, const char *text, void *target,
                           struct berth_error *error)
{
    if (text[0] != '/' || strlen(text) > field->max)
        return error_set(error, BERTH_ERROR_INVALID,
                         "expected an absolute path of at most %zu bytes, got %s",
                         (size_t)field->max, quote(text).text);
    return field_text.parse(field, text, target, error);
}

const struct field_type workload_directory = {
    .wanted = "an absolute path",
    .parse = parse_directory,
};

/* ---- Commands ---- */

static int parse_word(const struct field *field, const char *text, void *target,
                      struct berth_error *error)
{
    struct string_list *words = target;
    size_t length = strlen(text);

    (void)field;
    if (words->count == 0 && length == 0)
        return error_set(error, BERTH_ERROR_RANGE, "expected a program, got an empty text");
    if (length > WORKLOAD_ARGUMENT_MAX)
        return error_set(error, BERTH_ERROR_RANGE,
                         "expected words of at most %d bytes, got one of %zu",
                         WORKLOAD_ARGUMENT_MAX, length);
    return string_list_append(words, text) < 0 ? error_set_memory(error) : 0;
}

static const struct field_type type_word = {.wanted = "a word", .parse = parse_word};

static int read_command(const struct field_reading *reading, const struct field *field,
                        const struct document_node *node, void *target)
{
    int code;

    if (node->kind == NODE_SCALAR)
        return field_read(reading, &type_word, field, node, target);
    if (node->kind == NODE_MAPPING || node->count == 0)
        return document_error(reading->document, node, reading->error, BERTH_ERROR_SYNTAX,
                              "%s: expected a program or a list of words, got %s", field->name,
                              document_node_describe(node).text);
    code = field_require_list(reading, field, node, "words", WORKLOAD_ARGUMENTS_MAX);
    for (size_t i = 0; i < node->count && code == 0; i++)
        code = field_read(reading, &type_word, field, node->items[i], target);
    return code;
}

const struct field_type workload_command = {
    .wanted = "a program or a list of words",
    .read = read_command,
};
