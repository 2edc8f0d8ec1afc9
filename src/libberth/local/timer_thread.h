/* SPDX-License-Identifier: Apache-2.0
 *
 * The pool's one thread: it lets time pass in the engine (deadlines of claims that do not block,
 * time limits, graces, ageing) and samples. It is started when there is something of that for the
 * first time, and sleeps until the next.
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
    atomic_uint word; /* changes when it is to look again */
};

/* Makes sure that the thread runs. Fails with BERTH_ERROR_MEMORY when there can be none. With the
 * lock. */
int timer_thread_ensure_running(struct berth_pool *pool, struct berth_error *error);

/* Whether the keeper is to be woken because the engine has something to do before it wakes by
 * itself; then timer_thread_wake does, after the lock is given back. With the lock. */
bool timer_thread_must_wake(struct berth_pool *pool);
void timer_thread_wake(struct berth_pool *pool);

/* Ends the thread. Without the lock. */
void timer_thread_stop(struct berth_pool *pool);

/* Has the program sample every device, then tells the engine. Without the lock. */
void timer_thread_sample(struct berth_pool *pool);

#endif
