/* SPDX-License-Identifier: Apache-2.0
 *
 * Handover: the time between the end of a device's lease and its next grant. The device is blocked
 * (BLOCK_DIRTY) until a report shows that no process of the lease is left on it, as far as its
 * driver can tell, until the epilog has run, and until its MPS control daemon has ended. The
 * devices of a lease within another stay with the outer lease.
 *
 * Nothing here blocks. All functions belong to the loop's thread. A device without a reason left is
 * granted at once, unless the engine is paused: the caller settles the pool afterwards.
 */
#ifndef DAEMON_LEASES_HANDOVER_H
#define DAEMON_LEASES_HANDOVER_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

struct device_id_list;
struct job;
struct pool;

/* The reasons for not granting a device yet; bits. */
enum handover {
    HANDOVER_LOOK = 1 << 0,    /* there is no report that began after the end of its lease */
    HANDOVER_LINGERS = 1 << 1, /* processes of ended leases are on it */
    HANDOVER_EPILOG = 1 << 2,  /* the epilog runs, or waits for its turn */
    HANDOVER_MPS = 1 << 3,     /* its MPS control daemon has not ended */
    HANDOVER_LOST = 1 << 4,    /* a lease that a damaged journal lost may use it */
};

/* Creates pool->handovers. Fails with BERTH_ERROR_MEMORY. */
int handover_init(struct pool *pool, struct berth_error *error);
void handover_finish(struct pool *pool);

/* Blocks the devices of a lease until the next report. Must be called before the engine ends the
 * lease, which would grant them at once. Does nothing without a probe. */
void handover_begin(struct pool *pool, const struct job *job);

/* Continues the handovers of the daemon before, after the journal was read. */
void handover_restored(struct pool *pool);

/* Returns whether the slot waits for a report of its processes, and for nothing else. */
bool handover_needs_report(const struct pool *pool, uint32_t slot);
/* Returns whether a device waits for a report. */
bool handover_is_pending(const struct pool *pool);
/* Returns whether a device waits for a report that was not requested yet. */
bool handover_is_unasked(const struct pool *pool);
/* Returns whether the slot waits for a report that was not requested yet: the known facts may be
 * older than its wait. */
bool handover_is_unasked_for(const struct pool *pool, uint32_t slot);
/* Notes that a report begins: of all devices (`only` is NULL), or of those that wait for one, whose
 * ids are added to `only`. */
void handover_ask(struct pool *pool, struct device_id_list *only);
/* Notes that this report was applied. The engine must be paused. */
void handover_looked(struct pool *pool);
/* Ends the waits for reports, because there is no probe. */
void handover_unanswered(struct pool *pool);

/* Adds a reason to the slot, and removes one. */
void handover_need(struct pool *pool, uint32_t slot, enum handover what);
void handover_done(struct pool *pool, uint32_t slot, enum handover what);

#endif
