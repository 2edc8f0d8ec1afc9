/* SPDX-License-Identifier: Apache-2.0
 *
 * The socket that clients find, and the files beside it.
 */
#ifndef DAEMON_LISTENER_H
#define DAEMON_LISTENER_H

#include "daemon/pool.h"

/* Appends the path of a file beside the socket: (".../berth.sock", ".lock") is ".../berth.lock". */
void listener_beside(const char *socket, const char *ending, struct text *out);

/* Makes sure that this is the only daemon of the socket; waits a few seconds for one that is
 * ending. Also keeps cleaners of temporary files away from the directory. Fails with
 * BERTH_ERROR_BUSY when there is another, or _IO, _PERMISSION, _NOT_FOUND. */
int listener_lock(struct pool *pool, struct berth_error *error);

/* Listens, unless that was done by whoever started us. */
int listener_open(struct pool *pool, struct berth_error *error);

/* For a daemon that nobody uses: takes the socket away, unless somebody comes at this moment. */
bool listener_close_unused(struct pool *pool);

/* Closes it; its path is removed if we made it. */
void listener_finish(struct pool *pool);

#endif
