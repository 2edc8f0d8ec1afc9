/* SPDX-License-Identifier: Apache-2.0
 *
 * The orders skip and sjf, for comparison. The simulator has its own queue and starts every job
 * that fits, so wide jobs may starve. A claim waits in the engine only while query_promise() reads
 * its reservation.
 */
#include <string.h>

#include "base/error.h"
#include "sim/queue_internal.h"

static bool comes_before(const struct queue_replay *replay, const struct queue_job *one,
                         const struct queue_job *other)
{
    if (replay->settings->order == QUEUE_SJF && one->limit != other->limit)
        return one->limit < other->limit;
    return one->claimed != other->claimed ? one->claimed < other->claimed : one < other;
}

int queue_orders_insert(struct queue_replay *replay, struct queue_job *job,
                        struct berth_error *error)
{
    struct queue_job_list *list = &replay->waiting;
    size_t low = 0;
    size_t high = list->count;

    if (vector_reserve(list, list->count + 1) < 0)
        return error_set_memory(error);
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (comes_before(replay, list->items[middle], job))
            low = middle + 1;
        else
            high = middle;
    }
    memmove(&list->items[low + 1], &list->items[low], (list->count - low) * sizeof(*list->items));
    list->items[low] = job;
    list->count++;
    return 0;
}

/* Tries to start one job. Returns CLAIM_GRANTED, CLAIM_WAITS or an error. */
static int try_job(struct queue_replay *replay, struct queue_job *job, struct berth_error *error)
{
    struct engine_request *request;
    uint64_t lease = 0;
    int code = queue_replay_open_request(replay, job, &request, error);

    if (code < 0)
        return code;
    code = engine_try(replay->engine, request, &lease, error);
    if (code == CLAIM_GRANTED &&
        queue_replay_start_job(replay, job, lease, engine_now(replay->engine), error) < 0)
        code = BERTH_ERROR_MEMORY;
    engine_request_close(replay->engine, request);
    return code;
}

static void note_promise(void *context, const struct reservation_view *view)
{
    *(int64_t *)context = view->start;
}

/* Records the start that the engine promises to the job if its claim is the only waiting one. */
static int query_promise(struct queue_replay *replay, struct queue_job *job,
                         struct berth_error *error)
{
    struct engine_request *request;
    int64_t start = TIME_NEVER;
    uint64_t claim = 0;
    int code = queue_replay_open_request(replay, job, &request, error);

    if (code < 0)
        return code;
    code = engine_claim(replay->engine, request, TIME_NEVER, NULL, &claim, error);
    engine_request_close(replay->engine, request);
    if (code == CLAIM_WAITS && engine_each_reservation(replay->engine, note_promise, &start) < 0)
        code = error_set_memory(error);
    if (code == CLAIM_WAITS)
        code = engine_cancel(replay->engine, claim, error);
    if (code == 0)
        queue_replay_record_promise(replay, job, start);
    return code;
}

int queue_orders_serve(struct queue_replay *replay, struct berth_error *error)
{
    struct queue_job_list *list = &replay->waiting;
    struct queue_shape *shape;
    size_t kept = 0;
    int code = 0;

    vector_for_each (shape, &replay->shapes)
        shape->failed = false;
    for (size_t i = 0; i < list->count; i++) {
        struct queue_job *job = list->items[i];

        shape = &replay->shapes.items[job->shape];
        if (code >= 0 && !shape->failed) {
            code = engine_is_full(replay->engine) ? CLAIM_WAITS : try_job(replay, job, error);
            if (code == CLAIM_GRANTED)
                continue;
            shape->failed = true; /* later starts leave even less room */
        }
        list->items[kept++] = job;
    }
    list->count = kept;
    if (code >= 0 && list->count > 0)
        code = query_promise(replay, list->items[0], error);
    return code < 0 ? code : 0;
}
