/* SPDX-License-Identifier: Apache-2.0
 *
 * berth undrain: takes devices into service again.
 */
#include "cli/connect.h"
#include "cli/devices/device_verbs.h"

static const struct option_set *const undrain_sets[] = {&connect_option_set, NULL};

static int run_undrain_verb(int argc, char **argv)
{
    struct connect_options connection = {0};
    const struct option_binding binding = {&connect_option_set, &connection};
    struct device_action action = {.type = WIRE_UNDRAIN};
    int operand;
    int code;

    if (!verb_begin_mixed(&verb_undrain, &binding, 1, argc, argv, &operand, &code))
        return code;
    action.inventory = connection.inventory;
    return device_verb_run(&verb_undrain, &action, argc, argv, operand);
}

const struct verb verb_undrain = {
    .name = "undrain",
    .usage = "DEVICE...",
    .summary = "take devices into service again",
    .description = "Takes devices that 'berth drain' took out of service, or the pool itself after "
                   "a check that failed, into service again. Prints how each stands then. Only "
                   "root, the owner of the pool and its admins may do this.",
    .sets = undrain_sets,
    .operand = OPERAND_DEVICE,
    .run = run_undrain_verb,
};
