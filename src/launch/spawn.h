/* SPDX-License-Identifier: Apache-2.0
 *
 * Starting one command below a supervisor.
 */
#ifndef LAUNCH_SPAWN_H
#define LAUNCH_SPAWN_H

#include <berth/error.h>
#include <signal.h>
#include <sys/types.h>

#include "launch/supervise.h"

/* What signals were to this process before it became a supervisor, and are to the commands. */
struct signals_before {
    sigset_t mask;
    struct sigaction child_action; /* of SIGCHLD */
};

void spawn_restore_signals(const struct signals_before *before);

/* Starts the command as a child that dies with this process. Returns once it has become the
 * command; fails as launch_supervisor_start, and leaves no child then. */
int spawn(const struct launch_copy *copy, const struct signals_before *before, pid_t *ret_pid,
          struct berth_error *error);

#endif
