/* SPDX-License-Identifier: Apache-2.0 */
#include "schema.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/text/quantity.h"
#include "base/vector.h"
#include "schema_types.h"

/* ---- Values ---- */

static bool is_whole(const char *text, uint64_t *ret_number)
{
    return quantity_parse_number(text, 0, UINT64_MAX, ret_number, NULL) == 0;
}

/* Writes a plain scalar as YAML reads it. Handles only the notations that the tables use. */
static void write_plain(struct json *json, const char *text)
{
    enum { DECIMALS = 6 };
    uint64_t number;

    if (is_whole(text, &number))
        json_unsigned(json, number);
    else if (quantity_parse_decimal(text, DECIMALS, INT64_MAX, &number, NULL) == 0)
        json_decimal(json, (int64_t)number, DECIMALS);
    else if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        json_bool(json, text[0] == 't');
    else
        json_string(json, text);
}

static void write_node(struct json *json, const struct document_node *node)
{
    if (node->kind == NODE_LIST) {
        json_array_begin(json);
        for (size_t i = 0; i < node->count; i++)
            write_node(json, node->items[i]);
        json_array_end(json);
    } else if (node->kind == NODE_MAPPING) {
        json_object_begin(json);
        for (size_t i = 0; i + 1 < node->count; i += 2) {
            json_key(json, node->items[i]->text);
            write_node(json, node->items[i + 1]);
        }
        json_object_end(json);
    } else if (node->quoted) {
        json_string(json, node->text);
    } else {
        write_plain(json, node->text);
    }
}

void schema_write_value(struct json *json, const char *text)
{
    struct document document;
    int code = document_parse(&document, "", text, strlen(text), NULL);

    if (code < 0) {
        assert(code == BERTH_ERROR_MEMORY);
        json->text->failed = true;
        json_null(json);
        return;
    }
    write_node(json, document.root);
    document_finish(&document);
}

/* ---- Conditions ---- */

/* Returns whether the value is a boolean in any of YAML's spellings, and which. */
static bool is_boolean(const char *value, bool *ret_truth)
{
    *ret_truth = strcasecmp(value, "true") == 0;
    return *ret_truth || strcasecmp(value, "false") == 0;
}

/* Writes the values as texts and, where possible, as numbers without quotes. Booleans are never
 * quoted, and equal in all spellings. */
static void write_enum(struct json *json, const struct condition *condition, bool or_null)
{
    bool written[2] = {false, false};

    json_key(json, "enum");
    json_array_begin(json);
    if (or_null)
        json_null(json);
    for (const char *const *value = condition->values; *value != NULL; value++) {
        uint64_t number;
        bool truth;

        if (is_boolean(*value, &truth)) {
            if (!written[truth])
                json_bool(json, truth);
            written[truth] = true;
            continue;
        }
        json_string(json, *value);
        if (is_whole(*value, &number))
            json_unsigned(json, number);
    }
    json_array_end(json);
}

/* Writes the members for a present value. */
static void write_test(struct json *json, const struct condition *condition)
{
    if (condition->test == CONDITION_ONE_OF || condition->test == CONDITION_NOT_GIVEN_AS) {
        write_enum(json, condition, false);
        return;
    }
    json_key(json, "not");
    json_object_begin(json);
    if (condition->test == CONDITION_ANOTHER)
        write_enum(json, condition, true);
    else
        schema_types_write(json, false, (const char *const[]){"null", NULL});
    json_object_end(json);
}

/* Writes the members for an object in which the path leads to a value that passes the test. */
static void write_path(struct json *json, const char *path, const struct condition *condition)
{
    size_t length = strcspn(path, ".");
    char name[64];

    assert(length < sizeof(name));
    memcpy(name, path, length);
    name[length] = '\0';
    json_string_member(json, "type", "object");
    json_key(json, "required");
    json_array_begin(json);
    json_string(json, name);
    json_array_end(json);
    json_key(json, "properties");
    json_object_begin(json);
    json_key(json, name);
    json_object_begin(json);
    if (path[length] == '.')
        write_path(json, path + length + 1, condition);
    else
        write_test(json, condition);
    json_object_end(json);
    json_object_end(json);
}

