/* SPDX-License-Identifier: Apache-2.0
 *
 * Leases for processes that run already. Where such a process uses devices, its lease is on exactly
 * these, past the queue: nobody else could have them anyway while it runs.
 */
#ifndef DAEMON_ADOPTION_H
#define DAEMON_ADOPTION_H

#include "daemon/pool.h"

/* A claim with a pid. Fails with what it is refused for. May take things out of the message. */
int adopt(struct connection *connection, struct wire_message *message, struct berth_error *error);

/* One that waits for the end of a lease that is in its way tries again. Returns whether it has its
 * answer. */
bool adoption_answered(struct watcher *watcher);

#endif
