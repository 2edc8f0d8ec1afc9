/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs and supervises commands: several copies (replicas), a time limit, or a lease that may be
 * taken back. The supervisor behaves like the commands: it shares their process group and terminal.
 * Signals of the terminal reach the commands directly. Signals from other processes (SIGTERM,
 * SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU) are forwarded.
 * When all commands are stopped, it stops too, unless its parent belongs to another session and
 * would not notice.
 */
#ifndef LAUNCH_SUPERVISE_H
#define LAUNCH_SUPERVISE_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bitset.h"

struct launch_copy {
    char *const *arguments;   /* ended by NULL; searched in the PATH of the copy's environment */
    char *const *environment; /* ended by NULL */

    /* Instead of both: a function that the copy runs. It executes a command, or returns an exit
     * code. */
    int (*run)(void *context);
    void *context;

    /* Descriptors for its standard output and error, above 2; 0: inherit those of this process. */
    int output;
    int error;
    const struct bitset *cpus; /* the CPUs it is pinned to; NULL: inherited */
};

/* Supervises running copies. A process may have only one supervisor. It must have one thread and
 * start no other children meanwhile. Earlier children are left alone. */
struct launch_supervisor;

/* Blocks the forwarded signals, becomes a child subreaper, so that orphaned descendants become its
 * children, and creates a descriptor for signals. Starts no copy yet. */
int launch_supervisor_create(struct launch_supervisor **ret_supervisor, struct berth_error *error);
/* Restores the signal settings. Drops signals that were not forwarded. Does not end running copies.
 */
void launch_supervisor_destroy(struct launch_supervisor *supervisor);

/* Returns a descriptor to poll for reading. Call launch_supervisor_dispatch when it is readable. */
int launch_supervisor_descriptor(const struct launch_supervisor *supervisor);

/* Starts one copy with the original signal mask and dispositions, and with PR_SET_PDEATHSIG
 * SIGKILL. Returns after the exec. Fails with BERTH_ERROR_NOT_FOUND (no such command: exit code
 * 127), _PERMISSION or _IO (cannot be executed: 126), _MEMORY or _LIMIT (no process or descriptor
 * available), or _CANCELLED (all copies are being stopped); no copy is started then. */
int launch_supervisor_start(struct launch_supervisor *supervisor, const struct launch_copy *copy,
                            struct berth_error *error);

/* Handles children that ended or stopped, and forwards signals. Does not block, except that
 * this process stops when all copies are stopped. When a copy fails (exit code other than 0), the
 * others get SIGTERM, and SIGKILL after the grace period (launch_supervisor_set_grace). */
void launch_supervisor_dispatch(struct launch_supervisor *supervisor);

/* Sets the grace period. The default is 10 s. */
void launch_supervisor_set_grace(struct launch_supervisor *supervisor, int64_t nanoseconds);

/* Stops all copies: sends SIGTERM and SIGCONT to every descendant, and SIGKILL at `force_at`
 * (CLOCK_MONOTONIC nanoseconds). A second call can only make `force_at` earlier. */
void launch_supervisor_stop(struct launch_supervisor *supervisor, int64_t force_at);

/* Returns true if a signal arrived that ends processes which do not catch it. */
bool launch_supervisor_must_end(const struct launch_supervisor *supervisor);

/* Returns when launch_supervisor_dispatch must be called next without an event (CLOCK_MONOTONIC
 * nanoseconds); INT64_MAX: never. */
int64_t launch_supervisor_next_time(const struct launch_supervisor *supervisor);

/* Returns true if all copies and their descendants have ended. Descendants that outlive the copies
 * get SIGTERM, and SIGKILL after the grace period. */
bool launch_supervisor_is_done(const struct launch_supervisor *supervisor);

/* Returns the exit code of all copies, once done: that of the first copy that failed, else 0; 128+N
 * for signal N. */
int launch_supervisor_exit_code(const struct launch_supervisor *supervisor);

#endif
