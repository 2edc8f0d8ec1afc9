/* SPDX-License-Identifier: Apache-2.0
 *
 * Starting the user's own daemon.
 */
#ifndef CLIENT_START_DAEMON_H
#define CLIENT_START_DAEMON_H

#include <berth/error.h>

#include "client/pool_address.h"

/* Sees to it that somebody listens at our own socket: makes or checks the directory, and unless
 * another command has done it meanwhile, makes the socket and starts a daemon for it:
 *
 *     berthd --own DIRECTORY [--inventory FILE]
 *
 * with the listening socket as descriptor 3 (LISTEN_FDS=1, LISTEN_PID,
 * LISTEN_FDNAMES=DETACHED_LISTENER), nothing as stdin, a pipe as
 * stdout, on which it says one line, "ready" or what is wrong, and DIRECTORY/log as stderr. Blocks
 * until it has said so, 10 s at most, or until another command that starts one is done. Fails with
 * BERTH_ERROR_PERMISSION, _IO or _MEMORY. A daemon that ended without a word was perhaps killed,
 * and another may fare better: then it is START_DAEMON_NO_ANSWER, with the error set. Any thread
 * may call it. */
enum { START_DAEMON_NO_ANSWER = 1 };
int start_daemon(const struct pool_address *address, struct berth_error *error);

#endif
