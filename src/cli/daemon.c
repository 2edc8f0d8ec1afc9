/* SPDX-License-Identifier: Apache-2.0
 *
 * berth daemon: becomes berthd, which is a program of its own.
 */
#include "cli/verbs.h"

static int run(int argc, char **argv)
{
    (void)argc;
    return verb_become(&verb_daemon, "berthd", argv);
}

static const struct option_set *const no_sets[] = {NULL};

const struct verb verb_daemon = {
    .name = "daemon",
    .usage = "[options]",
    .summary = "run the pool's daemon",
    .description =
        "Becomes berthd, the daemon of a pool. Every user's own is started on demand, so "
        "this is for a pool of the whole machine. 'berth daemon --help' lists the "
        "options.",
    .sets = no_sets,
    .run = run,
};
