/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes that status names: those that stalled a reader of /proc; those of ended leases or MPS
 * control daemons that SIGKILL does not end; those of root and of other users that are left of
 * users' leases; those of leases that a damaged journal lost.
 */
#ifndef DAEMON_LEASES_LEFT_PROCESSES_H
#define DAEMON_LEASES_LEFT_PROCESSES_H

#include "model/machine/machine_report.h"

struct pool;

/* Appends a problem for each process, up to a maximum number. The caller finishes the list. */
void left_processes_describe(const struct pool *pool, struct problem_list *problems);

#endif
