/* SPDX-License-Identifier: Apache-2.0
 *
 * Fills the items of messages from the pool's state.
 */
#ifndef DAEMON_LEASES_POOL_FACTS_H
#define DAEMON_LEASES_POOL_FACTS_H

#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "model/machine/device.h"
#include "model/pool_info.h"

struct job;
struct pool;

/* Returns the counts of a snapshot, and the time. */
struct pool_snapshot pool_facts_counts(const struct pool *pool);

/* Fills in a slot, but not its device. The texts are borrowed. */
void pool_facts_fill_slot(const struct pool *pool, uint32_t slot, struct slot_info *ret_item);

/* Fills in a lease. The texts are borrowed; the caller frees the list of devices. Returns 0, or
 * BERTH_ERROR_MEMORY with an empty list. */
int pool_facts_fill_lease(struct pool *pool, const struct job *job, const struct lease_view *view,
                          struct lease_info *ret_item);

/* Return an upper estimate of an item's size in a message, in bytes. */
size_t pool_facts_device_size(const struct device *device);
size_t pool_facts_process_size(const struct device_process *process);

#endif
