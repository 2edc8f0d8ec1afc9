/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes that status names: those that stalled a reader of /proc; those that no signal ends, of
 * leases that have ended or of MPS control daemons; those of root and of other users
 * that are left of users' leases; those of leases that a damaged journal lost.
 */
#ifndef DAEMON_LEASES_LEFT_PROCESSES_H
#define DAEMON_LEASES_LEFT_PROCESSES_H

#include "model/machine/machine_report.h"

struct pool;

/* Appends a problem for each, at most a few; the caller finishes the list. */
void left_processes_describe(const struct pool *pool, struct problem_list *problems);

#endif
