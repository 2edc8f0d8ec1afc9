/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verbs.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "base/system/program.h"
#include "base/text/quote.h"
#include "base/text/suggest.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "spec/workload.h"

/* The groups are those of help.c, which names the first verb of each. */
const struct verb *const verbs[] = {
    /* Run jobs */
    &verb_run,
    &verb_submit,
    &verb_logs,
    &verb_wait,
    &verb_reserve,
    &verb_adopt,
    /* Look */
    &verb_status,
    &verb_top,
    &verb_web,
    &verb_devices,
    &verb_plan,
    &verb_history,
    &verb_report,
    /* Manage */
    &verb_extend,
    &verb_release,
    &verb_cancel,
    &verb_drain,
    &verb_undrain,
    /* Set up */
    &verb_daemon,
    &verb_doctor,
    &verb_spec,
    &verb_cdi,
    &verb_sim,
    &verb_help,
    NULL,
};

const struct verb *verb_find(const char *name)
{
    for (const struct verb *const *verb = verbs; *verb != NULL; verb++) {
        if (strcmp((*verb)->name, name) == 0)
            return *verb;
    }
    return NULL;
}

/* Verbs of other tools, each with the verb of berth that does the same. */
static const struct {
    const char *foreign;
    const char *verb;
} foreign_verbs[] = {
    {"kill", "cancel"},    {"stop", "cancel"},    {"rm", "cancel"},      {"remove", "cancel"},
    {"delete", "cancel"},  {"abort", "cancel"},   {"scancel", "cancel"}, {"free", "release"},
    {"list", "status"},    {"ls", "status"},      {"ps", "status"},      {"queue", "status"},
    {"squeue", "status"},  {"show", "status"},    {"info", "devices"},   {"sinfo", "devices"},
    {"gpus", "devices"},   {"nodes", "devices"},  {"exec", "run"},       {"start", "run"},
    {"srun", "run"},       {"launch", "run"},     {"sbatch", "submit"},  {"add", "submit"},
    {"enqueue", "submit"}, {"salloc", "reserve"}, {"alloc", "reserve"},  {"lock", "reserve"},
    {"log", "logs"},       {"tail", "logs"},      {"cat", "logs"},       {"output", "logs"},
    {"sacct", "history"},  {"usage", "report"},   {"stats", "report"},   {"monitor", "top"},
    {"watch", "top"},      {"dashboard", "web"},  {"serve", "web"},      {"berthd", "daemon"},
    {"disable", "drain"},  {"enable", "undrain"}, {"simulate", "sim"},   {"check", "spec"},
    {"diag", "doctor"},    {"health", "doctor"},
};

/* Returns the verb that a misspelled name or a verb of another tool most likely means, or NULL. */
static const char *suggest_verb(const char *name)
{
    struct suggestion nearest = {.wanted = name};

    for (size_t i = 0; i < COUNT(foreign_verbs); i++) {
        if (strcmp(foreign_verbs[i].foreign, name) == 0)
            return foreign_verbs[i].verb;
    }
    for (const struct verb *const *verb = verbs; *verb != NULL; verb++)
        suggest_compare(&nearest, (*verb)->name);
    return nearest.best;
}

int verb_fail_unknown(const char *name)
{
    struct berth_error error = BERTH_ERROR_INIT;
    const char *suggestion = suggest_verb(name);

    if (suggestion != NULL)
        error_set(&error, BERTH_ERROR_INVALID, "no verb %s, did you mean '%s'?", quote(name).text,
                  suggestion);
    else
        error_set(&error, BERTH_ERROR_INVALID, "no verb %s ('berth help' lists them)",
                  quote(name).text);
    return output_error(&error);
}

/* Executes the verb's program in place of berth. Returns only on failure: the exit code, after
 * printing the error. */
static int exec_program(const struct verb *verb, char **argv)
{
    struct berth_error error = BERTH_ERROR_INIT;
    char path[PATH_MAX];

    program_find(verb->program, path, sizeof(path));
    argv[0] = (char *)(verb->program_name == NULL ? verb->program : verb->program_name);
    execv(path, argv);
    error_set_errno(&error, errno, "%s: cannot execute %s", verb->name, path);
    output_error(&error);
    return EXIT_BERTH;
}

/* Prints an error about the options or operands of a verb. */
static void fail_verb(const struct verb *verb, struct berth_error *error, int *ret_exit)
{
    error_wrap(error, error->code, "%s", verb->name);
    *ret_exit = output_error(error);
}

/* Returns whether the verb must run after its options were parsed. */
static bool should_run(const struct verb *verb, int parsed, struct berth_error *error,
                       int *ret_exit)
{
    switch (parsed) {
    case OPTIONS_CONTINUE:
        return true;
    case OPTIONS_HELP:
        *ret_exit = help_print_verb(verb);
        return false;
    default:
        fail_verb(verb, error, ret_exit);
        return false;
    }
}

size_t verb_bind_request(const struct verb *verb, struct option_binding bindings[OPTION_SETS_MAX],
                         size_t count, struct request_options *request)
{
    size_t own = count;

    for (const struct option_set *const *set = verb->sets; *set != NULL; set++) {
        size_t i = 0;

        while (i < own && bindings[i].set != *set)
            i++;
        if (i < own)
            continue;
        assert(count < OPTION_SETS_MAX);
        bindings[count++] = (struct option_binding){*set, request};
    }
    return count;
}

static void clear_text(char **text)
{
    free(*text);
    *text = NULL;
}

/* Drops fields of the file that the command line replaces or contradicts. Call this before the
 * options are parsed over the file, because parsing appends to lists. */
