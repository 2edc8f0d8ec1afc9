/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a supervisor for supervise.c: spawn.c starts one command as its child; descendants.c
 * lists and signals the descendants of this process. It must be a child subreaper, so that no
 * descendant leaves its tree.
 */
#ifndef LAUNCH_SUPERVISE_INTERNAL_H
#define LAUNCH_SUPERVISE_INTERNAL_H

#include <berth/error.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/vector.h"
#include "launch/supervise.h"

/* ---- spawn.c ---- */

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

/* ---- descendants.c ---- */

struct pid_list {
    VECTOR_OF(pid_t);
};

bool launch_pid_list_has(const struct pid_list *list, pid_t pid);
/* Removes the pid, if it is in the list. */
void launch_pid_list_remove(struct pid_list *list, pid_t pid);

/* Sends the signal to every descendant, except the children in `spared` and their descendants.
 * Returns their number; signal 0 only counts them. Never signals another process that has
 * reused a descendant's pid. May miss processes that start meanwhile, or all if memory or
 * descriptors run out. */
size_t descendants_signal(int signal, const struct pid_list *spared);

/* Appends the children of this process. Fails with BERTH_ERROR_MEMORY or _IO. */
int descendants_list_children(struct pid_list *children);

#endif
