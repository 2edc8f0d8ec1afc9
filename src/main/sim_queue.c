/* SPDX-License-Identifier: Apache-2.0
 *
 * berth sim queue: how long jobs wait.
 */
#include "base/error.h"
#include "cli/output.h"
#include "main/sim_verbs.h"

static const struct option_set *const no_sets[] = {NULL};

static int run(int argc, char **argv)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int code;

    if (!verb_begin(&verb_sim_queue, NULL, 0, argc, argv, &code))
        return code;
    error_set(&error, BERTH_ERROR_INVALID, "%s: wanted a trace, found none", verb_sim_queue.name);
    return output_error(&error);
}

const struct verb verb_sim_queue = {
    .name = "sim queue",
    .usage = "[options]",
    .summary = "how long jobs wait",
    .description = "",
    .sets = no_sets,
    .run = run,
};
