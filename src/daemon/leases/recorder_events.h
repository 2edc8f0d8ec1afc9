/* SPDX-License-Identifier: Apache-2.0
 *
 * Connects berth-recorder (stream/recorder_process.h) with the pool: its connection, the ended
 * leases that it has written, and the configuration.
 */
#ifndef DAEMON_LEASES_RECORDER_EVENTS_H
#define DAEMON_LEASES_RECORDER_EVENTS_H

#include <berth/error.h>

struct pool;

/* Creates pool->recorder_process; the configuration and the journal must have been read. Fails with
 * BERTH_ERROR_MEMORY. */
int recorder_events_init(struct pool *pool, struct berth_error *error);
void recorder_events_finish(struct pool *pool);

/* Applies a configuration that may have changed. */
void recorder_events_apply_rules(struct pool *pool);

/* The recorder's connection is about to be freed. */
void recorder_events_hung_up(struct pool *pool);

#endif
