/* SPDX-License-Identifier: Apache-2.0
 *
 * The local door: a lock and wake-ups around the engine. A call enters (local_pool_enter), asks the
 * engine, and leaves. What the engine decides for others meanwhile (local_pool_on_event) is only
 * noted down; leaving gives the lock back first, then wakes threads and runs callbacks.
 *
 * Calls that changed nothing for others leave by local_pool_leave_quietly, which is all that stands
 * between the lock and the caller on the way that claims take most.
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

/* What the engine hands back with a claim that waited, or an arbiter's lease: claim_owner.waiter
 * points to one of these, the first member of something larger. */
enum target_kind {
    TARGET_THREAD,   /* struct waiter */
    TARGET_CALLBACK, /* struct callback; claim_owner.data is the program's */
    TARGET_KEPT,     /* one of pool->kept_targets: the outcome is kept for who collects it */
    TARGET_ARBITER,  /* struct berth_arbiter */
};

struct target {
    enum target_kind kind;
    bool has_deadline; /* its claims have, in the engine */
};

/* A thread that waits, on its own stack. */
struct claim_waiter {
    struct target target;
    struct id_link by_ticket; /* who waits for the outcome of a ticket */
    int code;
    uint64_t lease;
    struct claim_waiter *next; /* of those to be woken, or who wait for the same ticket */
    bool done;                 /* code and lease are set; under the lock */
    bool abandoned;            /* does not sleep any more, so is not to be woken; under the lock */
    atomic_bool has_left;      /* the pool, and will not touch it again unless it gives up */
    atomic_uint word;          /* 1: woken; the waker does not touch it any more */
};

/* A function that outcomes go to. There are as many as a program has such functions, twice. */
struct callback {
    struct target target;
    struct callback *next;
    void (*done)(void *data, struct berth_ticket ticket, int code, struct berth_lease lease);
};

struct berth_pool {
    /* What every claim looks at. */
    struct lock lock;
    unsigned generation; /* fork_generation at its opening */
    atomic_bool is_full; /* engine_is_full, for who has no lock */
    bool is_closing;
    bool is_hardware;       /* its devices are this machine's */
    uint32_t arbiter_count; /* also stopped ones with leases */
    uint32_t lease_sets;    /* sets of contexts that end with leases */
    uint64_t serial;        /* of the pools of this process; below 2^32, never 0 */
    struct engine *engine;
    struct compiled_request last_compiled; /* what the last claim used, if it has no time limit */
    size_t waiting; /* claims that wait in the engine, opportunistic ones included */
    size_t limited; /* leases and waiting claims whose end is to be told to `expired` */

    int64_t advanced_to; /* the time that the engine was told last */

    struct request_core whole_device; /* of a NULL request */
    struct compiled_table compiled;

    /* What is to be done on leaving. */
    struct claim_waiter *to_wake;
    struct notification_queue notifications;
    bool arbiters_due;

    /* Who is still about to touch the pool without the lock: who came in, counted under the lock,
     * and who went. */
    unsigned guests;
    atomic_uint gone;

    /* Claims that do not block. */
    struct target kept_targets[2]; /* the second has a deadline */
    struct callback *callbacks;
    struct id_map collectors;     /* struct waiter, by_ticket */
    size_t started_claims;        /* that wait */
    size_t started_deadlines;     /* of those, with a deadline */
    size_t grants_max;            /* how many leases there can be at once */
    size_t arbiter_notifications; /* how many an arbiter's leases may cause at once */

    struct timer_thread timer_thread;
    struct probe_thread probe_thread; /* of the hardware's pool */
    struct list arbiters;             /* struct berth_arbiter, in_pool */
    struct context_sets context_sets;

