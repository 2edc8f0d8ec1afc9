/* SPDX-License-Identifier: Apache-2.0
 *
 * What the pool tells an arbiter. All with the lock unless it says otherwise.
 */
#ifndef LIBBERTH_LOCAL_ARBITERS_H
#define LIBBERTH_LOCAL_ARBITERS_H

#include <berth/berth.h>
#include <stdint.h>

#include "libberth/local/notifications.h"

/* The claim that stood in the queue has this lease, or none (0). */
void arbiter_settle(struct berth_arbiter *arbiter, uint64_t lease);

/* A lease is to be taken back (NEWS_TAKE_BACK) or has to go now (NEWS_FORCE). */
void arbiter_notice(struct berth_arbiter *arbiter, uint64_t lease, enum news_kind kind);

/* A lease of the pool is about to be released; `owner` is its owner's target or NULL. */
void arbiters_see_release(struct berth_pool *pool, void *owner, uint64_t lease);

/* Runs the callback for such news. Without the lock. */
void arbiter_tell(struct berth_arbiter *arbiter, enum news_kind kind, struct berth_lease lease);

/* Makes the offers that are due. Without the lock. */
void arbiters_serve(struct berth_pool *pool);

/* Stops all of them, and frees them. Without the lock. */
void arbiters_stop(struct berth_pool *pool);
void arbiters_free(struct berth_pool *pool);

#endif
