/* SPDX-License-Identifier: Apache-2.0
 *
 * Running commands that something has to watch: one or several copies (replicas), a time limit, a
 * lease that may be taken back. The supervisor behaves like what it runs: same process group and
 * terminal; the terminal's own signals reach the commands by themselves, others (SIGTERM, SIGHUP,
 * SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU from another process) are
 * passed on; when all commands stop, it stops, unless it is nobody's job: its parent is of another
 * session and would not notice.
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
    char *const *arguments;   /* ended by NULL; found by PATH of the copy's environment */
    char *const *environment; /* ended by NULL */

    /* Instead of both: what the copy does. It is to become a command by itself, or returns an exit
     * code. */
    int (*run)(void *context);
    void *context;

    /* What its standard output and error are, above the standard descriptors; 0: as ours. */
    int output;
    int error;
    const struct bitset *cpus; /* that it is kept on; NULL: as we are */
};

/* Copies being run. Only one supervisor in a process, which has one thread and starts no other
 * children meanwhile; those from before are left alone. */
struct launch_supervisor;

/* Blocks the signals that it passes on, becomes a child subreaper, so that what the commands leave
 * behind is its own, and makes a descriptor of both. Starts nothing yet. */
int launch_supervisor_create(struct launch_supervisor **ret_supervisor, struct berth_error *error);
/* Makes signals what they were; those that came and were not passed on are dropped. Ends nothing
 * that runs. */
void launch_supervisor_destroy(struct launch_supervisor *supervisor);

/* A descriptor to poll for reading; then launch_supervisor_dispatch. */
int launch_supervisor_descriptor(const struct launch_supervisor *supervisor);

/* Starts one copy with the signal mask and dispositions that we were started with, and
 * PR_SET_PDEATHSIG SIGKILL. Fails with BERTH_ERROR_NOT_FOUND (the command is not found: exit code
 * 127), _PERMISSION or _IO (could not be executed: 126), _MEMORY or _LIMIT (no process or
 * descriptor to be had), or _CANCELLED (everything is being stopped); nothing runs then. Returns
 * after the exec. */
int launch_supervisor_start(struct launch_supervisor *supervisor, const struct launch_copy *copy,
                            struct berth_error *error);

/* Takes note of what happened: children that ended or stopped, signals to pass on. Does not block,
 * but for stopping when all copies have. When a copy fails (a code other than 0) the others are
 * sent SIGTERM, and SIGKILL after `grace` (see launch_supervisor_set_grace). */
void launch_supervisor_dispatch(struct launch_supervisor *supervisor);

/* 10 s unless set. */
void launch_supervisor_set_grace(struct launch_supervisor *supervisor, int64_t nanoseconds);

/* Ends all that runs, for good: SIGTERM (and SIGCONT) to every process below us, SIGKILL at
 * `force_at` (CLOCK_MONOTONIC nanoseconds). A second call can only bring the force nearer. */
void launch_supervisor_stop(struct launch_supervisor *supervisor, int64_t force_at);

/* Whether a signal came that ends what does not catch it. */
bool launch_supervisor_must_end(const struct launch_supervisor *supervisor);

/* When launch_supervisor_dispatch has something to do by itself (CLOCK_MONOTONIC nanoseconds);
 * INT64_MAX: never. */
int64_t launch_supervisor_next_time(const struct launch_supervisor *supervisor);

/* Whether every copy that was started has ended and nobody of their descendants is left. What the
 * copies left behind is ended first: SIGTERM, then SIGKILL after the grace. */
bool launch_supervisor_is_done(const struct launch_supervisor *supervisor);

/* The exit code of the whole, once it is done: that of the first copy that failed, else 0; 128+N
 * for a signal N. */
int launch_supervisor_exit_code(const struct launch_supervisor *supervisor);

#endif
