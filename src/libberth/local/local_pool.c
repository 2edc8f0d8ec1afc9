/* SPDX-License-Identifier: Apache-2.0 */
#include "libberth/local/local_pool.h"

#include <assert.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "libberth/local/arbiters.h"
#include "libberth/local/futex.h"

/* ---- Events from the engine ---- */

void local_pool_subscribe(struct berth_pool *pool)
{
    const struct event_sink sink = {
        .notify = local_pool_on_event,
        .context = pool,
        .wanted = EVENT_BIT(EVENT_GRANTED) | EVENT_BIT(EVENT_REFUSED) | EVENT_BIT(EVENT_NOTICE) |
                  EVENT_BIT(EVENT_REVOKED) | EVENT_BIT(EVENT_EXPIRED),
        .waited_only = true,
    };

    engine_set_sink(pool->engine, &sink);
}

static void wake_later(struct berth_pool *pool, struct claim_waiter *waiter, int code,
                       uint64_t lease)
{
    waiter->code = code;
    waiter->lease = lease;
    waiter->done = true;
    if (waiter->abandoned)
        return;
    waiter->next = pool->to_wake;
    pool->to_wake = waiter;
}

/* Hands the outcome of a claim without callback to the thread that waits for it, or keeps it. */
static void keep_outcome(struct berth_pool *pool, uint64_t ticket, int code, uint64_t lease)
{
    struct id_link *link = id_map_find(&pool->collectors, ticket);
    struct claim_waiter *waiter;

    if (link == NULL) {
        notifications_keep_outcome(
            &pool->notifications,
            &(struct message){.ticket = ticket, .code = code, .lease = lease});
        return;
    }
    id_map_remove(&pool->collectors, link);
    waiter = container_of(link, struct claim_waiter, by_ticket);
    for (struct claim_waiter *other = waiter->next, *next; other != NULL; other = next) {
        next = other->next;
        wake_later(pool, other, BERTH_ERROR_NOT_FOUND, 0);
    }
    wake_later(pool, waiter, code, lease);
}

/* Delivers the outcome of a claim that waited. */
static void settle_claim(struct berth_pool *pool, const struct claim_owner *owner, uint64_t ticket,
                         int code, uint64_t lease)
{
    struct target *target = owner->waiter;

    pool->waiting--;
    if (target->kind == TARGET_CALLBACK || target->kind == TARGET_KEPT) {
        pool->started_claims--;
        pool->started_deadlines -= target->has_deadline;
    }
    switch (target->kind) {
    case TARGET_THREAD:
        wake_later(pool, (struct claim_waiter *)target, code, lease);
        break;
    case TARGET_CALLBACK:
        notifications_append(&pool->notifications, &(struct message){.kind = NOTIFICATION_OUTCOME,
                                                                     .ticket = ticket,
                                                                     .code = code,
                                                                     .lease = lease,
                                                                     .target = target,
                                                                     .data = owner->data});
        break;
    case TARGET_KEPT:
        keep_outcome(pool, ticket, code, lease);
        break;
    case TARGET_ARBITER:
        arbiter_set_outcome((struct berth_arbiter *)target, lease);
        break;
    }
}

static int refusal_code(enum refusal reason)
{
    switch (reason) {
    case REFUSAL_TIMED_OUT:
        return BERTH_ERROR_TIMED_OUT;
    case REFUSAL_IMPOSSIBLE:
        return BERTH_ERROR_IMPOSSIBLE;
    case REFUSAL_CANCELLED:
    case REFUSAL_PARENT_ENDED:
        break;
    }
    return BERTH_ERROR_CANCELLED;
}

static void handle_refused(struct berth_pool *pool, const struct engine_event *event)
{
    struct claim_view view;
    bool known = engine_get_claim(pool->engine, event->claim, &view);

    assert(known);
    if (!known)
        return;
    if (engine_request_what(view.request)->time.known)
        local_pool_uncount_limited(pool);
    settle_claim(pool, &view.owner, event->claim, refusal_code(event->reason), 0);
}

static void handle_lease(struct berth_pool *pool, const struct engine_event *event)
{
    const struct claim_owner *owner = engine_lease_owner(pool->engine, event->lease);
    struct target *target;

    assert(owner != NULL);
    target = owner->waiter;
    if (event->type == EVENT_GRANTED)
        settle_claim(pool, owner, event->claim, 0, event->lease);
    else if (target != NULL && target->kind == TARGET_ARBITER)
        arbiter_notify((struct berth_arbiter *)target, event->lease,
                       event->type == EVENT_NOTICE ? NOTIFICATION_TAKE_BACK : NOTIFICATION_FORCE);
}

static void handle_expired(struct berth_pool *pool, const struct engine_event *event)
{
    if (pool->expired == NULL)
        return;
    local_pool_uncount_limited(pool);
    notifications_append(&pool->notifications,
                         &(struct message){.kind = NOTIFICATION_EXPIRED, .lease = event->lease});
}

