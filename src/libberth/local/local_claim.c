/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims that block, tries, and releases.
 */
#include "libberth/local/local_claim.h"

#include <string.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "engine/fast_path.h"
#include "libberth/local/arbiters.h"
#include "libberth/local/futex.h"
#include "libberth/local/local_pool.h"

static const char busy_message[] = "no free device";

/* Copies the message, because formatting it would be a large part of the cost of a refused try. */
static inline int refuse_busy(struct berth_error *error)
{
    if (error != NULL) {
        error->code = BERTH_ERROR_BUSY;
        memcpy(error->message, busy_message, sizeof(busy_message));
    }
    return BERTH_ERROR_BUSY;
}

int local_claim_refuse(int code, int64_t timeout, struct berth_error *error)
{
    switch (code) {
    case BERTH_ERROR_TIMED_OUT:
        return timeout == BERTH_FOR_EVER
                   ? error_set(error, code, "not granted in time")
                   : error_set(error, code, "not granted within %s",
                               quantity_format_duration(timeout < 0 ? 0 : timeout).text);
    case BERTH_ERROR_CANCELLED:
        return error_set(error, code, "the claim was cancelled");
    case BERTH_ERROR_BUSY:
        return refuse_busy(error);
    default:
        return error_set(error, code, "cannot grant the claim: %s", berth_error_describe(code));
    }
}

int local_claim_refuse_closing(struct berth_error *error)
{
    return error_set(error, BERTH_ERROR_CANCELLED, "cannot claim: the pool is closing");
}

/* Returns whether the program must be notified when a lease of the request expires. */
static bool is_limited(const struct berth_pool *pool, const struct request_core *core)
{
    return core->has_limit && pool->expired != NULL;
}

int local_claim_prepare(struct berth_pool *pool, const struct request_core *core,
                        struct berth_error *error)
{
    int code;

    if (pool->is_closing)
        return local_claim_refuse_closing(error);
    if (pool->capacity == 0)
        return error_set(error, BERTH_ERROR_NO_DEVICE, "this pool has no devices");
    code = timer_thread_ensure_running(pool, error);
    if (code == 0 && is_limited(pool, core)) {
        pool->limited++;
        if (local_pool_reserve_notifications(pool, 0, 0) < 0) {
            local_pool_uncount_limited(pool);
            code = error_set_memory(error);
        }
    }
    return code;
}

void local_claim_unprepare(struct berth_pool *pool, const struct request_core *core)
{
    if (is_limited(pool, core))
        local_pool_uncount_limited(pool);
}

/* Sleeps until woken. Returns false if the deadline came first. */
bool local_claim_sleep(struct claim_waiter *waiter, int64_t deadline)
{
    atomic_store_explicit(&waiter->has_left, true, memory_order_release);
    while (atomic_load_explicit(&waiter->word, memory_order_acquire) == 0) {
        if (futex_sleep(&waiter->word, 0, deadline) == ETIMEDOUT)
            return atomic_load_explicit(&waiter->word, memory_order_acquire) != 0;
    }
    return true;
}

/* Cancels a claim whose deadline has passed, unless it was granted just now. */
static void cancel_timed_out(struct berth_pool *pool, struct claim_waiter *waiter, uint64_t claim)
{
    lock_take(&pool->lock);
    if (waiter->done) {
        /* Another thread has this waiter on a list and is about to touch it. */
        lock_give(&pool->lock);
        local_claim_sleep(waiter, FUTEX_FOR_EVER);
        return;
    }
    waiter->abandoned = true;
    engine_cancel(pool->engine, claim, NULL);
    waiter->code = BERTH_ERROR_TIMED_OUT;
    local_pool_leave(pool);
}

/* Waits for a claim in the queue. Called with the lock, which it releases. A thread without a
 * deadline does not touch the pool after it is woken, so berth_pool_close need not wait for it. */
static void wait_in_queue(struct berth_pool *pool, struct claim_waiter *waiter, uint64_t claim,
                          int64_t deadline)
{
    bool is_guest = deadline != FUTEX_FOR_EVER;

    pool->waiting++;
    if (is_guest)
        local_pool_add_guest(pool);
    local_pool_leave(pool);
    local_pool_deliver_deferred(pool);
    if (!local_claim_sleep(waiter, deadline))
        cancel_timed_out(pool, waiter, claim);
    if (is_guest)
        local_pool_remove_guest(pool);
}