/* Returns the rest of a path that leads into the movable record ("count" for "gpu.count"), or NULL
 * for any other path. */
static const char *path_within(const struct movable *movable, const char *path)
{
    size_t length = strlen(movable->path);

    return strncmp(path, movable->path, length) == 0 && path[length] == '.' ? path + length + 1
                                                                            : NULL;
}

/* Writes the members for an object that passes the condition, with the movable record in either
 * place. */
static void write_places(struct json *json, const struct movable *movable,
                         const struct condition *condition)
{
    const char *rest = path_within(movable, condition->path);
    const char *places[] = {movable->path, movable->elsewhere};

    if (rest == NULL) {
        write_path(json, condition->path, condition);
        return;
    }
    json_key(json, "anyOf");
    json_array_begin(json);
    for (size_t i = 0; i < 2; i++) {
        char path[128];
        int length = snprintf(path, sizeof(path), "%s.%s", places[i], rest);

        assert(length > 0 && (size_t)length < sizeof(path));
        json_object_begin(json);
        write_path(json, path, condition);
        json_object_end(json);
    }
    json_array_end(json);
}

/* Writes a condition on the whole file or, if `inside`, on the movable record. */
static void write_condition(struct json *json, const struct movable *movable, bool inside,
                            const struct condition *condition)
{
    bool turned =
        condition->test == CONDITION_LEFT_OUT || condition->test == CONDITION_NOT_GIVEN_AS;

    json_object_begin(json);
    if (turned) {
        json_key(json, "not");
        json_object_begin(json);
    }
    if (inside)
        write_path(json, path_within(movable, condition->path), condition);
    else
        write_places(json, movable, condition);
    if (turned)
        json_object_end(json);
    json_object_end(json);
}

/* Returns whether all conditions are about fields of the movable record. */
static bool is_inside(const struct contradiction *row, const struct movable *movable)
{
    for (size_t i = 0; i < CONDITIONS_MAX && row->conditions[i].test != CONDITION_NONE; i++) {
        if (path_within(movable, row->conditions[i].path) == NULL)
            return false;
    }
    return true;
}

static void write_contradiction(struct json *json, const struct movable *movable, bool inside,
                                const struct contradiction *row)
{
    json_object_begin(json);
    json_string_member(json, "description", row->sentence);
    json_key(json, "not");
    json_object_begin(json);
    json_string_member(json, "type", "object");
    json_key(json, "allOf");
    json_array_begin(json);
    for (size_t i = 0; i < CONDITIONS_MAX && row->conditions[i].test != CONDITION_NONE; i++)
        write_condition(json, movable, inside, &row->conditions[i]);
    json_array_end(json);
    json_object_end(json);
    json_object_end(json);
}

/* Writes the contradictions inside the movable record, or all others. */
static void write_contradictions(struct json *json, const struct schema_source *source, bool inside)
{
    json_key(json, "allOf");
    json_array_begin(json);
    for (const struct contradiction *row = source->contradictions; row->sentence != NULL; row++) {
        if (is_inside(row, source->movable) == inside)
            write_contradiction(json, source->movable, inside, row);
    }
    json_array_end(json);
}

/* ---- Records ---- */

/* Returns whether the default is a value and not a phrase. */
static bool is_value(const struct field *field, const char *default_text)
{
    uint64_t number;

    for (const struct choice *choice = field->choices; choice != NULL && choice->name != NULL;
         choice++) {
        if (strcmp(choice->name, default_text) == 0)
            return true;
    }
    return is_whole(default_text, &number) || strcmp(default_text, "true") == 0 ||
           strcmp(default_text, "false") == 0;
}

