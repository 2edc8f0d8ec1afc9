/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices that were taken out of service: by whom, when and why. The journal keeps it.
 */
#ifndef DAEMON_DRAINS_H
#define DAEMON_DRAINS_H

#include "daemon/pool.h"

struct drain {
    char *reason;               /* for people; NULL: none was given */
    struct optional_number uid; /* unknown: the pool itself */
    int64_t time;               /* the pool's; 0: it is in service */
};

int drains_init(struct pool *pool, struct berth_error *error);
void drains_finish(struct pool *pool);

/* Takes the device of the slot out of service: leases on it go on until they end. One that is out
 * of service already gets the new reason. The caller settles the pool. Fails with
 * BERTH_ERROR_MEMORY. */
int drain_set(struct pool *pool, uint32_t slot, const char *reason, struct optional_number uid,
              struct berth_error *error);
/* Into service again; one that is fine, too. */
void drain_clear(struct pool *pool, uint32_t slot);

/* What the journal knows; takes the reason over. */
struct kept_drain;
void drain_restore(struct pool *pool, struct kept_drain *kept);
/* All of it is read: the engine has it from here. `other_devices`: it was about others. */
void drains_restored(struct pool *pool, bool other_devices);

/* What is known of the slot. */
const struct drain *drain_of(const struct pool *pool, uint32_t slot);

#endif
