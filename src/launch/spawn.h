/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts one command as a child of a supervisor.
 */
#ifndef LAUNCH_SPAWN_H
#define LAUNCH_SPAWN_H

#include <berth/error.h>
#include <signal.h>
#include <sys/types.h>

#include "launch/supervise.h"

/* This process's signal settings before it became a supervisor. The commands start with them. */
struct signals_before {
    sigset_t mask;
    struct sigaction child_action; /* the action of SIGCHLD */
};

void spawn_restore_signals(const struct signals_before *before);

/* Starts the command as a child that dies with this process. Returns after its exec. Fails as
 * launch_supervisor_start; no child is left then. */
int spawn(const struct launch_copy *copy, const struct signals_before *before, pid_t *ret_pid,
          struct berth_error *error);

#endif
