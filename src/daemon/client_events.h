/* SPDX-License-Identifier: Apache-2.0
 *
 * Connects the clients (clients/clients.h) with the pool: passes their messages to the handlers,
 * and ends the claims and leases of a client that hangs up. Nothing here blocks.
 */
#ifndef DAEMON_CLIENT_EVENTS_H
#define DAEMON_CLIENT_EVENTS_H

#include <berth/error.h>

struct connection;
struct pool;

/* Initialises pool->clients, which do not listen yet. Fails with BERTH_ERROR_MEMORY. */
int client_events_init(struct pool *pool, struct berth_error *error);
/* Must be called after all connections were closed. */
void client_events_finish(struct pool *pool);

/* Forgets a client that hung up: cancels its claims and ends the leases that its connection
 * holds. */
void client_events_forget(struct pool *pool, struct connection *connection);

/* Closes all connections. Their leases and claims stay in the journal for the next daemon. */
void client_events_close_all(struct pool *pool);

#endif
