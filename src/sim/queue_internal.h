/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of a replay share. Only for them.
 */
#ifndef SIM_QUEUE_INTERNAL_H
#define SIM_QUEUE_INTERNAL_H

#include "engine/engine.h"
#include "sim/queue_replay.h"

/* A job on its way. */
struct queue_job {
    const struct trace_job *job;
    int64_t left;     /* of its duration */
    int64_t limit;    /* of the claim or lease it has now; TIME_NEVER: it says none */
    int64_t claimed;  /* when the claim was made that it has now */
    int64_t promised; /* the earliest start that this claim was ever promised; TIME_NEVER: none */
    int64_t waited;   /* in all claims before */
    int64_t ends;     /* of its lease */
    uint64_t lease;   /* 0: waits, or is gone */
    size_t shape;     /* of the shapes: how many GPUs */
};

/* What jobs with the same number of GPUs ask for. */
struct queue_shape {
    uint32_t gpus;
    uint32_t replicas;
    bool failed; /* in the pass through a list that is under way: there is no room for it */
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
    struct queue_job_list running; /* a heap: who ends first, of equals by its place */
    struct queue_job_list back;    /* come back for their rest, now */
    struct queue_job_list waiting; /* of an order that the simulator keeps: who is served first */
    struct {
        VECTOR_OF(uint64_t); /* leases that the engine told of and that nobody looked at yet */
    } granted;
    bool out_of_memory; /* while being told */
    uint64_t promised;
    uint64_t broken;
    int64_t last_end;
};

/* Opens the request of a job's claim, which the caller closes. */
int queue_replay_open_request(struct queue_replay *replay, const struct queue_job *job,
                              struct engine_request **ret_request, struct berth_error *error);

/* The job has a lease since `now`. Returns 0 or BERTH_ERROR_MEMORY. */
int queue_replay_start_job(struct queue_replay *replay, struct queue_job *job, uint64_t lease,
                           int64_t now, struct berth_error *error);

/* A claim was promised this start; TIME_NEVER: none. */
void queue_replay_record_promise(struct queue_replay *replay, struct queue_job *job, int64_t start);

/* ---- An order that the simulator keeps itself (queue_list.c) ---- */

/* Puts a job that just came into the list. Returns 0 or BERTH_ERROR_MEMORY. */
int queue_orders_insert(struct queue_replay *replay, struct queue_job *job,
                        struct berth_error *error);
/* Starts whoever fits, in order, and notes what the engine would promise the first of the others.
 */
int queue_orders_serve(struct queue_replay *replay, struct berth_error *error);

#endif
