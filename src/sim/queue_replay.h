/* SPDX-License-Identifier: Apache-2.0
 *
 * How long jobs wait: a trace of jobs through the engine, on a cluster of equal nodes and a clock
 * that jumps from one event to the next.
 *
 * A job of no more GPUs than a node has gets them on one node. A larger one is a gang: the fewest
 * equal replicas that a node has room for, all granted in one step. Time limits are what the
 * estimates say. A job that reaches its limit is ended there, and comes back at once for the rest
 * of its time, as a new claim with the right limit; what it waited for both is added up.
 */
#ifndef SIM_QUEUE_REPLAY_H
#define SIM_QUEUE_REPLAY_H

#include <berth/error.h>
#include <stddef.h>
#include <stdint.h>

#include "model/policy.h"
#include "sim/job_trace.h"

enum queue_order {
    QUEUE_FIFO, /* the engine, with no time limits: nobody passes */
    QUEUE_EASY, /* the engine as it is */
    QUEUE_SKIP, /* for comparison: in order of arrival, whoever fits; nobody waits in the engine */
    QUEUE_SJF,  /* the same, the shortest by its estimate first */
};

enum queue_estimate {
    QUEUE_EXACT, /* limits are what the jobs take */
    QUEUE_OVER3, /* three times that */
    QUEUE_UNDER, /* half of that */
};

/* More nodes and GPUs of one than anybody has. */
enum { QUEUE_NODES_MAX = 100000, QUEUE_NODE_GPUS_MAX = 1024 };

struct queue_settings {
    uint32_t nodes;
    uint32_t gpus_per_node;
    enum queue_order order;
    enum queue_estimate estimate;
    const struct policy *policy; /* NULL: the engine's usual one */

    /* Is told now and then how many jobs have ended; NULL: nobody wants to know. */
    void (*progress)(void *context, size_t ended, size_t all);
    void *context;
};

struct queue_outcome {
    size_t jobs;
    int64_t wait_mean; /* nanoseconds, as all of these */
    int64_t wait_p50;  /* by nearest rank */
    int64_t wait_p99;
    int64_t wait_max;
    size_t longest;               /* the job that waited longest */
    uint64_t broken_reservations; /* claims that started later than they were ever promised */
    uint64_t promised;            /* claims that had a start promised */
    uint32_t utilization;         /* millionths of all GPUs from first arrival to last end */
};

/* Replays the jobs. `name` is that of their file, for messages. Fails with BERTH_ERROR_INVALID (a
 * job that the cluster is too small for; with FILE:LINE), _LIMIT or _MEMORY. Pure but for
 * `progress`: the same jobs and settings always give the same outcome. */
int queue_replay(const char *name, const struct job_list *jobs,
                 const struct queue_settings *settings, struct queue_outcome *ret_outcome,
                 struct berth_error *error);

#endif
