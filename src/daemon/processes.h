/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose the processes on devices are: by which lease they are there. A process is of a lease on the
 * device that it uses, by the first of these that holds:
 *
 *  1. It, or an ancestor of it, holds the lease.
 *  2. It carries the lease in its environment (model/lease_mark.h), and is of the lease's user or
 *     root's in a container. A container is often no child of who started it: docker's is one of
 *     its daemon's, podman's of a process that has left its parents.
 *  3. Another process of the same container is of the lease, or the container was adopted, and the
 *     process is of the lease's user or root's: what was put into a container later.
 *  4. It is in a container, or in a user namespace of its own, is of the lease's user, and no other
 *     lease is on the device: a container that was started without what marks it.
 *  5. No process holds the lease (it was reserved), and the process is of its user.
 *  6. It was of it at the last look: what wiped its environment and left its parents since.
 *
 * A process is of a user by its uid or by who answers for its container
 * (base/system/process_container.h). In a container means in another than the daemon's own. What a
 * hostile user could gain by each is told where they are decided (daemon/membership.h). What may
 * not be known of a process counts for nothing.
 */
#ifndef DAEMON_PROCESSES_H
#define DAEMON_PROCESSES_H

#include "daemon/pool.h"

/* Says of the processes in a report by which leases they are there; what is left of a lease that
 * has ended keeps its number. */
void processes_join(struct pool *pool, struct device_list *found);

/* The same of those that the slot had at the last look, since leases came or went. */
void processes_join_again(struct pool *pool, uint32_t slot);

/* Asks the kernel for its owner, which is not kept after a look. */
void process_learn_owner(struct device_process *process);

/* Whether the process is, or descends from, the other. */
bool process_is_below(pid_t pid, pid_t ancestor);

/* Whether a lease that is over left the process behind. */
bool process_lingers(const struct pool *pool, const struct device_process *process);

#endif
