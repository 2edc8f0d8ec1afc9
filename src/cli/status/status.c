/* SPDX-License-Identifier: Apache-2.0
 *
 * berth status: the devices, their holders, and the queue, once or with --watch.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "cli/connect.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/status/known_ids.h"
#include "cli/status/status_output.h"
#include "cli/verbs.h"
#include "cli/watch.h"
#include "spec/option_types.h"
#include "view/follower.h"
#include "view/pool_fingerprint.h"
#include "view/pool_json.h"
#include "view/pool_view_fetch.h"

/* The minimum time between two updates. */
#define SHOW_INTERVAL (DURATION_SECOND / 5)
/* How long a watch tries to reconnect to a daemon that is gone. */
#define RECONNECT_TIMEOUT (30 * DURATION_SECOND)

struct status_options {
    const char *inventory;
    bool json;
    bool watch;
    enum known_ids complete;
};

static const struct option status_rows[] = {
    {.name = "watch",
     .help = "show continuously, updated on changes; Ctrl-C ends",
     .offset = offsetof(struct status_options, watch),
     .parse = option_type_flag},
    {.name = "inventory",
     .argument = "FILE",
     .help = "use the pool of this inventory file",
     .offset = offsetof(struct status_options, inventory),
     .parse = option_type_string},
    {.name = "json",
     .help = "print JSON (berth.status/1); with --watch a line per change",
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

struct status_watcher {
    struct follower follower;
    struct user_names users;
    bool json;
    enum follower_state state; /* as of the last update */
    int64_t gone_since;        /* when the daemon went away; 0: it is running */
};

static int show_status(const struct status_options *options, struct pool_connection *connection)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct user_names users = {0};
    struct pool_view view;
    struct text out = {0};
    int code = pool_view_fetch_retrying(&connection->session, &view, &error);

    if (code < 0) {
        error_wrap(&error, code, "status");
        return output_refusal(&error);
    }
    if (options->json) {
        pool_json_write(&view, &users, JSON_INDENTED, &out);
    } else {
        const struct status_picture picture = {
            .view = &view,
            .address = &connection->address,
            .users = &users,
            .now = view.snapshot.time,
            .terminal = terminal_detect(STDOUT_FILENO),
        };

        status_write(&picture, &out);
    }
    code = output_write(&out);
    text_finish(&out);
    pool_view_finish(&view);
    user_names_finish(&users);
    return code;
}

/* Records when the daemon went away, and prints this once if there is no screen. Fails after
 * RECONNECT_TIMEOUT. */
static int check_connection(struct status_watcher *watcher, bool on_screen,
                            struct berth_error *error)
{
    struct berth_error reason = watcher->follower.reason;

    if (watcher->state != FOLLOWER_GONE) {
        watcher->gone_since = 0;
        return 0;
    }
    if (watcher->gone_since == 0) {
        watcher->gone_since = clock_now();
        if (!on_screen) {
            error_wrap(&reason, reason.code, "status: reconnecting");
            output_error(&reason);
        }
    }
    if (clock_now() - watcher->gone_since < RECONNECT_TIMEOUT)
        return 0;
    *error = watcher->follower.reason;
    return error->code;
}

/* Prints that the daemon does not answer if there is no screen. Fails if nothing was shown yet. */
static int check_silence(const struct status_watcher *watcher, bool on_screen,
                         struct berth_error *error)
{
    struct berth_error reason = watcher->follower.reason;

    if (!watcher->follower.has_view) {
        *error = reason;
        return error->code;
    }
    if (!on_screen) {
        error_wrap(&reason, reason.code, "status");
        output_error(&reason);
    }
    return 0;
}

/* watch_subject.update */
static int update_view(void *context, bool on_screen, struct berth_error *error)
{
    struct status_watcher *watcher = context;
    enum follower_state before = watcher->state;
    int news = follower_step(&watcher->follower, error);

    if (news < 0)
        return news;
    watcher->state = follower_get_state(&watcher->follower);
    if (watcher->state == FOLLOWER_SILENT && before != FOLLOWER_SILENT &&
        check_silence(watcher, on_screen, error) < 0)
        return error->code;
    if (check_connection(watcher, on_screen, error) < 0)
        return error->code;
    return news != 0 || (on_screen && watcher->state != before);
}

/* Appends the newest view: as JSON, or as text with a note below the headline (NULL: none). */
static void append_view(struct status_watcher *watcher, const char *note, struct text *out)
{
    const struct status_picture picture = {
        .view = &watcher->follower.view,
        .address = &watcher->follower.address,
        .users = &watcher->users,
        .now = follower_time(&watcher->follower),
        .terminal = terminal_detect(STDOUT_FILENO),
        .note = note,
        .stale = watcher->state != FOLLOWER_LIVE,
    };

    if (watcher->json)
        pool_json_write(picture.view, picture.users, JSON_COMPACT, out);
    else
        status_write(&picture, out);
}

/* watch_subject.write */
static void write_view(void *context, bool on_screen, struct text *out)
{
    struct status_watcher *watcher = context;
    const struct pool_view *view = &watcher->follower.view;
    char note[BERTH_ERROR_MESSAGE_SIZE + 64];

    if (!watcher->follower.has_view)
        return;
    if (on_screen) {
        snprintf(note, sizeof(note), "as it was at %s: %s",
                 quantity_format_time(follower_time(&watcher->follower)).text,
                 watcher->state == FOLLOWER_GONE ? "the daemon is gone, reconnecting"
                                                 : watcher->follower.reason.message);
        append_view(watcher, watcher->state == FOLLOWER_LIVE ? NULL : note, out);
        return;
    }
    append_view(watcher, quantity_format_time(view->snapshot.time).text, out);
}

/* watch_subject.fingerprint: of the view that write_view() wrote. */
static uint64_t find_fingerprint(void *context)
{
    const struct status_watcher *watcher = context;

    return pool_fingerprint_events(&watcher->follower.view);
}

/* watch_subject.wait */
static int64_t wait_for_news(void *context, int *ret_descriptor)
{
    const struct status_watcher *watcher = context;

    *ret_descriptor = follower_descriptor(&watcher->follower);
    return follower_next_timeout(&watcher->follower);
}

static int watch_status(const struct status_options *options)
{
    const struct follower_settings settings = {
        .inventory = options->inventory,
        .kinds = WIRE_NEWS_ALL,
        .interval = SHOW_INTERVAL,
    };
    struct status_watcher watcher = {.json = options->json};
    const struct watch_subject subject = {
        .context = &watcher,
        .json = options->json,
        .update = update_view,
        .write = write_view,
        .fingerprint = find_fingerprint,
        .wait = wait_for_news,
    };
    struct berth_error error = BERTH_ERROR_INIT;
    int code = follower_open(&watcher.follower, &settings, &error);

    if (code < 0) {
        error_wrap(&error, code, "status");
        return output_refusal(&error);
    }
    code = watch_run(&subject, "status");
    follower_close(&watcher.follower);
    user_names_finish(&watcher.users);
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
        return watch_status(&options);
    if (options.complete != KNOWN_IDS_NONE)
        return known_ids_print(options.complete, options.inventory);
    code = connect_open(&connection, options.inventory, &error);
    if (code < 0) {
        error_wrap(&error, code, "status");
        return output_refusal(&error);
    }
    code = show_status(&options, &connection);
    connect_close(&connection);
    return code;
}

const struct verb verb_status = {
    .name = "status",
    .usage = "[options]",
    .summary = "show devices, their holders, and the queue",
    .description = "Shows the devices of the pool: their holders, since when, and for how much "
                   "longer. Then it shows the queue in its order: why each claim waits and, where "
                   "the time limits of the holders allow one, an estimate of its start.",
    .examples = "berth status --watch\n"
                "berth status --json | jq '.queue[].why'\n",
    .sets = status_sets,
    .run = run_status_verb,
};
