/* SPDX-License-Identifier: Apache-2.0
 *
 * Internals of queue_replay.c and queue_orders.c.
 */
#ifndef SIM_QUEUE_INTERNAL_H
#define SIM_QUEUE_INTERNAL_H

#include "engine/engine.h"
#include "sim/queue_replay.h"

/* A job in the simulation. */
struct queue_job {
    const struct trace_job *job;
    int64_t left;     /* rest of its duration */
    int64_t limit;    /* time limit of its claim or lease; TIME_NEVER: none */
    int64_t claimed;  /* time of its current claim */
    int64_t promised; /* the earliest start promised to this claim; TIME_NEVER: none */
    int64_t waited;   /* time waited in earlier claims */
    int64_t ends;     /* end of its lease */
    uint64_t lease;   /* 0: waiting or done */
    size_t shape;     /* index in the shapes */
};

/* The request of all jobs with the same number of GPUs. */
struct queue_shape {
    uint32_t gpus;
    uint32_t replicas;
    bool failed; /* it does not fit, in the current pass of queue_orders_serve() */
};

struct queue_job_list {
    VECTOR_OF(struct queue_job *);
};

struct queue_replay {
    const char *name;
    const struct queue_settings *settings;
    struct engine *engine;
    struct queue_job *jobs; /* in order of arrival */
    size_t job_count;
    size_t arrived;
    size_t ended;
    struct {
        VECTOR_OF(struct queue_shape);
    } shapes;
    struct queue_job_list running; /* a heap by end, then by index */
    struct queue_job_list back;    /* jobs that reached their limit and are requeued now */
    struct queue_job_list waiting; /* the simulator's own queue, in the order of service */
    struct {
        VECTOR_OF(uint64_t); /* leases that the engine granted, not handled yet */
    } granted;
    bool out_of_memory; /* an event handler found no memory */
    uint64_t promised;
    uint64_t broken;
    int64_t last_end;
};

/* Opens the request of a job's claim, which the caller closes. */
int queue_replay_open_request(struct queue_replay *replay, const struct queue_job *job,
                              struct engine_request **ret_request, struct berth_error *error);

/* Starts the job with its lease at `now`. Returns 0 or BERTH_ERROR_MEMORY. */
int queue_replay_start_job(struct queue_replay *replay, struct queue_job *job, uint64_t lease,
                           int64_t now, struct berth_error *error);

/* Records the start promised to the job's claim; TIME_NEVER: none. */
void queue_replay_record_promise(struct queue_replay *replay, struct queue_job *job, int64_t start);

/* ---- The simulator's own queue, for the orders skip and sjf (queue_orders.c) ---- */

/* Inserts a job into the queue. Returns 0 or BERTH_ERROR_MEMORY. */
int queue_orders_insert(struct queue_replay *replay, struct queue_job *job,
                        struct berth_error *error);
/* Starts all jobs that fit, in order, and records the start that the engine would promise to the
 * first of the others. */
int queue_orders_serve(struct queue_replay *replay, struct berth_error *error);

#endif
