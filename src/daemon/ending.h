/* SPDX-License-Identifier: Apache-2.0
 *
 * How a lease is taken back: whoever holds it is told (a message, or SIGTERM), and when the grace
 * is over every process of it is killed. Its devices are free when nobody of it is left.
 */
#ifndef DAEMON_ENDING_H
#define DAEMON_ENDING_H

#include "daemon/pool.h"

/* The lease is to be given back by `force_at` (the pool's time). Again: the sooner counts. */
void ending_begin(struct pool *pool, struct job *job, enum lease_end end, int64_t force_at);

/* Tells the job's client, which must be there. */
void ending_send_notice(const struct pool *pool, const struct job *job, enum lease_end end,
                        int64_t force_at);

/* Whoever was told so hung up. */
void ending_client_gone(struct pool *pool, struct job *job);

/* Now. */
void ending_force(struct pool *pool, struct job *job);
void ending_force_due(struct timer *timer);

/* Whoever held the lease is gone: what it left behind is ended, then the lease is over. */
void ending_holder_gone(struct pool *pool, struct job *job);

/* The lease is over and nobody of it is left. */
void ending_done(struct pool *pool, struct job *job);

/* Watches the process that holds the lease. Returns whether it is there. `descriptor` is a pidfd,
 * taken over; -1: it is gone. */
bool ending_watch(struct pool *pool, struct job *job, int descriptor);

#endif
