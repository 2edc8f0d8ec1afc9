/* SPDX-License-Identifier: Apache-2.0
 *
 * The pool's timer thread: it advances the engine's time (deadlines of claims that do not block,
 * time limits, grace periods, ageing) and samples loads. It starts with the first timer and
 * sleeps until the next one.
 */
#ifndef LIBBERTH_LOCAL_TIMER_THREAD_H
#define LIBBERTH_LOCAL_TIMER_THREAD_H

#include <berth/berth.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct timer_thread {
    pthread_t thread;
    bool is_running; /* under the lock */
    bool must_end;
    int64_t sleeps_until;
    atomic_uint word; /* changes when the thread must check again */
};

/* Ensures that the thread runs. Fails with BERTH_ERROR_MEMORY. Called with the lock. */
int timer_thread_ensure_running(struct berth_pool *pool, struct berth_error *error);

/* Returns whether the thread must be woken because the engine has a timer before its next wake-up.
 * Then call timer_thread_wake after releasing the lock. Called with the lock. */
bool timer_thread_must_wake(struct berth_pool *pool);
void timer_thread_wake(struct berth_pool *pool);

/* Ends the thread. Called without the lock. */
void timer_thread_stop(struct berth_pool *pool);

/* Lets the program sample every device, and reports the loads to the engine. Called without the
 * lock. */
void timer_thread_sample(struct berth_pool *pool);

#endif
