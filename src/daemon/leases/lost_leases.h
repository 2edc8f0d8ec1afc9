/* SPDX-License-Identifier: Apache-2.0
 *
 * Leases that a damaged journal lost. Their processes still use the devices, which must not be
 * granted meanwhile. So no device is granted until berth-reader has told which processes carry the
 * mark of a lease of this pool, and the hardware has been looked at. After that, a device stays
 * blocked (HANDOVER_LOST) while such a process has it in its BERTH_DEVICES without a lease on it.
 *
 * A process without a mark is not found: one of libberth, which has the lease by its connection, or
 * one that was adopted. The drivers list it once it uses the device.
 *
 * The journal tells the next daemon that the search is not over. Nothing here blocks.
 */
#ifndef DAEMON_LEASES_LOST_LEASES_H
#define DAEMON_LEASES_LOST_LEASES_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text/quantity.h"
#include "model/machine/machine_report.h"

struct pool;

/* The processes are asked for so often before a device is free: one may become the lease's program
 * at the moment of the first question. This is also the least time between two questions. */
enum { LOST_LEASES_ANSWERS = 2 };
#define LOST_LEASES_EVERY (DURATION_SECOND / 2)

/* The time between questions while there are more marked processes than an answer has. */
#define LOST_LEASES_PARTIAL_EVERY (10 * DURATION_SECOND)

/* So many processes are watched and named. The others are found when these have ended. */
enum { LOST_LEASES_WATCHED_MAX = 64 };

/* Creates pool->lost_leases. Fails with BERTH_ERROR_MEMORY. */
int lost_leases_init(struct pool *pool, struct berth_error *error);
void lost_leases_finish(struct pool *pool);

/* Notes while the journal is read that records are missing, or that nothing is missing any more. */
void lost_leases_note(struct pool *pool, bool are_lost);
/* Returns whether records are missing, and leases of them may still have processes. */
bool lost_leases_are_sought(const struct pool *pool);

/* Begins the search if records are missing: blocks all devices. Called before the first report is
 * applied and before any lease is ended. */
void lost_leases_begin(struct pool *pool);
/* Notes that a report of the hardware was applied. The engine must be paused. */
void lost_leases_reported(struct pool *pool);
/* An administrator puts the device into service, whatever uses it. */
void lost_leases_release(struct pool *pool, uint32_t slot);

/* Appends what is waited for and the processes that were found, at most `max` problems in all. */
void lost_leases_describe(const struct pool *pool, size_t max, struct problem_list *problems);

#endif
