/* SPDX-License-Identifier: Apache-2.0
 *
 * What berth's exit codes mean, and which one goes with what the pool says.
 */
#ifndef CLI_EXIT_CODES_H
#define CLI_EXIT_CODES_H

#include "wire/wire.h"

enum {
    EXIT_GOOD = 0,
    EXIT_USAGE = 2,            /* wrong usage, or a file that does not hold what it should */
    EXIT_IMPOSSIBLE = 120,     /* no device here could ever satisfy the request */
    EXIT_REVOKED = 122,        /* the lease was taken back */
    EXIT_NOT_GRANTED = 123,    /* not in time, or cancelled while it waited */
    EXIT_TIME_LIMIT = 124,     /* the time limit ended it */
    EXIT_BERTH = 125,          /* berth itself failed */
    EXIT_NOT_EXECUTABLE = 126, /* the command could not be executed */
    EXIT_NO_COMMAND = 127,     /* the command was not found */
    EXIT_KILLED = 137,         /* by SIGKILL, as a shell counts */
};

/* The exit code for an error of the pool, or of reaching it. */
int exit_code_of_refusal(int error_code);

/* The exit code for an error of starting a command (launch_supervisor_start). */
int exit_code_of_start(int error_code);

/* The exit code of a claim or lease that ended like this without telling its own: EXIT_GOOD when
 * its holder gave it back or ended. */
int exit_code_of_end(enum lease_end end);

#endif
