/* SPDX-License-Identifier: Apache-2.0
 *
 * Going on where the last daemon of this pool ended, however it ended.
 */
#ifndef DAEMON_RESTORE_H
#define DAEMON_RESTORE_H

#include "daemon/pool.h"

/* How long clients that waited have to come back. */
#define RESTORE_TIMEOUT (5 * DURATION_SECOND)

/* The devices that the journal at pool->journal_path knows, in the order of their slots, each as
 * old as that is; none where there is no journal of this boot. The caller finishes the machine.
 * Fails with BERTH_ERROR_IO, _PERMISSION or _MEMORY. */
int restore_devices(struct pool *pool, struct machine *ret_machine, struct berth_error *error);

/* Reads the journal at pool->journal_path, if there is one of this boot, into the pool's fresh
 * engine: leases and claims are as they were, whether their holders live or not. A torn end is
 * ignored. Fails with BERTH_ERROR_IO, _PERMISSION, _MEMORY, or _BUSY when leases are held on
 * other devices than there are now. */
int restore_read(struct pool *pool, struct berth_error *error);

/* After the journal is made anew, and with the engine listened to: ends what nobody was told of,
 * watches holders that live, ends the leases of those that do not, and gives clients that waited
 * their time to come back. Fails with BERTH_ERROR_MEMORY. */
int restore_holders(struct pool *pool, struct berth_error *error);

#endif
