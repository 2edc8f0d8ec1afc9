/* SPDX-License-Identifier: Apache-2.0
 *
 * Connects the readers of /proc (processes/reader_pool.h) with the pool, and logs their reports.
 */
#ifndef DAEMON_LEASES_READER_EVENTS_H
#define DAEMON_LEASES_READER_EVENTS_H

#include <berth/error.h>

struct pool;

/* Creates pool->readers, which start with the first turn of the loop. Fails with
 * BERTH_ERROR_MEMORY.
 */
int reader_events_init(struct pool *pool, struct berth_error *error);

/* Stops the readers. Must be called after their last user is finished. */
void reader_events_finish(struct pool *pool);

#endif
