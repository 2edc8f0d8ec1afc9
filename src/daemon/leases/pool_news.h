/* SPDX-License-Identifier: Apache-2.0
 *
 * Feeds the event stream (stream/followers.h, stream/ended_leases.h) from the pool's state, and
 * answers its followers.
 */
#ifndef DAEMON_LEASES_POOL_NEWS_H
#define DAEMON_LEASES_POOL_NEWS_H

#include <berth/error.h>

#include "model/pool_info.h"

struct job;
struct pool;

/* Creates the stream. Fails with BERTH_ERROR_MEMORY or _IO. */
int pool_news_init(struct pool *pool, struct berth_error *error);
/* Frees the stream. */
void pool_news_finish(struct pool *pool);

/* Notifies followers of a lease that began or changed. */
void pool_news_lease_changed(struct pool *pool, const struct job *job);
/* Notifies followers of a lease that ended. */
void pool_news_lease_ended(struct pool *pool, const struct job *job, enum lease_end end);

#endif
