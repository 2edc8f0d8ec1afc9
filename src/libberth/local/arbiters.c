/* SPDX-License-Identifier: Apache-2.0
 *
 * Arbiters: opportunistic work that gives way. An arbiter has at most one opportunistic claim in
 * the queue and offers each lease that it gets. Offers are made in rounds, which one thread at a
 * time runs. Declined leases are held until the round has offered all spare devices; then they are
 * released together, and the arbiter rests until the next release.
 */
#include "libberth/local/arbiters.h"

#include <stdlib.h>

#include "base/error.h"
#include "libberth/local/futex.h"
#include "libberth/local/local_pool.h"
#include "libberth/local/local_query.h"

struct berth_arbiter {
    struct target target;
    struct list_link in_pool;
    struct berth_pool *pool;
    unsigned generation;
    struct berth_arbiter_options options;
    struct engine_request *request;

    /* The members below are protected by the lock. */
    uint64_t waiting;   /* the claim in the queue; 0: none */
    uint64_t ready;     /* a granted lease that has not been offered yet; 0: none */
    uint64_t offered;   /* the lease that is being offered; 0: none */
    size_t lease_count; /* leases that are in use, offered or ready */
    uint64_t *declined;
    size_t declined_count;
    size_t calls;        /* notifications that are not delivered yet */
    bool must_take_back; /* the lease that is being offered */
    bool must_force;
    bool is_serving; /* a thread runs a round */
    bool is_due;     /* a round must run */
    bool is_resting;
    bool is_stopped;
    bool is_freed;    /* stopped by its owner: freed with its last lease */
    atomic_uint word; /* changes when a callback has ended */
};

static void set_due(struct berth_arbiter *arbiter)
{
    arbiter->is_due = true;
    arbiter->pool->arbiters_due = true;
}

void arbiter_set_outcome(struct berth_arbiter *arbiter, uint64_t lease)
{
    arbiter->waiting = 0;
    arbiter->ready = lease;
    if (lease == 0)
        return;
    arbiter->lease_count++;
    set_due(arbiter);
}

static bool is_declined(const struct berth_arbiter *arbiter, uint64_t lease)
{
    for (size_t i = 0; i < arbiter->declined_count; i++) {
        if (arbiter->declined[i] == lease)
            return true;
    }
    return false;
}

static void queue_notification(struct berth_arbiter *arbiter, uint64_t lease,
                               enum notification_kind kind)
{
    arbiter->calls++;
    notifications_append(
        &arbiter->pool->notifications,
        &(struct message){.kind = kind, .lease = lease, .target = &arbiter->target});
}

void arbiter_notify(struct berth_arbiter *arbiter, uint64_t lease, enum notification_kind kind)
{
    if (arbiter->is_stopped || is_declined(arbiter, lease))
        return;
    if (lease != arbiter->offered && lease != arbiter->ready) {
        queue_notification(arbiter, lease, kind);
        return;
    }
    /* The program has not seen the lease yet; if it accepts the offer, the notice follows. */
    if (kind == NOTIFICATION_TAKE_BACK)
        arbiter->must_take_back = true;
    else
        arbiter->must_force = true;
}

void arbiters_on_release(struct berth_pool *pool, void *owner, uint64_t lease)
{
    list_for_each (link, &pool->arbiters) {
        struct berth_arbiter *arbiter = container_of(link, struct berth_arbiter, in_pool);

        if (owner == &arbiter->target && !is_declined(arbiter, lease))
            arbiter->lease_count--;
        /* A lease that is released while it is offered counts as declined. */
        if (lease == arbiter->offered)
            continue;
        arbiter->is_resting = false;
        if (!arbiter->is_stopped || arbiter->is_freed)
            set_due(arbiter);
    }
}

static void end_call(struct berth_arbiter *arbiter)
{
    atomic_fetch_add_explicit(&arbiter->word, 1, memory_order_relaxed);
    if (arbiter->is_stopped)
        futex_wake_all(&arbiter->word);
}

void arbiter_run_callback(struct berth_arbiter *arbiter, enum notification_kind kind,
                          struct berth_lease lease)
{
    struct berth_pool *pool = arbiter->pool;
    const struct berth_arbiter_options *options = &arbiter->options;
    bool is_stopped;

    lock_take(&pool->lock);
    is_stopped = arbiter->is_stopped;
    lock_give(&pool->lock);
    if (!is_stopped && kind == NOTIFICATION_TAKE_BACK)
        options->take_back(options->data, lease);
    if (!is_stopped && kind == NOTIFICATION_FORCE && options->force != NULL)
        options->force(options->data, lease);
    lock_take(&pool->lock);
    arbiter->calls--;
    end_call(arbiter);
    lock_give(&pool->lock);
}

/* ---- Rounds; with the lock unless a comment says otherwise ---- */

