/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/queue_replay.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/count.h"
#include "base/error.h"
#include "base/text/quantity.h"
#include "model/request.h"
#include "sim/trace_csv.h"

enum job_column { COLUMN_TIMESTAMP, COLUMN_DURATION, COLUMN_GPUS };

static const struct trace_csv_column columns[] = {
    [COLUMN_TIMESTAMP] = {.name = "timestamp"},
    [COLUMN_DURATION] = {.name = "duration"},
    [COLUMN_GPUS] = {.name = "num_gpus"},
};

/* Seconds are parsed to the nanosecond. */
enum { SECOND_DECIMALS = 9 };

/* Parses a date and a time of day. Refuses a date that does not exist, such as February 30. */
static bool read_date(const char *string, int64_t *ret_time)
{
    struct tm given = {0};
    struct tm there;
    const char *end = strptime(string, "%Y-%m-%d %H:%M:%S", &given);
    time_t seconds;

    if (end == NULL || *end != '\0')
        return false;
    there = given;
    seconds = timegm(&there); /* normalises a date that does not exist */
    if (seconds < 0 || seconds > JOB_ARRIVAL_MAX || there.tm_mday != given.tm_mday ||
        there.tm_sec != given.tm_sec)
        return false;
    *ret_time = (int64_t)seconds * DURATION_SECOND;
    return true;
}

static int read_arrival(const struct trace_csv *csv, int64_t *ret_time, struct berth_error *error)
{
    const char *string = trace_csv_text(csv, COLUMN_TIMESTAMP);
    uint64_t time;
    int code;

    if (strchr(string, '-') == NULL) {
        code = trace_csv_decimal(csv, COLUMN_TIMESTAMP, SECOND_DECIMALS,
                                 (uint64_t)JOB_ARRIVAL_MAX * DURATION_SECOND, &time, error);
        if (code == 0)
            *ret_time = (int64_t)time;
        return code;
    }
    if (read_date(string, ret_time))
        return 0;
    return trace_csv_fail(csv, error, "timestamp: expected a time (2017-10-09 07:01:55), got '%s'",
                          string);
}

static int read_job(const struct trace_csv *csv, struct trace_job *job, struct berth_error *error)
{
    uint64_t duration = 0;
    uint64_t gpus = 0;
    int code = read_arrival(csv, &job->arrival, error);

    if (code == 0)
        code = trace_csv_decimal(csv, COLUMN_DURATION, SECOND_DECIMALS,
                                 (uint64_t)JOB_SECONDS_MAX * DURATION_SECOND, &duration, error);
    if (code == 0)
        code = trace_csv_number(csv, COLUMN_GPUS, 1, REQUEST_COUNT_MAX, &gpus, error);
    if (code < 0)
        return code;
    if (duration == 0)
        return trace_csv_fail(csv, error, "duration: expected more than 0, got '%s'",
                              trace_csv_text(csv, COLUMN_DURATION));
    job->duration = (int64_t)duration;
    job->gpus = (uint32_t)gpus;
    job->line = (uint32_t)csv->line;
    return 0;
}

static int compare_jobs(const void *one, const void *other)
{
    const struct trace_job *first = one;
    const struct trace_job *second = other;

    if (first->arrival != second->arrival)
        return first->arrival < second->arrival ? -1 : 1;
    return (first->line > second->line) - (first->line < second->line);
}

static int read_jobs(struct trace_csv *csv, struct job_list *jobs, struct berth_error *error)
{
    int code;

    while ((code = trace_csv_next(csv, error)) > 0) {
        struct trace_job *job = vector_append(jobs);

        if (job == NULL)
            return error_set_memory(error);
        code = read_job(csv, job, error);
        if (code < 0)
            return code;
    }
    if (code == 0 && jobs->count == 0)
        return trace_csv_fail(csv, error, "expected at least one job, got none");
    return code;
}

int job_trace_read(const char *path, struct job_list *ret_jobs, struct berth_error *error)
{
    struct job_list jobs = {0};
    struct trace_csv csv = {0};
    int code = trace_csv_open(path, columns, COUNT(columns), &csv, error);

    if (code == 0)
        code = read_jobs(&csv, &jobs, error);
    trace_csv_finish(&csv);
    if (code < 0) {
        vector_finish(&jobs);
        return code;
    }
    if (jobs.count > 0)
        qsort(jobs.items, jobs.count, sizeof(*jobs.items), compare_jobs);
    *ret_jobs = jobs;
    return 0;
}
