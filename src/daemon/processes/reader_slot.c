/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/processes/reader_slot.h"

#include <sys/epoll.h>
#include <unistd.h>

#include "base/error.h"
#include "daemon/core/pidfd.h"
#include "daemon/processes/reader_pool_internal.h"

/* A reader that cannot be started, or was lost without a stall, is started again after this, then
 * after twice as long each time. */
#define RESTART_MIN (DURATION_SECOND / 10)
#define RESTART_MAX (10 * DURATION_SECOND)

/* The maximum factor for the time limit of one access. If the next reader stalls at another
 * process, a busy machine may have stopped both readers. So the limit for this query doubles. */
enum { STALL_FACTOR_MAX = 64 };

static void set_timer(struct reader_slot *slot, int64_t after)
{
    loop_set_timer(slot->pool->loop, &slot->timer, loop_now(slot->pool->loop) + after);
}

int64_t reader_slot_waited(const struct reader_slot *slot)
{
    return reader_progress_waited(&slot->progress, &slot->reader, loop_now(slot->pool->loop));
}

void reader_slot_close(struct reader_slot *slot)
{
    if (slot->is_open)
        loop_remove(slot->pool->loop, &slot->watch);
    slot->is_open = false;
    reader_finish(&slot->reader);
    loop_set_timer(slot->pool->loop, &slot->timer, LOOP_NEVER);
}

static void report_failure(struct reader_pool *pool, const char *reason)
{
    if (reason == NULL && !pool->has_failed)
        return;
    pool->has_failed = reason != NULL;
    pool->events.failed(pool->events.context, reason);
}

/* Returns whether the reader may have ended because of the time limit of its request. */
static bool is_request_too_long(const struct reader_slot *slot)
{
    return loop_now(slot->pool->loop) - slot->progress.sent_at >=
           (READER_REQUEST_SECONDS - 1) * DURATION_SECOND;
}

void reader_slot_lose(struct reader_slot *slot, const struct berth_error *error)
{
    struct reader_pool *pool = slot->pool;
    struct reader_query *query = slot->query;
    int64_t pause = RESTART_MIN;

    if (query != NULL)
        query->losses++;
    if (query != NULL && is_request_too_long(slot)) {
        reader_pool_penalize(pool, query->user);
    } else {
        for (unsigned i = 0; i < slot->failures && pause < RESTART_MAX; i++)
            pause *= 2;
        slot->failures++;
    }
    reader_pool_put_back(slot);
    reader_slot_close(slot);
    set_timer(slot, pause);
    if (slot->failures == READER_POOL_FAILURES_MAX)
        report_failure(pool, error->message);
    reader_pool_serve(pool);
}

/* Penalizes the user if the slot's query takes long. */
static void judge_query(const struct reader_slot *slot)
{
    if (reader_progress_accesses(&slot->progress, &slot->reader) > READER_POOL_LONG ||
        reader_progress_spent(&slot->progress, &slot->reader, loop_now(slot->pool->loop)) >
            READER_POOL_SLOW)
        reader_pool_penalize(slot->pool, slot->query->user);
}

static void take_answers(struct reader_slot *slot)
{
    struct reader_pool *pool = slot->pool;
    struct berth_error error = BERTH_ERROR_INIT;
    struct reader_answer answer;
    int code;

    code = reader_receive(&slot->reader, &answer, &error);
    if (code < 0) {
        reader_slot_lose(slot, &error);
        return;
    }
    if (code == 0)
        return;
    slot->failures = 0;
    loop_set_timer(pool->loop, &slot->timer, LOOP_NEVER);
    report_failure(pool, NULL);
    if (slot->query != NULL) {
        judge_query(slot);
        reader_pool_answer(slot->query, &answer);
    }
    reader_answer_finish(&answer);
    reader_pool_serve(pool);
}

static void reader_is_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    take_answers(container_of(watch, struct reader_slot, watch));
}

static void open_reader(struct reader_slot *slot)
{
    struct reader_pool *pool = slot->pool;
    struct berth_error error = BERTH_ERROR_INIT;
    int code = pool->events.spawn == NULL ? reader_start(&slot->reader, &error)
                                          : reader_start_with(&slot->reader, pool->events.spawn,
                                                              pool->events.context, &error);

    if (code == 0) {
        slot->watch =
            (struct watch){.descriptor = slot->reader.descriptor, .ready = reader_is_ready};
        code = loop_add(pool->loop, &slot->watch, EPOLLIN, &error);
    }
    slot->is_open = code == 0;
    if (code < 0)
        reader_slot_lose(slot, &error);
    else
        reader_pool_serve(pool);
}

