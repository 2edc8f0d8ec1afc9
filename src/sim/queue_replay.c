/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/queue_replay.h"

#include <stdlib.h>

#include "base/error.h"
#include "sim/durations.h"
#include "sim/queue_internal.h"

/* The number of jobs between two progress reports. */
enum { PROGRESS_STEP = 256 };

static bool keeps_list(const struct queue_replay *replay)
{
    return replay->settings->order == QUEUE_SKIP || replay->settings->order == QUEUE_SJF;
}

/* ---- Claims ---- */

/* Returns the time limit by the estimate. An exact limit is one nanosecond longer than the job, so
 * that the job ends before it is stopped. */
static int64_t limit_for(const struct queue_replay *replay, const struct queue_job *job)
{
    if (job->left < job->job->duration)
        return job->left + 1;
    switch (replay->settings->estimate) {
    case QUEUE_OVER3:
        return job->left * 3;
    case QUEUE_UNDER:
        return job->left > 1 ? job->left / 2 : 1;
    case QUEUE_EXACT:
        break;
    }
    return job->left + 1;
}

int queue_replay_open_request(struct queue_replay *replay, const struct queue_job *job,
                              struct engine_request **ret_request, struct berth_error *error)
{
    const struct queue_shape *shape = &replay->shapes.items[job->shape];
    struct request request;

    request_init(&request);
    request.gpus.min = request.gpus.max = shape->gpus / shape->replicas;
    request.replicas = shape->replicas;
    request.scheduling = SCHEDULING_GANG;
    if (replay->settings->order != QUEUE_FIFO)
        request.time = optional_number_of((uint64_t)job->limit);
    return engine_request_open(replay->engine, &request, NULL, replay->settings->policy,
                               ret_request, error);
}

static int claim_devices(struct queue_replay *replay, struct queue_job *job,
                         struct berth_error *error)
{
    struct claim_owner owner = {.data = job};
    struct engine_request *request;
    uint64_t id = 0;
    int code = queue_replay_open_request(replay, job, &request, error);

    if (code < 0)
        return code;
    code = engine_claim(replay->engine, request, TIME_NEVER, &owner, &id, error);
    engine_request_close(replay->engine, request);
    if (code == CLAIM_GRANTED)
        code = queue_replay_start_job(replay, job, id, engine_now(replay->engine), error);
    return code;
}

/* Queues a job that arrives or is requeued. */
static int add_arrival(struct queue_replay *replay, struct queue_job *job,
                       struct berth_error *error)
{
    int code;

    job->claimed = engine_now(replay->engine);
    job->promised = TIME_NEVER;
    job->limit = limit_for(replay, job);
    if (keeps_list(replay))
        return queue_orders_insert(replay, job, error);
    code = claim_devices(replay, job, error);
    return code < 0 ? code : 0;
}

void queue_replay_record_promise(struct queue_replay *replay, struct queue_job *job, int64_t start)
{
    if (start == TIME_NEVER)
        return;
    replay->promised += job->promised == TIME_NEVER;
    if (start < job->promised)
        job->promised = start;
}

/* ---- Leases ---- */

static bool ends_before(const struct queue_job *one, const struct queue_job *other)
{
    return one->ends != other->ends ? one->ends < other->ends : one < other;
}

static int push_running(struct queue_job_list *heap, struct queue_job *job)
{
    size_t place = heap->count;

    if (vector_reserve(heap, place + 1) < 0)
        return BERTH_ERROR_MEMORY;
    heap->count++;
    for (; place > 0 && ends_before(job, heap->items[(place - 1) / 2]); place = (place - 1) / 2)
        heap->items[place] = heap->items[(place - 1) / 2];
    heap->items[place] = job;
    return 0;
}

static struct queue_job *pop_running(struct queue_job_list *heap)
{
    struct queue_job *first = heap->items[0];
    struct queue_job *last = heap->items[--heap->count];
    size_t place = 0;

    for (;;) {
        size_t child = 2 * place + 1;

        if (child + 1 < heap->count && ends_before(heap->items[child + 1], heap->items[child]))
            child++;
        if (child >= heap->count || !ends_before(heap->items[child], last))
            break;
        heap->items[place] = heap->items[child];
        place = child;
    }
    heap->items[place] = last;
    return first;
}

int queue_replay_start_job(struct queue_replay *replay, struct queue_job *job, uint64_t lease,
                           int64_t now, struct berth_error *error)
{
    int64_t runs = job->left;

    /* A claim without a limit is never stopped. */
    if (replay->settings->order != QUEUE_FIFO && job->limit < runs)
        runs = job->limit;
    job->lease = lease;
    job->waited += now - job->claimed;
    job->ends = now + runs;
    job->left -= runs;
    replay->broken += now > job->promised;
    return push_running(&replay->running, job) < 0 ? error_set_memory(error) : 0;
}

/* Records a grant. The engine must not be called by its event handler, so the grant is handled
 * later. */