void local_pool_on_event(void *context, const struct engine_event *event)
{
    struct berth_pool *pool = context;

    switch (event->type) {
    case EVENT_GRANTED:
    case EVENT_NOTICE:
    case EVENT_REVOKED:
        handle_lease(pool, event);
        break;
    case EVENT_REFUSED:
        handle_refused(pool, event);
        break;
    case EVENT_EXPIRED:
        handle_expired(pool, event);
        break;
    default:
        break;
    }
}

int local_pool_reserve_notifications(struct berth_pool *pool, size_t more, size_t deadlines)
{
    size_t claims = pool->started_claims + more;
    /* A grant occupies a device until its notification is delivered; a missed deadline does not. */
    size_t grants = claims < pool->grants_max ? claims : pool->grants_max;

    return notifications_reserve(&pool->notifications, grants + pool->started_deadlines +
                                                           deadlines + pool->limited +
                                                           pool->arbiter_notifications);
}

/* ---- Leaving ---- */

enum { BATCH = 8 };

/* A thread's run through callbacks of a pool. Runs may be nested; the innermost is first in the
 * list. A call from a callback does not run the callbacks that it causes: it leaves them to the
 * delivery that is already running. Otherwise each release in a callback would nest one level
 * deeper. */
struct delivery {
    const struct berth_pool *pool;
    struct delivery *outer;
    bool has_more; /* the thread will touch the pool's notifications again, so it is a guest */
};

static _Thread_local __attribute__((tls_model("initial-exec"))) struct delivery *deliveries;

static struct delivery *find_delivery(const struct berth_pool *pool)
{
    struct delivery *delivery = deliveries;

    while (delivery != NULL && delivery->pool != pool)
        delivery = delivery->outer;
    return delivery;
}

static void run_callback(struct berth_pool *pool, const struct message *message)
{
    const struct callback *callback = (const struct callback *)message->target;
    const struct berth_ticket ticket = {.id = message->ticket, .pool = pool->serial};
    struct berth_lease lease = {0};

    if (message->lease != 0)
        lease = local_pool_lease(pool, message->lease);
    switch (message->kind) {
    case NOTIFICATION_OUTCOME:
        callback->done(message->data, ticket, message->code, lease);
        break;
    case NOTIFICATION_TAKE_BACK:
    case NOTIFICATION_FORCE:
        arbiter_run_callback((struct berth_arbiter *)message->target, message->kind, lease);
        break;
    case NOTIFICATION_EXPIRED:
        pool->expired(pool->expired_data, lease);
        break;
    }
}

static bool has_pending(const struct berth_pool *pool)
{
    return pool->notifications.pending != NULL;
}

/* Notes that this thread will run the remaining callbacks, and makes it a guest. Called with the
 * lock. */
static void defer_delivery(struct berth_pool *pool, struct delivery *delivery)
{
    if (delivery->has_more)
        return;
    delivery->has_more = true;
    local_pool_add_guest(pool);
}

/* Takes as many notifications as fit into a batch. Called with the lock. */
static size_t take_batch(struct berth_pool *pool, struct message *batch, struct delivery *delivery)
{
    size_t count = notifications_dequeue(&pool->notifications, batch, BATCH);

    if (has_pending(pool))
        defer_delivery(pool, delivery);
    return count;
}

/* Returns whether the pool is touched after one of these callbacks has begun. */
static bool outlasts_callback(const struct message *batch, size_t count)
{
    return count > 1 || (count == 1 && batch[0].kind != NOTIFICATION_OUTCOME);
}

/* Runs the callbacks of the batch, then those that were deferred meanwhile. Unless the thread is or
 * becomes a guest, it does not touch the pool after the last callback, because the pool may be gone
 * by then. */
static void run_callbacks(struct berth_pool *pool, struct message *batch, size_t count,
                          struct delivery *delivery, bool is_guest)
{
    delivery->outer = deliveries;
    deliveries = delivery;
    for (;;) {
        for (size_t i = 0; i < count; i++)
            run_callback(pool, &batch[i]);
        if (is_guest && !delivery->has_more)
            local_pool_remove_guest(pool);
        if (!delivery->has_more)
            break;
        lock_take(&pool->lock);
        delivery->has_more = false;
        count = take_batch(pool, batch, delivery);
        lock_give(&pool->lock);
        if (is_guest)
            local_pool_remove_guest(pool); /* it has become a guest again */
        is_guest = true;
    }
    deliveries = delivery->outer;
}

void local_pool_deliver_deferred(struct berth_pool *pool)
{
    const struct delivery *outer = find_delivery(pool);
    struct delivery delivery = {.pool = pool};
    struct message batch[BATCH];
    size_t count;

    if (outer == NULL || !outer->has_more)
        return;
    lock_take(&pool->lock);
    count = take_batch(pool, batch, &delivery);
    lock_give(&pool->lock);
    run_callbacks(pool, batch, count, &delivery, false);
}

