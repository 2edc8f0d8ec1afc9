/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "libberth/local/arbiters.h"
#include "libberth/local/local_pool.h"

/* The last claims of the queue. */
enum { TAIL = 1024 };

struct tail {
    uint64_t claims[TAIL];
    size_t seen;
};

static void note_claim(void *context, const struct claim_view *view)
{
    struct tail *tail = context;

    tail->claims[tail->seen++ % TAIL] = view->id;
}

/* Cancels all claims, from the last to the first. In the other order, a claim would be granted the
 * devices that the claim before it waited for. Called with the lock, which it releases at times to
 * run callbacks. */
static void cancel_all_claims(struct berth_pool *pool)
{
    while (pool->waiting > 0) {
        struct tail tail = {.seen = 0};
        size_t count;

        engine_each_claim(pool->engine, note_claim, &tail);
        if (tail.seen == 0)
            break;
        count = tail.seen < TAIL ? tail.seen : TAIL;
        for (size_t i = 0; i < count; i++) {
            engine_cancel(pool->engine, tail.claims[--tail.seen % TAIL], NULL);
            local_pool_leave(pool);
            lock_take(&pool->lock);
        }
    }
}

static void free_callbacks(struct callback *callback)
{
    while (callback != NULL) {
        struct callback *next = callback->next;

        free(callback);
        callback = next;
    }
}

void local_pool_free(struct berth_pool *pool)
{
    if (pool == NULL)
        return;
    if (pool->engine != NULL) {
        arbiters_free(pool);
        compiled_requests_finish(pool);
        engine_destroy(pool->engine);
    }
    if (!fork_happened(pool->generation))
        probe_thread_finish(&pool->probe_thread);
    notifications_finish(&pool->notifications);
    id_map_finish(&pool->collectors);
    free_callbacks(pool->callbacks);
    free(pool->described);
    free(pool->slots);
    free(pool->candidates);
    free(pool->chosen);
    free(pool);
}

void berth_pool_close(struct berth_pool *pool)
{
    if (pool == NULL)
        return;
    if (fork_happened(pool->generation)) {
        /* The timer thread and the holder of the lock exist only in the parent. If the lock was
         * held, the engine may be in the middle of a change: leak it instead of touching it. */
        if (!lock_is_taken(&pool->lock))
            local_pool_free(pool);
        return;
    }
    lock_take(&pool->lock);
    pool->is_closing = true;
    cancel_all_claims(pool);
    local_pool_leave(pool);
    arbiters_stop(pool);
    context_sets_finish(pool);
    probe_thread_stop(&pool->probe_thread);
    timer_thread_stop(pool);
    local_pool_await_guests(pool);
    local_pool_free(pool);
}
