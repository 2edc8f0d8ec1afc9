/* SPDX-License-Identifier: Apache-2.0
 *
 * Reaching the pool's daemon, and starting the user's own when nobody answers.
 */
#ifndef CLIENT_DIAL_H
#define CLIENT_DIAL_H

#include <berth/error.h>

#include "client/address.h"

enum dial_how {
    DIAL_START, /* the user's own daemon is started where none runs */
    DIAL_ONLY,  /* somebody listens, or it is an error (BERTH_ERROR_NOT_FOUND) */
};

/* Connects. *ret_socket is a blocking SEQPACKET socket, close-on-exec, the caller's.
 *
 * The user's own directory is made (0700) or checked: it must be a directory, not a symlink, ours
 * and closed to others. Two commands that start a daemon at once start one; a socket that nobody
 * listens on is replaced. The daemon is started detached, in a session of its own, in the root
 * directory, without our terminal, descriptors and GPU masks. What it says when it cannot start is
 * our error.
 *
 * Fails with BERTH_ERROR_PERMISSION, _IO, _NOT_FOUND (DIAL_ONLY, or BERTH_SOCKET: nobody listens)
 * or _MEMORY; the message starts with the path. Blocks until the daemon is ready, at most 10 s. */
int dial(const struct pool_address *address, enum dial_how how, int *ret_socket,
         struct berth_error *error);

#endif
