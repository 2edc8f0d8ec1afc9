/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts the user's own daemon.
 */
#ifndef CLIENT_START_DAEMON_H
#define CLIENT_START_DAEMON_H

#include <berth/error.h>
#include <stdbool.h>

#include "client/pool_address.h"

/* Makes sure that a daemon listens on the user's own socket. Creates or checks the directory, and
 * unless another command has started the daemon meanwhile, creates the socket and starts
 *
 *     berthd --own DIRECTORY [--inventory FILE]
 *
 * with the listening socket as descriptor 3 (LISTEN_FDS=1, LISTEN_PID,
 * LISTEN_FDNAMES=DETACHED_LISTENER), /dev/null as stdin, a pipe as stdout, and DIRECTORY/log as
 * stderr. The daemon writes one line to the pipe: "ready", or an error message. Blocks until then,
 * at most 10 s, or until another command has finished starting a daemon. Fails with
 * BERTH_ERROR_PERMISSION, _INVALID, _IO or _MEMORY. Returns START_DAEMON_NO_ANSWER, with the error
 * set, when the daemon ended without writing a line: perhaps it was killed, and a retry may help.
 * Any thread may call it. */
enum { START_DAEMON_NO_ANSWER = 1 };
int start_daemon(const struct pool_address *address, struct berth_error *error);

/* Returns whether a command is starting the user's own daemon now. Does not block. */
bool start_daemon_is_in_progress(const struct pool_address *address);

#endif
