/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes that may belong to leases that are over: each was inside exec when its lease ended, and
 * said nothing of a lease. They keep no device, because a driver lists the processes that use one.
 * But they are watched for a few seconds, and ended if they show to be of the lease.
 *
 * Nothing here blocks. All functions belong to the loop's thread.
 */
#ifndef DAEMON_LEASES_LATE_LEFTOVERS_H
#define DAEMON_LEASES_LATE_LEFTOVERS_H

#include <stdint.h>

struct leftovers;
struct pool;

void late_leftovers_init(struct pool *pool);
void late_leftovers_finish(struct pool *pool);

/* Watches what may be left of a lease, whose user's account pays for it. Takes the leftovers, whose
 * events it replaces. At most a few leases of each account have some; the oldest are given up. */
void late_leftovers_add(struct pool *pool, struct leftovers *leftovers, uint32_t account);

#endif
