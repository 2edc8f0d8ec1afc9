/* SPDX-License-Identifier: Apache-2.0
 *
 * berth top: berth becomes the program berth-top.
 */
#include "base/count.h"
#include "cli/programs/program_options.h"
#include "cli/verbs.h"
#include "spec/option_types.h"

static const struct option top_rows[] = {
    {.name = "sort",
     .argument = "COLUMN",
     .choices = view_column_names,
     .help = "sort by this column, in every pane that has it",
     .offset = offsetof(struct top_options, column),
     .parse = option_type_choice},
    {.name = "filter",
     .argument = "WORDS",
     .help = "show only rows with these words (user, name, id, state)",
     .offset = offsetof(struct top_options, filter),
     .parse = option_type_string},
    {.name = "interval",
     .argument = "DURATION",
     .help = "time between updates (default 1s)",
     .offset = offsetof(struct top_options, interval),
     .parse = option_type_duration},
    {.name = "inventory",
     .argument = "FILE",
     .help = "use the pool of this inventory file",
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
    .summary = "show devices, leases and the queue live, full screen",
    .description =
        "Shows devices with their load, leases and the queue, and updates them until you "
        "press q. Keys sort and filter the rows, and release or cancel your own jobs "
        "after you confirm. The key h lists all keys.",
    .examples = "berth top\n"
                "berth top --sort memory --filter alice\n",
    .sets = top_sets,
    .program = "berth-top",
};
