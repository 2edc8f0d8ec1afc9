/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/place_replay.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "engine/engine.h"
#include "sim/arrivals.h"
#include "sim/baselines/baselines.h"
#include "sim/durations.h"
#include "sim/fragmentation.h"

const uint32_t place_points[PLACE_POINTS] = {60, 80, 90, 100, 110, 120, 130};

/* The number of arrivals between two progress reports. */
enum { PROGRESS_STEP = 1024 };

/* 100 % in units of 10^-4 %. */
#define WHOLE 1e6

/* The state of a replay. */
struct place_replay {
    const struct place_settings *settings;
    struct arrivals arrivals;
    struct engine *engine;
    struct engine_request **requests; /* by kind */
    struct fragmentation fragmentation;
    int64_t *durations; /* nanoseconds of each decision */
    uint64_t arrived;   /* demand so far, in thousandths of GPUs */
    uint64_t allocated;
};

/* Creates the engine. Its tenant limit is the number of parts of a device, so that it does not
 * restrict sharing. */
static int create_engine(struct place_replay *replay, struct berth_error *error)
{
    const struct place_settings *settings = replay->settings;
    const struct engine_settings rules = {
        .time_slice_tenants = TRACE_WHOLE,
        .seed = settings->seed,
    };
    struct machine machine = {0};
    int code = pod_trace_build_machine(
        settings->trace, settings->shuffled_ties ? replay->arrivals.order : NULL, &machine, error);

    if (code == 0)
        code = engine_create(&machine, &rules, &replay->engine, error);
    machine_finish(&machine);
    return code;
}

/* Gives the engine the typical pods as expected requests. */
static int set_expected_requests(struct place_replay *replay, struct berth_error *error)
{
    const struct typical_pods *typical = replay->settings->typical;
    struct request *requests = calloc(typical->count, sizeof(*requests));
    uint32_t *weights = calloc(typical->count, sizeof(*weights));
    int code = 0;
    size_t made = 0;

    if (requests == NULL || weights == NULL) {
        error_set_memory(error);
        code = BERTH_ERROR_MEMORY;
    }
    while (made < typical->count && code == 0) {
        code = pod_trace_build_request(&typical->items[made], &requests[made], error);
        if (code == 0)
            weights[made] = typical->items[made].pods;
        made += code == 0;
    }
    if (code == 0)
        code = engine_expect(replay->engine, requests, weights, made, error);
    for (size_t i = 0; i < made; i++)
        request_finish(&requests[i]);
    free(requests);
    free(weights);
    return code;
}

static int open_request(struct place_replay *replay, size_t kind, const struct policy *policy,
                        struct berth_error *error)
{
    static const struct party nobody;
    struct request request;
    int code =
        pod_trace_build_request(&replay->settings->trace->kinds.items[kind], &request, error);

    if (code < 0)
        return code;
    code = engine_request_open(replay->engine, &request, &nobody, policy, &replay->requests[kind],
                               error);
    request_finish(&request);
    return code;
}

static int open_requests(struct place_replay *replay, struct berth_error *error)
{
    size_t kinds = replay->settings->trace->kinds.count;
    const struct policy *policy;
    int code = baseline_find(replay->settings->policy, &policy, error);

    replay->requests = calloc(kinds, sizeof(struct engine_request *));
    if (code == 0 && replay->requests == NULL)
        code = error_set_memory(error);
    for (size_t i = 0; i < kinds && code == 0; i++)
        code = open_request(replay, i, policy, error);
    return code;
}

static void finish_replay(struct place_replay *replay)
{
    size_t kinds = replay->settings->trace->kinds.count;

    for (size_t i = 0; i < kinds && replay->requests != NULL; i++) {
        if (replay->requests[i] != NULL)
            engine_request_close(replay->engine, replay->requests[i]);
    }
    fragmentation_finish(&replay->fragmentation);
    if (replay->engine != NULL)
        engine_destroy(replay->engine);
    arrivals_finish(&replay->arrivals);
    free(replay->requests);
    free(replay->durations);
}

/* Lets the engine place one pod. Returns CLAIM_GRANTED with the pod's host, CLAIM_WAITS or an
 * error. */
static int decide_pod(struct place_replay *replay, const struct trace_kind *kind,
                      struct engine_request *request, int64_t *ret_duration, uint32_t *ret_host,
                      struct berth_error *error)
{
    struct lease_view view;
    uint64_t lease = 0;
    int64_t begin = clock_now();
    int code = kind->gpus == 0 ? engine_host_occupy(replay->engine, request, ret_host, error)
                               : engine_try(replay->engine, request, &lease, error);

