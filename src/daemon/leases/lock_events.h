/* SPDX-License-Identifier: Apache-2.0
 *
 * Connects the locks between pools (devices/device_locks.h) with the engine: a device whose lock
 * another pool has is blocked.
 */
#ifndef DAEMON_LEASES_LOCK_EVENTS_H
#define DAEMON_LEASES_LOCK_EVENTS_H

#include <berth/error.h>

struct pool;

/* Creates pool->device_locks and takes the locks of leased devices; the machine's daemon takes
 * those of all devices. Fails with BERTH_ERROR_MEMORY. */
int lock_events_init(struct pool *pool, struct berth_error *error);

#endif
