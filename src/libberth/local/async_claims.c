/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims that do not block: started here, ended by a callback or collected by ticket.
 */
#include <stdlib.h>
#include <sys/eventfd.h>

#include "base/error.h"
#include "libberth/local/futex.h"
#include "libberth/local/local_claim.h"
#include "libberth/local/local_pool.h"

/* A claim that is being started. */
struct async_claim {
    struct berth_pool *pool;
    const struct request_core *core;
    struct engine_request *compiled;
    const struct berth_claim_options *options;
    struct target *target;
    bool has_deadline;
};

static const struct berth_claim_options no_options = {.size = sizeof(no_options)};

/* Returns the pool's record of the callback function; NULL: out of memory. */
static struct target *find_callback(struct berth_pool *pool, const struct async_claim *start)
{
    struct callback *callback;

    for (callback = pool->callbacks; callback != NULL; callback = callback->next) {
        if (callback->done == start->options->done &&
            callback->target.has_deadline == start->has_deadline)
            return &callback->target;
    }
    callback = malloc(sizeof(*callback));
    if (callback == NULL)
        return NULL;
    *callback = (struct callback){
        .target = {.kind = TARGET_CALLBACK, .has_deadline = start->has_deadline},
        .next = pool->callbacks,
        .done = start->options->done,
    };
    pool->callbacks = callback;
    return &callback->target;
}

/* Finds the target of the outcome and reserves room for it. */
static int prepare_outcome(struct async_claim *start, struct berth_error *error)
{
    struct berth_pool *pool = start->pool;

    start->target = start->options->done == NULL ? &pool->kept_targets[start->has_deadline]
                                                 : find_callback(pool, start);
    if (start->target == NULL || local_pool_reserve_notifications(pool, 1, start->has_deadline) < 0)
        return error_set_memory(error);
    return 0;
}

/* Lets the engine queue or grant the claim. Returns the same as engine_claim. */
static int queue_claim(const struct async_claim *start, uint64_t *ret_id, struct berth_error *error)
{
    const struct claim_owner owner = {.waiter = start->target, .data = start->options->data};
    struct berth_pool *pool = start->pool;
    bool is_exact = start->has_deadline || start->core->has_limit;
    int64_t now = is_exact ? clock_now() : clock_now_coarse();
    int64_t deadline = start->has_deadline ? clock_after(now, start->options->timeout) : TIME_NEVER;
    int code = 0;

    if (unlikely(!pool->timer_thread.is_running || pool->is_closing || start->core->has_limit))
        code = local_claim_prepare(pool, start->core, error);
    if (code < 0)
        return code;
    if (now != pool->advanced_to)
        local_pool_advance(pool, now);
    code = engine_claim(pool->engine, start->compiled, deadline, &owner, ret_id, error);
    if (code == CLAIM_WAITS) {
        pool->waiting++;
        pool->started_claims++;
        pool->started_deadlines += start->has_deadline;
    } else if (code < 0) {
        local_claim_unprepare(pool, start->core);
    }
    return code;
}

static int claim_or_queue(struct async_claim *start, uint64_t *ret_id, struct berth_error *error)
{
    struct berth_pool *pool = start->pool;
    int code = prepare_outcome(start, error);

    if (code < 0)
        return code;
    /* Grant without reading the clock if possible, as in claim_in_full. */
    if (!start->core->has_limit && !atomic_load_explicit(&pool->is_full, memory_order_relaxed)) {
        code = engine_try(pool->engine, start->compiled, ret_id, error);
        if (code != CLAIM_WAITS)
            return code;
    }
    return queue_claim(start, ret_id, error);
}

/* Delivers the outcome of a claim that was granted at once. */
static void deliver_granted(const struct async_claim *start, uint64_t lease)
{
    const struct message message = {.kind = NOTIFICATION_OUTCOME,
                                    .ticket = lease,
                                    .lease = lease,
                                    .target = start->target,
                                    .data = start->options->data};

    if (start->options->done == NULL)
        notifications_keep_outcome(&start->pool->notifications, &message);
    else
        notifications_append(&start->pool->notifications, &message);
}

/* Returns whether the claim only joined others in the queue: no notification is due, and the timer
 * thread need not be woken. */
