/* SPDX-License-Identifier: Apache-2.0
 *
 * Warnings: a time limit is near, or a lease is not used. A warning goes to the connected holder
 * (WIRE_WARNING) and to the administrator's program (notify_program.h). Nothing here blocks.
 */
#ifndef DAEMON_LEASES_LEASE_WARNINGS_H
#define DAEMON_LEASES_LEASE_WARNINGS_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/optional.h"

struct device;
struct job;
struct pool;

/* Creates pool->lease_warnings. Fails with BERTH_ERROR_MEMORY. */
int lease_warnings_init(struct pool *pool, struct berth_error *error);
void lease_warnings_finish(struct pool *pool);

/* Schedules the warning of the lease's time limit. Must be called when the lease begins, when its
 * limit changes, and when its client reconnects. */
void lease_warnings_limit(struct pool *pool, struct job *job);

/* Checks which leases are used, after each hardware report and after the loss of the probe; warns
 * about idle leases and reclaims them. The engine must not be paused; the caller settles the pool.
 */
void lease_warnings_check(struct pool *pool);

/* Returns whether the holder may get a warning of an idle lease. */
bool lease_warnings_may_come(const struct pool *pool, const struct job *job);

/* Returns for how long the lease has been idle; unknown: it is used, or its use is unknown. */
struct optional_number lease_warnings_idle_time(const struct pool *pool, const struct job *job);

/* ---- Pure ---- */

/* Returns the time of a lease's warning: `before` its end, or for a short lease a quarter of its
 * length, at least 1 s. TIME_NEVER: there is no warning. */
int64_t lease_warnings_limit_time(int64_t granted, int64_t expires, int64_t before);

enum device_use {
    DEVICE_UNUSED,
    DEVICE_USED,
    DEVICE_USE_UNKNOWN,
};

/* Returns whether the device is used. `has_process`: a process is on it that may belong to the
 * lease; `sees_all`: the probe sees the processes of every user. */
enum device_use lease_warnings_use_of(const struct device *device, bool has_process, bool sees_all);

#endif
