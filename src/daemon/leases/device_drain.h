/* SPDX-License-Identifier: Apache-2.0
 *
 * Drained devices: the user, the time and the reason, which the journal keeps.
 */
#ifndef DAEMON_LEASES_DEVICE_DRAIN_H
#define DAEMON_LEASES_DEVICE_DRAIN_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/optional.h"

struct pool;

struct device_drain {
    char *reason;               /* for users; NULL: none */
    struct optional_number uid; /* unknown: the daemon itself */
    int64_t time;               /* in the pool's time; 0: the device is in service */
};

/* Allocates pool->drains. Fails with BERTH_ERROR_MEMORY. */
int device_drain_init(struct pool *pool, struct berth_error *error);
void device_drain_finish(struct pool *pool);

/* Drains the slot's device: leases on it go on until they end. A drained device gets the new
 * reason. The caller settles the pool. Fails with BERTH_ERROR_MEMORY. */
int device_drain_set(struct pool *pool, uint32_t slot, const char *reason,
                     struct optional_number uid, struct berth_error *error);
/* Puts the device back into service; does nothing if it is in service. */
void device_drain_clear(struct pool *pool, uint32_t slot);

/* Restores a drain from the journal; takes the reason. */
struct kept_drain;
void device_drain_restore(struct pool *pool, struct kept_drain *kept);
/* Passes the restored drains to the engine, after the whole journal was read. `other_devices`:
 * drops them, because they belong to other devices than the present ones. */
void device_drain_restored(struct pool *pool, bool other_devices);

/* Returns the slot's drain. */
const struct device_drain *device_drain_of(const struct pool *pool, uint32_t slot);

#endif