/* Handles a claim that could not be granted at once, or whose lease starts a timer. Called with the
 * lock, which it releases. */
static int claim_slowly(struct berth_pool *pool, const struct request_core *core,
                        struct engine_request *compiled, int64_t timeout,
                        struct berth_lease *ret_lease, struct berth_error *error)
{
    struct claim_waiter waiter = {.target = {.kind = TARGET_THREAD}};
    const struct claim_owner owner = {.waiter = &waiter};
    const uint64_t serial = pool->serial; /* after the wake-up the pool may be gone */
    bool is_exact = timeout != BERTH_FOR_EVER || core->has_limit;
    int64_t now = is_exact ? clock_now() : clock_now_coarse();
    uint64_t id;
    int code = local_claim_prepare(pool, core, error);

    if (code < 0) {
        local_pool_leave(pool);
        return code;
    }
    if (now != pool->advanced_to)
        local_pool_advance(pool, now);
    if (timeout > 0)
        code = engine_claim(pool->engine, compiled, TIME_NEVER, &owner, &id, error);
    else
        code = engine_try(pool->engine, compiled, &id, error);
    if (code == CLAIM_WAITS && timeout > 0) {
        wait_in_queue(pool, &waiter, id, clock_after(now, timeout));
        if (waiter.code < 0)
            return local_claim_refuse(waiter.code, timeout, error);
        *ret_lease = (struct berth_lease){.id = waiter.lease, .pool = serial};
        return 0;
    }
    if (code != CLAIM_GRANTED)
        local_claim_unprepare(pool, core);
    local_pool_leave(pool);
    if (code < 0)
        return code;
    if (code == CLAIM_WAITS)
        return local_claim_refuse(BERTH_ERROR_TIMED_OUT, timeout, error);
    *ret_lease = (struct berth_lease){.id = id, .pool = serial};
    return 0;
}

/* Makes a claim of any kind. Called with the lock, which it releases. */
static __attribute__((noinline)) int claim_in_full(struct berth_pool *pool,
                                                   const struct berth_request *request,
                                                   int64_t timeout, struct berth_lease *ret_lease,
                                                   struct berth_error *error)
{
    const struct request_core *core = local_request_core_of(pool, request);
    struct engine_request *compiled;
    uint64_t id = 0;
    int code = local_pool_find_compiled(pool, request, &compiled, error);

    if (code < 0) {
        local_pool_leave_quietly(pool);
        return code;
    }
    code = CLAIM_WAITS;
    /* A claim that only tests for a free device does not advance the time: reading the clock costs
     * too much. */
    if (!core->has_limit && !atomic_load_explicit(&pool->is_full, memory_order_relaxed))
        code = engine_try(pool->engine, compiled, &id, error);
    if (code == CLAIM_WAITS)
        return claim_slowly(pool, core, compiled, timeout, ret_lease, error);
    local_pool_leave_quietly(pool);
    if (code < 0)
        return code;
    *ret_lease = local_pool_lease(pool, id);
    return 0;
}

int berth_claim(struct berth_pool *pool, const struct berth_request *request, int64_t timeout,
                struct berth_lease *ret_lease, struct berth_error *error)
{
    /* Read the constant facts before taking the lock, to keep the locked section short. */
    const struct request_core *core = local_request_core_of(pool, request);
    struct engine *engine = pool->engine;
    const uint64_t serial = pool->serial;
    uint64_t id;

    if (unlikely(fork_happened(pool->generation)))
        return fork_refuse(error);
    lock_take(&pool->lock);
    if (unlikely(core != pool->last_compiled.core ||
                 atomic_load_explicit(&pool->is_full, memory_order_relaxed) ||
                 !fast_path_try(engine, pool->last_compiled.request, &id)))
        return claim_in_full(pool, request, timeout, ret_lease, error);
    local_pool_leave_quietly(pool);
    *ret_lease = (struct berth_lease){.id = id, .pool = serial};
    return 0;
}

/* Tries a request with a time limit. Called with the lock, which it releases. */
static int try_with_limit(struct berth_pool *pool, const struct request_core *core,
                          struct engine_request *compiled, uint64_t *ret_id,
                          struct berth_error *error)
{
    int code = local_claim_prepare(pool, core, error);

