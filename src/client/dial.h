/* SPDX-License-Identifier: Apache-2.0
 *
 * Reaching the pool's daemon, and starting the user's own when nobody answers.
 */
#ifndef CLIENT_DIAL_H
#define CLIENT_DIAL_H

#include <berth/error.h>
#include <stdint.h>

#include "client/pool_address.h"

enum dial_mode {
    DIAL_START, /* the user's own daemon is started where none runs */
    DIAL_ONLY,  /* somebody listens, or it is an error (BERTH_ERROR_NOT_FOUND) */
};

/* Connects. *ret_socket is a blocking SEQPACKET socket, close-on-exec, the caller's, untouched on
 * failure.
 *
 * The user's own directory is made (0700) or checked: it must be a directory, not a symlink, ours
 * and closed to others. Two commands that start a daemon at once start one; a socket that nobody
 * listens on is replaced. The daemon is started detached, in a session of its own, in the root
 * directory, without our terminal, descriptors and GPU masks. What it says when it cannot start is
 * our error: BERTH_ERROR_INVALID when it is about what it was told, an inventory say.
 *
 * A socket that is not our own and refuses is tried again for 5 s, and never replaced by our own
 * daemon.
 *
 * Fails with BERTH_ERROR_PERMISSION, _IO, _INVALID, _NOT_FOUND (DIAL_ONLY, BERTH_SOCKET or the
 * machine's: nobody listens) or _MEMORY; the message starts with a path, unless the daemon said it.
 * Blocks until the daemon is ready, at most 10 s. Neither signals nor children of the process are
 * touched. Any thread may call it. */
int dial(const struct pool_address *address, enum dial_mode how, int *ret_socket,
         struct berth_error *error);

/* The same with another time, in nanoseconds, for a socket that refuses. */
int dial_with_timeout(const struct pool_address *address, enum dial_mode how, int64_t timeout,
                      int *ret_socket, struct berth_error *error);

/* What tests change before they dial, and nobody else. Times in nanoseconds. */
struct dial_settings {
    const char *program; /* the daemon; NULL: berthd beside our program, else the installed one */
    int64_t refusal_timeout;   /* how long a socket that refuses is tried */
    int64_t start_timeout;     /* how long a daemon may take to start */
    int64_t reconnect_timeout; /* how long a session looks for its daemon */
};
extern struct dial_settings dial_settings;

#endif
