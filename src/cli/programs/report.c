/* SPDX-License-Identifier: Apache-2.0
 *
 * berth report: becomes berth-history, which is a program of its own.
 */
#include "base/count.h"
#include "cli/programs/history_options.h"
#include "cli/verbs.h"
#include "spec/option_types.h"

static const struct option report_rows[] = {
    {.name = "by",
     .argument = "WHAT",
     .choices = history_by_names,
     .help = "a line for each user (usual), for each name of jobs, or for each device",
     .offset = offsetof(struct report_options, by),
     .parse = option_type_choice},
};

const struct option_set report_option_set = {
    .heading = "Lines",
    .options = report_rows,
    .count = COUNT(report_rows),
};

static const struct option_set *const report_sets[] = {&history_filter_option_set,
                                                       &report_option_set, NULL};

const struct verb verb_report = {
    .name = "report",
    .usage = "[options]",
    .summary = "GPU-hours and waiting by user, job name or device",
    .description = "Adds up the leases that the pool has given out: how many, the GPU-hours that "
                   "they took (a share of a device counts as that share), how long was waited for "
                   "them, and which part of the time they were not used. Of leases that reach "
                   "beyond --since or --until, the part inside counts; leases within others are "
                   "part of those.",
    .sets = report_sets,
    .program = "berth-history",
    .program_name = "berth-report",
};
