/* SPDX-License-Identifier: Apache-2.0
 *
 * What a service manager and whoever starts the daemon hand over and want to hear: a socket that
 * listens already (LISTEN_FDS, LISTEN_PID), and when the pool is ready (NOTIFY_SOCKET, or one line
 * on a descriptor).
 */
#ifndef DAEMON_ACTIVATION_H
#define DAEMON_ACTIVATION_H

#include <berth/error.h>
#include <stdbool.h>

/* The socket that was handed over, close-on-exec; -1: none. *ret_owned: its path is ours too,
 * because a command has started us; a service manager goes on listening there. Fails with
 * BERTH_ERROR_INVALID when it is not one that listens for connected packets. Takes the variables
 * out of the environment. */
int activation_listener(int *ret_listener, bool *ret_owned, struct berth_error *error);

/* Says "ready" to both; `descriptor` is closed, -1: none. */
void activation_ready(int descriptor);
void activation_stopping(void);
void activation_reloading(void);

#endif
