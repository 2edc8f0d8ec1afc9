/* SPDX-License-Identifier: Apache-2.0
 *
 * The facts that the pool adds to a scan of the hardware: slots, start times of processes, and
 * their leases. No daemon is started. A pool that is missing or does not answer in time adds
 * nothing.
 */
#ifndef CLI_DEVICES_DEVICES_POOL_H
#define CLI_DEVICES_DEVICES_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "view/pool_view.h"

/* How long to wait for the pool, in nanoseconds. */
#define DEVICES_POOL_TIMEOUT INT64_C(1000000000)

struct devices_pool_holder {
    pid_t pid;
    uint64_t lease;
};

/* Zeroed memory is valid: the pool was not queried yet. */
struct devices_pool {
    struct pool_address address;
    struct session session;
    bool is_connected;
    int64_t silent_until; /* after a timeout: no query before this time (CLOCK_MONOTONIC) */
    struct pool_view view;
    bool is_known; /* the view is from the last query */
    struct {
        VECTOR_OF(struct devices_pool_holder); /* by pid, then by lease */
    } holders;
};

/* Queries the pool. Blocks for at most about twice DEVICES_POOL_TIMEOUT. After a failure,
 * `is_known` is false. */
void devices_pool_query(struct devices_pool *pool);
void devices_pool_finish(struct devices_pool *pool);

/* Fills `holders` from the view; public for tests. Returns 0 or BERTH_ERROR_MEMORY. */
int devices_pool_index(struct devices_pool *pool);

/* Returns the slot of a device in the pool; unknown if the pool does not have it. */
struct optional_number devices_pool_slot(const struct devices_pool *pool, struct device_id id);

/* Returns the pool's copy of the device; NULL: the pool does not have it. */
const struct device *devices_pool_device(const struct devices_pool *pool, struct device_id id);

/* Returns the lease of a process of this machine: the youngest lease that the process holds, or
 * else its nearest ancestor with one; 0: none. */
uint64_t devices_pool_lease(const struct devices_pool *pool, uint64_t pid);

#endif
