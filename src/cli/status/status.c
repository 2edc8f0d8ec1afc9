/* SPDX-License-Identifier: Apache-2.0
 *
 * berth status: who holds what, and who waits for what.
 */
#include "base/count.h"
#include "base/error.h"
#include "cli/connect.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/status/known_ids.h"
#include "cli/status/status_output.h"
#include "cli/status/status_watch.h"
#include "cli/verbs.h"
#include "spec/option_types.h"

struct status_options {
    const char *inventory;
    bool json;
    bool watch;
    enum known_ids complete;
};

static const struct option status_rows[] = {
    {.name = "watch",
     .help = "go on showing it, redrawn when it changes; Ctrl-C ends it",
     .offset = offsetof(struct status_options, watch),
     .parse = option_type_flag},
    {.name = "inventory",
     .argument = "FILE",
     .help = "the pool of this file's devices instead of the hardware's",
     .offset = offsetof(struct status_options, inventory),
     .parse = option_type_string},
    {.name = "json",
     .help = "print JSON (berth.status/1); with --watch one line each time something changed",
     .offset = offsetof(struct status_options, json),
     .parse = option_type_flag},
    {.name = "complete",
     .hidden = true,
     .argument = "IDS",
     .choices = known_ids_names,
     .help = "print ids that a shell may offer",
     .offset = offsetof(struct status_options, complete),
     .parse = option_type_choice},
};

static const struct option_set status_option_set = {
    .heading = "Options",
    .options = status_rows,
    .count = COUNT(status_rows),
};

static const struct option_set *const status_sets[] = {&status_option_set, NULL};

static int show_once(const struct status_options *options, struct pool_connection *connection)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct user_names users = {0};
    struct status_display shown = {
        .address = &connection->address, .users = &users, .json = options->json};
    struct pool_view view;
    struct text out = {0};
    int code = pool_view_fetch_retrying(&connection->session, &view, &error);

    if (code < 0) {
        error_wrap(&error, code, "status");
        return output_refusal(&error);
    }
    shown.now = view.snapshot.time;
    status_append_view(&shown, &view, NULL, &out);
    code = output_write(&out);
    text_finish(&out);
    pool_view_finish(&view);
    user_names_finish(&users);
    return code;
}

static int run_status_verb(int argc, char **argv)
{
    struct status_options options = {0};
    const struct option_binding bindings[] = {{&status_option_set, &options}};
    struct berth_error error = BERTH_ERROR_INIT;
    struct pool_connection connection;
    int code;

    if (!verb_begin(&verb_status, bindings, 1, argc, argv, &code))
        return code;
    if (options.watch)
        return status_watch(options.inventory, options.json);
    if (options.complete != KNOWN_IDS_NONE)
        return known_ids_print(options.complete, options.inventory);
    code = connect_open(&connection, options.inventory, &error);
    if (code < 0) {
        error_wrap(&error, code, "status");
        return output_refusal(&error);
    }
    code = show_once(&options, &connection);
    connect_close(&connection);
    return code;
}

const struct verb verb_status = {
    .name = "status",
    .usage = "[options]",
    .summary = "devices, who holds what, and the queue",
    .description = "Shows the devices of the pool with who holds them, since when and for how much "
                   "longer, and who waits, in the order of the queue, with the reason and, where "
                   "the holders' time limits allow one, an estimate of the start.",
    .sets = status_sets,
    .run = run_status_verb,
};
