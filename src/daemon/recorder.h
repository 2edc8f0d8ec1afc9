/* SPDX-License-Identifier: Apache-2.0
 *
 * The recorder, berth-recorder, a program that follows the pool as any reader does and writes down
 * its leases. Nothing of leasing ever waits for it, and no file of the history is touched by the
 * daemon itself: whatever becomes of a disk, only the recorder hangs with it. It is started by the
 * first lease, and again after it ended, with growing pauses. What goes wrong is a problem of the
 * pool, which people see.
 */
#ifndef DAEMON_RECORDER_H
#define DAEMON_RECORDER_H

#include "daemon/pool.h"

/* The pauses before it is started again, the time after which a life counts as a good one, and how
 * long it may take to ask again after it was answered: BERTH_RECORDER_TIMEOUT if that is set. */
#define RECORDER_RESTART_FIRST (DURATION_SECOND / 10)
#define RECORDER_RESTART_LAST  (60 * DURATION_SECOND)
#define RECORDER_GOOD_LIFE     (10 * DURATION_SECOND)
#define RECORDER_TIMEOUT       (30 * DURATION_SECOND)

/* How long after so many failures in a row it is started again. */
int64_t recorder_restart_after(unsigned failures);

/* With the rules there. */
int recorder_init(struct pool *pool, struct berth_error *error);
void recorder_finish(struct pool *pool);

/* The rules may be others now. */
void recorder_apply_rules(struct pool *pool);

/* There is something to be written down: a lease. Cheap, and never fails. */
void recorder_want(struct pool *pool);

/* Its connection: it has asked for news, was told some, is gone. */
void recorder_asked(struct pool *pool);
void recorder_answered(struct pool *pool);
void recorder_hung_up(struct pool *pool);

/* What is wrong with it; NULL: nothing. */
const struct problem_list *recorder_problems(const struct pool *pool);

#endif
