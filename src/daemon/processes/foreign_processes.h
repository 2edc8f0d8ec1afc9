/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes of root and of other users that are left of ordinary users' leases: a user may start
 * programs as root, for example by sudo. The end of a lease does not end them, because the lease's
 * user could not end them. Status names them until they end.
 */
#ifndef DAEMON_PROCESSES_FOREIGN_PROCESSES_H
#define DAEMON_PROCESSES_FOREIGN_PROCESSES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "daemon/core/loop.h"

/* The maximum number of processes, and the maximum of one user's leases. They are limited, because
 * all users share the daemon's descriptors. */
enum { FOREIGN_PROCESSES_MAX = 32, FOREIGN_PROCESSES_OF_USER_MAX = 4 };

struct foreign_process {
    pid_t pid;
    uint64_t lease;
    uint32_t uid;   /* of the lease */
    uint32_t owner; /* the process's uid */
};

struct foreign_processes {
    struct loop *loop;
    struct list list;
    size_t count;
};

void foreign_processes_init(struct foreign_processes *processes, struct loop *loop);
void foreign_processes_finish(struct foreign_processes *processes);

/* Adds a process, and takes its pidfd. Ignores a process that is known already, or that is beyond
 * the maximum. */
void foreign_processes_add(struct foreign_processes *processes,
                           const struct foreign_process *process, int descriptor);

/* Calls `call` for each, oldest first. */
void foreign_processes_each(const struct foreign_processes *processes,
                            void (*call)(void *context, const struct foreign_process *process),
                            void *context);

#endif
