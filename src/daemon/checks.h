/* SPDX-License-Identifier: Apache-2.0
 *
 * The prolog and the epilog: programs of whoever runs the machine, run for each device when the
 * first lease comes onto it and when the last one has left it. Before the prolog has succeeded the
 * holder is not told of its lease; before the epilog has, the device is not granted on. A device
 * that one of them fails for is taken out of service. Leases within others, and those of processes
 * that were there before, have no prolog; those within others no epilog either.
 */
#ifndef DAEMON_CHECKS_H
#define DAEMON_CHECKS_H

#include "daemon/pool.h"

struct kept_epilog;

int checks_init(struct pool *pool, struct berth_error *error);
void checks_finish(struct pool *pool);

/* A lease was granted, and its holder is to be told: runs what has to be run first. Returns whether
 * that takes a while; settle_told is called then when all is well, or the claim waits again. */
bool checks_prepare(struct pool *pool, struct job *job);
/* The same after a restart, of one that was not told before it. */
bool checks_prepare_again(struct pool *pool, struct job *job);

/* A lease is about to leave its devices: what has to be run afterwards is noted, and its devices
 * are blocked until it was. */
void checks_end(struct pool *pool, const struct job *job);

/* What the journal knows of an epilog; takes the name over. */
void checks_restore(struct pool *pool, struct kept_epilog *kept);
/* It was about other devices than there are now. */
void checks_forget(struct pool *pool);
/* All of the journal is read: epilogs that were not over are run again. The engine is paused. */
void checks_restored(struct pool *pool);

/* The epilog of the slot that is not over, for the journal; false: there is none. The name is
 * borrowed. */
bool checks_kept(const struct pool *pool, uint32_t slot, struct kept_epilog *ret_kept);

#endif
