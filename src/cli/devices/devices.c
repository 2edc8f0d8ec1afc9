/* SPDX-License-Identifier: Apache-2.0
 *
 * berth devices: what is here.
 */
#include "base/count.h"
#include "base/error.h"
#include "cli/devices/devices_scan.h"
#include "cli/devices/devices_watch.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "spec/option_types.h"

struct devices_options {
    const char *inventory;
    const char *deadline;
    bool json;
    bool watch;
};

static const struct option devices_rows[] = {
    {.name = "watch",
     .help = "go on showing it, every second; Ctrl-C ends it",
     .offset = offsetof(struct devices_options, watch),
     .parse = option_type_flag},
    {.name = "inventory",
     .argument = "FILE",
     .help = "the devices of this file instead of the hardware",
     .offset = offsetof(struct devices_options, inventory),
     .parse = option_type_string},
    {.name = "deadline",
     .argument = "DURATION",
     .help = "show what is known by then of the hardware (3s)",
     .offset = offsetof(struct devices_options, deadline),
     .parse = option_type_string},
    {.name = "json",
     .help = "print JSON (berth.devices/1); with --watch one line each time something changed",
     .offset = offsetof(struct devices_options, json),
     .parse = option_type_flag},
};

static const struct option_set devices_option_set = {
    .heading = "Options",
    .options = devices_rows,
    .count = COUNT(devices_rows),
};

static const struct option_set *const devices_sets[] = {&devices_option_set, NULL};

/* Looks for the first time, and shows it. Returns an exit code. */
static int scan_and_show(const struct devices_options *options, struct devices_scan *scan)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int code = devices_scan_update(scan, &error);

    if (code < 0) {
        error_wrap(&error, code, "devices");
        return output_refusal(&error);
    }
    return options->watch ? devices_watch(scan, options->json) : devices_show(scan, options->json);
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
    .summary = "what is here: devices, memory, load, health, processes and links",
    .description = "Lists the devices with what is known about them, the processes that use them, "
                   "and how they are linked. What is not known shows as - or is left out; in JSON "
                   "it is null. What could not be read is told on standard error.",
    .sets = devices_sets,
    .run = run_devices_verb,
};