static void record_grant(void *context, const struct engine_event *event)
{
    struct queue_replay *replay = context;
    uint64_t *lease = vector_append(&replay->granted);

    if (lease == NULL)
        replay->out_of_memory = true;
    else
        *lease = event->lease;
}

static int start_granted_jobs(struct queue_replay *replay, struct berth_error *error)
{
    int code = replay->out_of_memory ? error_set_memory(error) : 0;

    for (size_t i = 0; i < replay->granted.count && code == 0; i++) {
        struct lease_view view;

        if (engine_get_lease(replay->engine, replay->granted.items[i], &view))
            code = queue_replay_start_job(replay, view.owner.data, view.id, view.granted, error);
    }
    replay->granted.count = 0;
    return code;
}

/* ---- Time ---- */

/* Returns whether several jobs end now. */
static bool end_together(const struct queue_job_list *heap, int64_t now)
{
    return heap->count > 1 && heap->items[0]->ends <= now &&
           (heap->items[1]->ends <= now || (heap->count > 2 && heap->items[2]->ends <= now));
}

/* Ends all jobs that are due, and requeues those that reached their limits. */
static int end_jobs(struct queue_replay *replay, int64_t now, struct berth_error *error)
{
    bool together = end_together(&replay->running, now);
    int code = 0;

    if (together)
        engine_pause(replay->engine);
    while (replay->running.count > 0 && replay->running.items[0]->ends <= now && code == 0) {
        struct queue_job *job = pop_running(&replay->running);

        code = engine_release(replay->engine, job->lease, error);
        job->lease = 0;
        replay->last_end = now;
        if (job->left == 0) {
            replay->ended++;
            continue;
        }
        if (vector_reserve(&replay->back, replay->back.count + 1) < 0)
            code = error_set_memory(error);
        else
            replay->back.items[replay->back.count++] = job;
    }
    if (together)
        engine_resume(replay->engine);
    return code < 0 ? code : start_granted_jobs(replay, error);
}

static int admit_arrivals(struct queue_replay *replay, int64_t now, struct berth_error *error)
{
    int code = 0;

    for (size_t i = 0; i < replay->back.count && code == 0; i++)
        code = add_arrival(replay, replay->back.items[i], error);
    replay->back.count = 0;
    while (code == 0 && replay->arrived < replay->job_count &&
           replay->jobs[replay->arrived].job->arrival <= now)
        code = add_arrival(replay, &replay->jobs[replay->arrived++], error);
    return code;
}

static void note_promise(void *context, const struct reservation_view *view)
{
    queue_replay_record_promise(context, view->owner.data, view->start);
}

/* Starts the jobs that fit, and records promised starts. */
static int serve_queue(struct queue_replay *replay, struct berth_error *error)
{
    int code;

    if (keeps_list(replay))
        return queue_orders_serve(replay, error);
    code = start_granted_jobs(replay, error);
    if (code == 0)
        code = engine_each_reservation(replay->engine, note_promise, replay);
    return code < 0 ? error_set_memory(error) : 0;
}

static int64_t next_time(const struct queue_replay *replay)
{
    int64_t next = engine_next_time(replay->engine);

    if (replay->running.count > 0 && replay->running.items[0]->ends < next)
        next = replay->running.items[0]->ends;
    if (replay->arrived < replay->job_count && replay->jobs[replay->arrived].job->arrival < next)
        next = replay->jobs[replay->arrived].job->arrival;
    return next;
}

static int run_replay(struct queue_replay *replay, struct berth_error *error)
{
    const struct queue_settings *settings = replay->settings;
    size_t report_at = 0;
    int code = 0;

    while (replay->ended < replay->job_count && code == 0) {
        int64_t now = next_time(replay);

        engine_advance(replay->engine, now);
        code = start_granted_jobs(replay, error);
        if (code == 0)
            code = end_jobs(replay, now, error);
        if (code == 0)
            code = admit_arrivals(replay, now, error);
        if (code == 0)
            code = serve_queue(replay, error);
        if (settings->progress != NULL && replay->ended >= report_at) {
            settings->progress(settings->context, replay->ended, replay->job_count);
            report_at = replay->ended + PROGRESS_STEP;
        }
    }
    if (settings->progress != NULL && code == 0)
        settings->progress(settings->context, replay->ended, replay->job_count);
    return code;
}

/* ---- Setup and result ---- */

static int make_engine(struct queue_replay *replay, struct berth_error *error)
{
    const struct queue_settings *settings = replay->settings;
    size_t count = (size_t)settings->nodes * settings->gpus_per_node;
    struct engine_settings rules = {.slots_max = count};
    struct machine machine = {0};
    int code = vector_reserve(&machine.devices, count);

    if (code == 0)
        code = vector_reserve(&machine.hosts, settings->nodes);
    for (uint32_t node = 0; node < settings->nodes && code == 0; node++) {
        machine.hosts.items[machine.hosts.count++] = (struct host){0};
        for (uint32_t i = 0; i < settings->gpus_per_node; i++) {
            machine.devices.items[machine.devices.count] = (struct device){
                .id = {.vendor = VENDOR_NVIDIA, .index = (uint32_t)machine.devices.count},
                .host = node,
            };
            machine.devices.count++;
        }
    }
    code = code < 0 ? error_set_memory(error)
                    : engine_create(&machine, &rules, &replay->engine, error);
    machine_finish(&machine);
    if (code < 0)
        return code;
    engine_set_sink(replay->engine, &(struct event_sink){.notify = record_grant,
                                                         .context = replay,
                                                         .wanted = EVENT_BIT(EVENT_GRANTED),
                                                         .waited_only = true});
    return 0;
}

