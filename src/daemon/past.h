/* SPDX-License-Identifier: Apache-2.0
 *
 * Leases that are over, for those who follow the pool: what was known of each, kept for a while and
 * within bounds. The oldest go first, and are counted as lost by whoever had not read them.
 */
#ifndef DAEMON_PAST_H
#define DAEMON_PAST_H

#include "daemon/pool.h"

/* How many are kept, and bytes of them. */
enum { PAST_MAX = 16 * 1024, PAST_BYTES = 4 * 1024 * 1024 };

int past_init(struct pool *pool, struct berth_error *error);
void past_finish(struct pool *pool);

/* The lease has begun, or what is known of it has changed: its holder knows of it. */
void past_lease(struct pool *pool, const struct job *job);

/* It is over. */
void past_ended(struct pool *pool, const struct job *job, enum lease_end end);

/* How many leases have ended since the daemon started. */
uint64_t past_count(const struct pool *pool);

/* Puts those after the first `count` into the message, as many as fit, which borrow what they point
 * to; sets `id` to how many have ended up to the last of them, `lost` and `more`. */
void past_tell(struct pool *pool, uint64_t count, struct wire_message *message);

/* Whether somebody writes them down. If not, they are needed for a moment only; from the start
 * somebody does. */
void past_set_written(struct pool *pool, bool is_written);

/* The first `count` are written down, and need not be kept here for long. */
void past_known(struct pool *pool, uint64_t count);

#endif
