/* SPDX-License-Identifier: Apache-2.0
 *
 * What the hardware's pool can add to a look at the hardware: slots, since when processes run and
 * which leases they belong to. It is asked in passing: none is started, nobody is waited for, and
 * where there is none or it does not answer, it has nothing to add.
 */
#ifndef CLI_DEVICES_DEVICES_POOL_H
#define CLI_DEVICES_DEVICES_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "view/pool_view.h"

/* How long it may take, in nanoseconds. */
#define DEVICES_POOL_TIMEOUT INT64_C(1000000000)

struct devices_pool_holder {
    pid_t pid;
    uint64_t lease;
};

/* Zeroed memory is one that was never asked. */
struct devices_pool {
    struct pool_address address;
    struct session session;
    bool is_connected;
    int64_t silent_until; /* CLOCK_MONOTONIC: it did not answer and is left alone */
    struct pool_view view;
    bool is_known; /* the view is of now */
    struct {
        VECTOR_OF(struct devices_pool_holder); /* by pid, then by lease */
    } holders;
};

/* Asks. Without memory, too, it has nothing to add. */
void devices_pool_query(struct devices_pool *pool);
void devices_pool_finish(struct devices_pool *pool);

/* Makes the holders of a known view. For tests, too. Returns 0 or BERTH_ERROR_MEMORY. */
int devices_pool_index(struct devices_pool *pool);

/* The slot of a device in a known pool; unknown when it has none there. */
struct optional_number devices_pool_slot(const struct devices_pool *pool, struct device_id id);

/* The device as a known pool sees it; NULL when it has none. */
const struct device *devices_pool_device(const struct devices_pool *pool, struct device_id id);

/* The lease that a process of this machine belongs to: that of its nearest ancestor, itself
 * included, that holds one, and of several the youngest; 0: none. */
uint64_t devices_pool_lease(const struct devices_pool *pool, uint64_t pid);

#endif
