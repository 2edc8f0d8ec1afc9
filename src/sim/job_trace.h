/* SPDX-License-Identifier: Apache-2.0
 *
 * A trace of jobs: when each was submitted, how long it ran and on how many GPUs. Columns by their
 * names: `timestamp` (2017-10-09 07:01:55, UTC, or seconds), `duration` (seconds), `num_gpus`. Rows
 * may stand in any order.
 */
#ifndef SIM_JOB_TRACE_H
#define SIM_JOB_TRACE_H

#include <berth/error.h>
#include <stdint.h>

#include "base/vector.h"

/* More than any trace has: seconds of a job, and of a time. Sums of all waits have to fit. */
#define JOB_SECONDS_MAX 1000000000
#define JOB_ARRIVAL_MAX 4000000000

struct trace_job {
    int64_t arrival;  /* nanoseconds */
    int64_t duration; /* nanoseconds, at least 1 */
    uint32_t gpus;    /* at least 1 */
    uint32_t line;    /* of the file */
};

struct job_list {
    VECTOR_OF(struct trace_job); /* as they come; of those that come at once as the file has them */
};

/* Reads a trace. Fails as trace_csv_open does, or with BERTH_ERROR_INVALID and FILE:LINE; *ret_jobs
 * is untouched then. A file without jobs is refused. The caller finishes the list. */
int job_trace_read(const char *path, struct job_list *ret_jobs, struct berth_error *error);

#endif
