/* SPDX-License-Identifier: Apache-2.0
 *
 * What a running process says of the lease that it is of: the mark in the environment that it was
 * started with (model/lease_mark.h). Anybody can put one there.
 */
#ifndef DAEMON_MARK_H
#define DAEMON_MARK_H

#include "daemon/pool.h"

enum mark {
    MARK_LEASE,      /* it names a lease of this pool */
    MARK_NONE,       /* it names none */
    MARK_LATER,      /* it may: it is in the midst of becoming a program */
    MARK_UNREADABLE, /* it is gone, or has no environment, or one that may not be read */
};

/* Reads the mark, waiting a little for a process that is just becoming a program: at most `tries`
 * times for some microseconds, each of which is taken off it. The lease is there for MARK_LEASE. */
enum mark mark_read(struct pool *pool, pid_t pid, int *tries, uint64_t *ret_lease);

/* Whether a process that names none may yet: a container begins with it, and it is its runtime's
 * still. Who asked for the container may have ended before it becomes the command: so does podman
 * run --detach. `since` is the least process_stat_started() of those that matter. */
bool mark_may_follow(pid_t pid, uint64_t since);

/* The lease of this pool that the process names at this moment; 0: none. */
uint64_t mark_said_lease(struct pool *pool, pid_t pid);

#endif