/* Returns the next lease to offer; 0: none now, but a claim may be waiting for one. */
static uint64_t next_lease(struct berth_arbiter *arbiter)
{
    const struct claim_owner owner = {.waiter = &arbiter->target};
    struct berth_pool *pool = arbiter->pool;
    uint64_t id = arbiter->ready;
    int code;

    if (id != 0) {
        arbiter->ready = 0;
        return id;
    }
    if (arbiter->is_stopped || arbiter->is_resting || arbiter->waiting != 0 || pool->is_closing ||
        arbiter->lease_count >= arbiter->options.max)
        return 0;
    local_pool_advance(pool, clock_now());
    code = engine_claim(pool->engine, arbiter->request, TIME_NEVER, &owner, &id, NULL);
    if (code == CLAIM_WAITS) {
        pool->waiting++;
        arbiter->waiting = id;
    }
    if (code != CLAIM_GRANTED)
        return 0;
    arbiter->lease_count++;
    return id;
}

/* Offers the lease; releases the lock meanwhile. Returns false if the program declines. */
static bool make_offer(struct berth_arbiter *arbiter, uint64_t id)
{
    struct berth_pool *pool = arbiter->pool;
    struct berth_lease_device device;
    struct lease_view view;
    bool is_taken;

    if (!engine_get_lease(pool->engine, id, &view))
        return true; /* another thread has released it by its id */
    local_query_lease_device(pool, &view, 0, &device);
    arbiter->offered = id;
    local_pool_leave(pool);
    is_taken = arbiter->options.offer(arbiter->options.data, local_pool_lease(pool, id), &device);
    lock_take(&pool->lock);
    arbiter->offered = 0;
    return is_taken;
}

static void decline_lease(struct berth_arbiter *arbiter, uint64_t id)
{
    arbiter->lease_count--;
    arbiter->declined[arbiter->declined_count++] = id;
}

static void offer_lease(struct berth_arbiter *arbiter, uint64_t id)
{
    bool is_taken = !arbiter->is_stopped && make_offer(arbiter, id);
    bool must_take_back = arbiter->must_take_back;
    bool must_force = arbiter->must_force;

    arbiter->must_take_back = false;
    arbiter->must_force = false;
    if (!engine_get_lease(arbiter->pool->engine, id, &(struct lease_view){0})) {
        arbiter->is_resting = !arbiter->is_due;
        return;
    }
    if (!is_taken) {
        decline_lease(arbiter, id);
        return;
    }
    if (must_take_back && !arbiter->is_stopped)
        queue_notification(arbiter, id, NOTIFICATION_TAKE_BACK);
    if (must_force && !arbiter->is_stopped)
        queue_notification(arbiter, id, NOTIFICATION_FORCE);
}

/* Releases the declined leases. The arbiter's waiting claim would get them at once, so it is
 * cancelled first. */
static void end_round(struct berth_arbiter *arbiter)
{
    struct engine *engine = arbiter->pool->engine;

    if (arbiter->declined_count == 0)
        return;
    if (arbiter->waiting != 0)
        engine_cancel(engine, arbiter->waiting, NULL);
    arbiter->is_resting = !arbiter->is_due;
    while (arbiter->declined_count > 0)
        engine_release(engine, arbiter->declined[--arbiter->declined_count], NULL);
}

static void run_rounds(struct berth_arbiter *arbiter)
{
    arbiter->is_serving = true;
    while (arbiter->is_due) {
        uint64_t id;

        arbiter->is_due = false;
        while ((id = next_lease(arbiter)) != 0)
            offer_lease(arbiter, id);
        end_round(arbiter);
    }
    arbiter->is_serving = false;
    end_call(arbiter);
}

static void free_arbiter(struct berth_arbiter *arbiter)
{
    struct berth_pool *pool = arbiter->pool;

    list_remove(&arbiter->in_pool);
    pool->arbiter_count--;
    pool->arbiter_notifications -= 2 * arbiter->options.max;
    engine_request_close(pool->engine, arbiter->request);
    free(arbiter->declined);
    free(arbiter);
}

static bool has_ended(const struct berth_arbiter *arbiter)
{
    return arbiter->is_freed && arbiter->lease_count == 0;
}

static bool can_serve(const struct berth_arbiter *arbiter)
{
    return arbiter->is_due && !arbiter->is_serving;
}

static struct berth_arbiter *find_arbiter(struct berth_pool *pool,
                                          bool (*is_wanted)(const struct berth_arbiter *arbiter))
{
    list_for_each (link, &pool->arbiters) {
        struct berth_arbiter *arbiter = container_of(link, struct berth_arbiter, in_pool);

        if (is_wanted(arbiter))
            return arbiter;
    }
    return NULL;
}