static void wake_waiters(struct claim_waiter *waiter)
{
    while (waiter != NULL) {
        struct claim_waiter *next = waiter->next;
        atomic_uint *word = &waiter->word;

        /* From this store on the waiter's memory may be gone. */
        atomic_store_explicit(word, 1, memory_order_release);
        futex_wake(word, 1);
        waiter = next;
    }
}

/* Waits until the woken threads have left the pool, before it is freed. A thread that waits without
 * a deadline is no guest, so it may still be about to release the pool's lock. */
static void await_leaving(const struct claim_waiter *waiter)
{
    for (; waiter != NULL; waiter = waiter->next) {
        while (!atomic_load_explicit(&waiter->has_left, memory_order_acquire))
            sched_yield();
    }
}

/* Takes a batch for this thread to deliver. Inside a callback, defers it to the delivery that is
 * already running and returns 0. Called with the lock. */
static size_t take_notifications(struct berth_pool *pool, struct message *batch,
                                 struct delivery *delivery)
{
    struct delivery *outer = find_delivery(pool);

    if (outer == NULL)
        return take_batch(pool, batch, delivery);
    defer_delivery(pool, outer);
    return 0;
}

void local_pool_leave(struct berth_pool *pool)
{
    struct delivery delivery = {.pool = pool};
    struct message batch[BATCH];
    struct claim_waiter *to_wake = pool->to_wake;
    bool is_closing = pool->is_closing;
    bool is_late = timer_thread_must_wake(pool);
    bool arbiters_due = pool->arbiters_due;
    bool is_guest = is_late || arbiters_due;
    size_t count = 0;

    pool->to_wake = NULL;
    pool->arbiters_due = false;
    if (has_pending(pool))
        count = take_notifications(pool, batch, &delivery);
    if (is_guest)
        local_pool_add_guest(pool);
    if (outlasts_callback(batch, count))
        local_pool_add_guest(pool);
    local_pool_leave_quietly(pool);
    /* The woken thread or the callback may close the pool. */
    if (is_late)
        timer_thread_wake(pool);
    if (unlikely(is_closing))
        await_leaving(to_wake);
    wake_waiters(to_wake);
    if (count > 0)
        run_callbacks(pool, batch, count, &delivery, outlasts_callback(batch, count));
    if (arbiters_due)
        arbiters_serve(pool);
    if (is_guest)
        local_pool_remove_guest(pool);
}

/* ---- Guests ---- */

/* `gone` counts the guests that have gone, in steps of two. Its lowest bit says that
 * berth_pool_close waits. */
enum { CLOSER_WAITS = 1, ONE_GONE = 2 };

void local_pool_remove_guest(struct berth_pool *pool)
{
    atomic_uint *gone = &pool->gone;

    if (atomic_fetch_add(gone, ONE_GONE) & CLOSER_WAITS)
        futex_wake_all(gone);
}

void local_pool_await_guests(struct berth_pool *pool)
{
    unsigned wanted;
    unsigned found;

    lock_take(&pool->lock);
    wanted = pool->guests * ONE_GONE + CLOSER_WAITS;
    lock_give(&pool->lock);
    found = atomic_fetch_or(&pool->gone, CLOSER_WAITS) | CLOSER_WAITS;
    while (found != wanted) {
        futex_sleep(&pool->gone, found, FUTEX_FOR_EVER);
        found = atomic_load(&pool->gone);
    }
}

/* ---- Shared by several calls ---- */

int local_pool_check_slot(const struct berth_pool *pool, size_t slot, struct berth_error *error)
{
    if (slot < pool->capacity)
        return 0;
    if (pool->capacity == 0)
        return error_set(error, BERTH_ERROR_RANGE, "slot %zu: this pool has no devices", slot);
    return error_set(error, BERTH_ERROR_RANGE, "slot: expected 0 to %zu, got %zu",
                     pool->capacity - 1, slot);
}

int local_pool_refuse_lease(uint64_t id, struct berth_error *error)
{
    return error_set(error, BERTH_ERROR_NOT_FOUND,
                     "lease %llu: not held in this pool (released already, or another pool's)",
                     (unsigned long long)id);
}

int local_read_options(void *ret_options, size_t known, const void *options, size_t size,
                       struct berth_error *error)
{
    const char *bytes = options;

    memset(ret_options, 0, known);
    if (options == NULL)
        return 0;
    if (size < sizeof(size_t))
        return error_set(error, BERTH_ERROR_INVALID,
                         "options: size: expected the struct's size in bytes, got %zu", size);
    for (size_t i = known; i < size; i++) {
        if (bytes[i] != 0)
            return error_set(error, BERTH_ERROR_INVALID,
                             "options: expected at most the %zu bytes that this version knows, got "
                             "something in byte %zu",
                             known, i);
    }
    memcpy(ret_options, options, size < known ? size : known);
    return 0;
}

void local_write_answer(void *ret_answer, size_t size, const void *answer, size_t known)
{
    memset(ret_answer, 0, size);
    memcpy(ret_answer, answer, size < known ? size : known);
}
