/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the administrator's `notify` program, which gets messages for users and administrators. It
 * gets the message and its facts as variables of its environment. Nothing here blocks or waits for
 * the program; a failure is logged.
 */
#ifndef DAEMON_LEASES_NOTIFY_PROGRAM_H
#define DAEMON_LEASES_NOTIFY_PROGRAM_H

#include <berth/error.h>
#include <stdint.h>

struct device_process;
struct job;
struct pool;
struct text;

/* The maximum number of runs of the program at once, waiting ones included. Further messages are
 * dropped. */
enum { NOTIFY_PROGRAM_RUNS_MAX = 100 };

/* Creates pool->notify_program. Fails with BERTH_ERROR_MEMORY. */
int notify_program_init(struct pool *pool, struct berth_error *error);
/* Must be called after the pool's runner was destroyed. */
void notify_program_finish(struct pool *pool);

/* Reports an event of a lease, with the message "lease 7 (train) of uid 1000 on nvidia0 " and
 * `what`. `event` is a constant. */
void notify_program_lease(struct pool *pool, const struct job *job, const char *event,
                          const struct text *what);
/* Reports that the daemon itself drained the device. */
void notify_program_drained(struct pool *pool, uint32_t slot, const char *reason);
/* Reports that a process without a lease has begun to use the device. NULL: an unknown one. */
void notify_program_squatter(struct pool *pool, uint32_t slot,
                             const struct device_process *process);

#endif
