/* SPDX-License-Identifier: Apache-2.0
 *
 * berth top: becomes berth-top, which is a program of its own.
 */
#include "base/count.h"
#include "cli/programs/top_options.h"
#include "cli/verbs.h"
#include "spec/option_types.h"

static const struct option top_rows[] = {
    {.name = "sort",
     .argument = "COLUMN",
     .choices = view_column_names,
     .help = "sort by this column, in each pane that has it",
     .offset = offsetof(struct top_options, column),
     .parse = option_type_choice},
    {.name = "filter",
     .argument = "WORDS",
     .help = "show only what has these words: user, name, id, state",
     .offset = offsetof(struct top_options, filter),
     .parse = option_type_string},
    {.name = "interval",
     .argument = "DURATION",
     .help = "look at the devices so often (1s)",
     .offset = offsetof(struct top_options, interval),
     .parse = option_type_duration},
    {.name = "inventory",
     .argument = "FILE",
     .help = "the pool of this file's devices instead of the hardware's",
     .offset = offsetof(struct top_options, inventory),
     .parse = option_type_string},
};

const struct option_set top_option_set = {
    .heading = "Options",
    .options = top_rows,
    .count = COUNT(top_rows),
};

static const struct option_set *const top_sets[] = {&top_option_set, NULL};

const struct verb verb_top = {
    .name = "top",
    .usage = "[options]",
    .summary = "devices, leases and the queue on a full screen, live",
    .description = "Shows devices with their load and its history, leases and the queue, as they "
                   "change, until q is pressed. Keys sort, filter, and release or cancel what is "
                   "yours, after asking; h lists them.",
    .sets = top_sets,
    .program = "berth-top",
};
