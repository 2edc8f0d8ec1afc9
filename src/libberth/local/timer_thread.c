/* SPDX-License-Identifier: Apache-2.0 */
#include "libberth/local/timer_thread.h"

#include <signal.h>
#include <string.h>

#include "base/error.h"
#include "libberth/local/futex.h"
#include "libberth/local/local_pool.h"

static int64_t earlier_time(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

static void *run_timer_thread(void *argument)
{
    struct berth_pool *pool = argument;
    struct timer_thread *timer_thread = &pool->timer_thread;
    int64_t sampled_at = clock_now();

    pthread_setname_np(pthread_self(), "berth-timer");
    lock_take(&pool->lock);
    while (!timer_thread->must_end) {
        unsigned word = atomic_load_explicit(&timer_thread->word, memory_order_relaxed);
        /* One interval after the end of the last sample. */
        int64_t sample_at =
            pool->sample == NULL ? TIME_NEVER : clock_after(sampled_at, pool->sample_interval);
        int64_t until;

        local_pool_advance(pool, clock_now());
        until = earlier_time(engine_next_time(pool->engine), sample_at);
        timer_thread->sleeps_until = until;
        local_pool_leave(pool);
        futex_sleep(&timer_thread->word, word, until);
        if (clock_now() >= sample_at) {
            timer_thread_sample(pool);
            sampled_at = clock_now();
        }
        lock_take(&pool->lock);
    }
    lock_give(&pool->lock);
    return NULL;
}

/* Starts the thread with all signals blocked: signals are for the program's own threads. */
static int start_thread(struct berth_pool *pool)
{
    sigset_t all;
    sigset_t before;
    int failure;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failure = pthread_create(&pool->timer_thread.thread, NULL, run_timer_thread, pool);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failure;
}

int timer_thread_ensure_running(struct berth_pool *pool, struct berth_error *error)
{
    char reason[128];
    int failure;

    if (pool->timer_thread.is_running)
        return 0;
    pool->timer_thread.sleeps_until = INT64_MIN;
    failure = start_thread(pool);
    if (failure != 0)
        return error_set(error, BERTH_ERROR_MEMORY, "cannot start the timer thread: %s",
                         strerror_r(failure, reason, sizeof(reason)));
    pool->timer_thread.is_running = true;
    return 0;
}

bool timer_thread_must_wake(struct berth_pool *pool)
{
    struct timer_thread *timer_thread = &pool->timer_thread;
    int64_t next;

    if (!timer_thread->is_running)
        return false;
    next = engine_next_time(pool->engine);
    if (next >= timer_thread->sleeps_until)
        return false;
    timer_thread->sleeps_until = next;
    atomic_fetch_add_explicit(&timer_thread->word, 1, memory_order_relaxed);
    return true;
}

void timer_thread_wake(struct berth_pool *pool)
{
    futex_wake_all(&pool->timer_thread.word);
}

void timer_thread_stop(struct berth_pool *pool)
{
    struct timer_thread *timer_thread = &pool->timer_thread;

    if (!timer_thread->is_running)
        return;
    lock_take(&pool->lock);
    timer_thread->must_end = true;
    atomic_fetch_add_explicit(&timer_thread->word, 1, memory_order_relaxed);
    lock_give(&pool->lock);
    timer_thread_wake(pool);
    pthread_join(timer_thread->thread, NULL);
    timer_thread->is_running = false;
}
