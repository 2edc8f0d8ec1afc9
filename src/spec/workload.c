/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/workload.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/file.h"
#include "base/text/quote.h"
#include "base/text/suggest.h"
#include "base/text/utf8.h"

/* The value of `vendor` that allows several vendors in one replica. */
static const char any_vendor[] = "any";

static void finish_workload(struct workload *workload)
{
    request_options_finish(&workload->options);
    free(workload->vendor);
    free(workload->time_slicing_config_path);
}

/* Sets the request's vendor from the name in the file. */
static void apply_vendor(struct workload *workload)
{
    const char *name = workload->vendor == NULL ? vendor_name(VENDOR_NVIDIA) : workload->vendor;
    struct request *request = &workload->options.request;

    if (strcmp(name, any_vendor) == 0) {
        request->vendor_rule = VENDOR_RULE_MIXED;
        return;
    }
    request->vendor_rule = VENDOR_RULE_EXACT;
    request->vendor = VENDOR_DRI;
    for (const struct choice *vendor = vendor_names; vendor->name != NULL; vendor++) {
        if (strcmp(name, vendor->name) == 0)
            request->vendor = (enum vendor)vendor->value;
    }
}

/* Returns whether apply_vendor did not know the name and chose VENDOR_DRI. */
static bool is_unknown_vendor(const struct workload *workload)
{
    const struct request *request = &workload->options.request;

    return workload->vendor != NULL && request->vendor_rule == VENDOR_RULE_EXACT &&
           strcmp(vendor_name(request->vendor), workload->vendor) != 0;
}

/* Adds a note with the position of the node. */
static int add_note(const struct field_reading *reading, const struct document_node *node,
                    const char *sentence, struct string_list *notes)
{
    struct text note = {0};
    int code;

    utf8_append_inert(&note, reading->document->file);
    text_append_format(&note, ":%u:%u: note: %s", node->line, node->column, sentence);
    code = text_failed(&note) ? BERTH_ERROR_MEMORY : string_list_append(notes, text_string(&note));
    text_finish(&note);
    return code < 0 ? error_set_memory(reading->error) : 0;
}

static int note_unknown_vendor(const struct field_reading *reading,
                               const struct document_node *node, struct workload *workload)
{
    struct suggestion nearest = {.wanted = workload->vendor};
    struct text sentence = {0};
    int code;

    for (const struct choice *vendor = vendor_names; vendor->name != NULL; vendor++)
        suggest_compare(&nearest, vendor->name);
    suggest_compare(&nearest, any_vendor);
    text_append_format(
        &sentence,
        "vendor: %s is not a known vendor, so only devices that have just a DRI render "
        "node match",
        quote(workload->vendor).text);
    if (nearest.best != NULL)
        text_append_format(&sentence, " (did you mean %s?)", nearest.best);
    code = text_failed(&sentence)
               ? error_set_memory(reading->error)
               : add_note(reading, node, text_string(&sentence), &workload->options.notes);
    text_finish(&sentence);
    return code;
}

/* Adds a note about the first requested device that has another vendor than the request. */
static int note_other_vendor(const struct field_reading *reading, const struct document_node *node,
                             struct workload *workload)
{
    const struct request *request = &workload->options.request;
    const struct device_id *id;

    if (request->vendor_rule != VENDOR_RULE_EXACT)
        return 0;
    vector_for_each (id, &request->wanted) {
        char sentence[128];

        if (id->vendor == request->vendor)
            continue;
        snprintf(sentence, sizeof(sentence), "device: %s has no effect, because the vendor is %s",
                 device_id_format(*id).text, vendor_name(request->vendor));
        return add_note(reading, node, sentence, &workload->options.notes);
    }
    return 0;
}

/* ---- Notes ---- */

/* Adds the notes about one field of the block `gpu`. */
static int add_field_notes(const struct field_reading *reading, const struct document_node *key,
                           const struct document_node *value, struct workload *workload)
{
    int code = 0;

    if (strcmp(key->text, "vendor") == 0 && is_unknown_vendor(workload))
        code = note_unknown_vendor(reading, value, workload);
    if (strcmp(key->text, "device") == 0)
        code = note_other_vendor(reading, value, workload);
    for (const struct workload_note *note = workload_notes; note->sentence != NULL && code == 0;
         note++) {
        if (strcmp(key->text, note->field) == 0 && document_node_is_null(value) == note->is_empty)
            code = add_note(reading, value, note->sentence, &workload->options.notes);
    }
    return code;
}