static void drop_overridden(struct request *file, const struct request_options *line)
{
    const struct request *given = &line->request;

    if (given->wanted.count > 0)
        file->wanted.count = 0;
    if (given->avoided.count > 0)
        file->avoided.count = 0;
    if (given->model != NULL || line->count_model != NULL)
        clear_text(&file->model);
    if (given->nonblock)
        file->wait.known = false;
    if (given->opportunistic)
        file->priority = PRIORITY_UNSAID;
    if (given->priority != PRIORITY_UNSAID)
        file->opportunistic = false;
}

/* Drops the file's fields about sharing that contradict the sharing mode of the options. */
static void drop_sharing(struct request *request, const struct request *given)
{
    if (request->sharing == SHARING_EXCLUSIVE && !given->share.known)
        request->share.known = false;
    if (request->sharing == SHARING_EXCLUSIVE && !given->memory.known)
        request->memory.known = false;
    if (request->sharing != SHARING_MPS && given->mps_pipe_dir == NULL)
        clear_text(&request->mps_pipe_dir);
    if (request->sharing != SHARING_MPS && given->mps_log_dir == NULL)
        clear_text(&request->mps_log_dir);
}

static bool has_set(const struct option_set *const *sets, const struct option_set *set)
{
    while (*sets != NULL && *sets != set)
        sets++;
    return *sets != NULL;
}

/* Returns whether the options of the set fill in the request. */
static bool is_request_set(const struct option_set *set)
{
    return has_set(request_option_sets, set) || has_set(request_variant_sets, set);
}

/* Reads the file and parses the options over it. They were parsed without an error before. */
static int apply_file(const struct option_binding *bindings, size_t count, size_t which,
                      options_parser *parse, int argc, char **argv, struct berth_error *error)
{
    struct request_options *line = bindings[which].target;
    struct option_binding again[OPTION_SETS_MAX];
    struct request_options both;
    int operand;
    int code = workload_read(line->spec, &both, error);

    if (code < 0)
        return error_wrap(error, code, "--spec");
    assert(count <= OPTION_SETS_MAX);
    for (size_t i = 0; i < count; i++)
        again[i] = (struct option_binding){bindings[i].set,
                                           is_request_set(bindings[i].set) ? &both : NULL};
    drop_overridden(&both.request, line);
    code = parse(again, count, argc, argv, &operand, error);
    drop_sharing(&both.request, &line->request);
    if (code >= 0) {
        struct request_options given = *line;

        *line = both;
        both = given;
    }
    request_options_finish(&both);
    return code;
}

/* Applies --spec after `parse` has read argv into the bindings. If the request in a binding names a
 * spec file, reads the file into the request and parses the options once more over it; the targets
 * of all other bindings stay unchanged. An option also drops fields of the file that contradict it:
 * --sharing exclusive drops the file's share. Returns an options_result. Fails as workload_read. */
static int apply_spec(const struct option_binding *bindings, size_t count, options_parser *parse,
                      int argc, char **argv, struct berth_error *error)
{
    for (size_t i = 0; i < count; i++) {
        const struct request_options *line = bindings[i].target;

        if (is_request_set(bindings[i].set) && line->spec != NULL)
            return apply_file(bindings, count, i, parse, argc, argv, error);
    }
    return OPTIONS_CONTINUE;
}

/* Parses the options, and the spec file that they name. */
static bool parse_and_apply_spec(const struct verb *verb, options_parser *parse,
                                 const struct option_binding *bindings, size_t count, int argc,
                                 char **argv, int *ret_operand, int *ret_exit)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int parsed = parse(bindings, count, argc, argv, ret_operand, &error);

    if (parsed == OPTIONS_CONTINUE)
        parsed = apply_spec(bindings, count, parse, argc, argv, &error);
    return should_run(verb, parsed, &error, ret_exit);
}

bool verb_begin_operands(const struct verb *verb, const struct option_binding *bindings,
                         size_t count, int argc, char **argv, int *ret_operand, int *ret_exit)
{
    return parse_and_apply_spec(verb, options_parse, bindings, count, argc, argv, ret_operand,
                                ret_exit);
}

bool verb_begin_mixed(const struct verb *verb, const struct option_binding *bindings, size_t count,
                      int argc, char **argv, int *ret_operand, int *ret_exit)
{
    return parse_and_apply_spec(verb, options_parse_mixed, bindings, count, argc, argv, ret_operand,
                                ret_exit);
}

bool verb_begin(const struct verb *verb, const struct option_binding *bindings, size_t count,
                int argc, char **argv, int *ret_exit)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int operand;

    if (!verb_begin_operands(verb, bindings, count, argc, argv, &operand, ret_exit))
        return false;
    if (operand == argc)
        return true;
    error_set(&error, BERTH_ERROR_INVALID, "expected only options, got %s",
              quote(argv[operand]).text);
    fail_verb(verb, &error, ret_exit);
    return false;
}

static int print_version(void)
{
    struct text text = {0};
    int code;

    text_append(&text, "berth " BERTH_VERSION "\n");
    code = output_write(&text);
    text_finish(&text);
    return code;
}

int cli_main(int argc, char **argv)
{
    const struct verb *verb;

    if (argc < 2) {
        fprintf(stderr, "berth: expected a verb, got none ('berth help' lists them)\n");
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return help_print_all();
    if (strcmp(argv[1], "--version") == 0)
        return print_version();
    verb = verb_find(argv[1]);
    if (verb == NULL)
        return verb_fail_unknown(argv[1]);
    return verb->program != NULL ? exec_program(verb, argv + 1) : verb->run(argc - 1, argv + 1);
}
