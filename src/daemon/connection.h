/* SPDX-License-Identifier: Apache-2.0
 *
 * Clients: packets in and out.
 */
#ifndef DAEMON_CONNECTION_H
#define DAEMON_CONNECTION_H

#include "daemon/pool.h"

/* Accepts who waits at the listener. */
void connections_accept(struct pool *pool);

/* Takes a descriptor of ours, at whose other end is the recorder; NULL: there is no memory, and it
 * is still the caller's. */
struct connection *connection_to_recorder(struct pool *pool, int descriptor);

/* Sends a message, or keeps it until there is room. A client that takes nothing for too long is
 * closed. */
void connection_send(struct connection *connection, const struct wire_message *message);

/* Refuses what `number` asked for. */
void connection_refuse(struct connection *connection, uint64_t number,
                       const struct berth_error *error);

/* Says why and closes: at the end of this turn, so that callers may go on with it. */
void connection_fail(struct connection *connection, const struct berth_error *error);

/* Reads from a connection whose turn has come (users.h). */
void connection_serve(struct connection *connection);

/* Closes at once. Its jobs lose their client: what is held by the connection ends. */
void connection_close(struct connection *connection);

/* Sends what was kept while the journal was behind. */
void connections_flush(struct pool *pool);

/* Closes those that failed in this turn. */
void connections_sweep(struct pool *pool);

#endif
