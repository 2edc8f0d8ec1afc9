/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes that may belong to leases that are over: each was inside exec when the lease ended, so
 * its mark could not be read. They keep no device, because a driver lists the processes that use
 * one. They are watched for a few seconds, and ended if their mark then names the lease.
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

/* Takes the leftovers of a lease that is over, replaces their events, and watches them. `account`
 * is the lease's user, who pays for this. Each account has at most a few such leases; the oldest
 * one is given up for a new one. */
void late_leftovers_add(struct pool *pool, struct leftovers *leftovers, uint32_t account);

#endif
