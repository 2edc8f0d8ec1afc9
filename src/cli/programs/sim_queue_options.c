/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of berth sim queue. sim_queue.c runs it.
 */
#include "base/count.h"
#include "cli/programs/sim_options.h"
#include "spec/option_types.h"

const struct choice queue_order_names[] = {
    {"fifo", QUEUE_FIFO}, {"easy", QUEUE_EASY}, {"skip", QUEUE_SKIP}, {"sjf", QUEUE_SJF}, {NULL, 0},
};

const struct choice queue_estimate_names[] = {
    {"exact", QUEUE_EXACT},
    {"over3", QUEUE_OVER3},
    {"under", QUEUE_UNDER},
    {NULL, 0},
};

#define OPTION(member) .offset = offsetof(struct sim_queue_options, member)

static const struct option queue_rows[] = {
    {.name = "jobs",
     .argument = "FILE",
     .help = "CSV with columns timestamp, duration, num_gpus",
     OPTION(jobs),
     .parse = option_type_string},
    {.name = "nodes",
     .argument = "N",
     .help = "number of nodes",
     OPTION(nodes),
     .parse = option_type_string},
    {.name = "gpus-per-node",
     .argument = "N",
     .help = "GPUs of each node",
     OPTION(gpus),
     .parse = option_type_string},
    {.name = "order",
     .argument = "ORDER",
     .choices = queue_order_names,
     .help = "order of the jobs: easy (default), fifo, skip or sjf",
     OPTION(order),
     .parse = option_type_choice},
    {.name = "estimate",
     .argument = "HOW",
     .choices = queue_estimate_names,
     .help = "time limits of the jobs: exact (default), over3 or under",
     OPTION(estimate),
     .parse = option_type_choice},
    {.name = "policy",
     .argument = "NAME",
     .help = "placement policy (default pack)",
     OPTION(policy),
     .parse = option_type_string},
    {.name = "json",
     .help = "print JSON (berth.sim-queue/1)",
     OPTION(json),
     .parse = option_type_flag},
};

const struct option_set sim_queue_option_set = {
    .heading = "Options",
    .options = queue_rows,
    .count = COUNT(queue_rows),
};

static const struct option_set *const queue_sets[] = {&sim_queue_option_set, NULL};

const struct verb verb_sim_queue = {
    .name = "sim queue",
    .usage = "--jobs FILE --nodes N --gpus-per-node N [options]",
    .summary = "measure how long jobs wait",
    .description = "Replays a trace of jobs on a cluster of equal nodes with the engine that "
                   "allocates devices, in simulated time. Prints how long the jobs wait, and how "
                   "many start later than promised. berth-sim(1) explains the orders and the time "
                   "limits.",
    .examples = "berth sim queue --jobs jobs.csv --nodes 90 --gpus-per-node 8\n"
                "berth sim queue --jobs jobs.csv --nodes 90 --gpus-per-node 8 --order fifo\n",
    .sets = queue_sets,
};
