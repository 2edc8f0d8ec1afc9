/* SPDX-License-Identifier: Apache-2.0
 *
 * The workers of the supervisor and what they are at. Tasks of one lane are done in order, by one
 * worker, until one of them takes too long: then another worker goes on with the next while that
 * one is waited for, and its own task is "stuck". A worker that dies costs the task that it was at.
 */
#ifndef HARDWARE_SUPERVISOR_WORKERS_H
#define HARDWARE_SUPERVISOR_WORKERS_H

#include <berth/error.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/text/text.h"
#include "hardware/supervisor/task_codec.h"
#include "hardware/vendors.h"

/* A step that is to be done; lives in the struct of whoever wants it. Zeroed memory is none. */
struct task {
    enum step_kind kind;
    enum vendor vendor;
    unsigned lane;
    int64_t timeout;
    bool carried; /* it was stuck already when this request came, which does not wait for it */

    /* The crew's. */
    struct list_link in_lane; /* while it waits */
    struct text packet;
    size_t about; /* how many devices it is about */
    bool waits;
    bool runs;
    bool stuck; /* it runs, and another worker has gone on without it */
};

struct worker_process;

struct workers {
    const struct sysroot *root;
    const struct vendor_table *const *tables;
    struct list lanes[LANES]; /* tasks that wait */
    struct {
        VECTOR_OF(struct worker_process *);
    } active;
    struct {
        VECTOR_OF(pid_t);
    } abandoned; /* killed, and not known to have ended */

    /* A task is over; the callee takes what it wants of the result. It may add tasks. */
    void (*done)(void *context, struct task *task, struct step_result *result);
    /* A task has become stuck. It may add tasks. */
    void (*stalled)(void *context, struct task *task);
    void *context;
};

void workers_init(struct workers *workers, const struct sysroot *root,
                  const struct vendor_table *const *tables);
/* Kills all workers and forgets all tasks. */
void workers_finish(struct workers *workers);

/* Adds a task that is neither waiting nor running. Returns 0, BERTH_ERROR_INVALID or _MEMORY. */
int workers_add_task(struct workers *workers, struct task *task, const struct step *step);

/* Takes a task out again that waits, or is done with nobody caring if it runs. */
void workers_cancel_task(struct workers *workers, struct task *task);

/* Returns whether the task waits or runs, and is not stuck. */
bool workers_is_busy(const struct task *task);

/* What to poll for: fills in at most `most`, one for each worker, and returns how many there are.
 */
size_t workers_fill_pollfds(const struct workers *workers, struct pollfd *ret_waiting, size_t max);

/* Does what is due: results that have come, workers that died, tasks that take too long, tasks that
 * wait. `now` is clock_now(). */
void workers_run(struct workers *workers, int64_t now);

/* When workers_run has something to do though nothing has come; INT64_MAX: never. */
int64_t workers_next_time(const struct workers *workers);

#endif
