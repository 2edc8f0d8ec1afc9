/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/programs/history_options.h"

#include "base/count.h"
#include "model/device_id.h"
#include "spec/option_types.h"

/* const char *: the id of a device. */
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
     .help = "only leases of this user, by name or number",
     .offset = offsetof(struct history_filter_options, user),
     .parse = option_type_string},
    {.name = "name",
     .argument = "TEXT",
     .help = "only leases with this in their name, in capitals or not",
     .offset = offsetof(struct history_filter_options, name),
     .parse = option_type_string},
    {.name = "device",
     .argument = "ID",
     .help = "only leases that had this device",
     .offset = offsetof(struct history_filter_options, device),
     .parse = parse_device},
    {.name = "since",
     .letter = 's',
     .argument = "TIME",
     .help = "only what was held then or later: so long ago (7d, 24h), a date (2026-11-01), or a "
             "date and a time (2026-11-01T09:30, with Z or +01:00 for another zone than here)",
     .offset = offsetof(struct history_filter_options, since),
     .parse = option_type_string},
    {.name = "until",
     .argument = "TIME",
     .help = "only what was held before then",
     .offset = offsetof(struct history_filter_options, until),
     .parse = option_type_string},
    {.name = "inventory",
     .argument = "FILE",
     .help = "the pool of this file's devices instead of the hardware's",
     .offset = offsetof(struct history_filter_options, inventory),
     .parse = option_type_string},
    {.name = "file",
     .argument = "FILE",
     .help = "read this history, of another machine say, instead of the pool's",
     .offset = offsetof(struct history_filter_options, file),
     .parse = option_type_string},
    {.name = "json",
     .help = "print JSON",
     .offset = offsetof(struct history_filter_options, json),
     .parse = option_type_flag},
    {.name = "csv",
     .help = "print comma-separated values with a header, for spreadsheets",
     .offset = offsetof(struct history_filter_options, csv),
     .parse = option_type_flag},
};

const struct option_set history_filter_option_set = {
    .heading = "Options",
    .options = history_filter_rows,
    .count = COUNT(history_filter_rows),
};
