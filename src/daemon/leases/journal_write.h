/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the state that must outlive the daemon to the journal: the engine's events and the holder
 * of each claim. A record that cannot be encoded ends the daemon, which restarts from the journal.
 */
#ifndef DAEMON_LEASES_JOURNAL_WRITE_H
#define DAEMON_LEASES_JOURNAL_WRITE_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

struct ended_job;
struct engine_event;
struct job;
struct kept_mps;
struct pool;

void journal_write_event(struct pool *pool, const struct engine_event *event);
void journal_write_job(struct pool *pool, const struct job *job);
void journal_write_ended(struct pool *pool, const struct ended_job *ended);

/* Writes the facts of a new or changed device. */
void journal_write_device(struct pool *pool, uint32_t slot);
/* Writes whether the device is in service. */
void journal_write_drain(struct pool *pool, uint32_t slot);
/* Writes whether the epilog of the device is due. */
void journal_write_epilog(struct pool *pool, uint32_t slot);
/* Writes the state of a device's MPS control daemon. */
void journal_write_mps(struct pool *pool, const struct kept_mps *kept);
/* Writes whether the processes of lost leases are searched for. */
void journal_write_lost(struct pool *pool, bool is_lost);

/* Replaces the journal by one that holds only the present state. Fails with BERTH_ERROR_MEMORY,
 * _IO, _PERMISSION or _NOT_FOUND, and leaves the journal unchanged then. */
int journal_write_checkpoint(struct pool *pool, struct berth_error *error);

#endif
