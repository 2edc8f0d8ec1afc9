/* SPDX-License-Identifier: Apache-2.0
 *
 * Connects berth-probe's reports (devices/probe_poll.h) with the engine.
 */
#ifndef DAEMON_LEASES_PROBE_EVENTS_H
#define DAEMON_LEASES_PROBE_EVENTS_H

#include <berth/error.h>
#include <stdbool.h>

struct pool;

/* Creates pool->probe_poll and starts the probe. Fails with BERTH_ERROR_MEMORY. */
int probe_events_open(struct pool *pool, struct berth_error *error);

/* Applies the first report to the engine, which stays paused. */
void probe_events_begin(struct pool *pool);

/* Returns whether a claim or test must wait for a report. `anew`: a report that starts now. */
bool probe_events_must_wait(struct pool *pool, bool anew);

#endif
