/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns the engine's events into actions: answers, watched processes, ended leases.
 */
#ifndef DAEMON_LEASES_ENGINE_EVENTS_H
#define DAEMON_LEASES_ENGINE_EVENTS_H

#include "engine/engine.h"
#include "engine/event.h"

struct job;
struct pool;

/* An event of the engine that engine_events_settle() has not processed yet. */
struct pending_event {
    enum event_type type;
    uint64_t claim;
    uint64_t lease;
    enum refusal reason;
    int64_t expires;
};

/* Writes the event to the journal and appends it to pool->pending_events. This is the engine's
 * sink; `context` is the pool. */
void engine_events_receive(void *context, const struct engine_event *event);

/* Processes all pending events, and the events that they cause. Must be called after each use of
 * the engine. It may free jobs and watchers, so the caller must not use pointers to them
 * afterwards. */
void engine_events_settle(struct pool *pool);

/* Starts the lease that a claim became: watches its holder, and notifies the holder once the
 * devices are prepared. */
void engine_events_granted(struct pool *pool, struct job *job);
/* Notifies the holder, after the prolog, as soon as its MPS control daemons answer. */
void engine_events_notify_holder(struct pool *pool, struct job *job);

/* Notifies a connected client that its job has no devices yet. */
void engine_events_send_waiting(const struct job *job);

/* Sends the lease's devices to a connected client, again after each reconnection. */
void engine_events_send_grant(struct pool *pool, struct job *job);

#endif
