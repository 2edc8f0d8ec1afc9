/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker processes of the supervisor and their tasks. One worker executes the tasks of a lane
 * in order. If a task exceeds its timeout, the task is "stuck": another worker continues with the
 * next task, while the first worker is still awaited. A worker that dies costs only its task.
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
#include "hardware/sysfs/sysroot.h"
#include "hardware/vendors.h"

/* A step for a worker, embedded in the struct that needs its result. Zeroed memory is a task that
 * neither waits nor runs. */
struct task {
    enum step_kind kind;
    enum vendor vendor;
    unsigned lane;
    int64_t timeout;
    bool carried; /* it was stuck when the current request arrived; the request does not wait for it
                   */

    /* The following members belong to workers.c. */
    struct list_link in_lane; /* while it waits */
    struct text packet;
    size_t about; /* number of devices in the step */
    bool waits;
    bool runs;
    bool stuck; /* it runs, and another worker continues the lane */
};

struct worker_process;

struct workers {
    const struct sysroot *root;
    const struct vendor_table *const *tables;
    struct list lanes[LANES]; /* waiting tasks */
    struct {
        VECTOR_OF(struct worker_process *);
    } active;
    struct {
        VECTOR_OF(pid_t);
    } abandoned; /* killed, but not reaped yet */

    /* Called when a task has ended. May take over parts of the result and may add tasks. */
    void (*done)(void *context, struct task *task, struct step_result *result);
    /* Called when a task has become stuck. May add tasks. */
    void (*stalled)(void *context, struct task *task);
    void *context;
};

void workers_init(struct workers *workers, const struct sysroot *root,
                  const struct vendor_table *const *tables);
/* Kills all workers and drops all tasks. */
void workers_finish(struct workers *workers);

/* Adds a task that neither waits nor runs. Returns 0, BERTH_ERROR_INVALID or _MEMORY. */
int workers_add_task(struct workers *workers, struct task *task, const struct step *step);

/* Cancels a task. If it runs, its worker finishes it and the result is dropped. */
void workers_cancel_task(struct workers *workers, struct task *task);

/* Returns whether the task waits or runs, and is not stuck. */
bool workers_is_busy(const struct task *task);

/* Fills in at most `max` entries for poll(), one for each worker. Returns the number of workers. */
size_t workers_fill_pollfds(const struct workers *workers, struct pollfd *ret_waiting, size_t max);

/* Handles everything that is due: received results, dead workers, exceeded timeouts, waiting tasks.
 * `now` is clock_now(). Calls `done` and `stalled`. */
void workers_run(struct workers *workers, int64_t now);

/* Returns when workers_run() must be called even if poll() reports nothing; INT64_MAX: never. */
int64_t workers_next_time(const struct workers *workers);

/* A worker process (worker.c). It executes the steps of a lane in order. It is restricted
 * (sandbox/sandbox.h): only workers that read /proc have capabilities, and those only read. If a
 * driver or library hangs or crashes a worker, the supervisor continues. `touched` is shared memory
 * in which a worker says which process it touches; NULL: none.
 *
 * Forks a worker that reads steps from a socket and writes results to it (probe/probe_channel.h).
 * The caller closes *ret_socket, which ends the worker. The kernel kills the worker if the caller
 * ends. `tables` ends with NULL. Returns the worker's process id, which the caller reaps, or a
 * negative errno. The caller must have only one thread. */
int worker_start(const struct sysroot *root, const struct vendor_table *const *tables,
                 unsigned lane, proc_touched *touched, int *ret_socket);

/* Returns whether the workers of this lane read /proc. They call no driver and load no library. */
bool worker_reads_proc(unsigned lane);

#endif
