/* SPDX-License-Identifier: Apache-2.0
 *
 * The words of berth sim queue; cli/programs/sim_queue.c does what they say.
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
     .help = "the trace: timestamp, duration and num_gpus of each job, as CSV",
     OPTION(jobs),
     .parse = option_type_string},
    {.name = "nodes",
     .argument = "N",
     .help = "how many nodes there are",
     OPTION(nodes),
     .parse = option_type_string},
    {.name = "gpus-per-node",
     .argument = "N",
     .help = "how many GPUs each has",
     OPTION(gpus),
     .parse = option_type_string},
    {.name = "order",
     .argument = "ORDER",
     .choices = queue_order_names,
     .help = "easy: as every pool serves claims, with reservations (the default); fifo: the same "
             "without time limits, so nobody passes; for comparison, skip: whoever fits, in order "
             "of arrival; sjf: whoever fits, the shortest first",
     OPTION(order),
     .parse = option_type_choice},
    {.name = "estimate",
     .argument = "HOW",
     .choices = queue_estimate_names,
     .help =
         "what time limits the jobs have: as long as they take, three times that, or half; then "
         "they are ended there and come back for the rest",
     OPTION(estimate),
     .parse = option_type_choice},
    {.name = "policy",
     .argument = "NAME",
     .help = "the placement policy (pack)",
     OPTION(policy),
     .parse = option_type_string},
    {.name = "json",
     .help = "print a JSON document instead of a table",
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
    .summary = "how long jobs wait",
    .description = "Replays a trace of jobs on a cluster of equal nodes, through the engine that "
                   "gives out devices and on a clock of its own, and tells how long they wait, and "
                   "how many of them started later than they were promised.",
    .sets = queue_sets,
};