static bool joined_queue_quietly(const struct async_claim *start)
{
    const struct berth_pool *pool = start->pool;

    return pool->waiting > 1 && !start->has_deadline && !start->core->has_limit &&
           pool->arbiter_count == 0 && local_pool_is_quiet(pool);
}

static int start_claim(struct async_claim *start, const struct berth_request *request,
                       struct berth_ticket *ret_ticket, struct berth_error *error)
{
    struct berth_pool *pool = start->pool;
    uint64_t id = 0;
    int code = local_pool_enter(pool, error);

    if (unlikely(code < 0))
        return code;
    start->core = local_request_core_of(pool, request);
    code = local_pool_find_compiled(pool, request, &start->compiled, error);
    if (code == 0)
        code = claim_or_queue(start, &id, error);
    if (code >= 0)
        *ret_ticket = (struct berth_ticket){.id = id, .pool = pool->serial};
    if (code == CLAIM_WAITS && joined_queue_quietly(start)) {
        local_pool_leave_quietly(pool);
        return 0;
    }
    if (code == CLAIM_GRANTED)
        deliver_granted(start, id);
    local_pool_leave(pool);
    return code < 0 ? code : 0;
}

int berth_claim_start(struct berth_pool *pool, const struct berth_request *request,
                      const struct berth_claim_options *options, struct berth_ticket *ret_ticket,
                      struct berth_error *error)
{
    struct async_claim start = {.pool = pool, .options = options == NULL ? &no_options : options};
    struct berth_claim_options read;

    if (unlikely(start.options->size != sizeof(read))) {
        int code = local_read_options(&read, sizeof(read), options, options->size, error);

        if (code < 0)
            return code;
        start.options = &read;
    }
    start.has_deadline = start.options->timeout != 0 && start.options->timeout != BERTH_FOR_EVER;
    return start_claim(&start, request, ret_ticket, error);
}

/* ---- Collecting ---- */

static int refuse_ticket(uint64_t id, struct berth_error *error)
{
    return error_set(
        error, BERTH_ERROR_NOT_FOUND,
        "ticket %llu: no such claim (its outcome was collected, or it belongs to another "
        "pool)",
        (unsigned long long)id);
}

/* Stores the outcome as berth_claim_wait documents it. */
static int return_outcome(int code, uint64_t ticket, struct berth_lease lease,
                          struct berth_lease *ret_lease, struct berth_error *error)
{
    if (code == BERTH_ERROR_NOT_FOUND)
        return refuse_ticket(ticket, error);
    if (code == BERTH_ERROR_BUSY)
        return error_set(error, code, "claim %llu still waits", (unsigned long long)ticket);
    if (code < 0)
        return local_claim_refuse(code, BERTH_FOR_EVER, error);
    *ret_lease = lease;
    return 0;
}

static bool waits_for_collector(const struct berth_pool *pool, uint64_t ticket)
{
    struct claim_view view;
    const struct target *target;

    if (!engine_get_claim(pool->engine, ticket, &view))
        return false;
    target = view.owner.waiter;
    return target->kind == TARGET_KEPT;
}

static void add_collector(struct berth_pool *pool, struct claim_waiter *waiter)
{
    struct id_link *link = id_map_find(&pool->collectors, waiter->by_ticket.id);
    struct claim_waiter *first;

    if (link == NULL) {
        id_map_add(&pool->collectors, &waiter->by_ticket);
        return;
    }
    first = container_of(link, struct claim_waiter, by_ticket);
    waiter->next = first->next;
    first->next = waiter;
}

static void remove_collector(struct berth_pool *pool, struct claim_waiter *waiter)
{
    struct id_link *link = id_map_find(&pool->collectors, waiter->by_ticket.id);
    struct claim_waiter *first = container_of(link, struct claim_waiter, by_ticket);
    struct claim_waiter *next = waiter->next;

    if (first != waiter) {
        while (first->next != waiter)
            first = first->next;
        first->next = next;
        return;
    }
    id_map_remove(&pool->collectors, link);
    if (next != NULL)
        id_map_add(&pool->collectors, &next->by_ticket);
}

