/* SPDX-License-Identifier: Apache-2.0
 *
 * The in-process pool: a lock and wake-ups around the engine. A call takes the lock
 * (local_pool_enter), calls the engine, and leaves. Decisions of the engine that concern other
 * threads are only queued (local_pool_on_event). local_pool_leave releases the lock first, then
 * wakes threads and runs callbacks.
 *
 * Calls that changed nothing for other threads leave by local_pool_leave_quietly, the fast path
 * of most claims.
 */
#ifndef LIBBERTH_LOCAL_LOCAL_POOL_H
#define LIBBERTH_LOCAL_LOCAL_POOL_H

#include <berth/berth.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/system/clock.h"
#include "engine/engine.h"
#include "libberth/local/compiled_requests.h"
#include "libberth/local/context_sets.h"
#include "libberth/local/fork.h"
#include "libberth/local/lock.h"
#include "libberth/local/notifications.h"
#include "libberth/local/probe_thread.h"
#include "libberth/local/timer_thread.h"
#include "model/policy.h"

#define unlikely(condition) __builtin_expect((condition), false)

/* A target of outcomes. claim_owner.waiter, which the engine returns with a claim that waited or an
 * arbiter's lease, points to the first member of a larger struct. */
enum target_kind {
    TARGET_THREAD,   /* struct claim_waiter */
    TARGET_CALLBACK, /* struct callback; claim_owner.data is the program's */
    TARGET_KEPT, /* one of pool->kept_targets: the pool keeps the outcome until it is collected */
    TARGET_ARBITER, /* struct berth_arbiter */
};

struct target {
    enum target_kind kind;
    bool has_deadline; /* its claims have a deadline in the engine */
};

/* A waiting thread. The struct is on the thread's stack. */
struct claim_waiter {
    struct target target;
    struct id_link by_ticket; /* for threads that wait for the outcome of a ticket */
    int code;
    uint64_t lease;
    struct claim_waiter
        *next;      /* in the list of threads to wake, or that wait for the same ticket */
    bool done;      /* code and lease are set; under the lock */
    bool abandoned; /* the thread does not sleep any more and must not be woken; under the lock */
    atomic_bool
        has_left;     /* the thread has left the pool and touches it again only if it times out */
    atomic_uint word; /* 1: woken; the waker does not touch it any more */
};

/* A callback function of the program. Each function has two records, with and without deadline. */
struct callback {
    struct target target;
    struct callback *next;
    void (*done)(void *data, struct berth_ticket ticket, int code, struct berth_lease lease);
};

struct berth_pool {
    /* Read by every claim. */
    struct lock lock;
    unsigned generation; /* fork_generation when the pool was opened */
    atomic_bool is_full; /* engine_is_full, for threads without the lock */
    bool is_closing;
    bool is_hardware;       /* its devices are this machine's */
    uint32_t arbiter_count; /* including stopped ones that still have leases */
    uint32_t lease_sets;    /* sets of contexts that end with leases */
    uint64_t serial;        /* number of the pool in this process; below 2^32, never 0 */
    struct engine *engine;
    struct compiled_request last_compiled; /* of the last claim, if it has no time limit */
    size_t waiting; /* claims that wait in the engine, including opportunistic ones */
    size_t limited; /* leases and waiting claims for which `expired` may have to be called */

    int64_t advanced_to; /* the time of the last engine_advance */

    struct request_core whole_device; /* for a NULL request */
    struct compiled_table compiled;

    /* Work for local_pool_leave. */
    struct claim_waiter *to_wake;
    struct notification_queue notifications;
    bool arbiters_due;

    /* Threads that will still touch the pool without the lock: how many came (under the lock) and
     * how many have gone. */
    unsigned guests;
    atomic_uint gone;

    /* Claims that do not block. */
    struct target kept_targets[2]; /* the second one has a deadline */
    struct callback *callbacks;
    struct id_map collectors;     /* struct claim_waiter, by_ticket */
    size_t started_claims;        /* claims of berth_claim_start that wait */
    size_t started_deadlines;     /* the number of these that have a deadline */
    size_t grants_max;            /* maximum number of leases at once */
    size_t arbiter_notifications; /* maximum number that the leases of all arbiters cause at once */

    struct timer_thread timer_thread;
    struct probe_thread probe_thread; /* only for a pool of the hardware */
    struct list arbiters;             /* struct berth_arbiter, in_pool */
    struct context_sets context_sets;

    /* Given by the program. */
    void (*sample)(void *data, size_t slot, struct berth_load *ret_load);
    void *sample_data;
    int64_t sample_interval;
    void (*choose)(void *data, const struct berth_candidate *candidates, size_t count,
                   size_t wanted, bool *ret_chosen);
    void *choose_data;
    void (*expired)(void *data, struct berth_lease lease);
    void *expired_data;
    struct policy custom_policy;

    size_t capacity;
    struct berth_slot *described;       /* the constant facts of the slots */
    uint32_t *slots;                    /* scratch memory of berth_pick, under the lock */
    struct berth_candidate *candidates; /* scratch memory of custom_policy, under the lock */
    bool *chosen;
};