    /* The program's. */
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
    struct berth_slot *described;       /* what never changes of the slots */
    uint32_t *slots;                    /* scratch of berth_pick, under the lock */
    struct berth_candidate *candidates; /* scratch of custom_policy, under the lock */
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

/* The core of a request; NULL: of one whole device. */
static inline struct request_core *local_request_core_of(struct berth_pool *pool,
                                                         const struct berth_request *request)
{
    return request == NULL ? &pool->whole_device : request->core;
}

/* As compiled_requests_add, without a call for the request that the last claim had. */
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

/* Lets those see who have no lock whether the pool is full. */
static inline void local_pool_publish_full(struct berth_pool *pool)
{
    bool is_full = engine_is_full(pool->engine);

    if (is_full != atomic_load_explicit(&pool->is_full, memory_order_relaxed))
        atomic_store_explicit(&pool->is_full, is_full, memory_order_release);
}

/* Gives the lock back when nobody else is concerned: no claim waited, nothing was told. */
static inline void local_pool_leave_quietly(struct berth_pool *pool)
{
    local_pool_publish_full(pool);
    lock_give(&pool->lock);
}

/* Whether nobody is to be woken or called on leaving. */
static inline bool local_pool_is_quiet(const struct berth_pool *pool)
{
    return pool->to_wake == NULL && !pool->arbiters_due && pool->notifications.pending == NULL;
}

/* Gives the lock back, then wakes and calls whom the engine's decisions concern. */
void local_pool_leave(struct berth_pool *pool);

/* For a thread that is about to sleep: runs callbacks that this very thread has put off because it
 * is within one, and that others may be waiting for. Without the lock. */
void local_pool_deliver_deferred(struct berth_pool *pool);

/* Brings the engine up to date before it queues or starts a clock. With the lock. */
static inline void local_pool_advance(struct berth_pool *pool, int64_t now)
{
    engine_advance(pool->engine, now);
    pool->advanced_to = now;
}

/* One of the leases counted by `limited` is not any more. */
static inline void local_pool_uncount_limited(struct berth_pool *pool)
{
    if (pool->limited > 0)
        pool->limited--;
}

/* Makes room for what the engine may decide at once, after `more` claims begin to wait of which
 * `deadlines` have a deadline. Returns 0 or BERTH_ERROR_MEMORY. With the lock. */
int local_pool_reserve_notifications(struct berth_pool *pool, size_t more, size_t deadlines);

/* The engine's event_sink. */
void local_pool_on_event(void *context, const struct engine_event *event);

/* A guest may touch the pool without the lock until it has gone: berth_pool_close waits for it.
 * local_pool_add_guest is called with the lock, local_pool_remove_guest as the very last thing. */
static inline void local_pool_add_guest(struct berth_pool *pool)
{
    pool->guests++;
}
void local_pool_remove_guest(struct berth_pool *pool);

static inline struct berth_lease local_pool_lease(const struct berth_pool *pool, uint64_t id)
{
    return (struct berth_lease){.id = id, .pool = pool->serial};
}

/* Which slot numbers there are; fails with BERTH_ERROR_RANGE. */
int local_pool_check_slot(const struct berth_pool *pool, size_t slot, struct berth_error *error);

/* A lease that is not held here. */
int local_pool_refuse_lease(uint64_t id, struct berth_error *error);

/* Has the engine tell the pool. */
void local_pool_subscribe(struct berth_pool *pool);

/* Waits until no thread is about to touch the pool. Without the lock. */
void local_pool_await_guests(struct berth_pool *pool);

/* Destroys what was opened so far. */
void local_pool_free(struct berth_pool *pool);

/* Reads an options struct of `size` bytes, as its caller knows it, into one of `known` bytes, as
 * we do: what the caller does not know is 0. Fails with BERTH_ERROR_INVALID for a size that is none
 * and for members that are set and not known here. */
int local_read_options(void *ret_options, size_t known, const void *options, size_t size,
                       struct berth_error *error);

/* The other way round: writes a struct of `known` bytes to a caller who knows `size` of them; what
 * only the caller knows is 0. */
void local_write_answer(void *ret_answer, size_t size, const void *answer, size_t known);

#endif
