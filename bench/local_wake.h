/* SPDX-License-Identifier: Apache-2.0
 *
 * Two threads that wake each other in turn, on one CPU.
 */
#ifndef BENCH_LOCAL_WAKE_H
#define BENCH_LOCAL_WAKE_H

#include <berth/berth.h>

/* Returns the nanoseconds per turn when a device moves between two threads: one thread releases it,
 * which wakes the other, and claims it again, which makes it sleep. The pool has one device. */
double time_of_wake(struct berth_pool *pool);

/* The same with two futexes only: a call to wake the other thread, one to sleep. */
double time_of_futex_wake(void);

#endif