/* Writes the description of the field, with its default if that is not a value. */
static void write_description(struct json *json, const struct field *field)
{
    struct text description = {0};

    assert(field->help != NULL);
    text_append(&description, field->help);
    if (field->default_text != NULL && !is_value(field, field->default_text))
        text_append_format(&description, " When left out: %s.", field->default_text);
    json_string_member(json, "description", text_string(&description));
    json->text->failed = json->text->failed || text_failed(&description);
    text_finish(&description);
}

static void write_field(struct json *json, const struct field *field)
{
    json_key(json, field->name);
    json_object_begin(json);
    write_description(json, field);
    if (field->record != NULL) {
        char reference[80];
        int length = snprintf(reference, sizeof(reference), "#/$defs/%s", field->name);

        assert(length > 0 && (size_t)length < sizeof(reference));
        json_string_member(json, "$ref", reference);
    } else {
        schema_types_write_field(field, !field->required, json);
    }
    if (field->default_text != NULL && is_value(field, field->default_text)) {
        json_key(json, "default");
        schema_write_value(json, field->default_text);
    }
    if (field->example != NULL) {
        json_key(json, "examples");
        json_array_begin(json);
        schema_write_value(json, field->example);
        json_array_end(json);
    }
    json_object_end(json);
}

static void write_required(struct json *json, const struct record *record)
{
    bool any = false;

    for (size_t i = 0; i < record->field_count; i++) {
        if (!record->fields[i].required)
            continue;
        if (!any) {
            json_key(json, "required");
            json_array_begin(json);
        }
        any = true;
        json_string(json, record->fields[i].name);
    }
    if (any)
        json_array_end(json);
}

static void write_record(struct json *json, const struct record *record, bool or_null)
{
    schema_types_write(json, or_null, (const char *const[]){"object", NULL});
    write_required(json, record);
    json_key(json, "additionalProperties");
    json_bool(json, false);
    json_key(json, "properties");
    json_object_begin(json);
    for (size_t i = 0; i < record->field_count; i++)
        write_field(json, &record->fields[i]);
    json_object_end(json);
}

/* ---- Definitions ---- */

/* A list of nested records, each once. */
struct definitions {
    VECTOR_OF(const struct field *);
    bool failed;
};

static bool is_defined(const struct definitions *definitions, const struct field *field)
{
    const struct field *const *known;

    vector_for_each (known, definitions) {
        if (strcmp((*known)->name, field->name) == 0) {
            assert((*known)->record == field->record && (*known)->required == field->required);
            return true;
        }
    }
    return false;
}

static void collect_definitions(struct definitions *definitions, const struct record *record)
{
    for (size_t i = 0; i < record->field_count && !definitions->failed; i++) {
        const struct field *field = &record->fields[i];
        const struct field **place;

        if (field->record == NULL || is_defined(definitions, field))
            continue;
        place = vector_append(definitions);
        definitions->failed = place == NULL;
        if (place == NULL)
            return;
        *place = field;
        collect_definitions(definitions, field->record);
    }
}

static void write_definitions(struct json *json, const struct schema_source *source)
{
    struct definitions definitions = {0};
    const struct field **field;

    collect_definitions(&definitions, source->record);
    json_key(json, "$defs");
    json_object_begin(json);
    vector_for_each (field, &definitions) {
        json_key(json, (*field)->name);
        json_object_begin(json);
        json_string_member(json, "title", (*field)->name);
        write_record(json, (*field)->record, !(*field)->required);
        if (strcmp((*field)->name, source->movable->path) == 0)
            write_contradictions(json, source, true);
        json_object_end(json);
    }
    json_object_end(json);
    json->text->failed = json->text->failed || definitions.failed;
    vector_finish(&definitions);
}

void schema_write(struct json *json, const struct schema_source *source)
{
    json_object_begin(json);
    json_string_member(json, "$schema", "https://json-schema.org/draft/2020-12/schema");
    json_string_member(json, "$id", source->id);
    json_string_member(json, "title", source->title);
    json_string_member(json, "description", source->description);
    write_record(json, source->record, false);
    write_contradictions(json, source, false);
    write_definitions(json, source);
    json_object_end(json);
}
