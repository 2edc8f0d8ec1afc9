/* SPDX-License-Identifier: Apache-2.0
 *
 * berth daemon: berth becomes the program berthd.
 */
#include "base/count.h"
#include "cli/programs/program_options.h"
#include "cli/verbs.h"
#include "spec/configuration/configuration.h"
#include "spec/option_types.h"

#define OPTION(member) .offset = offsetof(struct daemon_options, member)

static const struct option daemon_rows[] = {
    {.name = "socket",
     .argument = "PATH",
     .help = "listen here (default BERTH_SOCKET or " MACHINE_SOCKET ")",
     OPTION(socket),
     .parse = option_type_string},
    {.name = "own",
     .argument = "DIRECTORY",
     .help = "private daemon: socket in DIRECTORY, end when idle",
     OPTION(own),
     .parse = option_type_string},
    {.name = "inventory",
     .argument = "FILE",
     .help = "use the devices in this file, not the hardware",
     OPTION(inventory),
     .parse = option_type_string},
    {.name = "config",
     .argument = "FILE",
     .help = "configuration file (default " CONFIGURATION_MACHINE_FILE ")",
     OPTION(configuration),
     .parse = option_type_string},
    {.name = "log",
     .argument = "FILE",
     .help = "append the log to this file, not to standard error",
     OPTION(log),
     .parse = option_type_string},
    {.name = "user",
     .argument = "NAME",
     .help = "run as this user; can still manage all processes",
     OPTION(user),
     .parse = option_type_string},
    {.name = "idle",
     .argument = "DURATION",
     .help = "with --own: end after this idle time (default 1m)",
     OPTION(idle),
     .parse = option_type_duration},
    {.name = "check-config",
     .help = "check the configuration and exit",
     OPTION(check),
     .parse = option_type_flag},
};

const struct option_set daemon_option_set = {
    .heading = "Options",
    .options = daemon_rows,
    .count = COUNT(daemon_rows),
};

static const struct option_set *const daemon_sets[] = {&daemon_option_set, NULL};

const struct verb verb_daemon = {
    .name = "daemon",
    .usage = "[options]",
    .summary = "run the pool's daemon",
    .description =
        "Runs the daemon that allocates this machine's devices. Users rarely need this: "
        "the first command starts a private daemon if the machine has none. SIGHUP makes "
        "the daemon read its configuration again. SIGTERM ends it; the next daemon "
        "continues with the same leases and queue.",
    .examples = "berth daemon --check-config\n"
                "berth daemon --socket /tmp/pool.sock --inventory pool.yaml\n",
    .sets = daemon_sets,
    .program = "berthd",
};
