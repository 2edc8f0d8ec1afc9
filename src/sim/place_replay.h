/* SPDX-License-Identifier: Apache-2.0
 *
 * The replay of 'berth sim place'. The pods of a trace arrive one by one and never leave. The
 * engine places them by one policy; a pod that does not fit is dropped. After each arrival a sample
 * is taken: the allocated part of the GPUs, and the part of the rest that typical pods cannot use.
 * The value at X % is the mean of the samples for which the demand so far, including dropped pods,
 * rounds to X % of the GPUs.
 */
#ifndef SIM_PLACE_REPLAY_H
#define SIM_PLACE_REPLAY_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/pod_trace.h"
#include "sim/typical_pods.h"

/* The maximum demand, in % of the GPUs. */
#define PLACE_PERCENT_MAX 1000
/* `tune` is in thousandths: 1300 is 130 %. */
#define PLACE_TUNE_DECIMALS 3
#define PLACE_TUNE_MAX      (PLACE_PERCENT_MAX * 10)
/* Results are in units of 10^-4 %. */
#define PLACE_DECIMALS 4

/* The demands for which results are printed, in %. */
enum { PLACE_POINTS = 7 };
extern const uint32_t place_points[PLACE_POINTS];

struct place_settings {
    const struct pod_trace *trace;
    const struct typical_pods *typical;
    const char *policy;
    uint64_t seed;
    uint32_t tune;      /* final demand, in thousandths of the GPUs */
    bool shuffled_ties; /* order equal nodes at random, not by name */

    /* Optional: called from time to time with the number of arrivals done. */
    void (*progress)(void *context, size_t done, size_t of);
    void *context;
};

/* The sums of all samples at one demand. */
struct place_sample {
    uint64_t count;
    uint64_t allocated; /* thousandths of GPUs */
    double fragmented;  /* thousandths of GPUs; only at place_points */
};

/* The result of one replay. */
struct place_run {
    const char *policy;
    uint64_t seed;
    uint64_t capacity;                                  /* thousandths of GPUs */
    struct place_sample samples[PLACE_PERCENT_MAX + 1]; /* by % of demand */
    uint64_t decisions;
    uint64_t failed;      /* dropped pods */
    int64_t decision_p50; /* nanoseconds */
    int64_t decision_p99;
    int64_t decision_max;
    int64_t took; /* nanoseconds of the whole replay */
};

/* Replays the trace once and blocks until it is done. Returns 0, BERTH_ERROR_INVALID (unknown
 * policy) or BERTH_ERROR_MEMORY; on an error *ret_run is undefined. */
int place_replay_run(const struct place_settings *settings, struct place_run *ret_run,
                     struct berth_error *error);

/* Compute the mean of the samples at a demand, in units of 10^-4 % of the GPUs. Return whether
 * there are samples. */
bool place_replay_allocated(const struct place_run *run, uint32_t percent, int64_t *ret_value);
bool place_replay_fragmented(const struct place_run *run, uint32_t percent, int64_t *ret_value);

#endif
