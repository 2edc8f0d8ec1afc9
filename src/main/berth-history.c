/* SPDX-License-Identifier: Apache-2.0
 *
 * berth-history: past leases. 'berth history' and 'berth report' become this program.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/error.h"
#include "base/system/clock.h"
#include "cli/connect.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/programs/history_program.h"
#include "cli/verbs.h"
#include "history/time_argument.h"
#include "view/pool_view.h"

int past_fail(const char *verb, struct berth_error *error)
{
    error_wrap(error, error->code, "%s", verb);
    return output_error(error);
}

/* ---- Which file ---- */

/* Asks the daemon; dials again when it goes away in the midst. */
static int ask_pool(struct reach *reach, struct wire_message *ret_answer, struct berth_error *error)
{
    enum { TRIES = 3 };
    int code = BERTH_ERROR_IO;

    for (int i = 0; i < TRIES && code == BERTH_ERROR_IO; i++) {
        code = i == 0 ? 0 : session_again(&reach->session, error);
        if (code == 0)
            code = pool_view_ask(&reach->session, &(struct wire_message){.type = WIRE_HELLO},
                                 WIRE_POOL, ret_answer, error);
    }
    return code;
}

/* The pool's file; the caller frees it. */
static int find_file(const char *inventory, char **ret_file, struct berth_error *error)
{
    struct wire_message pool = {0};
    struct reach reach;
    int code = reach_open(&reach, inventory, error);

    if (code < 0)
        return code;
    code = ask_pool(&reach, &pool, error);
    if (code == 0)
        code = pool_view_check_inventory(reach.address.inventory, pool.inventory, error);
    reach_close(&reach);
    if (code == 0 && pool.history == NULL)
        code = error_set(error, BERTH_ERROR_IO,
                         "expected past leases, got that this pool keeps none (its configuration "
                         "says history: no)");
    if (code == 0) {
        *ret_file = pool.history;
        pool.history = NULL;
    }
    wire_message_finish(&pool);
    return code;
}

/* NULL in *ret_history: nothing was recorded yet. Returns an exit code. */
static int open_history(const char *verb, const struct past_options *options,
                        struct history **ret_history)
{
    struct berth_error error = BERTH_ERROR_INIT;
    char *found = NULL;
    int code = 0;

    if (options->file == NULL)
        code = find_file(options->inventory, &found, &error);
    if (code < 0) {
        error_wrap(&error, code, "%s", verb);
        return output_refusal(&error);
    }
    code = history_open_read(options->file == NULL ? found : options->file, ret_history, &error);
    free(found);
    if (code == BERTH_ERROR_NOT_FOUND && options->file == NULL) {
        *ret_history = NULL;
        return EXIT_GOOD;
    }
    return code < 0 ? past_fail(verb, &error) : EXIT_GOOD;
}

/* ---- Words ---- */

static int read_time(const char *option, const char *words, int64_t now, int64_t *ret_time,
                     struct berth_error *error)
{
    int code = words == NULL ? 0 : history_parse_time(words, now, ret_time, error);

    return code < 0 ? error_wrap(error, code, "--%s", option) : 0;
}

static int make_query(const struct past_options *options, struct history_query *query,
                      struct berth_error *error)
{
    int code;

    *query = (struct history_query){
        .user = options->user,
        .name = options->name,
        .device = options->device,
        .now = clock_read(CLOCK_REALTIME),
    };
    code = read_time("since", options->since, query->now, &query->since, error);
    if (code == 0)
        code = read_time("until", options->until, query->now, &query->until, error);
    if (code < 0)
        return code;
    if (query->until != 0 && query->until <= query->since)
        return error_set(error, BERTH_ERROR_INVALID,
                         "--until: expected a time after --since, got %s", options->until);
    if (options->json && options->csv)
        return error_set(error, BERTH_ERROR_INVALID, "expected --json or --csv, got both");
    return 0;
}

static enum past_form form_of(const struct past_options *options)
{
    return options->json ? PAST_JSON : options->csv ? PAST_CSV : PAST_TABLE;
}

/* After parsing: makes the query and opens the file. Returns an exit code. */
static int begin(const char *verb, const struct past_options *options, struct history_query *query,
                 struct history **ret_history)
{
    struct berth_error error = BERTH_ERROR_INIT;

    if (make_query(options, query, &error) < 0)
        return past_fail(verb, &error);
    return open_history(verb, options, ret_history);
}

static int run_history(int argc, char **argv)
{
    struct past_options options = {0};
    struct history_options more = {0};
    const struct option_binding bindings[] = {{&past_option_set, &options},
                                              {&history_option_set, &more}};
    struct history_query query;
    struct history *history = NULL;
    int code;

    if (!verb_begin(&verb_history, bindings, COUNT(bindings), argc, argv, &code))
        return code;
    code = begin("history", &options, &query, &history);
    if (code != EXIT_GOOD)
        return code;
    query.max = more.max.known ? more.max.value : 0;
    code = past_list(history, &query, form_of(&options));
    history_close(history);
    return code;
}

static int run_report(int argc, char **argv)
{
    struct past_options options = {0};
    struct report_options more = {.by = HISTORY_BY_USER};
    const struct option_binding bindings[] = {{&past_option_set, &options},
                                              {&report_option_set, &more}};
    struct history_query query;
    struct history *history = NULL;
    int code;

    if (!verb_begin(&verb_report, bindings, COUNT(bindings), argc, argv, &code))
        return code;
    code = begin("report", &options, &query, &history);
    if (code != EXIT_GOOD)
        return code;
    code = past_report(history, &query, more.by, form_of(&options));
    history_close(history);
    return code;
}

int main(int argc, char **argv)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *name = argc == 0 ? "" : slash == NULL ? argv[0] : slash + 1;

    return strcmp(name, verb_report.called) == 0 ? run_report(argc, argv) : run_history(argc, argv);
}