/* Waits until another thread delivers the outcome. Called with the lock, which it releases. */
static int wait_for_outcome(struct berth_pool *pool, struct claim_waiter *waiter, int64_t deadline)
{
    int code = 0;
    bool is_guest = deadline != FUTEX_FOR_EVER;

    add_collector(pool, waiter);
    if (is_guest)
        local_pool_add_guest(pool);
    local_pool_leave(pool);
    local_pool_deliver_deferred(pool);
    if (!local_claim_sleep(waiter, deadline)) {
        lock_take(&pool->lock);
        if (waiter->done) {
            lock_give(&pool->lock);
            local_claim_sleep(waiter, FUTEX_FOR_EVER);
        } else {
            remove_collector(pool, waiter);
            code = BERTH_ERROR_BUSY;
            local_pool_leave(pool);
        }
    }
    if (is_guest)
        local_pool_remove_guest(pool);
    return code < 0 ? code : waiter->code;
}

int berth_claim_wait(struct berth_pool *pool, struct berth_ticket ticket, int64_t timeout,
                     struct berth_lease *ret_lease, struct berth_error *error)
{
    struct claim_waiter waiter = {.by_ticket = {.id = ticket.id}};
    struct berth_lease lease = {.pool = ticket.pool};
    struct notification *notification;
    int code = local_pool_enter(pool, error);

    if (code < 0)
        return code;
    notification = ticket.pool == pool->serial
                       ? notifications_find_outcome(&pool->notifications, ticket.id)
                       : NULL;
    if (notification != NULL) {
        code = notification->message.code;
        lease.id = notification->message.lease;
        notifications_collect_outcome(&pool->notifications, notification);
        local_pool_leave(pool);
    } else if (ticket.pool != pool->serial || !waits_for_collector(pool, ticket.id)) {
        code = BERTH_ERROR_NOT_FOUND;
        local_pool_leave(pool);
    } else if (timeout <= 0) {
        code = BERTH_ERROR_BUSY;
        local_pool_leave(pool);
    } else {
        int64_t now = timeout == BERTH_FOR_EVER ? 0 : clock_now();

        code = wait_for_outcome(pool, &waiter, clock_after(now, timeout));
        lease.id = waiter.lease;
    }
    return return_outcome(code, ticket.id, lease, ret_lease, error);
}

int berth_claim_next(struct berth_pool *pool, struct berth_ticket *ret_ticket, int *ret_code,
                     struct berth_lease *ret_lease, struct berth_error *error)
{
    struct notification *notification;
    int code = local_pool_enter(pool, error);

    if (code < 0)
        return code;
    notification = notifications_oldest_outcome(&pool->notifications);
    if (notification == NULL) {
        local_pool_leave_quietly(pool);
        return error_set(error, BERTH_ERROR_BUSY, "no claim has ended yet");
    }
    *ret_ticket = (struct berth_ticket){.id = notification->message.ticket, .pool = pool->serial};
    *ret_code = notification->message.code;
    *ret_lease = (struct berth_lease){0};
    if (notification->message.code == 0)
        *ret_lease = local_pool_lease(pool, notification->message.lease);
    notifications_collect_outcome(&pool->notifications, notification);
    local_pool_leave_quietly(pool);
    return 0;
}

int berth_cancel(struct berth_pool *pool, struct berth_ticket ticket, struct berth_error *error)
{
    int code = local_pool_enter(pool, error);

    if (code < 0)
        return code;
    if (ticket.pool != pool->serial)
        code = BERTH_ERROR_NOT_FOUND;
    else if (notifications_reserve(&pool->notifications, 1) < 0)
        code = error_set_memory(error);
    else
        code = engine_cancel(pool->engine, ticket.id, NULL);
    local_pool_leave(pool);
    if (code == BERTH_ERROR_NOT_FOUND)
        return error_set(error, code,
                         "ticket %llu: no such waiting claim (it was granted or has ended, or it "
                         "belongs to another pool)",
                         (unsigned long long)ticket.id);
    return code;
}

int berth_pool_descriptor(struct berth_pool *pool, struct berth_error *error)
{
    int descriptor;
    int code = local_pool_enter(pool, error);

    if (code < 0)
        return code;
    if (pool->notifications.descriptor < 0) {
        bool is_readable = notifications_oldest_outcome(&pool->notifications) != NULL;

        pool->notifications.descriptor = eventfd(is_readable ? 1 : 0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (pool->notifications.descriptor < 0)
            code = error_set_errno(error, errno, "cannot create an eventfd");
    }
    descriptor = pool->notifications.descriptor;
    local_pool_leave_quietly(pool);
    return code < 0 ? code : descriptor;
}