/* Returns the shape of jobs with this number of GPUs, and creates it if needed; SIZE_MAX: no
 * memory. */
static size_t shape_of(struct queue_replay *replay, uint32_t gpus)
{
    uint32_t node = replay->settings->gpus_per_node;
    struct queue_shape *shape;

    vector_for_each (shape, &replay->shapes) {
        if (shape->gpus == gpus)
            return (size_t)(shape - replay->shapes.items);
    }
    shape = vector_append(&replay->shapes);
    if (shape == NULL)
        return SIZE_MAX;
    shape->gpus = gpus;
    shape->replicas = gpus / node + (gpus % node != 0);
    while (gpus % shape->replicas != 0)
        shape->replicas++;
    return (size_t)(shape - replay->shapes.items);
}

static int check_size(const struct queue_replay *replay, const struct trace_job *job, size_t shape,
                      struct berth_error *error)
{
    const struct queue_settings *settings = replay->settings;
    uint32_t replicas = replay->shapes.items[shape].replicas;

    if ((uint64_t)settings->nodes * (settings->gpus_per_node / (job->gpus / replicas)) >= replicas)
        return 0;
    return error_set(error, BERTH_ERROR_INVALID,
                     "%s:%u: expected a job that fits on %u nodes of %u GPUs, got one with %u "
                     "GPUs",
                     replay->name, job->line, settings->nodes, settings->gpus_per_node, job->gpus);
}

static int prepare_jobs(struct queue_replay *replay, const struct job_list *jobs,
                        struct berth_error *error)
{
    replay->jobs = calloc(jobs->count, sizeof(*replay->jobs));
    if (replay->jobs == NULL)
        return error_set_memory(error);
    replay->job_count = jobs->count;
    for (size_t i = 0; i < jobs->count; i++) {
        struct queue_job *job = &replay->jobs[i];
        int code;

        job->job = &jobs->items[i];
        job->left = job->job->duration;
        job->shape = shape_of(replay, job->job->gpus);
        if (job->shape == SIZE_MAX)
            return error_set_memory(error);
        code = check_size(replay, job->job, job->shape, error);
        if (code < 0)
            return code;
    }
    return make_engine(replay, error);
}

static int compute_outcome(const struct queue_replay *replay, struct queue_outcome *outcome,
                           struct berth_error *error)
{
    const struct queue_settings *settings = replay->settings;
    size_t count = replay->job_count;
    int64_t *waits = calloc(count + 1, sizeof(*waits));
    double all = 0;
    double busy = 0;
    double span;

    if (waits == NULL)
        return error_set_memory(error);
    *outcome = (struct queue_outcome){
        .jobs = count, .promised = replay->promised, .broken_reservations = replay->broken};
    for (size_t i = 0; i < count; i++) {
        const struct queue_job *job = &replay->jobs[i];

        waits[i] = job->waited;
        all += (double)job->waited;
        busy += (double)job->job->duration * job->job->gpus;
        if (job->waited > replay->jobs[outcome->longest].waited)
            outcome->longest = i;
    }
    durations_sort(waits, count);
    span = (double)(replay->last_end - replay->jobs[0].job->arrival) * settings->nodes *
           settings->gpus_per_node;
    outcome->wait_mean = (int64_t)(all / (double)count);
    outcome->wait_p50 = durations_percentile(waits, count, 50);
    outcome->wait_p99 = durations_percentile(waits, count, 99);
    outcome->wait_max = waits[count - 1];
    outcome->utilization = (uint32_t)(busy / span * 1e6);
    free(waits);
    return 0;
}

static void finish_replay(struct queue_replay *replay)
{
    engine_destroy(replay->engine);
    free(replay->jobs);
    vector_finish(&replay->shapes);
    vector_finish(&replay->running);
    vector_finish(&replay->back);
    vector_finish(&replay->waiting);
    vector_finish(&replay->granted);
}

int queue_replay(const char *name, const struct job_list *jobs,
                 const struct queue_settings *settings, struct queue_outcome *ret_outcome,
                 struct berth_error *error)
{
    struct queue_replay replay = {.name = name, .settings = settings};
    int code = prepare_jobs(&replay, jobs, error);

    if (code == 0)
        code = run_replay(&replay, error);
    if (code == 0)
        code = compute_outcome(&replay, ret_outcome, error);
    finish_replay(&replay);
    return code;
}
