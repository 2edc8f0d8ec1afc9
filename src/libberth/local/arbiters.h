/* SPDX-License-Identifier: Apache-2.0
 *
 * Notifications from the pool to an arbiter. These functions are called with the lock, unless a
 * comment says otherwise.
 */
#ifndef LIBBERTH_LOCAL_ARBITERS_H
#define LIBBERTH_LOCAL_ARBITERS_H

#include <berth/berth.h>
#include <stdint.h>

#include "libberth/local/notifications.h"

/* Reports that the arbiter's claim was granted this lease, or ended without one (0). */
void arbiter_set_outcome(struct berth_arbiter *arbiter, uint64_t lease);

/* Reports that a lease must be released soon (NOTIFICATION_TAKE_BACK) or now
 * (NOTIFICATION_FORCE). */
void arbiter_notify(struct berth_arbiter *arbiter, uint64_t lease, enum notification_kind kind);

/* Reports that a lease of the pool is about to be released. `owner` is the target of its owner, or
 * NULL. */
void arbiters_on_release(struct berth_pool *pool, void *owner, uint64_t lease);

/* Runs the program's callback for a notification of this kind. Called without the lock. */
void arbiter_run_callback(struct berth_arbiter *arbiter, enum notification_kind kind,
                          struct berth_lease lease);

/* Makes the offers that are due. Called without the lock. */
void arbiters_serve(struct berth_pool *pool);

/* Stops and frees all arbiters. Called without the lock. */
void arbiters_stop(struct berth_pool *pool);
void arbiters_free(struct berth_pool *pool);

#endif
