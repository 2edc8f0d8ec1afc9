/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/document.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/error.h"
#include "base/string_list.h"
#include "base/system/file.h"
#include "base/text/quantity.h"
#include "base/text/quote.h"
#include "spec/document_builder.h"

/* The state of the YAML parser. */
struct yaml_builder {
    struct document_builder to;
    size_t aliases;
    bool ended; /* the document is complete */
    struct string_list anchors;
    struct document_node_list anchored; /* the node of each name */
};

/* The text that libyaml reads. */
struct yaml_source {
    const yaml_parser_t *parser;
    const char *text;
    size_t length;
    size_t given;
    bool stopped; /* it has too many %TAG lines */
};

static struct text_position position_of(yaml_mark_t mark)
{
    return (struct text_position){.line = mark.line + 1, .column = mark.column + 1};
}

#define fail_at(builder, mark, ...) \
    document_builder_fail(&(builder)->to, position_of(mark), __VA_ARGS__)

static int fail_directives(const struct yaml_builder *builder, yaml_mark_t mark)
{
    return fail_at(builder, mark, BERTH_ERROR_LIMIT, "expected at most %d %%TAG lines, got more",
                   DOCUMENT_DIRECTIVES_MAX);
}

/* Records the node's anchor. Refuses tags, which have no meaning here. */
static int read_properties(struct yaml_builder *builder, struct document_node *node,
                           const yaml_char_t *anchor, const yaml_char_t *tag, yaml_mark_t mark)
{
    struct document_node **place;

    if (tag != NULL && strcmp((const char *)tag, "!") != 0)
        return fail_at(builder, mark, BERTH_ERROR_SYNTAX,
                       "expected a value without a YAML tag, got %s",
                       quote((const char *)tag).text);
    if (anchor == NULL)
        return 0;
    if (builder->anchors.count == DOCUMENT_ANCHORS_MAX)
        return fail_at(builder, mark, BERTH_ERROR_LIMIT, "expected at most %d anchors, got more",
                       DOCUMENT_ANCHORS_MAX);
    if (string_list_append(&builder->anchors, (const char *)anchor) < 0)
        return error_set_memory(builder->to.error);
    place = vector_append(&builder->anchored);
    if (place == NULL)
        return error_set_memory(builder->to.error);
    *place = node;
    return 0;
}

static int add_scalar(struct yaml_builder *builder, const yaml_event_t *event)
{
    struct document_node *node = document_builder_create_scalar(
        &builder->to, position_of(event->start_mark), (const char *)event->data.scalar.value,
        event->data.scalar.length, event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE);
    int code;

    if (node == NULL)
        return error_set_memory(builder->to.error);
    code = read_properties(builder, node, event->data.scalar.anchor, event->data.scalar.tag,
                           event->start_mark);
    return code < 0 ? code
                    : document_builder_attach(&builder->to, node, position_of(event->start_mark));
}

static int open_collection(struct yaml_builder *builder, enum node_kind kind,
                           const yaml_char_t *anchor, const yaml_char_t *tag, yaml_mark_t mark)
{
    struct document_node *node =
        document_builder_create_node(&builder->to, kind, position_of(mark));
    int code;

    if (node == NULL)
        return error_set_memory(builder->to.error);
    code = read_properties(builder, node, anchor, tag, mark);
    if (code == 0)
        code = document_builder_attach(&builder->to, node, position_of(mark));
    if (code == 0)
        document_builder_open(&builder->to, node);
    return code;
}

/* Returns the node that an alias refers to: the last one with this anchor; NULL: none. */
static const struct document_node *find_anchored(const struct yaml_builder *builder,
                                                 const char *name)
{
    for (size_t i = builder->anchors.count; i > 0; i--) {
        if (strcmp(builder->anchors.items[i - 1], name) == 0)
            return builder->anchored.items[i - 1];
    }
    return NULL;
}

static int add_alias(struct yaml_builder *builder, const yaml_event_t *event)
{
    const char *name = (const char *)event->data.alias.anchor;
    const struct document_node *target = find_anchored(builder, name);
    struct document_node *node;

    if (++builder->aliases > DOCUMENT_ALIASES_MAX)
        return fail_at(builder, event->start_mark, BERTH_ERROR_LIMIT,
                       "expected at most %d aliases, got more", DOCUMENT_ALIASES_MAX);
    if (target == NULL)
        return fail_at(builder, event->start_mark, BERTH_ERROR_SYNTAX,
                       "expected an anchor before its alias, got none for %s", quote(name).text);
    if (target->open)
        return fail_at(builder, event->start_mark, BERTH_ERROR_SYNTAX,
                       "expected an alias to a complete value, got %s within itself",
                       quote(name).text);
    node = document_builder_create_node(&builder->to, target->kind, position_of(event->start_mark));
    if (node == NULL)
        return error_set_memory(builder->to.error);
    *node = (struct document_node){
        .kind = target->kind,
        .quoted = target->quoted,
        .is_alias = true,
        .line = node->line,
        .column = node->column,
        .height = target->height,
        .weight = target->weight,
        .bytes = target->bytes,
        .text = target->text,
        .length = target->length,
        .items = target->items,
        .count = target->count,
    };
    return document_builder_attach(&builder->to, node, position_of(event->start_mark));
}

