/* SPDX-License-Identifier: Apache-2.0
 *
 * The hardware of a pool: the first query when it is opened, and a thread that repeats it. The
 * timer thread does not do this, because a driver that hangs may delay a query, and time limits
 * must not wait for that.
 */
#ifndef LIBBERTH_LOCAL_PROBE_THREAD_H
#define LIBBERTH_LOCAL_PROBE_THREAD_H

#include <berth/berth.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/machine/machine.h"
#include "probe/probe.h"

/* The default time between two queries, in nanoseconds. */
#define PROBE_THREAD_INTERVAL INT64_C(1000000000)

/* A lost probe is restarted after the minimum time, then after twice that time, and so on up to the
 * maximum. */
#define PROBE_THREAD_BACKOFF_MIN INT64_C(1000000000)
#define PROBE_THREAD_BACKOFF_MAX INT64_C(60000000000)

/* Zeroed memory is a thread that was never opened. */
struct probe_thread {
    struct probe probe;
    int64_t deadline; /* timeout of a query */
    int stop_event;   /* an eventfd that becomes readable when the thread must end */
    bool is_open;
    bool is_running;
    pthread_t thread;
};

/* Queries for the first time. The caller finishes *ret_machine and the probe thread, also on
 * failure: BERTH_ERROR_IO (no answer), _SYNTAX or _RANGE (a wrong BERTH_PROBE_DEADLINE) or
 * _MEMORY. */
int probe_thread_open(struct probe_thread *probe_thread, struct machine *ret_machine,
                      struct berth_error *error);

/* Starts the thread, which queries every pool->sample_interval. Fails with BERTH_ERROR_MEMORY. */
int probe_thread_start(struct berth_pool *pool, struct berth_error *error);

/* Ends the thread. Called without the lock. */
void probe_thread_stop(struct probe_thread *probe_thread);

/* Closes the connection to the probe, which then ends. Not in a child of fork(): the probe belongs
 * to the parent, and the parent's thread may have been using it. */
void probe_thread_finish(struct probe_thread *probe_thread);

#endif
