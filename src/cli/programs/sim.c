/* SPDX-License-Identifier: Apache-2.0
 *
 * berth sim: becomes berth-sim, which is a program of its own.
 */
#include "cli/programs/sim_options.h"

static const struct verb *const subcommands[] = {
    &verb_sim_place,
    &verb_sim_queue,
    NULL,
};

static const struct option_set *const no_sets[] = {NULL};

const struct verb verb_sim = {
    .name = "sim",
    .usage = "place | queue [options]",
    .summary = "replay traces through the engine that gives out devices",
    .description = "Becomes berth-sim, which replays traces of real clusters through the engine "
                   "that gives out devices. 'berth sim place' measures how well policies fill a "
                   "cluster, 'berth sim queue' how long jobs wait.",
    .sets = no_sets,
    .subcommands = subcommands,
    .program = "berth-sim",
};
