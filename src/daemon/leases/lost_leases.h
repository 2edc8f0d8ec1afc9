/* SPDX-License-Identifier: Apache-2.0
 *
 * Leases that a damaged journal lost. Their processes may still use the devices, which must not be
 * granted meanwhile. So no device is granted until berth-reader has found the processes that carry
 * a mark of this pool, and a hardware report was applied. After that, a device stays blocked
 * (HANDOVER_LOST) while such a process without a lease on the device has it in BERTH_DEVICES.
 *
 * A process without a mark is not found. A process has no mark if it uses libberth, which holds the
 * lease by its connection, or if it was adopted. The drivers list such a process once it uses the
 * device.
 *
 * The journal records that the search is not over, for the next daemon. Nothing here blocks.
 */
#ifndef DAEMON_LEASES_LOST_LEASES_H
#define DAEMON_LEASES_LOST_LEASES_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text/quantity.h"
#include "model/machine/machine_report.h"

struct pool;

/* The number of complete answers before a device is free, and the minimum time between two
 * questions. One answer is not enough: a process may have been inside exec at that moment. */
enum { LOST_LEASES_ANSWERS = 2 };
#define LOST_LEASES_EVERY (DURATION_SECOND / 2)

/* The time between questions while there are more marked processes than an answer has. */
#define LOST_LEASES_PARTIAL_EVERY (10 * DURATION_SECOND)

/* The maximum number of processes that are watched and named. Others are found when these have
 * ended. */
enum { LOST_LEASES_WATCHED_MAX = 64 };

/* Creates pool->lost_leases. Fails with BERTH_ERROR_MEMORY. */
int lost_leases_init(struct pool *pool, struct berth_error *error);
void lost_leases_finish(struct pool *pool);

/* Notes, while the journal is read, whether records are missing. */
void lost_leases_note(struct pool *pool, bool are_lost);
/* Returns whether records are missing, and leases of them may still have processes. */
bool lost_leases_are_sought(const struct pool *pool);

/* Begins the search if records are missing: blocks all devices. Called before the first report is
 * applied and before any lease is ended. */
void lost_leases_begin(struct pool *pool);
/* Notes that a report of the hardware was applied. The engine must be paused. */
void lost_leases_reported(struct pool *pool);
/* Unblocks the device because an administrator puts it into service, even if a process may use
 * it. */
void lost_leases_release(struct pool *pool, uint32_t slot);

/* Appends a problem that describes the search, and one for each process found; at most `max` in
 * all. */
void lost_leases_describe(const struct pool *pool, size_t max, struct problem_list *problems);

#endif
