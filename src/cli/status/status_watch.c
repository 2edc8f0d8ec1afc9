/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/status/status_watch.h"

#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/screen.h"
#include "cli/status/status_output.h"
#include "view/follower.h"
#include "view/pool_fingerprint.h"
#include "view/pool_json.h"

/* Times are shown in seconds, so a screen is drawn at least this often. */
#define REDRAW_INTERVAL DURATION_SECOND
/* What changes faster is not shown faster. */
#define SHOW_INTERVAL (DURATION_SECOND / 5)
/* For how long a daemon that is gone is looked for. */
#define RECONNECT_TIMEOUT (30 * DURATION_SECOND)

struct status_watcher {
    struct follower follower;
    struct user_names users;
    bool json;
    bool on_screen;
    uint64_t printed; /* the fingerprint of what was printed last */
    bool has_printed;
    int64_t drawn_at;          /* when the screen was drawn last */
    enum follower_state drawn; /* and how it stood with the daemon then */
    int64_t gone_since;        /* 0: it is there */
};

void status_append_view(const struct status_display *shown, const struct pool_view *view,
                        const char *note, struct text *out)
{
    struct status_picture picture = {
        .view = view,
        .address = shown->address,
        .users = shown->users,
        .now = shown->now,
        .terminal = terminal_detect(STDOUT_FILENO),
        .note = note,
        .stale = shown->stale,
    };

    if (shown->json)
        pool_json_write(view, shown->users, shown->repeats ? JSON_COMPACT : JSON_INDENTED, out);
    else
        status_write(&picture, out);
}

static void append_newest_view(struct status_watcher *watch, const char *note, bool stale,
                               struct text *out)
{
    const struct status_display shown = {
        .address = &watch->follower.address,
        .users = &watch->users,
        .now = follower_time(&watch->follower),
        .json = watch->json,
        .repeats = true,
        .stale = stale,
    };

    status_append_view(&shown, &watch->follower.view, note, out);
}

/* Prints a block, or a line of JSON, when something has changed since the last. */
static int print_change(struct status_watcher *watch)
{
    uint64_t fingerprint = pool_fingerprint_events(&watch->follower.view);
    struct text out = {0};
    int code;

    if (watch->has_printed && fingerprint == watch->printed)
        return EXIT_GOOD;
    if (watch->has_printed && !watch->json)
        text_append_char(&out, '\n');
    append_newest_view(watch, quantity_format_time(watch->follower.view.snapshot.time).text, false,
                       &out);
    code = output_write(&out);
    text_finish(&out);
    watch->printed = fingerprint;
    watch->has_printed = true;
    return code;
}

/* Draws the view; where it is old, a note says why. */
static int draw_view(struct status_watcher *watch)
{
    enum follower_state state = follower_get_state(&watch->follower);
    struct text out = {0};
    char note[128];
    int code;

    snprintf(note, sizeof(note), "as it was at %s: the daemon %s",
             quantity_format_time(follower_time(&watch->follower)).text,
             state == FOLLOWER_GONE ? "is gone, dialling again" : "does not answer");
    append_newest_view(watch, state == FOLLOWER_LIVE ? NULL : note, state != FOLLOWER_LIVE, &out);
    code = screen_draw(&out);
    text_finish(&out);
    watch->drawn_at = clock_now();
    watch->drawn = state;
    return code;
}

/* Notes since when the daemon is gone, and says so once where no screen does. Returns whether it is
 * still worth waiting for. */
static bool is_worth_waiting(struct status_watcher *watch)
{
    struct berth_error lost = watch->follower.reason;

    if (follower_get_state(&watch->follower) != FOLLOWER_GONE) {
        watch->gone_since = 0;
        return true;
    }
    if (watch->gone_since == 0) {
        watch->gone_since = clock_now();
        if (!watch->on_screen) {
            error_wrap(&lost, lost.code, "status: dialling again");
            output_error(&lost);
        }
    }
    return clock_now() - watch->gone_since < RECONNECT_TIMEOUT;
}

/* Whether a screen is to be drawn though nothing is new. A long queue comes in many parts, each of
 * which wakes us up. */
static bool is_due(const struct status_watcher *watch)
{
    return screen_is_dirty() || watch->drawn_at == 0 ||
           watch->drawn != follower_get_state(&watch->follower) ||
           clock_now() - watch->drawn_at >= REDRAW_INTERVAL;
}

static int show_change(struct status_watcher *watch, uint32_t news)
{
    if (!watch->follower.has_view)
        return EXIT_GOOD;
    if (watch->on_screen)
        return news != 0 || is_due(watch) ? draw_view(watch) : EXIT_GOOD;
    return news == 0 ? EXIT_GOOD : print_change(watch);
}

static int64_t find_timeout(const struct status_watcher *watch)
{
    int64_t wait = follower_next_timeout(&watch->follower);
    int64_t left = watch->drawn_at + REDRAW_INTERVAL - clock_now();

    if (!watch->on_screen || watch->drawn_at == 0 || wait <= left)
        return wait;
    return left > 0 ? left : 0;
}

/* Shows it for ever. Returns an exit code, or 0 with an error. */
static int watch_pool(struct status_watcher *watch, struct berth_error *error)
{
    int code = EXIT_GOOD;
    int news = 0;

    do {
        news = follower_step(&watch->follower, error);
        if (news < 0)
            return EXIT_GOOD;
        code = show_change(watch, (uint32_t)news);
        if (!is_worth_waiting(watch)) {
            *error = watch->follower.reason;
            return EXIT_GOOD;
        }
    } while (code == EXIT_GOOD &&
             screen_pause(follower_descriptor(&watch->follower), find_timeout(watch)));
    return code;
}

int status_watch(const char *inventory, bool json)
{
    const struct follower_settings settings = {
        .inventory = inventory,
        .kinds = WIRE_NEWS_ALL,
        .interval = SHOW_INTERVAL,
    };
    struct status_watcher watch = {.json = json, .on_screen = !json && screen_is_supported()};
    struct berth_error error = BERTH_ERROR_INIT;
    int code = follower_open(&watch.follower, &settings, &error);

    if (code == 0) {
        if (watch.on_screen)
            screen_enter();
        code = watch_pool(&watch, &error);
        if (watch.on_screen)
            screen_leave();
        follower_close(&watch.follower);
    }
    user_names_finish(&watch.users);
    if (error.code == 0)
        return code;
    error_wrap(&error, error.code, "status");
    return output_refusal(&error);
}