    *ret_duration = clock_now() - begin;
    if (code == CLAIM_GRANTED && kind->gpus > 0 && engine_get_lease(replay->engine, lease, &view))
        *ret_host = engine_machine(replay->engine)->devices.items[view.slots[0]].host;
    /* A pod that no node can hold is dropped too. */
    return code == BERTH_ERROR_IMPOSSIBLE ? CLAIM_WAITS : code;
}

static uint32_t round_percent(uint64_t part, uint64_t whole)
{
    return (uint32_t)((part * 200 + whole) / (2 * whole));
}

static bool is_point(uint32_t percent)
{
    for (size_t i = 0; i < PLACE_POINTS; i++) {
        if (place_points[i] == percent)
            return true;
    }
    return false;
}

static void take_sample(struct place_replay *replay, struct place_run *run)
{
    uint32_t percent = round_percent(replay->arrived, run->capacity);
    struct place_sample *sample;

    if (percent > PLACE_PERCENT_MAX)
        return;
    sample = &run->samples[percent];
    sample->count++;
    sample->allocated += replay->allocated;
    if (is_point(percent))
        sample->fragmented += fragmentation_measure(&replay->fragmentation);
}

static int place_arrival(struct place_replay *replay, size_t position, struct place_run *run,
                         struct berth_error *error)
{
    uint32_t number = replay->arrivals.items[position];
    const struct trace_kind *kind = &replay->settings->trace->kinds.items[number];
    uint32_t host = 0;
    int code = decide_pod(replay, kind, replay->requests[number], &replay->durations[position],
                          &host, error);

    if (code < 0)
        return code;
    replay->arrived += pod_trace_demand(kind);
    if (code == CLAIM_GRANTED) {
        replay->allocated += pod_trace_demand(kind);
        fragmentation_changed(&replay->fragmentation, host, kind->cpus);
    } else {
        run->failed++;
    }
    take_sample(replay, run);
    return 0;
}

static void measure_decisions(struct place_replay *replay, struct place_run *run)
{
    size_t count = replay->arrivals.count;

    if (count == 0 || replay->durations == NULL)
        return;
    durations_sort(replay->durations, count);
    run->decision_p50 = durations_percentile(replay->durations, count, 50);
    run->decision_p99 = durations_percentile(replay->durations, count, 99);
    run->decision_max = replay->durations[count - 1];
    run->decisions = count;
}

static void report_progress(const struct place_replay *replay, size_t done)
{
    const struct place_settings *settings = replay->settings;

    if (settings->progress != NULL && done % PROGRESS_STEP == 0)
        settings->progress(settings->context, done, replay->arrivals.count);
}

static int run_replay(struct place_replay *replay, struct place_run *run, struct berth_error *error)
{
    int64_t begin = clock_now();
    int code = create_engine(replay, error);

    if (code == 0)
        code = set_expected_requests(replay, error);
    if (code == 0)
        code = open_requests(replay, error);
    if (code == 0)
        code = fragmentation_init(replay->engine, replay->settings->typical, &replay->fragmentation,
                                  error);
    for (size_t i = 0; i < replay->arrivals.count && code == 0; i++) {
        report_progress(replay, i);
        code = place_arrival(replay, i, run, error);
    }
    run->took = clock_now() - begin;
    return code;
}

int place_replay_run(const struct place_settings *settings, struct place_run *ret_run,
                     struct berth_error *error)
{
    const struct pod_trace *trace = settings->trace;
    struct place_replay replay = {.settings = settings};
    int code = arrivals_draw(trace, settings->seed, trace->capacity / TRACE_WHOLE * settings->tune,
                             &replay.arrivals, error);

    *ret_run = (struct place_run){
        .policy = settings->policy,
        .seed = settings->seed,
        .capacity = trace->capacity,
    };
    if (code == 0) {
        replay.durations = calloc(replay.arrivals.count, sizeof(*replay.durations));
        code = replay.durations == NULL ? error_set_memory(error)
                                        : run_replay(&replay, ret_run, error);
    }
    if (code == 0)
        measure_decisions(&replay, ret_run);
    finish_replay(&replay);
    return code;
}

/* Computes the rounded mean of the samples, in 10^-4 % of the capacity. Returns whether there are
 * samples. */
static bool mean_of(const struct place_run *run, uint64_t count, double sum, int64_t *ret_value)
{
    if (count == 0)
        return false;
    *ret_value = (int64_t)(sum * WHOLE / ((double)count * (double)run->capacity) + 0.5);
    return true;
}

bool place_replay_allocated(const struct place_run *run, uint32_t percent, int64_t *ret_value)
{
    const struct place_sample *sample = &run->samples[percent];

    return mean_of(run, sample->count, (double)sample->allocated, ret_value);
}

bool place_replay_fragmented(const struct place_run *run, uint32_t percent, int64_t *ret_value)
{
    const struct place_sample *sample = &run->samples[percent];

    return mean_of(run, sample->count, sample->fragmented, ret_value);
}
