/* SPDX-License-Identifier: Apache-2.0
 *
 * berth history: becomes berth-history, which is a program of its own.
 */
#include "base/count.h"
#include "base/text/quantity.h"
#include "cli/programs/history_options.h"
#include "cli/verbs.h"

static int parse_count(const struct option *option, void *member, const char *value,
                       struct berth_error *error)
{
    uint64_t count;
    int code = quantity_parse_number(value, 1, INT64_MAX, &count, error);

    (void)option;
    if (code == 0)
        *(struct optional_number *)member = optional_number_of(count);
    return code;
}

static const struct option history_rows[] = {
    {.name = "most",
     .letter = 'n',
     .argument = "N",
     .help = "only the last so many",
     .offset = offsetof(struct history_options, max),
     .parse = parse_count},
};

const struct option_set history_option_set = {
    .heading = "How many",
    .options = history_rows,
    .count = COUNT(history_rows),
};

static const struct option_set *const history_sets[] = {&history_filter_option_set,
                                                        &history_option_set, NULL};

const struct verb verb_history = {
    .name = "history",
    .usage = "[options]",
    .summary = "past leases, the last one first",
    .description = "Lists the leases that the pool has given out, those that are held among them, "
                   "the last one first: who had which devices, how long they waited for them and "
                   "held them, and how it ended. Without --since, all that is kept.",
    .sets = history_sets,
    .program = "berth-history",
};
