/* SPDX-License-Identifier: Apache-2.0
 *
 * berth drain: takes devices out of service.
 */
#include <string.h>

#include "base/count.h"
#include "base/error.h"
#include "cli/connect.h"
#include "cli/devices/device_verbs.h"

/* As long as a text of a request. */
enum { REASON_MAX = REQUEST_TEXT_MAX };

struct drain_options {
    const char *reason; /* NULL: none */
};

static int parse_reason(const struct option *option, void *member, const char *value,
                        struct berth_error *error)
{
    size_t length = strlen(value);

    (void)option;
    if (length > REASON_MAX)
        return error_set(error, BERTH_ERROR_INVALID, "expected at most %d bytes, got %zu",
                         REASON_MAX, length);
    *(const char **)member = length == 0 ? NULL : value;
    return 0;
}

static const struct option drain_rows[] = {
    {.name = "reason",
     .argument = "TEXT",
     .help = "why, for those who look at the pool",
     .offset = offsetof(struct drain_options, reason),
     .parse = parse_reason},
};

static const struct option_set drain_option_set = {
    .heading = "Options",
    .options = drain_rows,
    .count = COUNT(drain_rows),
};

static const struct option_set *const drain_sets[] = {&drain_option_set, &connect_option_set, NULL};

static int run_drain_verb(int argc, char **argv)
{
    struct drain_options options = {0};
    struct connect_options connection = {0};
    const struct option_binding bindings[] = {
        {&drain_option_set, &options},
        {&connect_option_set, &connection},
    };
    struct device_action action = {.type = WIRE_DRAIN};
    int operand;
    int code;

    if (!verb_begin_mixed(&verb_drain, bindings, COUNT(bindings), argc, argv, &operand, &code))
        return code;
    action.reason = options.reason;
    action.inventory = connection.inventory;
    return device_verb_run(&verb_drain, &action, argc, argv, operand);
}

const struct verb verb_drain = {
    .name = "drain",
    .usage = "DEVICE... [--reason TEXT]",
    .summary = "take devices out of service",
    .description =
        "Takes devices out of service: nobody gets them any more, and leases on them go on until "
        "they end. Prints how each stands then. 'berth undrain' takes them into service again. "
        "Only root, the owner of the pool and its admins may do this.",
    .sets = drain_sets,
    .operand = OPERAND_DEVICE,
    .run = run_drain_verb,
};
