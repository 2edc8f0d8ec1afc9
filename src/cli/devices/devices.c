/* SPDX-License-Identifier: Apache-2.0
 *
 * berth devices: the devices of this machine, once or with --watch.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "cli/devices/devices_output.h"
#include "cli/devices/devices_scan.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "cli/watch.h"
#include "spec/option_types.h"

/* The time from one scan to the next. */
static const int64_t scan_interval = DURATION_SECOND;

struct devices_options {
    const char *inventory;
    const char *deadline;
    bool json;
    bool watch;
};

static const struct option devices_rows[] = {
    {.name = "watch",
     .help = "show continuously, updated every second; Ctrl-C ends",
     .offset = offsetof(struct devices_options, watch),
     .parse = option_type_flag},
    {.name = "inventory",
     .argument = "FILE",
     .help = "show the devices of this file, not the hardware",
     .offset = offsetof(struct devices_options, inventory),
     .parse = option_type_string},
    {.name = "deadline",
     .argument = "DURATION",
     .help = "time limit for reading the hardware (default 3s)",
     .offset = offsetof(struct devices_options, deadline),
     .parse = option_type_string},
    {.name = "json",
     .help = "print JSON (berth.devices/1); with --watch a line per change",
     .offset = offsetof(struct devices_options, json),
     .parse = option_type_flag},
};

static const struct option_set devices_option_set = {
    .heading = "Options",
    .options = devices_rows,
    .count = COUNT(devices_rows),
};

static const struct option_set *const devices_sets[] = {&devices_option_set, NULL};

struct devices_watcher {
    struct devices_scan *scan;
    struct user_names users;
    bool json;
    bool repeats;    /* --watch */
    int64_t scan_at; /* when the next scan is due; 0: the first scan is not shown yet */
};

static void write_nothing_found(const struct devices_scan *scan, struct text *out)
{
    if (scan->source.is_virtual) {
        text_append(out, "No device found: the inventory lists none.\n");
    } else if (scan->hidden > 0) {
        text_append(out, "No GPU visible here: ");
        devices_scan_write_hidden(scan, out);
        text_append(out, ".\n");
    } else if (scan->report.problems.count > 0) {
        text_append(out,
                    "No GPU found on this machine, but reading some of the hardware failed.\n");
    } else {
        text_append(out,
                    "No GPU found on this machine. To try berth without one: --inventory FILE\n");
    }
}

static void write_tables(const struct devices_scan *scan, const struct devices_picture *picture,
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

/* Appends the newest scan. */
static void write_scan(struct devices_watcher *watcher, struct text *out)
{
    const struct devices_picture picture = {
        .report = &watcher->scan->report,
        .slots = watcher->scan->slots,
        .users = &watcher->users,
        .terminal = terminal_detect(STDOUT_FILENO),
        .now = clock_read(CLOCK_REALTIME),
        .pool_says = watcher->scan->pool.is_known,
    };
    const struct problem_list *problems = &watcher->scan->report.problems;

    if (watcher->json) {
        devices_write_json(&picture, watcher->repeats ? JSON_COMPACT : JSON_INDENTED, out);
        return;
    }
    write_tables(watcher->scan, &picture, out);
    if (watcher->repeats && problems->count > 0) {
        text_append_char(out, '\n');
        machine_source_write_problems(problems, "", out);
    }
}

/* Prints problems to stderr. They do not change the exit code. */
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

static int show_devices(struct devices_scan *scan, bool json)
{
    struct devices_watcher watcher = {.scan = scan, .json = json};
    struct text out = {0};
    int code;

    write_scan(&watcher, &out);
    code = output_write(&out);
    if (code == EXIT_GOOD && !json)
        code = print_problems(&scan->report.problems);
    text_finish(&out);
    user_names_finish(&watcher.users);
    return code;
}

/* watch_subject.update. The first scan was made before. If a later scan fails, the last one is
 * shown and marked as old until a scan succeeds again. */
static int update_scan(void *context, bool on_screen, struct berth_error *error)
{
    struct devices_watcher *watcher = context;
    int64_t now = clock_now();
    int code = 0;

    (void)on_screen;
    if (now < watcher->scan_at)
        return 0;
    if (watcher->scan_at != 0)
        code = devices_scan_update(watcher->scan, error);
    watcher->scan_at = now + scan_interval;
    if (code == BERTH_ERROR_IO) {
        devices_scan_mark_stale(watcher->scan, error);
        *error = (struct berth_error)BERTH_ERROR_INIT;
        code = 0;
    }
    return code < 0 ? code : 1;
}

/* watch_subject.write */
static void write_picture(void *context, bool on_screen, struct text *out)
{
    (void)on_screen;
    write_scan(context, out);
}

/* watch_subject.wait */
static int64_t wait_for_scan(void *context, int *ret_descriptor)
{
    const struct devices_watcher *watcher = context;

    *ret_descriptor = -1;
    return watcher->scan_at - clock_now();
}

static int watch_devices(struct devices_scan *scan, bool json)
{
    struct devices_watcher watcher = {.scan = scan, .json = json, .repeats = true};
    const struct watch_subject subject = {
        .context = &watcher,
        .json = json,
        .has_time = true,
        .update = update_scan,
        .write = write_picture,
        .wait = wait_for_scan,
    };
    int code = watch_run(&subject, "devices");

    user_names_finish(&watcher.users);
    return code;
}

/* Scans for the first time and shows the result. Returns an exit code. */
static int scan_and_show(const struct devices_options *options, struct devices_scan *scan)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int code = devices_scan_update(scan, &error);

    if (code < 0) {
        error_wrap(&error, code, "devices");
        return output_refusal(&error);
    }
    return options->watch ? watch_devices(scan, options->json) : show_devices(scan, options->json);
}

static int run_devices_verb(int argc, char **argv)
{
    struct devices_options options = {0};
    const struct option_binding bindings[] = {{&devices_option_set, &options}};
    struct berth_error error = BERTH_ERROR_INIT;
    struct devices_scan scan;
    int code;

    if (!verb_begin(&verb_devices, bindings, 1, argc, argv, &code))
        return code;
    code = devices_scan_open(&scan, options.inventory, options.deadline, &error);
    if (code < 0) {
        error_wrap(&error, code, "devices");
        return output_error(&error);
    }
    code = scan_and_show(&options, &scan);
    devices_scan_close(&scan);
    return code;
}

const struct verb verb_devices = {
    .name = "devices",
    .usage = "[options]",
    .summary = "show devices, memory, load, health, processes and links",
    .description =
        "Lists the devices with their properties and load, the processes that use them, and the "
        "links between them. Unknown values show as - or are left out; in JSON they are null. "
        "Problems while reading go to standard error.",
    .examples = "berth devices --watch\n"
                "berth devices --json | jq '.devices[].id'\n",
    .sets = devices_sets,
    .run = run_devices_verb,
};