void reader_slot_replace(struct reader_slot *slot)
{
    reader_pool_put_back(slot);
    reader_slot_close(slot);
    open_reader(slot);
}

void reader_slot_send(struct reader_slot *slot, struct reader_query *query)
{
    struct reader_pool *pool = slot->pool;
    struct berth_error error = BERTH_ERROR_INIT;
    int code;

    list_remove(&query->in_user);
    query->slot = slot;
    query->user->is_out = true;
    slot->query = query;
    reader_progress_begin(&slot->progress, &slot->reader, loop_now(pool->loop));
    stalled_processes_list(&pool->stalled, &query->request.stalled);
    code = reader_send(&slot->reader, &query->request, &error);
    if (code < 0) {
        /* A request that is too long can never be sent, so it is not tried again. */
        query->losses += code == BERTH_ERROR_IO ? 0 : READER_POOL_FAILURES_MAX;
        reader_slot_lose(slot, &error);
        return;
    }
    set_timer(slot, READER_POOL_STALL);
}

/* ---- Progress ---- */

/* Returns the user that the process counts for: its owner. */
static uint32_t find_account(const struct reader_slot *slot, pid_t pid, int descriptor)
{
    const struct reader_pool_events *events = &slot->pool->events;
    uint32_t uid;

    return events->find_account != NULL && pidfd_find_user(descriptor, pid, &uid)
               ? events->find_account(events->context, uid)
               : (uint32_t)slot->query->user->by_uid.id;
}

/* Replaces a reader that has been in one access for too long. Takes `descriptor`, the pidfd of the
 * process. */
static void replace_stalled_reader(struct reader_slot *slot, int descriptor)
{
    struct reader_pool *pool = slot->pool;
    struct reader_query *query = slot->query;
    pid_t pid = slot->progress.touch.pid;
    bool is_confirmed = query->suspect == pid;
    const struct stalled_process *stalled;

    reader_pool_penalize(pool, query->user);
    if (is_confirmed) {
        stalled = stalled_processes_add(&pool->stalled, pid, descriptor,
                                        find_account(slot, pid, descriptor));
        if (stalled != NULL)
            pool->events.stalled(pool->events.context, stalled);
    } else {
        close(descriptor);
        if (query->suspect != 0 && query->stall_factor < STALL_FACTOR_MAX)
            query->stall_factor *= 2;
    }
    query->suspect = is_confirmed ? 0 : pid;
    reader_slot_replace(slot);
}

/* Checks whether the reader makes progress with its query. */
static void look_at_progress(struct reader_slot *slot)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct reader_progress *progress = &slot->progress;
    int descriptor;

    switch (reader_progress_look(progress, &slot->reader,
                                 READER_POOL_STALL * slot->query->stall_factor,
                                 loop_now(slot->pool->loop))) {
    case READER_LOST:
        error_set(&error, BERTH_ERROR_TIMED_OUT, "berth-reader does not answer");
        reader_slot_lose(slot, &error);
        return;
    case READER_STALLS:
        descriptor = pidfd_open_process(progress->touch.pid);
        if (descriptor >= 0 && reader_progress_is_same(progress, &slot->reader)) {
            replace_stalled_reader(slot, descriptor);
            return;
        }
        if (descriptor >= 0)
            close(descriptor);
        break;
    case READER_GOES_ON:
        break;
    }
    if (!reader_pool_is_penalized(slot->pool, slot->query->user)) {
        judge_query(slot);
        reader_pool_serve(slot->pool);
    }
    /* Another user's query may have taken the reader. */
    if (slot->is_open && slot->query != NULL)
        set_timer(slot, READER_POOL_STALL);
}

void reader_slot_is_due(struct timer *timer)
{
    struct reader_slot *slot = container_of(timer, struct reader_slot, timer);

    if (!slot->is_open) {
        open_reader(slot);
        return;
    }
    /* The answer may have arrived while the daemon itself was stopped. */
    take_answers(slot);
    if (slot->is_open && slot->query != NULL)
        look_at_progress(slot);
}
