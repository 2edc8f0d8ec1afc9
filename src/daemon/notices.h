/* SPDX-License-Identifier: Apache-2.0
 *
 * What people should know in time: that a time limit is near, that a lease is held but not used,
 * that a device was taken out of service or is used by somebody without a lease. Holders that are
 * connected are told (WIRE_WARNING), and a program of whoever runs the machine is.
 */
#ifndef DAEMON_NOTICES_H
#define DAEMON_NOTICES_H

#include "daemon/pool.h"

/* How many runs of the program may be under way or wait for their turn. */
enum { NOTICES_MAX = 100 };

int notices_init(struct pool *pool, struct berth_error *error);
void notices_finish(struct pool *pool);

/* The lease has a time limit, or another one than before: its holder is warned in time. Also for
 * one whose client has come back. */
void notice_limit(struct pool *pool, struct job *job);

/* The hardware was looked at, or could not be: which leases are used is judged anew, and what that
 * leads to done. The engine is not paused; the caller settles the pool. */
void notices_judge(struct pool *pool);

/* Whether the holder may be told something while it uses its lease. */
bool notices_may_come(const struct pool *pool, const struct job *job);

/* For how long the lease has not been used; unknown: it is, or that cannot be told. */
struct optional_number notice_idle_time(const struct pool *pool, const struct job *job);

/* The pool itself took the device out of service. */
void notice_drained(struct pool *pool, uint32_t slot, const char *reason);
/* Somebody without a lease has begun to use the device. */
void notice_squatter(struct pool *pool, uint32_t slot, const struct device_process *process);

/* ---- Pure ---- */

/* When a lease of these times is warned of its end, `before` being how long before that is usual;
 * TIME_NEVER: not at all. Of a short one it is a quarter of its length, and at least 1 s. */
int64_t notice_limit_time(int64_t granted, int64_t expires, int64_t before);

enum device_use {
    DEVICE_UNUSED,
    DEVICE_USED,
    DEVICE_USE_UNKNOWN,
};

/* Whether the device is used. `has_process`: by a process that may be of the lease; `sees_all`: one
 * that was there would have been seen. */
enum device_use notice_use_of(const struct device *device, bool has_process, bool sees_all);

#endif