/* Allows one document only, with a limited number of directives before it. */
static int start_document(const struct yaml_builder *builder, const yaml_event_t *event)
{
    if (builder->ended)
        return fail_at(builder, event->start_mark, BERTH_ERROR_SYNTAX,
                       "expected one document, got another");
    if (event->data.document_start.tag_directives.end -
            event->data.document_start.tag_directives.start >
        DOCUMENT_DIRECTIVES_MAX)
        return fail_directives(builder, event->start_mark);
    return 0;
}

static int handle_event(struct yaml_builder *builder, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return start_document(builder, event);
    case YAML_DOCUMENT_END_EVENT:
        builder->ended = true;
        return 0;
    case YAML_SCALAR_EVENT:
        return add_scalar(builder, event);
    case YAML_ALIAS_EVENT:
        return add_alias(builder, event);
    case YAML_SEQUENCE_START_EVENT:
        return open_collection(builder, NODE_LIST, event->data.sequence_start.anchor,
                               event->data.sequence_start.tag, event->start_mark);
    case YAML_MAPPING_START_EVENT:
        return open_collection(builder, NODE_MAPPING, event->data.mapping_start.anchor,
                               event->data.mapping_start.tag, event->start_mark);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        document_builder_close(&builder->to);
        return 0;
    default:
        return 0;
    }
}

/* The tag directives that libyaml adds itself: ! and !!. */
enum { OWN_DIRECTIVES = 2 };

/* Gives libyaml more text, which it requests every few KiB. Stops a text with many %TAG directives:
 * libyaml compares each with all others, which takes quadratic time. */
static int supply_text(void *context, unsigned char *buffer, size_t size, size_t *ret_given)
{
    struct yaml_source *source = context;
    const yaml_parser_t *parser = source->parser;
    size_t left = source->length - source->given;

    source->stopped = parser->tag_directives.top - parser->tag_directives.start >
                      DOCUMENT_DIRECTIVES_MAX + OWN_DIRECTIVES;
    *ret_given = left < size ? left : size;
    if (*ret_given > 0)
        memcpy(buffer, source->text + source->given, *ret_given);
    source->given += *ret_given;
    return !source->stopped;
}