/* Adds all notes, in the order of the fields in the file. */
static int add_notes(const struct field_reading *reading, const struct document_node *gpu,
                     struct workload *workload)
{
    int code = 0;

    for (size_t i = 0; i + 1 < gpu->count && code == 0; i += 2)
        code = add_field_notes(reading, gpu->items[i], gpu->items[i + 1], workload);
    return code;
}

/* ---- The whole file ---- */

static const struct request_names field_names = {
    .dashes = "",
    .gpus = "count",
    .ranks = "distributed",
    .min_free = "min_free",
    .min_memory = "min_memory",
    .mps_pipe_dir = "mps_pipe_dir",
    .mps_log_dir = "mps_log_dir",
};

/* Returns the value of a field, or NULL if the field is left out or has no value. */
static const struct document_node *find_value(const struct document_node *record, const char *name)
{
    const struct document_node *value = field_record_value(record, name);

    return value == record || document_node_is_null(value) ? NULL : value;
}

/* Finds the block `gpu`, at the top or below `resources`. */
static int find_gpu_block(const struct field_reading *reading, const struct document_node *root,
                          const struct document_node **ret_gpu)
{
    const struct document_node *resources = find_value(root, "resources");
    const struct document_node *top = find_value(root, "gpu");
    const struct document_node *below = resources == NULL ? NULL : find_value(resources, "gpu");

    if (top == NULL && below == NULL)
        return document_error(reading->document, field_record_value(root, "gpu"), reading->error,
                              BERTH_ERROR_INVALID,
                              "a spec file needs the field 'gpu' (gpu: {} requests one device)");
    if (top != NULL && below != NULL)
        return document_error(reading->document, below, reading->error, BERTH_ERROR_INVALID,
                              "gpu: expected once, got at the top and below resources");
    *ret_gpu = top != NULL ? top : below;
    return 0;
}

/* Checks that the fields are consistent. A message has the position of the field at fault. */
static int validate_workload(const struct field_reading *reading, const struct document_node *root,
                             const struct document_node *gpu, const struct workload *workload)
{
    const struct document_node *value;
    struct request request;
    const char *field;
    int code = request_options_resolve_named(&workload->options, &field_names, &request, &field,
                                             reading->error);

    if (code == 0)
        return 0;
    value = find_value(gpu, field);
    return document_wrap(reading->document, value != NULL ? value : field_record_value(root, field),
                         reading->error, code);
}

/* Reads the root of the document into *workload. */
static int read_root(const struct field_reading *reading, const struct document_node *root,
                     struct workload *workload)
{
    const struct document_node *gpu = NULL;
    int code = field_read_record(reading, &workload_record, root, workload);

    if (code == 0)
        code = find_gpu_block(reading, root, &gpu);
    if (code < 0)
        return code;
    assert(gpu != NULL);
    apply_vendor(workload);
    code = validate_workload(reading, root, gpu, workload);
    return code < 0 ? code : add_notes(reading, gpu, workload);
}

static int build_options(const struct document *document, struct request_options *ret_options,
                         struct berth_error *error)
{
    const struct field_reading reading = {.document = document, .error = error};
    struct workload workload = {0};
    int code;

    if (document->root == NULL)
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "%s:1:1: expected a spec file with the field 'gpu', got nothing",
                         document->file);
    request_options_init(&workload.options);
    workload.options.default_scheduling = SCHEDULING_BEST_EFFORT;
    code = read_root(&reading, document->root, &workload);
    if (code == 0) {
        *ret_options = workload.options;
        request_options_init(&workload.options);
    }
    finish_workload(&workload);
    return code;
}

int workload_parse(const char *file, const char *text, size_t length,
                   struct request_options *ret_options, struct berth_error *error)
{
    struct document document;
    int code = document_parse(&document, file, text, length, error);

    if (code < 0)
        return code;
    code = build_options(&document, ret_options, error);
    document_finish(&document);
    return code;
}

const char *workload_file_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "<stdin>" : path;
}

int workload_read(const char *path, struct request_options *ret_options, struct berth_error *error)
{
    const char *name = workload_file_name(path);
    struct text content = {0};
    int code = name != path
                   ? file_read_open(STDIN_FILENO, name, DOCUMENT_BYTES_MAX, &content, error)
                   : file_read(path, DOCUMENT_BYTES_MAX, &content, error);

    if (code == 0)
        code = workload_parse(name, text_string(&content), content.length, ret_options, error);
    text_finish(&content);
    return code;
}
