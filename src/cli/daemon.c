/* SPDX-License-Identifier: Apache-2.0
 *
 * berth daemon: becomes berthd, which is a program of its own.
 */
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "base/error.h"
#include "base/program.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/verbs.h"

static int run(int argc, char **argv)
{
    struct berth_error error = BERTH_ERROR_INIT;
    char program[PATH_MAX];

    (void)argc;
    program_find("berthd", program, sizeof(program));
    argv[0] = (char *)"berthd";
    execv(program, argv);
    error_set_errno(&error, errno, "daemon: %s", program);
    output_error(&error);
    return EXIT_BERTH;
}

static const struct option_set *const no_sets[] = {NULL};

const struct verb verb_daemon = {
    .name = "daemon",
    .usage = "[options]",
    .summary = "run the pool's daemon",
    .description =
        "Becomes berthd, the daemon of a pool. Every user's own is started on demand, so "
        "this is for a pool of the whole machine. 'berth daemon --help' lists the "
        "options.",
    .sets = no_sets,
    .run = run,
};