/* Finds the line and column of a byte: libyaml reports only the byte of a reader error. */
static yaml_mark_t mark_of_byte(const struct yaml_source *source, size_t offset)
{
    yaml_mark_t mark = {0};
    size_t i = source->length >= 3 && memcmp(source->text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;

    for (; i < offset && i < source->length; i++) {
        unsigned char byte = (unsigned char)source->text[i];

        if (byte == '\n' ||
            (byte == '\r' && i + 1 < source->length && source->text[i + 1] != '\n')) {
            mark.line++;
            mark.column = 0;
        } else if ((byte & 0xC0) != 0x80) { /* the first byte of a character */
            mark.column++;
        }
    }
    return mark;
}

/* Reports text that is not UTF-8 or UTF-16, or a character that YAML does not allow. */
static int fail_reader(const struct yaml_builder *builder, const struct yaml_source *source)
{
    const yaml_parser_t *parser = source->parser;
    char found[32] = "";

    if (parser->problem_value >= 0)
        snprintf(found, sizeof(found), ", got 0x%02X", (unsigned)parser->problem_value);
    if (parser->encoding != YAML_UTF8_ENCODING)
        return error_set(builder->to.error, BERTH_ERROR_SYNTAX,
                         "%s: byte %zu: expected UTF-16: %s%s", builder->to.document->file,
                         parser->problem_offset + 1, parser->problem, found);
    return fail_at(builder, mark_of_byte(source, parser->problem_offset), BERTH_ERROR_SYNTAX,
                   "expected YAML or JSON in UTF-8: %s%s", parser->problem, found);
}

static int fail_parser(const struct yaml_builder *builder, const struct yaml_source *source)
{
    const yaml_parser_t *parser = source->parser;
    const char *problem = parser->problem == NULL ? "text that is not YAML" : parser->problem;

    if (parser->error == YAML_MEMORY_ERROR)
        return error_set_memory(builder->to.error);
    if (source->stopped)
        return fail_directives(builder, parser->mark);
    if (parser->error == YAML_READER_ERROR)
        return fail_reader(builder, source);
    if (parser->buffer.pointer != NULL && *parser->buffer.pointer == '\t' &&
        strstr(problem, "cannot start any token") != NULL)
        problem = "use spaces to indent, not a tab";
    /* Also name the start of the construct: the problem may be found only much later. */
    if (parser->context != NULL && parser->context_mark.index < parser->problem_mark.index)
        return fail_at(builder, parser->problem_mark, BERTH_ERROR_SYNTAX,
                       "expected YAML or JSON: %s (%s from %zu:%zu on)", problem, parser->context,
                       parser->context_mark.line + 1, parser->context_mark.column + 1);
    return fail_at(builder, parser->problem_mark, BERTH_ERROR_SYNTAX, "expected YAML or JSON: %s",
                   problem);
}

static int handle_events(struct yaml_builder *builder, yaml_parser_t *parser,
                         const struct yaml_source *source)
{
    bool done = false;
    int code = 0;

    while (!done && code == 0) {
        yaml_event_t event;

        if (!yaml_parser_parse(parser, &event))
            return fail_parser(builder, source);
        done = event.type == YAML_STREAM_END_EVENT;
        code = handle_event(builder, &event);
        yaml_event_delete(&event);
    }
    return code;
}

static int read_yaml(struct document *document, const char *text, size_t length,
                     struct berth_error *error)
{
    struct yaml_builder builder = {.to = {.document = document, .error = error}};
    yaml_parser_t parser;
    struct yaml_source source = {.parser = &parser, .text = text, .length = length};
    int code;

    if (!yaml_parser_initialize(&parser))
        return error_set_memory(error);
    yaml_parser_set_input(&parser, supply_text, &source);
    code = handle_events(&builder, &parser, &source);
    yaml_parser_delete(&parser);
    string_list_finish(&builder.anchors);
    vector_finish(&builder.anchored);
    return code;
}

int document_parse(struct document *ret_document, const char *file, const char *text, size_t length,
                   struct berth_error *error)
{
    struct document document = {.file = file};
    struct document_builder builder = {.document = &document, .error = error};
    int code;

    if (length > DOCUMENT_BYTES_MAX)
        return error_set(error, BERTH_ERROR_LIMIT, "cannot read %s: larger than %s", file,
                         quantity_format_size(DOCUMENT_BYTES_MAX).text);
    code = document_json_read(&builder, text, length);
    if (code == 0) { /* not JSON, so it is YAML or an error */
        document_finish(&document);
        code = read_yaml(&document, text, length, error);
    }
    if (code < 0) {
        document_finish(&document);
        return code;
    }
    *ret_document = document;
    return 0;
}

int document_read(struct document *ret_document, const char *path, struct berth_error *error)
{
    struct text text = {0};
    int code = file_read(path, DOCUMENT_BYTES_MAX, &text, error);

    if (code == 0)
        code = document_parse(ret_document, path, text_string(&text), text.length, error);
    text_finish(&text);
    return code;
}

void document_finish(struct document *document)
{
    struct document_node **node;

    vector_for_each (node, &document->nodes) {
        if (!(*node)->is_alias) {
            free((*node)->text);
            free((*node)->items);
        }
        free(*node);
    }
    vector_finish(&document->nodes);
    document->root = NULL;
}

int document_wrap(const struct document *document, const struct document_node *node,
                  struct berth_error *error, int code)
{
    return error_wrap(error, code, "%s:%u:%u", document->file, node->line, node->column);
}

int document_error(const struct document *document, const struct document_node *node,
                   struct berth_error *error, int code, const char *format, ...)
{
    char sentence[BERTH_ERROR_MESSAGE_SIZE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sentence, sizeof(sentence), format, arguments);
    va_end(arguments);
    error_set(error, code, "%s", sentence);
    return document_wrap(document, node, error, code);
}

bool document_node_is_null(const struct document_node *node)
{
    return node->kind == NODE_SCALAR && !node->quoted &&
           (strcmp(node->text, "") == 0 || strcmp(node->text, "~") == 0 ||
            strcmp(node->text, "null") == 0 || strcmp(node->text, "Null") == 0 ||
            strcmp(node->text, "NULL") == 0);
}

struct document_node_text document_node_describe(const struct document_node *node)
{
    struct document_node_text words;

    if (node->kind == NODE_LIST)
        snprintf(words.text, sizeof(words.text), "a list of %zu", node->count);
    else if (node->kind == NODE_MAPPING)
        snprintf(words.text, sizeof(words.text), "a mapping");
    else if (document_node_is_null(node))
        snprintf(words.text, sizeof(words.text), "nothing");
    else
        snprintf(words.text, sizeof(words.text), "%s", quote_bytes(node->text, node->length).text);
    return words;
}
