/* SPDX-License-Identifier: Apache-2.0
 *
 * berth devices: what is here.
 */
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "cli/devices_output.h"
#include "cli/machine_source.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "spec/option_types.h"

struct devices_options {
    const char *inventory;
    bool json;
};

static const struct option devices_rows[] = {
    {.name = "inventory",
     .argument = "FILE",
     .help = "the devices of this file instead of the hardware",
     .offset = offsetof(struct devices_options, inventory),
     .take = option_string},
    {.name = "json",
     .help = "print JSON (berth.devices/1)",
     .offset = offsetof(struct devices_options, json),
     .take = option_flag},
};

static const struct option_set devices_option_set = {
    .heading = "Options",
    .options = devices_rows,
    .count = COUNT(devices_rows),
};

static const struct option_set *const devices_sets[] = {&devices_option_set, NULL};

static int print(const struct devices_options *options, const struct machine *machine,
                 bool is_virtual)
{
    struct terminal terminal = terminal_of(STDOUT_FILENO);
    struct text out = {0};
    int code;

    if (options->json)
        devices_write_json(machine, &out);
    else if (machine->devices.count > 0)
        devices_write_table(machine, &terminal, &out);
    else if (is_virtual)
        text_append(&out, "No device found: the inventory lists none.\n");
    else
        text_append(&out, "No device found: this version of berth reads inventory files only "
                          "(--inventory FILE).\n");
    code = output_write(&out);
    text_finish(&out);
    return code;
}

static int run(int argc, char **argv)
{
    struct devices_options options = {0};
    const struct option_binding bindings[] = {{&devices_option_set, &options}};
    struct berth_error error = BERTH_ERROR_INIT;
    struct machine machine;
    bool is_virtual;
    int code;

    if (!verb_begin(&verb_devices, bindings, 1, argc, argv, &code))
        return code;
    code = machine_source_read(options.inventory, &machine, &is_virtual, &error);
    if (code < 0) {
        error_wrap(&error, code, "devices");
        return output_error(&error);
    }
    code = print(&options, &machine, is_virtual);
    machine_finish(&machine);
    return code;
}

const struct verb verb_devices = {
    .name = "devices",
    .usage = "[options]",
    .summary = "what is here: devices, memory, load, health and links",
    .description = "Lists the devices with what is known about them, and how they are linked. "
                   "What is not known shows as - or is left out; in JSON it is null.",
    .sets = devices_sets,
    .run = run,
};
