/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose the processes on devices are: by which lease they are there. A process is of a lease when
 * it, or an ancestor of it, holds it, or when it carries the lease in its environment and is of the
 * same user. Where no process holds a lease, all that its user runs there is of it.
 */
#ifndef DAEMON_PROCESSES_H
#define DAEMON_PROCESSES_H

#include "daemon/pool.h"

/* Says of the processes in a report by which leases they are there; what is left of a lease that
 * has ended keeps its number. */
void processes_join(struct pool *pool, struct device_list *found);

/* The same of those that the slot had at the last look, since leases came or went. */
void processes_join_again(struct pool *pool, uint32_t slot);

/* Whether the process is, or descends from, the other. */
bool process_is_below(pid_t pid, pid_t ancestor);

/* Whether a lease that is over left the process behind. */
bool process_lingers(const struct pool *pool, const struct device_process *process);

#endif
