/* SPDX-License-Identifier: Apache-2.0
 *
 * berth sim: executes the program berth-sim.
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
    .summary = "simulate a cluster with traces of pods or jobs",
    .description = "Replays traces of real clusters with the engine that allocates devices. 'berth "
                   "sim place' measures how well policies fill a cluster, 'berth sim queue' how "
                   "long jobs wait. Executes berth-sim.",
    .examples = "berth sim place --nodes nodes.csv --pods pods.csv --policy first,frag\n"
                "berth sim queue --jobs jobs.csv --nodes 90 --gpus-per-node 8\n",
    .sets = no_sets,
    .subcommands = subcommands,
    .program = "berth-sim",
};
