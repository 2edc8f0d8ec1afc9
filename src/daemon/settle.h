/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engine's events lead to.
 */
#ifndef DAEMON_SETTLE_H
#define DAEMON_SETTLE_H

#include "daemon/pool.h"

/* Keeps and writes down what the engine says: the sink of the engine, whose context is
 * the pool. */
void pool_tell(void *context, const struct engine_event *event);

/* Deals with all that was said, also with what that leads to. To be called after anything that
 * called the engine, with no pointer to a job or watcher in hand that is used later. */
void pool_settle(struct pool *pool);

/* A claim became a lease: its holder is watched and, once its devices have been checked, told. */
void settle_granted(struct pool *pool, struct job *job);
/* They have been; it is told as soon as its MPS control daemons answer, too. */
void settle_told(struct pool *pool, struct job *job);

/* Tells the client of a job, if it is there, that it has no devices yet. */
void settle_send_waiting(const struct job *job);

/* Tells the client of a job what it got; also again, when it has come back. */
void settle_send_grant(struct pool *pool, struct job *job);

#endif
