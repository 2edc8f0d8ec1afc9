/* SPDX-License-Identifier: Apache-2.0
 *
 * berthd: starts the parts of a pool, runs its loop, and stops them.
 */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include <berth/error.h>

struct pool_settings;

/* Runs a daemon until a signal stops it, or until a user's own daemon is idle. Returns 0 or a
 * negative code. Blocks until then; must be called once, in a process with a single thread.
 */
int daemon_run(const struct pool_settings *settings, struct berth_error *error);

#endif
