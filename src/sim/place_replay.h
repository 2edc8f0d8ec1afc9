/* SPDX-License-Identifier: Apache-2.0
 *
 * The protocol of 'berth sim place': the pods of a trace arrive one by one and never leave; one
 * that does not fit is dropped. The engine that gives out devices decides, by one policy. After
 * each arrival a sample is taken: how much of the GPUs is given out, and how much of the rest could
 * not be used. The value at X % is the mean of the samples at which the demand that has arrived,
 * dropped pods included, rounds to X % of the GPUs.
 */
#ifndef SIM_PLACE_REPLAY_H
#define SIM_PLACE_REPLAY_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/pod_trace.h"
#include "sim/typical_pods.h"

/* The most demand that is replayed, in % of the GPUs. */
#define PLACE_PERCENT_MAX 1000
/* Tune is counted in thousandths: 1300 is 130 %. */
#define PLACE_TUNE_DECIMALS 3
#define PLACE_TUNE_MAX      (PLACE_PERCENT_MAX * 10)
/* Results are counted in units of 10^-4 %. */
#define PLACE_DECIMALS 4

/* At which demand results are told, in %. */
enum { PLACE_POINTS = 7 };
extern const uint32_t place_points[PLACE_POINTS];

struct place_settings {
    const struct pod_trace *trace;
    const struct typical_pods *typical;
    const char *policy;
    uint64_t seed;
    uint32_t tune;      /* how far the demand goes, in thousandths of the GPUs */
    bool shuffled_ties; /* equals by an order of the nodes that is drawn, not by name */

    /* Optional: is told now and then how many of the arrivals have been dealt with. */
    void (*progress)(void *context, size_t done, size_t of);
    void *context;
};

/* The samples at one demand. */
struct place_sample {
    uint64_t count;
    uint64_t allocated; /* sum: thousandths of GPUs */
    double fragmented;  /* sum: thousandths of GPUs; only at place_points */
};

/* What came of one replay. */
struct place_run {
    const char *policy;
    uint64_t seed;
    uint64_t capacity;                                  /* thousandths of GPUs */
    struct place_sample samples[PLACE_PERCENT_MAX + 1]; /* by % of demand */
    uint64_t decisions;
    uint64_t failed;      /* of them: pods that were dropped */
    int64_t decision_p50; /* nanoseconds */
    int64_t decision_p99;
    int64_t decision_max;
    int64_t took; /* nanoseconds, from an empty engine to the last arrival */
};

/* Replays the trace once. Fails with BERTH_ERROR_INVALID (no such policy) or _MEMORY; *ret_run is
 * undefined then. Blocks until it is through. */
int place_replay_run(const struct place_settings *settings, struct place_run *ret_run,
                     struct berth_error *error);

/* The mean of the samples at a demand, in units of 10^-4 % of the GPUs. Returns whether there are
 * any. */
bool place_replay_allocated(const struct place_run *run, uint32_t percent, int64_t *ret_value);
bool place_replay_fragmented(const struct place_run *run, uint32_t percent, int64_t *ret_value);

#endif
