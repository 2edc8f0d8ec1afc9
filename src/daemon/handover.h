/* SPDX-License-Identifier: Apache-2.0
 *
 * From one lease of a device to the next: it is not granted (BLOCK_DIRTY) before it is known that
 * nothing of the lease before is left on it, as far as its vendor can tell, and before the epilog
 * has been run and its MPS control daemon has ended. Leases within others are not handed over: the
 * device stays the outer lease's.
 */
#ifndef DAEMON_HANDOVER_H
#define DAEMON_HANDOVER_H

#include "daemon/pool.h"

/* What keeps a device from being granted on; bits. */
enum handover {
    HANDOVER_LOOK = 1 << 0,    /* nobody has looked since the lease ended */
    HANDOVER_LINGERS = 1 << 1, /* processes of it are on it */
    HANDOVER_EPILOG = 1 << 2,  /* the epilog runs, or waits for its turn */
    HANDOVER_MPS = 1 << 3,     /* its MPS control daemon has not ended */
};

int handover_init(struct pool *pool, struct berth_error *error);
void handover_finish(struct pool *pool);

/* A lease is about to end: what its devices still need is noted, and they are blocked, so that the
 * engine does not grant them on at once. */
void handover_begin(struct pool *pool, const struct job *job);

/* What a daemon before us did not get to: to be looked at again. */
void handover_restored(struct pool *pool);

/* Whether a device waits for a look. */
bool handover_is_pending(const struct pool *pool);
/* Whether a device waits for a look that nobody has asked for. */
bool handover_is_unasked(const struct pool *pool);
/* A look is asked for: at all devices, or at those that wait for one, whose ids are added to
 * `only`. */
void handover_ask(struct pool *pool, struct device_id_list *only);
/* It came, and has been taken into the engine, which is paused. */
void handover_looked(struct pool *pool);
/* Nobody looks: what cannot be known is not waited for. */
void handover_unanswered(struct pool *pool);

/* Something more, or less, keeps the slot from being granted. Unblocking grants it on: the caller
 * settles the pool afterwards, where the engine is not paused. */
void handover_need(struct pool *pool, uint32_t slot, enum handover what);
void handover_done(struct pool *pool, uint32_t slot, enum handover what);

#endif
