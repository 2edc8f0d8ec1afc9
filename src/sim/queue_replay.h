/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a trace of jobs, replays it with the engine on a cluster of equal nodes, and measures how
 * long the jobs wait (docs/FAIRNESS.md section 15). Time is simulated: it jumps from one event to
 * the next.
 *
 * A job with at most as many GPUs as a node runs on one node. A larger job is a gang of the fewest
 * equal replicas that fit on nodes. Time limits follow the estimate. A job that reaches its limit
 * is stopped and queued again at once for the rest of its time, with the right limit; its waiting
 * times add up.
 */
#ifndef SIM_QUEUE_REPLAY_H
#define SIM_QUEUE_REPLAY_H

#include <berth/error.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"
#include "model/policy.h"

/* Maximum duration of a job and maximum time of arrival, in seconds. The sum of all waits must fit
 * into int64_t. */
#define JOB_SECONDS_MAX 1000000000
#define JOB_ARRIVAL_MAX 4000000000

struct trace_job {
    int64_t arrival;  /* nanoseconds */
    int64_t duration; /* nanoseconds, at least 1 */
    uint32_t gpus;    /* at least 1 */
    uint32_t line;    /* in the file */
};

struct job_list {
    VECTOR_OF(struct trace_job); /* by arrival; equal arrivals in the order of the file */
};

/* Reads a trace with at least one job: the time of submission, the duration and the number of GPUs
 * of each job. The columns are `timestamp` (2017-10-09 07:01:55, UTC, or seconds), `duration`
 * (seconds) and `num_gpus`. Rows may be in any order. Returns 0, an error of trace_csv_open(), or
 * BERTH_ERROR_INVALID with FILE:LINE; on an error *ret_jobs stays as it is. The caller finishes the
 * list. */
int job_trace_read(const char *path, struct job_list *ret_jobs, struct berth_error *error);

enum queue_order {
    QUEUE_FIFO, /* the engine without time limits: no backfill */
    QUEUE_EASY, /* the engine as in a pool */
    QUEUE_SKIP, /* for comparison: every job that fits, in order of arrival */
    QUEUE_SJF,  /* for comparison: every job that fits, the shortest estimate first */
};

enum queue_estimate {
    QUEUE_EXACT, /* the limit is the duration */
    QUEUE_OVER3, /* three times that */
    QUEUE_UNDER, /* half of that */
};

enum { QUEUE_NODES_MAX = 100000, QUEUE_NODE_GPUS_MAX = 1024 };

struct queue_settings {
    uint32_t nodes;
    uint32_t gpus_per_node;
    enum queue_order order;
    enum queue_estimate estimate;
    const struct policy *policy; /* NULL: the engine's default */

    /* Optional: called from time to time with the number of ended jobs. */
    void (*progress)(void *context, size_t ended, size_t all);
    void *context;
};

struct queue_outcome {
    size_t jobs;
    int64_t wait_mean; /* nanoseconds, like the next three */
    int64_t wait_p50;  /* by nearest rank */
    int64_t wait_p99;
    int64_t wait_max;
    size_t longest;               /* index of the job that waited longest */
    uint64_t broken_reservations; /* claims that started later than their earliest promised start */
    uint64_t promised;            /* claims with a promised start */
    uint32_t utilization; /* millionths of all GPUs, from the first arrival to the last end */
};

/* Replays the jobs. `name` is their file's name, for messages. Returns 0, BERTH_ERROR_INVALID (a
 * job is too large for the cluster; with FILE:LINE), BERTH_ERROR_LIMIT or BERTH_ERROR_MEMORY. Pure
 * except for `progress`: the same jobs and settings always give the same outcome. */
int queue_replay(const char *name, const struct job_list *jobs,
                 const struct queue_settings *settings, struct queue_outcome *ret_outcome,
                 struct berth_error *error);

#endif
