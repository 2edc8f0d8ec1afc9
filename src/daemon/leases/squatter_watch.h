/* SPDX-License-Identifier: Apache-2.0
 *
 * Squatters: processes that use a device without a lease on it (processes/squatters.h). A device
 * with one is not granted (BLOCK_SQUATTED), unless the rules ignore them. The same holds for a
 * device with much memory in use and no listed process (model/machine/occupancy.h).
 *
 * Nothing here blocks. All functions belong to the loop's thread.
 */
#ifndef DAEMON_LEASES_SQUATTER_WATCH_H
#define DAEMON_LEASES_SQUATTER_WATCH_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

struct pool;

/* Creates pool->squatters. Fails with BERTH_ERROR_MEMORY. */
int squatter_watch_init(struct pool *pool, struct berth_error *error);
void squatter_watch_finish(struct pool *pool);

/* Checks the processes on the slot's device, after these or the leases have changed: marks those
 * that squat, and blocks or unblocks the device. Processes that an ended lease left there keep it
 * in handover. Unless the engine is paused, an unblocked device is granted: the caller settles the
 * pool. */
void squatter_watch_judge(struct pool *pool, uint32_t slot);
/* Does the same for all slots, after a report. Watches the squatters, so that their end is noticed
 * at once and a new report is requested. */
void squatter_watch_judge_all(struct pool *pool);

/* Returns whether an unlisted process blocks a device. It cannot be watched: only its memory shows
 * it. */
bool squatter_watch_has_hidden(const struct pool *pool);

#endif
