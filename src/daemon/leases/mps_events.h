/* SPDX-License-Identifier: Apache-2.0
 *
 * Connects the control daemons of MPS (mps/mps.h) with the pool: their devices, their tenants
 * (mps_tenants.h) and processes (mps_search.h), the journal, and the handover of their devices.
 */
#ifndef DAEMON_LEASES_MPS_EVENTS_H
#define DAEMON_LEASES_MPS_EVENTS_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

struct kept_mps;
struct pool;

/* The variable of the daemon's environment with the time that a control daemon has until it
 * answers. */
#define MPS_TIMEOUT_VARIABLE "BERTH_MPS_DEADLINE"

/* Creates pool->mps. Fails with BERTH_ERROR_SYNTAX or _RANGE for a wrong variable, or with
 * BERTH_ERROR_MEMORY. */
int mps_events_init(struct pool *pool, struct berth_error *error);
/* Leaves running control daemons alone. */
void mps_events_finish(struct pool *pool);

/* Takes a record of the journal. Fails with BERTH_ERROR_MEMORY. */
int mps_events_restore(struct pool *pool, const struct kept_mps *kept, struct berth_error *error);
/* Fills in the record of the slot's control daemon, whose texts are borrowed. Returns false if
 * there is none. */
bool mps_events_kept(const struct pool *pool, uint32_t slot, struct kept_mps *ret_kept);

#endif
