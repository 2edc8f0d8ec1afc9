/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a trace of jobs: the time of submission, the duration and the number of GPUs of each job.
 * The columns are `timestamp` (2017-10-09 07:01:55, UTC, or seconds), `duration` (seconds) and
 * `num_gpus`. Rows may be in any order.
 */
#ifndef SIM_JOB_TRACE_H
#define SIM_JOB_TRACE_H

#include <berth/error.h>
#include <stdint.h>

#include "base/vector.h"

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

/* Reads a trace with at least one job. Returns 0, an error of trace_csv_open(), or
 * BERTH_ERROR_INVALID with FILE:LINE; on an error *ret_jobs stays as it is. The caller finishes the
 * list. */
int job_trace_read(const char *path, struct job_list *ret_jobs, struct berth_error *error);

#endif
