/* SPDX-License-Identifier: Apache-2.0
 *
 * The protocols of a service manager (LISTEN_FDS, NOTIFY_SOCKET) and of the command that starts a
 * private daemon (one line on a descriptor). No function blocks.
 */
#ifndef DAEMON_CLIENTS_ACTIVATION_H
#define DAEMON_CLIENTS_ACTIVATION_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

/* Takes the listening socket from the environment, close-on-exec; -1: none. Sets *ret_owned if the
 * daemon must remove its path at the end, because a command has started it. Fails with
 * BERTH_ERROR_INVALID when it is no listening SEQPACKET socket. Unsets the variables. */
int activation_listener(int *ret_listener, bool *ret_owned, struct berth_error *error);

/* Reports the start, also as a line on `descriptor` (-1: none), which it closes. */
void activation_ready(int descriptor);
void activation_stopping(void);
void activation_reloading(void);

/* Returns the nanoseconds within which the service manager expects a sign of life (WATCHDOG_USEC,
 * WATCHDOG_PID); 0: it expects none. Unsets the variables. */
int64_t activation_watchdog_time(void);
/* Gives a sign of life. *descriptor is -1 at first, and then the socket for this, which the caller
 * closes. It stays open, so that a daemon without free descriptors can still give a sign of
 * life. */
void activation_alive(int *descriptor);

#endif
