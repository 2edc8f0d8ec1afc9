/* SPDX-License-Identifier: Apache-2.0
 *
 * The prolog and the epilog: the administrator's programs that run for each device before its first
 * lease begins and after its last lease has ended. The holder is notified of its lease after the
 * prolog has succeeded; the device is granted again after the epilog has. If one of them fails, the
 * device is drained. Leases within others have neither; leases of adopted processes have no prolog.
 */
#ifndef DAEMON_LEASES_PROLOG_EPILOG_H
#define DAEMON_LEASES_PROLOG_EPILOG_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

struct job;
struct kept_epilog;
struct pool;

/* Allocates pool->checks. Fails with BERTH_ERROR_MEMORY. */
int prolog_epilog_init(struct pool *pool, struct berth_error *error);
void prolog_epilog_finish(struct pool *pool);

/* Runs the prolog for the devices of a granted lease that need it. Returns whether the holder must
 * wait: once all prologs have succeeded, engine_events_notify_holder() is called; if one fails, the
 * claim returns to the queue. */
bool prolog_epilog_prepare(struct pool *pool, struct job *job);
/* Does the same after a restart, for a lease whose holder was not notified before. */
bool prolog_epilog_prepare_again(struct pool *pool, struct job *job);

/* Runs the epilog for the devices that an ending lease leaves, which stay blocked until it has
 * ended. Must be called before the engine ends the lease. */
void prolog_epilog_end(struct pool *pool, const struct job *job);

/* Restores an epilog from the journal; takes the name. */
void prolog_epilog_restore(struct pool *pool, struct kept_epilog *kept);
/* Forgets restored epilogs: they belong to other devices than the present ones. */
void prolog_epilog_forget(struct pool *pool);
/* Runs epilogs again that had not ended before the restart. Must be called while the engine is
 * paused, after the whole journal was read. */
void prolog_epilog_restored(struct pool *pool);

/* Fills in the record of the slot's epilog, for the journal. Returns false if no epilog is due. The
 * name is borrowed. */
bool prolog_epilog_kept(const struct pool *pool, uint32_t slot, struct kept_epilog *ret_kept);

#endif
