/* SPDX-License-Identifier: Apache-2.0
 *
 * The hardware of a pool: the first look that it is opened with, and a thread that goes on looking.
 * It is one of its own, not the keeper, because an answer may take as long as a driver hangs, and
 * time limits are not to wait for that.
 */
#ifndef LIBBERTH_LOCAL_PROBE_THREAD_H
#define LIBBERTH_LOCAL_PROBE_THREAD_H

#include <berth/berth.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/machine.h"
#include "probe/probe.h"

/* A probe that was lost is started again after the first of these, then after twice as long each
 * time, up to the second. */
#define PROBE_THREAD_BACKOFF_MIN INT64_C(1000000000)
#define PROBE_THREAD_BACKOFF_MAX INT64_C(60000000000)

/* Zeroed memory is one that was never opened. */
struct probe_thread {
    struct probe probe;
    int64_t deadline; /* how long a look may take */
    int stop_event;   /* an eventfd: becomes readable when the thread is to end */
    bool is_open;
    bool is_running;
    pthread_t thread;
};

/* Looks for the first time. The caller finishes *ret_machine and the looker, also on failure: with
 * BERTH_ERROR_IO when nobody answers, _SYNTAX or _RANGE for a wrong BERTH_PROBE_DEADLINE, or
 * _MEMORY. */
int probe_thread_open(struct probe_thread *probe_thread, struct machine *ret_machine,
                      struct berth_error *error);

/* Starts the thread, which looks every pool->sample_interval. Fails with BERTH_ERROR_MEMORY. */
int probe_thread_start(struct berth_pool *pool, struct berth_error *error);

/* Ends the thread. Without the lock. */
void probe_thread_stop(struct probe_thread *probe_thread);

/* Lets go of the probe, which ends then. Not in a child of fork(): the probe is the parent's, and
 * its thread may have been in the midst of something. */
void probe_thread_finish(struct probe_thread *probe_thread);

#endif
