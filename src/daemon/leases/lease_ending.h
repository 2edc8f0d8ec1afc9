/* SPDX-License-Identifier: Apache-2.0
 *
 * Ends leases. The holder gets notice (a message, or SIGTERM) and a grace; then all processes of
 * the lease are killed. The lease keeps its devices until none of its processes is left.
 *
 * Nothing here blocks. All functions belong to the loop's thread. They may end jobs in the engine,
 * so the caller calls engine_events_settle() afterwards, which frees these jobs.
 */
#ifndef DAEMON_LEASES_LEASE_ENDING_H
#define DAEMON_LEASES_LEASE_ENDING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text/quantity.h"
#include "model/pool_info.h"

struct job;
struct pool;
struct timer;

/* The maximum time that the answer to a RELEASE waits for a search. */
#define LEASE_ENDING_ANSWER (DURATION_SECOND / 20)

/* Begins to end the lease: the holder gets notice, and must release the lease by `force_at` (the
 * pool's time). Of several calls, the first reason and the earliest time count. */
void lease_ending_begin(struct pool *pool, struct job *job, enum lease_end end, int64_t force_at);

/* Sends the notice to the job's client, which must be connected. */
void lease_ending_send_notice(const struct pool *pool, const struct job *job, enum lease_end end,
                              int64_t force_at);

/* Must be called when a client hangs up whose job keeps its lease. A process that got its notice as
 * a message gets SIGTERM. */
void lease_ending_client_gone(struct pool *pool, struct job *job);

/* Notes that this process asked for the end of the lease. If it belongs to the lease, it is killed
 * only after it had time to read the answer. */
void lease_ending_asked(struct pool *pool, struct job *job, pid_t pid);

/* Answers the RELEASE `number` of the lease when the search for its processes is over, but after
 * LEASE_ENDING_ANSWER at the latest. So the devices are usually free when the client gets the
 * answer. Returns false if no search runs: then the caller answers. */
bool lease_ending_answer_later(struct pool *pool, struct job *job, uint64_t number);
/* The function of the timer lease_watch.release_timer. */
void lease_ending_release_due(struct timer *timer);

/* Kills the processes of the lease. A lease that a connection holds ends at once. */
void lease_ending_force(struct pool *pool, struct job *job);
/* The function of the timer lease_watch.force. */
void lease_ending_force_due(struct timer *timer);

/* Ends a lease whose holder is gone. Searches for the processes that it left, while the probe reads
 * the devices, and ends them; then the lease is over. A lease that a connection holds is over at
 * once. Does nothing if a search runs already. */
void lease_ending_holder_gone(struct pool *pool, struct job *job);

/* Ends the lease in the engine, because none of its processes is left. The devices are handed over
 * (leases/handover.h). */
void lease_ending_done(struct pool *pool, struct job *job);

/* Watches the process that holds the lease. Takes `descriptor`, a pidfd; -1: the process is gone.
 * Returns false if it is gone or cannot be watched. */
bool lease_ending_watch(struct pool *pool, struct job *job, int descriptor);

/* Notes whether the watched process, which was unconfirmed, is the holder. If it is not, it gets no
 * signals, and the lease ends. */
void lease_ending_confirm(struct pool *pool, struct job *job, bool is_holder);

#endif