/* Takes the lock. Fails with BERTH_ERROR_FORKED. */
static inline int local_pool_enter(struct berth_pool *pool, struct berth_error *error)
{
    if (unlikely(fork_happened(pool->generation)))
        return fork_refuse(error);
    lock_take(&pool->lock);
    return 0;
}

/* Returns the core of a request; NULL: that of one whole device. */
static inline struct request_core *local_request_core_of(struct berth_pool *pool,
                                                         const struct berth_request *request)
{
    return request == NULL ? &pool->whole_device : request->core;
}

/* Does compiled_requests_add, but without a call for the request of the last claim. */
static inline int local_pool_find_compiled(struct berth_pool *pool,
                                           const struct berth_request *request,
                                           struct engine_request **ret_compiled,
                                           struct berth_error *error)
{
    if (unlikely(local_request_core_of(pool, request) != pool->last_compiled.core))
        return compiled_requests_add(pool, request, ret_compiled, error);
    *ret_compiled = pool->last_compiled.request;
    return 0;
}

/* Publishes whether the pool is full, for threads without the lock. */
static inline void local_pool_publish_full(struct berth_pool *pool)
{
    bool is_full = engine_is_full(pool->engine);

    if (is_full != atomic_load_explicit(&pool->is_full, memory_order_relaxed))
        atomic_store_explicit(&pool->is_full, is_full, memory_order_release);
}

/* Releases the lock when no other thread is concerned: no claim waited, no event came. */
static inline void local_pool_leave_quietly(struct berth_pool *pool)
{
    local_pool_publish_full(pool);
    lock_give(&pool->lock);
}

/* Returns whether no thread must be woken and no callback run on leaving. */
static inline bool local_pool_is_quiet(const struct berth_pool *pool)
{
    return pool->to_wake == NULL && !pool->arbiters_due && pool->notifications.pending == NULL;
}

/* Releases the lock, then wakes the threads and runs the callbacks that the engine's events
 * require. */
void local_pool_leave(struct berth_pool *pool);

/* Runs the callbacks that this thread has deferred because it is inside a callback. A thread that
 * is about to sleep calls this, because other threads may wait for these callbacks. Called without
 * the lock. */
void local_pool_deliver_deferred(struct berth_pool *pool);

/* Advances the engine's time before it queues a claim or starts a timer. Called with the lock. */
static inline void local_pool_advance(struct berth_pool *pool, int64_t now)
{
    engine_advance(pool->engine, now);
    pool->advanced_to = now;
}

/* Decrements the number of limited leases and claims. */
static inline void local_pool_uncount_limited(struct berth_pool *pool)
{
    if (pool->limited > 0)
        pool->limited--;
}

/* Reserves room for the events that the engine may produce at once, when `more` claims begin to
 * wait and `deadlines` of them have a deadline. Returns 0 or BERTH_ERROR_MEMORY. Called with the
 * lock. */
int local_pool_reserve_notifications(struct berth_pool *pool, size_t more, size_t deadlines);

/* Handles an event of the engine. */
void local_pool_on_event(void *context, const struct engine_event *event);

/* A guest may touch the pool without the lock until it has gone: berth_pool_close waits for it.
 * local_pool_add_guest is called with the lock, local_pool_remove_guest as the very last step. */
static inline void local_pool_add_guest(struct berth_pool *pool)
{
    pool->guests++;
}
void local_pool_remove_guest(struct berth_pool *pool);

static inline struct berth_lease local_pool_lease(const struct berth_pool *pool, uint64_t id)
{
    return (struct berth_lease){.id = id, .pool = pool->serial};
}

/* Checks a slot. Fails with BERTH_ERROR_RANGE and names the valid slots. */
int local_pool_check_slot(const struct berth_pool *pool, size_t slot, struct berth_error *error);

/* Sets the error that the lease is not held here. Returns BERTH_ERROR_NOT_FOUND. */
int local_pool_refuse_lease(uint64_t id, struct berth_error *error);

/* Makes the pool the engine's event sink. */
void local_pool_subscribe(struct berth_pool *pool);

/* Waits until no thread is about to touch the pool. Called without the lock. */
void local_pool_await_guests(struct berth_pool *pool);

/* Frees the pool and everything that was opened so far. */
void local_pool_free(struct berth_pool *pool);

/* Reads an options struct of `size` bytes, the caller's version, into one of `known` bytes, this
 * library's version. Members that the caller does not know become 0. Fails with BERTH_ERROR_INVALID
 * for an impossible size and for members that are set but unknown here. */
int local_read_options(void *ret_options, size_t known, const void *options, size_t size,
                       struct berth_error *error);

/* Writes a struct of `known` bytes to a caller whose version has `size` bytes. Members that only
 * the caller knows become 0. */
void local_write_answer(void *ret_answer, size_t size, const void *answer, size_t known);

#endif
