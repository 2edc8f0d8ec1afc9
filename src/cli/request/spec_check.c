/* SPDX-License-Identifier: Apache-2.0
 *
 * berth spec check: checks spec files.
 */
#include <stdio.h>

#include "base/count.h"
#include "base/error.h"
#include "base/text/json.h"
#include "base/text/utf8.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "spec/option_types.h"
#include "spec/workload.h"

struct check_options {
    bool json;
};

static const struct option check_rows[] = {
    {.name = "json",
     .help = "print JSON (berth.spec/1)",
     .offset = offsetof(struct check_options, json),
     .parse = option_type_flag},
};

static const struct option_set check_option_set = {
    .heading = "Options",
    .options = check_rows,
    .count = COUNT(check_rows),
};

static const struct option_set *const check_sets[] = {&check_option_set, NULL};

/* The result for one file. */
struct finding {
    const char *file;
    struct request_options options; /* if the file is valid */
    struct text description;        /* the request, if the file is valid */
    struct berth_error error;       /* otherwise */
};

static int check_file(const char *path, struct finding *finding)
{
    struct request request;
    int code;

    finding->file = workload_file_name(path);
    request_options_init(&finding->options);
    code = workload_read(path, &finding->options, &finding->error);
    if (code == 0)
        code = request_options_resolve(&finding->options, &request, &finding->error);
    if (code == 0)
        request_describe(&request, &finding->description);
    return code == 0 && text_failed(&finding->description) ? error_set_memory(&finding->error)
                                                           : code;
}

static void finish_finding(struct finding *finding)
{
    request_options_finish(&finding->options);
    text_finish(&finding->description);
}

static void write_json(struct json *json, const struct finding *finding)
{
    bool good = finding->error.code == 0;
    char **note;

    json_object_begin(json);
    json_string_member(json, "file", finding->file);
    json_key(json, "valid");
    json_bool(json, good);
    json_string_member(json, "message", good ? NULL : finding->error.message);
    json_key(json, "notes");
    json_array_begin(json);
    vector_for_each (note, &finding->options.notes)
        json_string(json, *note);
    json_array_end(json);
    json_string_member(json, "request", good ? text_string(&finding->description) : NULL);
    json_object_end(json);
}

/* Prints the result. Returns the exit code for the file. */
static int print_finding(struct finding *finding)
{
    struct text line = {0};
    char **note;
    int code;

    vector_for_each (note, &finding->options.notes)
        fprintf(stderr, "berth: %s: %s\n", verb_spec_check.name, *note);
    if (finding->error.code < 0) {
        error_wrap(&finding->error, finding->error.code, "%s", verb_spec_check.name);
        return output_error(&finding->error);
    }
    utf8_append_inert(&line, finding->file);
    text_append_format(&line, ": good: %s\n", text_string(&finding->description));
    code = output_write(&line);
    text_finish(&line);
    return code;
}

/* Returns the more serious of two exit codes. A failure of berth is the most serious one. */
static int worse_exit_code(int one, int other)
{
    return one > other ? one : other;
}

static int print_findings(char **files)
{
    int worst = EXIT_GOOD;

    for (; *files != NULL && worst != EXIT_BERTH; files++) {
        struct finding finding = {.error = BERTH_ERROR_INIT};

        check_file(*files, &finding);
        worst = worse_exit_code(worst, print_finding(&finding));
        finish_finding(&finding);
    }
    return worst;
}

static int print_json(char **files)
{
    struct text text = {0};
    struct json json;
    int worst = EXIT_GOOD;

    json_start(&json, &text, JSON_INDENTED);
    json_object_begin(&json);
    json_string_member(&json, "schema", "berth.spec/1");
    json_key(&json, "files");
    json_array_begin(&json);
    for (; *files != NULL; files++) {
        struct finding finding = {.error = BERTH_ERROR_INIT};
        int code = check_file(*files, &finding);

        if (code < 0)
            worst = worse_exit_code(worst, code == BERTH_ERROR_MEMORY ? EXIT_BERTH : EXIT_USAGE);
        write_json(&json, &finding);
        finish_finding(&finding);
    }
    json_array_end(&json);
    json_object_end(&json);
    json_finish(&json);
    worst = worse_exit_code(worst, output_write(&text));
    text_finish(&text);
    return worst;
}

static int run_spec_check_verb(int argc, char **argv)
{
    struct check_options options = {0};
    const struct option_binding binding = {&check_option_set, &options};
    struct berth_error error = BERTH_ERROR_INIT;
    int operand;
    int code;

    if (!verb_begin_mixed(&verb_spec_check, &binding, 1, argc, argv, &operand, &code))
        return code;
    if (operand == argc) {
        error_set(&error, BERTH_ERROR_INVALID, "%s: expected a file, got none",
                  verb_spec_check.name);
        return output_error(&error);
    }
    return options.json ? print_json(argv + operand) : print_findings(argv + operand);
}

const struct verb verb_spec_check = {
    .name = "spec check",
    .usage = "[--json] FILE...",
    .summary = "check spec files",
    .description =
        "Checks spec files. Prints the request of each valid file, and the position and the reason "
        "of each error: FILE:LINE:COLUMN: MESSAGE. A note names a field that has no effect. '-' "
        "is standard input. The exit code is 2 if a file is not valid.",
    .examples = "berth spec check train.yaml\n"
                "berth spec check --json jobs/*.yaml\n",
    .sets = check_sets,
    .operand = OPERAND_FILE,
    .run = run_spec_check_verb,
};
