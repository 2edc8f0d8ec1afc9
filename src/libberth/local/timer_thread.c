/* SPDX-License-Identifier: Apache-2.0 */
#include "libberth/local/timer_thread.h"

#include <signal.h>
#include <string.h>

#include "base/error.h"
#include "libberth/local/futex.h"
#include "libberth/local/local_pool.h"

/* How long sampling is put off once it is due: not at all, but never twice at once. */
static int64_t next_sample(const struct berth_pool *pool, int64_t last)
{
    return pool->sample == NULL ? TIME_NEVER : clock_after(last, pool->sample_interval);
}

static int64_t earlier(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

static void *keep(void *argument)
{
    struct berth_pool *pool = argument;
    struct keeper *keeper = &pool->keeper;
    int64_t sampled_at = clock_now();

    pthread_setname_np(pthread_self(), "berth-keeper");
    lock_take(&pool->lock);
    while (!keeper->is_to_end) {
        unsigned word = atomic_load_explicit(&keeper->word, memory_order_relaxed);
        int64_t sample_at = next_sample(pool, sampled_at);
        int64_t until;

        pool_advance(pool, clock_now());
        until = earlier(engine_next_time(pool->engine), sample_at);
        keeper->sleeps_until = until;
        pool_leave(pool);
        futex_sleep(&keeper->word, word, until);
        if (clock_now() >= sample_at) {
            keeper_sample(pool);
            sampled_at = clock_now();
        }
        lock_take(&pool->lock);
    }
    lock_give(&pool->lock);
    return NULL;
}

/* The program's signals are for its own threads. */
static int start(struct berth_pool *pool)
{
    sigset_t all;
    sigset_t before;
    int failure;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failure = pthread_create(&pool->keeper.thread, NULL, keep, pool);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failure;
}

int keeper_need(struct berth_pool *pool, struct berth_error *error)
{
    char reason[128];
    int failure;

    if (pool->keeper.is_running)
        return 0;
    pool->keeper.sleeps_until = INT64_MIN;
    failure = start(pool);
    if (failure != 0)
        return error_set(error, BERTH_ERROR_MEMORY, "wanted a thread to keep time, found none: %s",
                         strerror_r(failure, reason, sizeof(reason)));
    pool->keeper.is_running = true;
    return 0;
}

bool keeper_is_late(struct berth_pool *pool)
{
    struct keeper *keeper = &pool->keeper;
    int64_t next;

    if (!keeper->is_running)
        return false;
    next = engine_next_time(pool->engine);
    if (next >= keeper->sleeps_until)
        return false;
    keeper->sleeps_until = next;
    atomic_fetch_add_explicit(&keeper->word, 1, memory_order_relaxed);
    return true;
}

void keeper_wake(struct berth_pool *pool)
{
    futex_wake_all(&pool->keeper.word);
}

void keeper_stop(struct berth_pool *pool)
{
    struct keeper *keeper = &pool->keeper;

    if (!keeper->is_running)
        return;
    lock_take(&pool->lock);
    keeper->is_to_end = true;
    atomic_fetch_add_explicit(&keeper->word, 1, memory_order_relaxed);
    lock_give(&pool->lock);
    keeper_wake(pool);
    pthread_join(keeper->thread, NULL);
    keeper->is_running = false;
}
