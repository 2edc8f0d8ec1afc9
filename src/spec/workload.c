/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/file.h"
#include "base/text/quote.h"
#include "base/text/suggest.h"
#include "base/text/utf8.h"

/* What is said of the vendor in a file, beside its name. */
static const char any_vendor[] = "any";

static void finish_workload(struct workload *workload)
{
    request_options_finish(&workload->options);
    free(workload->vendor);
    free(workload->time_slicing_config_path);
}

/* Turns the vendor's name into what is wanted. */
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

/* Whether apply_vendor fell back to what all other names mean. */
static bool is_unknown_vendor(const struct workload *workload)
{
    const struct request *request = &workload->options.request;

    return workload->vendor != NULL && request->vendor_rule == VENDOR_RULE_EXACT &&
           strcmp(vendor_name(request->vendor), workload->vendor) != 0;
}

/* Adds a note about a place in the file. */
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
    text_append_format(&sentence,
                       "vendor: %s is no known vendor, so devices with only a DRI render node are "
                       "meant",
                       quote(workload->vendor).text);
    if (nearest.best != NULL)
        text_append_format(&sentence, " (did you mean %s?)", nearest.best);
    code = text_failed(&sentence)
               ? error_set_memory(reading->error)
               : add_note(reading, node, text_string(&sentence), &workload->options.notes);
    text_finish(&sentence);
    return code;
}

/* Notes the first device that is wanted in vain, as the vendor is another one. */
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
        snprintf(sentence, sizeof(sentence), "device: %s has no effect, as the vendor is %s",
                 device_id_format(*id).text, vendor_name(request->vendor));
        return add_note(reading, node, sentence, &workload->options.notes);
    }
    return 0;
}

/* Adds the notes about the value of one field. */
static int add_notes_about(const struct field_reading *reading, const struct document_node *root,
                           const struct document_node *node, struct workload *workload)
{
    int code = 0;

    if (node == contradictions_path_value(root, &workload_gpu, "gpu.vendor") &&
        is_unknown_vendor(workload))
        code = note_unknown_vendor(reading, node, workload);
    if (node == contradictions_path_value(root, &workload_gpu, "gpu.device"))
        code = note_other_vendor(reading, node, workload);
    for (const struct workload_note *note = workload_notes; note->sentence != NULL && code == 0;
         note++) {
        if (node == contradictions_path_value(root, &workload_gpu, note->when.path) &&
            contradictions_condition_holds(root, &workload_gpu, &note->when))
            code = add_note(reading, node, note->sentence, &workload->options.notes);
    }
    return code;
}

/* All of them are about fields of the block `gpu`; they are told in their order there. */
static int add_notes(const struct field_reading *reading, const struct document_node *root,
                     struct workload *workload)
{
    const struct document_node *gpu = contradictions_movable_value(root, &workload_gpu);
    int code = 0;

    for (size_t i = 1; i < gpu->count && code == 0; i += 2)
        code = add_notes_about(reading, root, gpu->items[i], workload);
    return code;
}

/* Reads the root of the document, which is there. */
static int read_root(const struct field_reading *reading, const struct document_node *root,
                     struct workload *workload)
{
    int code = field_read_record(reading, &workload_record, root, workload);

    if (code == 0)
        code = contradictions_check(reading, workload_contradictions, &workload_gpu, root);
    if (code < 0)
        return code;
    apply_vendor(workload);
    return add_notes(reading, root, workload);
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
