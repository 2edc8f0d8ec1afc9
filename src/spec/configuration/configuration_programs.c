/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads names of programs and commands, and checks that the programs can be run.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/count.h"
#include "base/error.h"
#include "base/text/quantity.h"
#include "base/text/quote.h"
#include "spec/configuration/configuration_types.h"

/* The maximum length of a path or an argument, in bytes. */
enum { WORD_MAX = 4095 };

/* ---- Names ---- */

static int parse_name(const struct field *field, const char *text, void *target,
                      struct berth_error *error)
{
    if (strchr(text, '/') != NULL)
        return error_set(error, BERTH_ERROR_INVALID,
                         "expected the name of a program, got a path, %s", quote(text).text);
    return field_text.parse(field, text, target, error);
}

static const struct field_type type_name = {.wanted = "the name of a program", .parse = parse_name};

static int read_names(const struct field_reading *reading, const struct field *field,
                      const struct document_node *node, void *target)
{
    struct string_list *list = target;
    int code =
        field_require_list(reading, field, node, "names of programs", CONFIGURED_PROGRAMS_MAX);

    for (size_t i = 0; i < node->count && code == 0; i++) {
        char **name = vector_append(list);

        code = name == NULL ? error_set_memory(reading->error)
                            : field_read(reading, &type_name, field, node->items[i], name);
    }
    return code;
}

const struct field_type configuration_program_names = {.read = read_names};

/* ---- Commands ---- */

static int parse_switch(const struct field *field, const char *text, void *target,
                        struct berth_error *error)
{
    bool *is_on = target;

    (void)field;
    if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
        return error_set(error, BERTH_ERROR_INVALID, "expected yes or no, got %s",
                         quote(text).text);
    *is_on = strcmp(text, "yes") == 0;
    return 0;
}

const struct field_type configuration_switch = {.wanted = "yes or no", .parse = parse_switch};

static int parse_program(const struct field *field, const char *text, void *target,
                         struct berth_error *error)
{
    if (text[0] != '/')
        return error_set(error, BERTH_ERROR_INVALID, "expected an absolute path, got %s",
                         quote(text).text);
    return field_text.parse(field, text, target, error);
}

static const struct field_type type_program = {
    .wanted = "the path of a program",
    .parse = parse_program,
};

static int read_word(const struct field_reading *reading, const struct field *field,
                     const struct document_node *node, struct string_list *list)
{
    struct field row = {.name = field->name, .max = WORD_MAX};
    char **word = vector_append(list);

    if (word == NULL)
        return error_set_memory(reading->error);
    return field_read(reading, list->count == 1 ? &type_program : &field_text, &row, node, word);
}

static int read_program(const struct field_reading *reading, const struct field *field,
                        const struct document_node *node, void *target)
{
    struct field row = {.name = field->name, .max = WORD_MAX};

    return field_read(reading, &type_program, &row, node, target);
}

const struct field_type configuration_program = {.read = read_program};

static int read_command(const struct field_reading *reading, const struct field *field,
                        const struct document_node *node, void *target)
{
    int code;

    if (node->kind == NODE_SCALAR)
        return read_word(reading, field, node, target);
    if (node->kind == NODE_MAPPING || node->count == 0)
        return document_error(reading->document, node, reading->error, BERTH_ERROR_SYNTAX,
                              "%s: expected a program or a list of words, got %s", field->name,
                              document_node_describe(node).text);
    code = field_require_list(reading, field, node, "words", CONFIGURED_ARGUMENTS_MAX);
    for (size_t i = 0; i < node->count && code == 0; i++)
        code = read_word(reading, field, node->items[i], target);
    return code;
}

const struct field_type configuration_command = {.read = read_command};

static const struct field check_fields[] = {
    {"command", &configuration_command, .offset = offsetof(struct check_command, argv),
     .required = true},
    {"deadline", &field_duration, .offset = offsetof(struct check_command, deadline),
     .min = CHECK_DEADLINE_MIN, .max = CHECK_DEADLINE_MAX},
    {"rights", &configuration_switch, .offset = offsetof(struct check_command, may_signal)},
};

const struct record configuration_prolog = {
    .what = "prolog",
    .fields = check_fields,
    .field_count = COUNT(check_fields),
};

const struct record configuration_epilog = {
    .what = "epilog",
    .fields = check_fields,
    .field_count = COUNT(check_fields),
};

/* ---- Checks ---- */

const char *configuration_program_fault(const char *path)
{
    struct stat status;

    if (stat(path, &status) < 0)
        return errno == EACCES                       ? NULL
               : errno == ENOENT || errno == ENOTDIR ? "no such file"
                                                     : strerror(errno);
    if (S_ISDIR(status.st_mode))
        return "is a directory";
    if (!S_ISREG(status.st_mode))
        return "is not a file";
    return (status.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) == 0 ? "is not executable" : NULL;
}

/* Returns the node of the program in the command `key`, which must be valid; NULL: no command. */
static const struct document_node *find_program(const struct document_node *root, const char *key)
{
    const struct document_node *value = field_record_value(root, key);

    if (value == root || document_node_is_null(value))
        return NULL;
    if (value->kind == NODE_MAPPING)
        value = field_record_value(value, "command");
    return value->kind == NODE_LIST ? value->items[0] : value;
}

static int check_programs(const struct document *document, struct berth_error *error)
{
    static const char *const keys[] = {"mps_control", "prolog", "epilog", "notify"};

    if (document->root == NULL || document->root->kind != NODE_MAPPING)
        return 0;
    for (size_t i = 0; i < COUNT(keys); i++) {
        const struct document_node *program = find_program(document->root, keys[i]);
        const char *fault = program == NULL ? NULL : configuration_program_fault(program->text);

        if (fault != NULL)
            return document_error(document, program, error, BERTH_ERROR_INVALID, "%s: %s: %s",
                                  keys[i], program->text, fault);
    }
    return 0;
}

int configuration_check_programs(const char *path, struct berth_error *error)
{
    struct berth_error reason = BERTH_ERROR_INIT;
    struct document document;
    int code = path == NULL ? BERTH_ERROR_NOT_FOUND : document_read(&document, path, &reason);

    if (code == BERTH_ERROR_NOT_FOUND)
        return 0;
    if (code < 0)
        return error_set(error, code, "%s", reason.message);
    code = check_programs(&document, error);
    document_finish(&document);
    return code;
}
