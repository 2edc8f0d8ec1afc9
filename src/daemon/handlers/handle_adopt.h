/* SPDX-License-Identifier: Apache-2.0
 *
 * Leases for processes that run already. If the process uses devices, its lease is on exactly these
 * and bypasses the queue: no other user could have them while it runs. Nothing here blocks.
 */
#ifndef DAEMON_HANDLERS_HANDLE_ADOPT_H
#define DAEMON_HANDLERS_HANDLE_ADOPT_H

#include <berth/error.h>
#include <stdbool.h>

struct connection;
struct pool;
struct watcher;
struct wire_message;

/* Handles a claim with a pid. If the client may decide about the process's user, asks berth-reader
 * for the process's facts, takes the message's contents, and decides and answers the claim when the
 * facts are there. Fails with the reason of a refusal, which the caller sends. */
int handle_adopt_claim(struct connection *connection, struct wire_message *message,
                       struct berth_error *error);

/* Drops the claims of a closed connection that wait for their facts. NULL: of all connections. */
void handle_adopt_forget(struct pool *pool, const struct connection *connection);

/* Tries again a claim that waits for the end of another lease. Returns true if it has its answer;
 * then the caller frees the watcher. */
bool handle_adopt_again(struct watcher *watcher);

#endif