void arbiters_serve(struct berth_pool *pool)
{
    struct berth_arbiter *arbiter;

    lock_take(&pool->lock);
    while ((arbiter = find_arbiter(pool, can_serve)) != NULL)
        run_rounds(arbiter);
    while ((arbiter = find_arbiter(pool, has_ended)) != NULL)
        free_arbiter(arbiter);
    /* Each arbiter that is due is served now, or by a thread that will check again. */
    pool->arbiters_due = false;
    local_pool_leave(pool);
}

/* ---- Starting and stopping ---- */

static int check_options(const struct berth_arbiter_options *options, struct berth_error *error)
{
    if (options->offer == NULL || options->take_back == NULL)
        return error_set(error, BERTH_ERROR_INVALID,
                         "arbiter: expected the callbacks offer and take_back, got none for %s",
                         options->offer == NULL ? "offer" : "take_back");
    return 0;
}

/* Allocates the arbiter's resources and adds it to the pool. Called with the lock. */
static int join_pool(struct berth_arbiter *arbiter, struct berth_error *error)
{
    struct berth_pool *pool = arbiter->pool;
    struct request helper;
    int code;

    if (arbiter->options.max == 0 || arbiter->options.max > pool->capacity)
        arbiter->options.max = pool->capacity;
    arbiter->declined = calloc(pool->capacity + 1, sizeof(*arbiter->declined));
    if (arbiter->declined == NULL)
        return error_set_memory(error);
    request_init(&helper);
    helper.opportunistic = true;
    code = engine_request_open(pool->engine, &helper, &(struct party){0}, NULL, &arbiter->request,
                               error);
    if (code < 0)
        return code;
    /* Each lease may cause one notice and one force. */
    pool->arbiter_notifications += 2 * arbiter->options.max;
    if (local_pool_reserve_notifications(pool, 0, 0) < 0) {
        pool->arbiter_notifications -= 2 * arbiter->options.max;
        engine_request_close(pool->engine, arbiter->request);
        return error_set_memory(error);
    }
    list_append(&pool->arbiters, &arbiter->in_pool);
    pool->arbiter_count++;
    return 0;
}

int berth_arbiter_start(struct berth_pool *pool, const struct berth_arbiter_options *options,
                        struct berth_arbiter **ret_arbiter, struct berth_error *error)
{
    struct berth_arbiter *arbiter = calloc(1, sizeof(*arbiter));
    int code;

    if (arbiter == NULL)
        return error_set_memory(error);
    arbiter->target.kind = TARGET_ARBITER;
    arbiter->pool = pool;
    arbiter->generation = pool->generation;
    code = local_read_options(&arbiter->options, sizeof(arbiter->options), options,
                              options == NULL ? 0 : options->size, error);
    if (code == 0)
        code = check_options(&arbiter->options, error);
    if (code == 0)
        code = local_pool_enter(pool, error);
    if (code == 0) {
        code = join_pool(arbiter, error);
        if (code == 0) {
            *ret_arbiter = arbiter;
            set_due(arbiter);
        }
        local_pool_leave(pool);
    }
    if (code < 0) {
        free(arbiter->declined);
        free(arbiter);
    }
    return code;
}

/* Stops the arbiter and waits until none of its callbacks runs. Called with the lock, which it
 * releases meanwhile. */
static void stop_arbiter(struct berth_arbiter *arbiter)
{
    struct berth_pool *pool = arbiter->pool;

    arbiter->is_stopped = true;
    if (arbiter->waiting != 0)
        engine_cancel(pool->engine, arbiter->waiting, NULL);
    while (arbiter->is_serving || arbiter->calls > 0) {
        unsigned word = atomic_load_explicit(&arbiter->word, memory_order_relaxed);

        local_pool_leave(pool);
        futex_sleep(&arbiter->word, word, FUTEX_FOR_EVER);
        lock_take(&pool->lock);
    }
    if (arbiter->ready != 0) {
        engine_release(pool->engine, arbiter->ready, NULL);
        arbiter->ready = 0;
        arbiter->lease_count--;
    }
}

void berth_arbiter_stop(struct berth_arbiter *arbiter)
{
    struct berth_pool *pool;

    if (arbiter == NULL || fork_happened(arbiter->generation))
        return;
    pool = arbiter->pool;
    lock_take(&pool->lock);
    stop_arbiter(arbiter);
    arbiter->is_freed = true;
    if (arbiter->lease_count == 0)
        free_arbiter(arbiter);
    local_pool_leave(pool);
}

static bool is_running(const struct berth_arbiter *arbiter)
{
    return !arbiter->is_stopped;
}

void arbiters_stop(struct berth_pool *pool)
{
    struct berth_arbiter *arbiter;

    lock_take(&pool->lock);
    while ((arbiter = find_arbiter(pool, is_running)) != NULL)
        stop_arbiter(arbiter);
    local_pool_leave(pool);
}

void arbiters_free(struct berth_pool *pool)
{
    list_for_each (link, &pool->arbiters)
        free_arbiter(container_of(link, struct berth_arbiter, in_pool));
}
