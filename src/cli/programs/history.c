/* SPDX-License-Identifier: Apache-2.0
 *
 * berth history and berth report: berth becomes the program berth-history, which runs both.
 */
#include "base/count.h"
#include "base/text/quantity.h"
#include "cli/programs/history_program.h"
#include "cli/verbs.h"
#include "model/machine/device_id.h"
#include "spec/option_types.h"

/* Parses the id of a device; the member is a const char *. */
static int parse_device(const struct option *option, void *member, const char *value,
                        struct berth_error *error)
{
    struct device_id id;
    int code = device_id_parse(value, &id, error);

    return code < 0 ? code : option_type_string(option, member, value, error);
}

static const struct option history_filter_rows[] = {
    {.name = "user",
     .letter = 'u',
     .argument = "NAME",
     .help = "only leases of this user (name or uid)",
     .offset = offsetof(struct history_filter_options, user),
     .parse = option_type_string},
    {.name = "name",
     .argument = "TEXT",
     .help = "only leases whose name contains this",
     .offset = offsetof(struct history_filter_options, name),
     .parse = option_type_string},
    {.name = "device",
     .argument = "ID",
     .help = "only leases with this device",
     .offset = offsetof(struct history_filter_options, device),
     .parse = parse_device},
    {.name = "since",
     .letter = 's',
     .argument = "TIME",
     .help = "only leases held after TIME: 7d, 24h, 2026-11-01, 2026-11-01T09:30",
     .offset = offsetof(struct history_filter_options, since),
     .parse = option_type_string},
    {.name = "until",
     .argument = "TIME",
     .help = "only leases held before TIME",
     .offset = offsetof(struct history_filter_options, until),
     .parse = option_type_string},
    {.name = "inventory",
     .argument = "FILE",
     .help = "use the pool of this inventory file",
     .offset = offsetof(struct history_filter_options, inventory),
     .parse = option_type_string},
    {.name = "file",
     .argument = "FILE",
     .help = "read this history file instead of the pool's",
     .offset = offsetof(struct history_filter_options, file),
     .parse = option_type_string},
    {.name = "json",
     .help = "print JSON",
     .offset = offsetof(struct history_filter_options, json),
     .parse = option_type_flag},
    {.name = "csv",
     .help = "print comma-separated values with a header",
     .offset = offsetof(struct history_filter_options, csv),
     .parse = option_type_flag},
};

const struct option_set history_filter_option_set = {
    .heading = "Options",
    .options = history_filter_rows,
    .count = COUNT(history_filter_rows),
};

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
     .help = "show at most N leases",
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
    .summary = "list past leases, newest first",
    .description =
        "Lists the leases of the pool, current ones included, newest first: user, devices, "
        "waiting time, time held, and how each lease ended. Without --since, lists all "
        "leases that are still recorded.",
    .examples = "berth history --since 7d\n"
                "berth history -u alice -n 20\n",
    .sets = history_sets,
    .program = "berth-history",
};

static const struct option report_rows[] = {
    {.name = "by",
     .argument = "WHAT",
     .choices = history_by_names,
     .help = "one row per user (default), job name or device",
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
    .summary = "sum up GPU-hours and waiting times",
    .description =
        "Sums up the leases of the pool by user, job name or device: number of leases, "
        "GPU-hours (a share of a device counts as that share), waiting time, and the "
        "percentage of time that the devices were idle. If a lease reaches beyond --since "
        "or --until, only the part inside counts. A lease inside another lease is not "
        "counted again.",
    .examples = "berth report --since 30d\n"
                "berth report --by device --csv\n",
    .sets = report_sets,
    .program = "berth-history",
    .program_name = "berth-report",
};
