/* SPDX-License-Identifier: Apache-2.0
 *
 * Restores the pool from the journal of the last daemon, however that one ended. Reads the journal
 * from the disk of the socket's directory; nothing else here blocks.
 */
#ifndef DAEMON_RESTORE_H
#define DAEMON_RESTORE_H

#include <berth/error.h>

#include "base/text/quantity.h"

struct machine;
struct pool;

/* The time for clients to reconnect. */
#define RESTORE_TIMEOUT (5 * DURATION_SECOND)

/* Reads the devices of the journal at pool->journal_path, in the order of their slots, marked as
 * old; none if there is no journal of this boot. The caller finishes the machine. Fails with
 * BERTH_ERROR_IO, _PERMISSION or _MEMORY. */
int restore_devices(struct pool *pool, struct machine *ret_machine, struct berth_error *error);

/* Reads the journal at pool->journal_path, if there is one of this boot, into the pool's new
 * engine. Leases and claims are as they were, even if their holders are gone. A torn end is
 * ignored, and a damaged journal becomes a problem of the pool. Fails with BERTH_ERROR_IO,
 * _PERMISSION, _MEMORY, or _BUSY if leases are held on devices that have changed. */
int restore_read(struct pool *pool, struct berth_error *error);

/* Continues the restored leases and claims. Ends those whose client was never notified and the
 * leases of dead holders, watches living holders, and gives clients RESTORE_TIMEOUT to reconnect.
 * Must be called while the engine is paused, after it has a sink and the journal was replaced.
 * Fails with BERTH_ERROR_MEMORY. */
int restore_holders(struct pool *pool, struct berth_error *error);

#endif
