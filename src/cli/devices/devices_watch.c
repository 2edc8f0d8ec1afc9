/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/devices/devices_watch.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "cli/devices/devices_output.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/screen.h"

/* The time from one look to the next. */
static const int64_t interval = DURATION_SECOND;

struct devices_watcher {
    struct devices_scan *scan;
    struct user_names users;
    bool json;
    bool repeats;       /* it is not shown once only */
    struct text before; /* what was shown last */
};

static void write_nothing_found(const struct devices_scan *scan, struct text *out)
{
    if (scan->source.is_virtual) {
        text_append(out, "No device found: the inventory lists none.\n");
    } else if (scan->hidden > 0) {
        text_append(out, "No GPU to be seen here: ");
        devices_scan_write_hidden(scan, out);
        text_append(out, ".\n");
    } else if (scan->report.problems.count > 0) {
        text_append(out, "No GPU found on this machine, but not everything could be read.\n");
    } else {
        text_append(out,
                    "No GPU found on this machine. To try berth without one: --inventory FILE\n");
    }
}

static void write_text(const struct devices_scan *scan, const struct devices_picture *picture,
                       struct text *out)
{
    if (scan->report.machine.devices.count == 0) {
        write_nothing_found(scan, out);
        return;
    }
    devices_write_table(picture, out);
    if (scan->hidden > 0) {
        text_append_char(out, '\n');
        devices_scan_write_hidden(scan, out);
        text_append_char(out, '\n');
    }
}

/* Appends the newest look. */
static void write_scan(struct devices_watcher *watch, struct text *out)
{
    const struct devices_picture picture = {
        .report = &watch->scan->report,
        .slots = watch->scan->slots,
        .users = &watch->users,
        .terminal = terminal_detect(STDOUT_FILENO),
        .now = clock_read(CLOCK_REALTIME),
        .pool_says = watch->scan->pool.is_known,
    };
    const struct problem_list *problems = &watch->scan->report.problems;

    if (watch->json) {
        devices_write_json(&picture, watch->repeats ? JSON_COMPACT : JSON_INDENTED, out);
        return;
    }
    write_text(watch->scan, &picture, out);
    if (watch->repeats && problems->count > 0) {
        text_append_char(out, '\n');
        machine_source_write_problems(problems, "", out);
    }
}

/* Problems stand beside the answer, they do not make it a failure. */
static int print_problems(const struct problem_list *problems)
{
    struct text out = {0};
    int code = EXIT_GOOD;

    machine_source_write_problems(problems, "berth: ", &out);
    if (text_failed(&out)) {
        struct berth_error error = BERTH_ERROR_INIT;

        error_set_memory(&error);
        code = output_error(&error);
    } else {
        fputs(text_string(&out), stderr);
    }
    text_finish(&out);
    return code;
}

int devices_show(struct devices_scan *scan, bool json)
{
    struct devices_watcher watch = {.scan = scan, .json = json};
    struct text out = {0};
    int code;

    write_scan(&watch, &out);
    code = output_write(&out);
    if (code == EXIT_GOOD && !json)
        code = print_problems(&scan->report.problems);
    text_finish(&out);
    user_names_finish(&watch.users);
    return code;
}

/* The time stands above what was seen then. */
static void write_headline(struct text *out)
{
    text_append(out, quantity_format_time(clock_read(CLOCK_REALTIME)).text);
    text_append_char(out, '\n');
}

/* Takes over what is shown now. */
static void keep_shown(struct devices_watcher *watch, struct text *shown)
{
    text_finish(&watch->before);
    watch->before = *shown;
}

/* Prints a block, or a line of JSON, when it is another than the last. */
static int print_change(struct devices_watcher *watch)
{
    bool first = watch->before.length == 0;
    struct text shown = {0};
    struct text out = {0};
    int code = EXIT_GOOD;

    write_scan(watch, &shown);
    if (first || text_failed(&shown) ||
        strcmp(text_string(&shown), text_string(&watch->before)) != 0) {
        if (!watch->json) {
            text_append(&out, first ? "" : "\n");
            write_headline(&out);
            text_append_char(&out, '\n');
        }
        text_append(&out, text_string(&shown));
        out.failed |= shown.failed;
        code = output_write(&out);
    }
    text_finish(&out);
    keep_shown(watch, &shown);
    return code;
}

static int draw_devices(struct devices_watcher *watch)
{
    struct text out = {0};
    int code;

    write_headline(&out);
    text_append_char(&out, '\n');
    write_scan(watch, &out);
    code = screen_draw(&out);
    text_finish(&out);
    return code;
}

/* Looks again. What cannot be looked at is shown as it was; it may come back. */
static int scan_again(struct devices_watcher *watch, struct berth_error *error)
{
    int code = devices_scan_update(watch->scan, error);

    if (code != BERTH_ERROR_IO)
        return code;
    devices_scan_mark_stale(watch->scan, error);
    *error = (struct berth_error)BERTH_ERROR_INIT;
    return 0;
}

int devices_watch(struct devices_scan *scan, bool json)
{
    struct devices_watcher watch = {.scan = scan, .json = json, .repeats = true};
    bool on_screen = !json && screen_is_supported();
    struct berth_error error = BERTH_ERROR_INIT;
    int64_t next;
    int code;

    if (on_screen)
        screen_enter();
    do {
        next = clock_now() + interval;
        code = on_screen ? draw_devices(&watch) : print_change(&watch);
    } while (code == EXIT_GOOD && screen_pause(-1, next - clock_now()) &&
             scan_again(&watch, &error) == 0);
    if (on_screen)
        screen_leave();
    text_finish(&watch.before);
    user_names_finish(&watch.users);
    if (error.code == 0)
        return code;
    error_wrap(&error, error.code, "devices");
    return output_refusal(&error);
}
