/* SPDX-License-Identifier: Apache-2.0
 *
 * Fingerprints of the parts of a pool. A reader compares a fingerprint with that of an earlier
 * snapshot: when both are equal, the reader has nothing new to show. The time and the load of the
 * devices never count. Pure functions; any thread may call them.
 */
#ifndef VIEW_POOL_FINGERPRINT_H
#define VIEW_POOL_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

#include "view/pool_view.h"

/* Covers all that pool_json_write_devices and pool_json_write_problems write, except the load of
 * the devices and the memory that processes use. */
uint64_t pool_fingerprint_devices(const struct pool_view *view);

/* Covers all that can change in a lease, except how long it has been idle. */
uint64_t pool_fingerprint_lease(const struct lease_info *lease);

/* Covers the number of claims that wait, and all that pool_json_write_queue writes about the first
 * `claims_max` of them. */
uint64_t pool_fingerprint_queue(const struct pool_view *view, size_t claims_max);

/* Covers the events that `berth status --watch` prints: states of devices, leases, squatters,
 * positions in the queue, problems. It ignores other processes, reasons and estimates. */
uint64_t pool_fingerprint_events(const struct pool_view *view);

#endif
