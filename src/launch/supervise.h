/* SPDX-License-Identifier: Apache-2.0
 *
 * Running commands that something has to watch: one or several copies (replicas), a time limit, a
 * lease that may be taken back. The supervisor behaves like what it runs: same process group and
 * terminal; the terminal's own signals reach the commands by themselves, others (SIGTERM, SIGHUP,
 * SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT from another process) are passed on; when the commands
 * stop, it stops.
 */
#ifndef LAUNCH_SUPERVISE_H
#define LAUNCH_SUPERVISE_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct launch_copy {
    char *const *arguments;   /* ended by NULL; found by PATH of the copy's environment */
    char *const *environment; /* ended by NULL */
};

/* One process group of copies being run. Only one supervisor in a process, and no other children.
 */
struct supervisor;

/* Blocks the signals that it passes on, becomes a child subreaper, so that what the commands leave
 * behind is its own, and makes a descriptor of both. Starts nothing yet. */
int supervisor_create(struct supervisor **ret_supervisor, struct berth_error *error);
void supervisor_destroy(struct supervisor *supervisor);

/* A descriptor to poll for reading; then supervisor_turn. */
int supervisor_descriptor(const struct supervisor *supervisor);

/* Starts one copy with the signal mask and dispositions that we were started with, and
 * PR_SET_PDEATHSIG SIGKILL. Fails with BERTH_ERROR_NOT_FOUND (the command is not found: exit code
 * 127), _PERMISSION or _IO (could not be executed: 126) or _MEMORY; told apart after the exec
 * failed, so nothing runs then. */
int supervisor_start(struct supervisor *supervisor, const struct launch_copy *copy,
                     struct berth_error *error);

/* Takes note of what happened: children that ended or stopped, signals to pass on. Does not block.
 * When a copy fails (a code other than 0) the others are sent SIGTERM, and SIGKILL after `grace`
 * (see supervisor_set_grace). */
void supervisor_turn(struct supervisor *supervisor);

void supervisor_set_grace(struct supervisor *supervisor, int64_t nanoseconds);

/* Ends all that runs: SIGTERM (and SIGCONT) to every process below us, SIGKILL at `force_at`
 * (CLOCK_MONOTONIC nanoseconds). A second call can only bring the force nearer. */
void supervisor_stop(struct supervisor *supervisor, int64_t force_at);

/* When supervisor_turn has something to do by itself (CLOCK_MONOTONIC nanoseconds); INT64_MAX:
 * never. */
int64_t supervisor_next_time(const struct supervisor *supervisor);

/* Whether every copy has ended and nobody of their descendants is left. What the copies left behind
 * is ended first: SIGTERM, then SIGKILL after the grace. */
bool supervisor_is_done(const struct supervisor *supervisor);

/* The exit code of the whole, once it is done: that of the first copy that failed, else 0; 128+N
 * for a signal N. */
int supervisor_exit_code(const struct supervisor *supervisor);

#endif
