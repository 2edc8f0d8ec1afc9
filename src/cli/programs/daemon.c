/* SPDX-License-Identifier: Apache-2.0
 *
 * berth daemon: becomes berthd, which is a program of its own.
 */
#include "base/count.h"
#include "cli/programs/daemon_options.h"
#include "cli/verbs.h"
#include "spec/option_types.h"

#define OPTION(member) .offset = offsetof(struct daemon_options, member)

static const struct option daemon_rows[] = {
    {.name = "socket",
     .argument = "PATH",
     .help = "listen here (default: BERTH_SOCKET, else " MACHINE_SOCKET ")",
     OPTION(socket),
     .parse = option_type_string},
    {.name = "own",
     .argument = "DIRECTORY",
     .help = "be the user's own: the socket in this directory, gone after being idle",
     OPTION(own),
     .parse = option_type_string},
    {.name = "inventory",
     .argument = "FILE",
     .help = "the devices of this file instead of the hardware",
     OPTION(inventory),
     .parse = option_type_string},
    {.name = "config",
     .argument = "FILE",
     .help = "the rules (default " MACHINE_RULES ", or berth/berth.yaml in the user's own "
             "configuration)",
     OPTION(configuration),
     .parse = option_type_string},
    {.name = "log",
     .argument = "FILE",
     .help = "append the log to this file (default: standard error)",
     OPTION(log),
     .parse = option_type_string},
    {.name = "user",
     .argument = "NAME",
     .help = "started by root: run as this user, with the rights to signal and to see everybody's "
             "processes",
     OPTION(user),
     .parse = option_type_string},
    {.name = "idle",
     .argument = "DURATION",
     .help = "how long the user's own stays when nobody uses it (default 1m)",
     OPTION(idle),
     .parse = option_type_duration},
    {.name = "check-config",
     .help = "only say whether the rules are good",
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
    .description = "Runs the daemon that gives out this machine's devices. Usually nobody has to: "
                   "the first command starts the user's own. SIGHUP makes it read its rules again, "
                   "SIGTERM ends it; leases and the queue are kept for the next one.",
    .sets = daemon_sets,
    .program = "berthd",
};