    if (code < 0) {
        local_pool_leave(pool);
        return code;
    }
    local_pool_advance(pool, clock_now());
    code = engine_try(pool->engine, compiled, ret_id, error);
    if (code != CLAIM_GRANTED)
        local_claim_unprepare(pool, core);
    local_pool_leave(pool);
    return code;
}

/* Makes a try of any kind. Called with the lock, which it releases. */
static __attribute__((noinline)) int try_in_full(struct berth_pool *pool,
                                                 const struct berth_request *request,
                                                 struct berth_lease *ret_lease,
                                                 struct berth_error *error)
{
    struct request_core *core = local_request_core_of(pool, request);
    struct engine_request *compiled;
    uint64_t id = 0;
    int code = local_pool_find_compiled(pool, request, &compiled, error);

    if (code < 0) {
        local_pool_leave_quietly(pool);
        return code;
    }
    if (core->has_limit) {
        code = try_with_limit(pool, core, compiled, &id, error);
    } else {
        code = engine_try(pool->engine, compiled, &id, error);
        local_pool_leave_quietly(pool);
    }
    if (code < 0)
        return code;
    if (code == CLAIM_WAITS) {
        atomic_store_explicit(&core->waits_in, pool->serial, memory_order_relaxed);
        return refuse_busy(error);
    }
    *ret_lease = local_pool_lease(pool, id);
    return 0;
}

int berth_try_claim(struct berth_pool *pool, const struct berth_request *request,
                    struct berth_lease *ret_lease, struct berth_error *error)
{
    struct request_core *core = local_request_core_of(pool, request);
    struct engine *engine = pool->engine;
    const uint64_t serial = pool->serial;
    uint64_t id;

    if (unlikely(fork_happened(pool->generation)))
        return fork_refuse(error);
    /* The pool is full, but can serve this request later: refuse without taking the lock. */
    if (atomic_load_explicit(&pool->is_full, memory_order_acquire) &&
        atomic_load_explicit(&core->waits_in, memory_order_relaxed) == serial)
        return refuse_busy(error);
    lock_take(&pool->lock);
    if (unlikely(core != pool->last_compiled.core ||
                 !fast_path_try(engine, pool->last_compiled.request, &id)))
        return try_in_full(pool, request, ret_lease, error);
    local_pool_leave_quietly(pool);
    *ret_lease = (struct berth_lease){.id = id, .pool = serial};
    return 0;
}

/* Updates the number of limited leases, and notifies the arbiters, which count their leases. */
static void notify_release(struct berth_pool *pool, uint64_t id)
{
    struct lease_view view;

    if (!engine_get_lease(pool->engine, id, &view))
        return;
    if (view.state != LEASE_EXPIRED && view.expires != TIME_NEVER)
        local_pool_uncount_limited(pool);
    if (pool->arbiter_count > 0)
        arbiters_on_release(pool, view.owner.waiter, id);
}

/* Releases a lease when other claims may be concerned. Called with the lock, which it releases. */
static __attribute__((noinline)) int release_in_full(struct berth_pool *pool, uint64_t id,
                                                     struct berth_error *error)
{
    int code;

    /* End the contexts before the devices are granted again. Meanwhile another thread may create
     * contexts again. */
    while (pool->lease_sets > 0 && context_sets_has_lease(pool, id)) {
        lock_give(&pool->lock);
        context_sets_end_lease(pool, id);
        lock_take(&pool->lock);
    }
    if ((pool->limited | pool->arbiter_count) != 0)
        notify_release(pool, id);
    code = engine_release(pool->engine, id, NULL);
    local_pool_leave(pool);
    return code < 0 ? local_pool_refuse_lease(id, error) : 0;
}

int berth_release(struct berth_pool *pool, struct berth_lease lease, struct berth_error *error)
{
    struct engine *engine = pool->engine;

    if (unlikely(fork_happened(pool->generation)))
        return fork_refuse(error);
    if (unlikely(lease.pool != pool->serial))
        return local_pool_refuse_lease(lease.id, error);
    lock_take(&pool->lock);
    if (unlikely((pool->waiting | pool->limited | pool->arbiter_count | pool->lease_sets) != 0 ||
                 !fast_path_release(engine, lease.id)))
        return release_in_full(pool, lease.id, error);
    local_pool_leave_quietly(pool);
    return 0;
}
