/* SPDX-License-Identifier: Apache-2.0
 *
 * berth cdi: writes CDI files, and options for container runtimes.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/count.h"
#include "base/error.h"
#include "cli/cdi_files.h"
#include "cli/devices/cdi_arguments.h"
#include "cli/exit_codes.h"
#include "cli/machine_source.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "launch/cdi_document.h"
#include "spec/option_types.h"

struct cdi_options {
    const char *output;
    const char *inventory;
    enum cdi_arguments arguments;
};

static const struct option cdi_rows[] = {
    {.name = "output",
     .argument = "DIR",
     .help = "write DIR/" CDI_FILE_NAME "; runtimes read /etc/cdi and /var/run/cdi",
     .offset = offsetof(struct cdi_options, output),
     .parse = option_type_string},
    {.name = "arguments",
     .argument = "HOW",
     .choices = cdi_arguments_names,
     .help = "print podman and docker options for the enclosing lease",
     .offset = offsetof(struct cdi_options, arguments),
     .parse = option_type_choice},
    {.name = "inventory",
     .argument = "FILE",
     .help = "use the devices in this file, not the hardware",
     .offset = offsetof(struct cdi_options, inventory),
     .parse = option_type_string},
};

static const struct option_set cdi_option_set = {
    .heading = "Options",
    .options = cdi_rows,
    .count = COUNT(cdi_rows),
};

static const struct option_set *const cdi_sets[] = {&cdi_option_set, NULL};

static int check_options(const struct cdi_options *options, struct berth_error *error)
{
    if (options->output != NULL && *options->output == '\0')
        return error_set(error, BERTH_ERROR_INVALID, "--output: expected a directory, got nothing");
    if (options->arguments == CDI_ARGUMENTS_UNSAID)
        return 0;
    if (options->output != NULL || options->inventory != NULL)
        return error_set(error, BERTH_ERROR_INVALID,
                         "--arguments: expected no other option, got %s",
                         options->output != NULL ? "--output" : "--inventory");
    return 0;
}

/* Prints problems of the scan, and the devices that are left out. */
static void print_notes(const struct machine_report *report, const struct string_list *notes)
{
    struct text problems = {0};
    char *const *note;

    machine_source_write_problems(&report->problems, "berth: ", &problems);
    fputs(text_string(&problems), stderr);
    text_finish(&problems);
    vector_for_each (note, notes)
        fprintf(stderr, "berth: cdi: %s\n", *note);
}

/* Appends the document of the devices in the report. */
static int write_document(const struct machine_report *report, struct text *out,
                          struct berth_error *error)
{
    struct string_list notes = {0};
    char *prefix;
    int code = machine_source_sysroot(&prefix, error);

    if (code < 0)
        return code;
    code = cdi_document_write(&report->machine.devices, prefix, out, &notes, error);
    if (code != BERTH_ERROR_MEMORY)
        print_notes(report, &notes);
    string_list_finish(&notes);
    free(prefix);
    return code;
}

/* Scans the devices and appends their document. */
static int scan_devices(struct machine_source *source, struct text *out, struct berth_error *error)
{
    struct machine_report report;
    int code;

    source->without_processes = true;
    code = machine_source_scan(source, &report, error);
    if (code < 0)
        return code;
    code = write_document(&report, out, error);
    machine_report_finish(&report);
    return code;
}

/* Prints the error and returns its exit code. A wrong path is wrong usage. */
static int fail_cdi(struct berth_error *error)
{
    error_wrap(error, error->code, "cdi");
    return error->code == BERTH_ERROR_NOT_FOUND ? output_error(error) : output_refusal(error);
}

static int make_document(const struct cdi_options *options)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct machine_source source = {0};
    struct text document = {0};
    int code = machine_source_open(&source, options->inventory, NULL, &error);

    if (code < 0) {
        error_wrap(&error, code, "cdi");
        return output_error(&error);
    }
    code = scan_devices(&source, &document, &error);
    machine_source_close(&source);
    if (code == 0)
        code = options->output == NULL ? output_write(&document)
                                       : cdi_files_write(options->output, &document, &error);
    text_finish(&document);
    return code < 0 ? fail_cdi(&error) : code;
}

static int print_arguments(enum cdi_arguments how)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct text out = {0};
    int code = cdi_arguments_write(how, &out, &error);

    if (code < 0) {
        error_wrap(&error, code, "cdi: --arguments");
        code = output_error(&error);
    } else {
        code = output_write(&out);
    }
    text_finish(&out);
    return code;
}

static int run_cdi_verb(int argc, char **argv)
{
    struct cdi_options options = {0};
    const struct option_binding bindings[] = {{&cdi_option_set, &options}};
    struct berth_error error = BERTH_ERROR_INIT;
    int code;

    if (!verb_begin(&verb_cdi, bindings, COUNT(bindings), argc, argv, &code))
        return code;
    code = check_options(&options, &error);
    if (code < 0) {
        error_wrap(&error, code, "cdi");
        return output_error(&error);
    }
    return options.arguments == CDI_ARGUMENTS_UNSAID ? make_document(&options)
                                                     : print_arguments(options.arguments);
}

const struct verb verb_cdi = {
    .name = "cdi",
    .usage = "[--output DIR | --arguments cdi|nodes] [--inventory FILE]",
    .summary = "write CDI files, and options for podman and docker",
    .description =
        "Writes a CDI file, which container runtimes read to give devices to containers. It names "
        "each device by its id, as in podman run --device berth/gpu=nvidia0, and all devices "
        "berth/gpu=all. With --arguments it prints the options that give a container the devices "
        "of the enclosing lease: cdi names the devices; nodes lists their files, for runtimes "
        "without CDI.",
    .examples = "berth cdi --output /etc/cdi\n"
                "berth run -- sh -c 'exec podman run $(berth cdi --arguments cdi) IMAGE'\n",
    .sets = cdi_sets,
    .run = run_cdi_verb,
};
