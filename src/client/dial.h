/* SPDX-License-Identifier: Apache-2.0
 *
 * Connects to a pool's daemon, and starts the user's own daemon when it does not run.
 */
#ifndef CLIENT_DIAL_H
#define CLIENT_DIAL_H

#include <berth/error.h>
#include <stdint.h>

#include "client/pool_address.h"

enum dial_mode {
    DIAL_START, /* start the user's own daemon if it does not run */
    DIAL_ONLY,  /* fail with BERTH_ERROR_NOT_FOUND if no daemon runs */
};

/* Connects to the daemon. *ret_socket is a blocking SEQPACKET socket, close-on-exec, which the
 * caller closes; it is untouched on failure.
 *
 * The directory of the user's own daemon is created (mode 0700) or checked: it must be a directory,
 * not a symlink, belong to the user and be closed to others. Two commands that start a daemon at
 * the same time start only one. A socket without a listener is replaced. The daemon is started
 * detached, in its own session, in the root directory, without the caller's terminal, descriptors
 * and GPU masks. When the daemon cannot start, its message becomes the error, with the code
 * BERTH_ERROR_INVALID when its input is wrong, such as an inventory.
 *
 * When the socket of another daemon refuses connections, the call retries for 5 s. The user's own
 * daemon never replaces that socket.
 *
 * Fails with BERTH_ERROR_PERMISSION, _IO, _INVALID, _NOT_FOUND (no daemon runs, and it may not be
 * started: DIAL_ONLY, BERTH_SOCKET, or the machine's daemon) or _MEMORY. Blocks until the daemon is
 * ready, at most 10 s. Does not change the caller's signals and children. Any thread may call it.
 */
int dial(const struct pool_address *address, enum dial_mode how, int *ret_socket,
         struct berth_error *error);

/* Does the same with another timeout, in nanoseconds, for a socket that refuses connections. */
int dial_with_timeout(const struct pool_address *address, enum dial_mode how, int64_t timeout,
                      int *ret_socket, struct berth_error *error);

/* Only tests change these. Times are in nanoseconds. */
struct dial_settings {
    const char *program; /* the daemon; NULL: berthd in this program's directory, else the installed
                            one */
    int64_t refusal_timeout;   /* for a socket that refuses connections */
    int64_t start_timeout;     /* for the start of a daemon */
    int64_t reconnect_timeout; /* for a session that reconnects */
};
extern struct dial_settings dial_settings;

#endif
