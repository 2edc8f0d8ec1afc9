/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/field.h"

#include <string.h>

#include "base/bitset.h"
#include "base/error.h"
#include "base/text/quote.h"
#include "base/text/suggest.h"
#include "base/text/text.h"

static const struct field *find_field(const struct record *record, const struct document_node *key)
{
    for (size_t i = 0; i < record->field_count; i++) {
        const struct field *field = &record->fields[i];

        if (strlen(field->name) == key->length && memcmp(field->name, key->text, key->length) == 0)
            return field;
    }
    return NULL;
}

static int fail_unknown(const struct field_reading *reading, const struct record *record,
                        const struct document_node *key)
{
    struct suggestion nearest = {.wanted = key->text};
    struct text names = {0};
    int code;

    for (size_t i = 0; i < record->field_count; i++) {
        suggest_compare(&nearest, record->fields[i].name);
        text_append_format(&names, "%s%s", i == 0 ? "" : ", ", record->fields[i].name);
    }
    if (text_failed(&names))
        code = error_set_memory(reading->error);
    else if (nearest.best != NULL)
        code = document_error(reading->document, key, reading->error, BERTH_ERROR_SYNTAX,
                              "%s has no field %s, did you mean '%s'?", record->what,
                              quote_bytes(key->text, key->length).text, nearest.best);
    else
        code = document_error(reading->document, key, reading->error, BERTH_ERROR_SYNTAX,
                              "%s has no field %s, only %s", record->what,
                              quote_bytes(key->text, key->length).text, text_string(&names));
    text_finish(&names);
    return code;
}

static int read_pair(const struct field_reading *reading, const struct record *record,
                     const struct document_node *key, const struct document_node *value,
                     struct bitset *seen, void *target)
{
    const struct field *field;

    if (key->kind != NODE_SCALAR)
        return document_error(reading->document, key, reading->error, BERTH_ERROR_SYNTAX,
                              "expected the name of a field of %s, got %s", record->what,
                              document_node_describe(key).text);
    field = find_field(record, key);
    if (field == NULL)
        return fail_unknown(reading, record, key);
    if (bitset_has(seen, (size_t)(field - record->fields)))
        return document_error(reading->document, key, reading->error, BERTH_ERROR_SYNTAX,
                              "%s: given twice", field->name);
    bitset_add(seen, (size_t)(field - record->fields));
    if (!document_node_is_null(value))
        return field_read(reading, field->type, field, value, (char *)target + field->offset);
    if (field->required)
        return document_error(reading->document, value, reading->error, BERTH_ERROR_SYNTAX,
                              "%s: expected a value, got nothing", field->name);
    return 0;
}

static int read_pairs(const struct field_reading *reading, const struct record *record,
                      const struct document_node *node, struct bitset *seen, void *target)
{
    int code = 0;

    for (size_t i = 0; i + 1 < node->count && code == 0; i += 2)
        code = read_pair(reading, record, node->items[i], node->items[i + 1], seen, target);
    for (size_t i = 0; i < record->field_count && code == 0; i++) {
        if (record->fields[i].required && !bitset_has(seen, i))
            code = document_error(reading->document, node, reading->error, BERTH_ERROR_SYNTAX,
                                  "%s needs the field '%s'", record->what, record->fields[i].name);
    }
    if (code == 0 && record->check != NULL)
        code = record->check(reading, node, target);
    return code;
}

int field_read_record(const struct field_reading *reading, const struct record *record,
                      const struct document_node *node, void *target)
{
    struct bitset seen;
    int code;

    if (node->kind != NODE_MAPPING)
        return document_error(reading->document, node, reading->error, BERTH_ERROR_SYNTAX,
                              "expected %s with fields such as '%s', got %s", record->what,
                              record->fields[0].name, document_node_describe(node).text);
    if (bitset_init(&seen, record->field_count) < 0)
        return error_set_memory(reading->error);
    code = read_pairs(reading, record, node, &seen, target);
    bitset_finish(&seen);
    return code;
}

const struct document_node *field_record_value(const struct document_node *record, const char *name)
{
    for (size_t i = 0; i + 1 < record->count; i += 2) {
        if (strcmp(record->items[i]->text, name) == 0)
            return record->items[i + 1];
    }
    return record;
}

/* Puts the field's name and position before the parser's message. */
static int wrap_error(const struct field_reading *reading, const struct field *field,
                      const struct document_node *node, int code)
{
    if (code == BERTH_ERROR_MEMORY)
        return error_set_memory(reading->error);
    error_wrap(reading->error, code, "%s", field->name);
    return document_wrap(reading->document, node, reading->error, code);
}

static int read_scalar(const struct field_reading *reading, const struct field_type *type,
                       const struct field *field, const struct document_node *node, void *target)
{
    const char *found = "";
    int code;

    if (node->kind == NODE_SCALAR && !document_node_is_null(node)) {
        if (strlen(node->text) != node->length)
            found = " with a zero byte";
        else if (type->bare && node->quoted)
            found = " in quotes (leave them out)";
        else
            found = NULL;
    }
    if (found == NULL) {
        code = type->parse(field, node->text, target, reading->error);
        return code < 0 ? wrap_error(reading, field, node, code) : 0;
    }
    return document_error(reading->document, node, reading->error, BERTH_ERROR_SYNTAX,
                          "%s: expected %s, got %s%s", field->name, type->wanted,
                          document_node_describe(node).text, found);
}

int field_read(const struct field_reading *reading, const struct field_type *type,
               const struct field *field, const struct document_node *node, void *target)
{
    if (type->parse != NULL)
        return read_scalar(reading, type, field, node, target);
    return type->read(reading, field, node, target);
}
