/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "cli/output.h"
#include "cli/run/run.h"
#include "spec/option_types.h"

static const struct option run_rows[] = {
    {.name = "verbose",
     .letter = 'v',
     .help = "print the waiting reasons and the granted devices",
     .offset = offsetof(struct run_line, verbose),
     .parse = option_type_flag},
};

const struct option_set run_option_set = {
    .heading = "Options",
    .options = run_rows,
    .count = COUNT(run_rows),
};

int run_fail(const struct verb *verb, struct berth_error *error)
{
    error_wrap(error, error->code, "%s", verb->name);
    return output_refusal(error);
}

int run_refuse_commands(const struct request_options *options, struct berth_error *error)
{
    const struct request *request = &options->request;

    if (request->replicas > 1 && request->scheduling == SCHEDULING_BEST_EFFORT)
        return error_set(error, BERTH_ERROR_INVALID,
                         "--scheduling: only 'berth run' and 'berth submit' accept best-effort");
    return 0;
}

/* Returns the struct that the options of the set fill in. */
static void *find_target(const struct option_set *set, struct run_line *line)
{
    if (set == &run_option_set)
        return line;
    return set == &notify_option_set ? (void *)&line->notify : (void *)&line->request;
}

/* Uses the command of the spec file, because the command line has none. */
static int use_file_command(struct run_line *line, struct berth_error *error)
{
    struct string_list *command = &line->request.command;

    if (command->count == 0)
        return error_set(error, BERTH_ERROR_INVALID, "expected a command, got none");
    if (vector_append(command) == NULL)
        return error_set_memory(error);
    line->argv = command->items;
    return 0;
}

/* Prints which fields of the spec file have no effect. */
static void print_notes(const struct verb *verb, const struct string_list *notes)
{
    char *const *note;

    vector_for_each (note, notes)
        fprintf(stderr, "berth: %s: %s\n", verb->name, *note);
}

bool run_line_parse(const struct verb *verb, struct run_line *line, int argc, char **argv,
                    int *ret_exit)
{
    struct option_binding bindings[OPTION_SETS_MAX];
    size_t count = 0;
    struct berth_error error = BERTH_ERROR_INIT;
    int operand;
    int code;

    *line = (struct run_line){0};
    request_options_init(&line->request);
    for (; verb->sets[count] != NULL; count++)
        bindings[count] =
            (struct option_binding){verb->sets[count], find_target(verb->sets[count], line)};
    if (!verb_begin_operands(verb, bindings, count, argc, argv, &operand, ret_exit))
        return false;
    line->warns = line->verbose || isatty(STDERR_FILENO) == 1;
    line->argv = argv + operand;
    code = operand < argc ? 0 : use_file_command(line, &error);
    if (code == 0)
        code = request_options_complete(&line->request, &error);
    if (code < 0)
        *ret_exit = run_fail(verb, &error);
    else if (line->verbose)
        print_notes(verb, &line->request.notes);
    return code == 0;
}

void run_line_finish(struct run_line *line)
{
    request_options_finish(&line->request);
}

bool run_line_is_best_effort(const struct run_line *line)
{
    const struct request *request = &line->request.request;

    return request->replicas > 1 && request->scheduling == SCHEDULING_BEST_EFFORT;
}
