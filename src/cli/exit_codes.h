/* SPDX-License-Identifier: Apache-2.0
 *
 * The exit codes of berth, and the exit code for each error and each end of a lease.
 */
#ifndef CLI_EXIT_CODES_H
#define CLI_EXIT_CODES_H

#include "model/pool_info.h"

enum {
    EXIT_GOOD = 0,
    EXIT_FOUND_PROBLEM = 1,    /* berth doctor found a problem */
    EXIT_USAGE = 2,            /* wrong usage, or a file with wrong contents */
    EXIT_IMPOSSIBLE = 120,     /* this pool can never satisfy the request */
    EXIT_REVOKED = 122,        /* the lease was taken back */
    EXIT_NOT_GRANTED = 123,    /* not granted in time, or cancelled while it waited */
    EXIT_TIME_LIMIT = 124,     /* the time limit ended the lease */
    EXIT_BERTH = 125,          /* berth itself failed */
    EXIT_NOT_EXECUTABLE = 126, /* the command could not be executed */
    EXIT_NO_COMMAND = 127,     /* the command was not found */
    EXIT_KILLED = 137,         /* 128 + SIGKILL, as shells do */
};

/* Returns the exit code for an error from the pool, or a failure to connect to it. */
int exit_code_of_refusal(int error_code);

/* Returns the exit code for an error of launch_supervisor_start(). */
int exit_code_of_start(int error_code);

/* Returns the exit code for a claim or lease that ended for this reason, if the command's own
 * exit code is unknown: EXIT_GOOD if the holder released it or exited. */
int exit_code_of_end(enum lease_end end);

#endif
