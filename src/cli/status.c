/* SPDX-License-Identifier: Apache-2.0
 *
 * berth status: who holds what, and who waits for what.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "base/quantity.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/reach.h"
#include "cli/screen.h"
#include "cli/status_output.h"
#include "cli/verbs.h"
#include "spec/option_types.h"

struct status_options {
    const char *inventory;
    bool json;
    bool watch;
};

static const struct option status_rows[] = {
    {.name = "watch",
     .help = "go on showing it, redrawn when it changes; Ctrl-C ends it",
     .offset = offsetof(struct status_options, watch),
     .take = option_flag},
    {.name = "inventory",
     .argument = "FILE",
     .help = "the pool of this file's devices instead of the hardware's",
     .offset = offsetof(struct status_options, inventory),
     .take = option_string},
    {.name = "json",
     .help = "print JSON (berth.status/1); with --watch one line each time something changed",
     .offset = offsetof(struct status_options, json),
     .take = option_flag},
};

static const struct option_set status_option_set = {
    .heading = "Options",
    .options = status_rows,
    .count = COUNT(status_rows),
};

static const struct option_set *const status_sets[] = {&status_option_set, NULL};

struct watch {
    const struct status_options *options;
    struct reach *reach;
    struct user_names users;
    struct pool_view view; /* the newest */
    uint64_t printed;      /* the fingerprint of what was printed last */
    bool has_printed;
    bool on_screen;
};

/* Appends the view, with a note at its headline. */
static void write_view(struct watch *watch, const char *note, bool stale, struct text *out)
{
    struct status_picture picture = {
        .view = &watch->view,
        .address = &watch->reach->address,
        .users = &watch->users,
        .terminal = terminal_of(STDOUT_FILENO),
        .note = note,
        .stale = stale,
    };

    if (watch->options->json)
        status_write_json(&picture, watch->options->watch ? JSON_COMPACT : JSON_INDENTED, out);
    else
        status_write(&picture, out);
}

static int print_once(struct watch *watch)
{
    struct text out = {0};
    int code;

    write_view(watch, NULL, false, &out);
    code = output_write(&out);
    text_finish(&out);
    return code;
}

/* Prints a block, or a line of JSON, when something has changed since the last. */
static int print_change(struct watch *watch)
{
    uint64_t fingerprint = pool_view_fingerprint(&watch->view);
    struct text out = {0};
    int code;

    if (watch->has_printed && fingerprint == watch->printed)
        return EXIT_GOOD;
    if (watch->has_printed && !watch->options->json)
        text_append_char(&out, '\n');
    write_view(watch, quantity_format_time(watch->view.look.time).text, false, &out);
    code = output_write(&out);
    text_finish(&out);
    watch->printed = fingerprint;
    watch->has_printed = true;
    return code;
}

/* Draws the view; a note says that it is old. */
static int draw(struct watch *watch, const char *note)
{
    struct text out = {0};
    int code;

    write_view(watch, note, note != NULL, &out);
    code = screen_draw(&out);
    text_finish(&out);
    return code;
}

/* Says that what is shown grows old, then dials again. Returns 0 or an error. */
static int reach_again(struct watch *watch, struct berth_error *error)
{
    struct berth_error lost = *error;
    char note[128];

    snprintf(note, sizeof(note), "as it was at %s: the daemon is gone, dialling again",
             quantity_format_time(watch->view.look.time).text);
    if (watch->on_screen) {
        draw(watch, note);
    } else {
        error_wrap(&lost, lost.code, "status: dialling again");
        output_error(&lost);
    }
    return session_again(&watch->reach->session, error);
}

/* Looks again. Returns 0 with a newer view, or an error. */
static int look_again(struct watch *watch, struct berth_error *error)
{
    struct pool_view view;
    int code = pool_view_take(&watch->reach->session, &view, error);

    if (code == BERTH_ERROR_IO) {
        code = reach_again(watch, error);
        if (code == 0)
            code = pool_view_get(&watch->reach->session, &view, error);
    }
    if (code < 0)
        return code;
    pool_view_finish(&watch->view);
    watch->view = view;
    return 0;
}

/* With the first view there: shows it for ever. Returns an exit code. */
static int watch_pool(struct watch *watch)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int code = EXIT_GOOD;

    watch->on_screen = !watch->options->json && screen_works();
    if (watch->on_screen)
        screen_enter();
    do {
        code = watch->on_screen ? draw(watch, NULL) : print_change(watch);
    } while (code == EXIT_GOOD && screen_pause(DURATION_SECOND) && look_again(watch, &error) == 0);
    if (watch->on_screen)
        screen_leave();
    if (error.code == 0)
        return code;
    error_wrap(&error, error.code, "status");
    return output_refusal(&error);
}

static int show(const struct status_options *options, struct reach *reach)
{
    struct watch watch = {.options = options, .reach = reach};
    struct berth_error error = BERTH_ERROR_INIT;
    int code = pool_view_get(&reach->session, &watch.view, &error);

    if (code < 0) {
        error_wrap(&error, code, "status");
        return output_refusal(&error);
    }
    code = options->watch ? watch_pool(&watch) : print_once(&watch);
    pool_view_finish(&watch.view);
    user_names_finish(&watch.users);
    return code;
}

static int run(int argc, char **argv)
{
    struct status_options options = {0};
    const struct option_binding bindings[] = {{&status_option_set, &options}};
    struct berth_error error = BERTH_ERROR_INIT;
    struct reach reach;
    int code;

    if (!verb_begin(&verb_status, bindings, 1, argc, argv, &code))
        return code;
    code = reach_open(&reach, options.inventory, &error);
    if (code < 0) {
        error_wrap(&error, code, "status");
        return output_refusal(&error);
    }
    code = show(&options, &reach);
    reach_close(&reach);
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
    .run = run,
};
