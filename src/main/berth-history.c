/* SPDX-License-Identifier: Apache-2.0
 *
 * berth-history: shows past leases. 'berth history' and 'berth report' become this program.
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
#include "view/pool_view_fetch.h"

/* ---- The history file ---- */

/* Requests the facts about the pool from the daemon. Reconnects if the daemon restarts. */
static int query_pool(struct pool_connection *connection, struct wire_message *ret_answer,
                      struct berth_error *error)
{
    enum { TRIES = 3 };
    int code = BERTH_ERROR_IO;

    for (int i = 0; i < TRIES && code == BERTH_ERROR_IO; i++) {
        code = i == 0 ? 0 : session_reconnect(&connection->session, error);
        if (code == 0)
            code = pool_view_fetch_answer(&connection->session,
                                          &(struct wire_message){.type = WIRE_HELLO}, WIRE_POOL,
                                          ret_answer, error);
    }
    return code;
}

/* Finds the pool's history file. The caller frees *ret_file. */
static int find_history_file(const char *inventory, char **ret_file, struct berth_error *error)
{
    struct wire_message pool = {0};
    struct pool_connection connection;
    int code = connect_open(&connection, inventory, error);

    if (code < 0)
        return code;
    code = query_pool(&connection, &pool, error);
    if (code == 0)
        code = pool_view_check_inventory(connection.address.inventory, pool.about.inventory, error);
    connect_close(&connection);
    if (code == 0 && pool.about.history == NULL)
        code = error_set(error, BERTH_ERROR_IO,
                         "this pool keeps no history (its configuration says history: no)");
    if (code == 0) {
        *ret_file = pool.about.history;
        pool.about.history = NULL;
    }
    wire_message_finish(&pool);
    return code;
}

/* Opens the history. Sets *ret_history to NULL if no lease was recorded yet. Returns an exit code.
 */
static int open_history(const char *verb, const struct history_filter_options *options,
                        struct history **ret_history)
{
    struct berth_error error = BERTH_ERROR_INIT;
    char *found = NULL;
    int code = 0;

    if (options->file == NULL)
        code = find_history_file(options->inventory, &found, &error);
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
    return code < 0 ? history_program_fail(verb, &error) : EXIT_GOOD;
}

/* ---- Options ---- */

static int read_time(const char *option, const char *text, int64_t now, int64_t *ret_time,
                     struct berth_error *error)
{
    int code = text == NULL ? 0 : time_argument_parse(text, now, ret_time, error);

    return code < 0 ? error_wrap(error, code, "--%s", option) : 0;
}

static int make_query(const struct history_filter_options *options, struct history_query *query,
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

static enum history_form choose_form(const struct history_filter_options *options)
{
    return options->json ? HISTORY_FORM_JSON : options->csv ? HISTORY_FORM_CSV : HISTORY_FORM_TABLE;
}

/* Makes the query from the parsed options and opens the history. Returns an exit code. */
static int begin_verb(const char *verb, const struct history_filter_options *options,
                      struct history_query *query, struct history **ret_history)
{
    struct berth_error error = BERTH_ERROR_INIT;

    if (make_query(options, query, &error) < 0)
        return history_program_fail(verb, &error);
    return open_history(verb, options, ret_history);
}

static int run_history(int argc, char **argv)
{
    struct history_filter_options options = {0};
    struct history_options more = {0};
    const struct option_binding bindings[] = {{&history_filter_option_set, &options},
                                              {&history_option_set, &more}};
    struct history_query query;
    struct history *history = NULL;
    struct berth_error error = BERTH_ERROR_INIT;
    struct kept_commands kept = {0};
    int code;

    if (!verb_begin(&verb_history, bindings, COUNT(bindings), argc, argv, &code))
        return code;
    code = begin_verb("history", &options, &query, &history);
    if (code != EXIT_GOOD)
        return code;
    query.max = more.max.known ? more.max.value : 0;
    code = kept_commands_read(&kept, &error) < 0
               ? history_program_fail("history", &error)
               : history_program_list(history, &query, &kept, choose_form(&options));
    kept_commands_finish(&kept);
    history_close(history);
    return code;
}

static int run_report(int argc, char **argv)
{
    struct history_filter_options options = {0};
    struct report_options more = {.by = HISTORY_BY_USER};
    const struct option_binding bindings[] = {{&history_filter_option_set, &options},
                                              {&report_option_set, &more}};
    struct history_query query;
    struct history *history = NULL;
    int code;

    if (!verb_begin(&verb_report, bindings, COUNT(bindings), argc, argv, &code))
        return code;
    code = begin_verb("report", &options, &query, &history);
    if (code != EXIT_GOOD)
        return code;
    code = history_program_report(history, &query, more.by, choose_form(&options));
    history_close(history);
    return code;
}

int main(int argc, char **argv)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *name = argc == 0 ? "" : slash == NULL ? argv[0] : slash + 1;

    return strcmp(name, verb_report.program_name) == 0 ? run_report(argc, argv)
                                                       : run_history(argc, argv);
}
