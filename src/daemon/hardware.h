/* SPDX-License-Identifier: Apache-2.0
 *
 * The hardware as the loop sees it: berth-probe, which is asked now and then and whose answers are
 * reports. It may hang or die: it is given up then, and another one started after a while. A pool
 * of an inventory has none of this.
 */
#ifndef DAEMON_HARDWARE_H
#define DAEMON_HARDWARE_H

#include "base/text/quantity.h"
#include "daemon/pool.h"
#include "model/machine/machine_report.h"

/* How often the hardware is looked at: while somebody watches, which is for so long after a look at
 * the devices; while anything is leased or waits; and otherwise. */
#define HARDWARE_WATCHED_FOR   (5 * DURATION_SECOND)
#define HARDWARE_WATCHED_EVERY DURATION_SECOND
#define HARDWARE_BUSY_EVERY    (10 * DURATION_SECOND)
#define HARDWARE_IDLE_EVERY    DURATION_MINUTE

/* A probe that was lost is started again after the first of these, then after twice as long each
 * time, up to the second. */
#define HARDWARE_RESTART_FIRST DURATION_SECOND
#define HARDWARE_RESTART_LAST  DURATION_MINUTE

/* How long a daemon that starts waits for the first report, at most, and for one that is more than
 * "no answer yet": who started it waits for 10 s. */
#define HARDWARE_START_TIMEOUT (8 * DURATION_SECOND)

/* A claim is decided by a look that is no older, so that nobody is put beside a process that has no
 * lease. */
#define HARDWARE_FRESH_FOR DURATION_SECOND
/* The same for one that is about a process that may just have begun to use devices. */
#define HARDWARE_NEW_FOR (DURATION_SECOND / 10)

/* The time from one look to the next. */
int64_t hardware_interval(bool watched, bool busy);
/* The time until a probe is started again that was lost `failures` times in a row, 1 or more. */
int64_t hardware_restart_after(unsigned failures);

/* Makes pool->hardware, starts the probe and asks for the first report. A probe that cannot be
 * started is tried again later. Fails with BERTH_ERROR_MEMORY. */
int hardware_open(struct pool *pool, struct berth_error *error);
void hardware_finish(struct pool *pool);

/* Waits for the first report, and no longer than a daemon may that starts. */
void hardware_await(struct pool *pool);
/* How many devices the first report has; 0 without one. */
size_t hardware_first_count(const struct pool *pool);
/* Takes the first report into the engine, which stays paused. */
void hardware_take_first(struct pool *pool);

/* Somebody looks at the devices. */
void hardware_watched(struct pool *pool);

/* Before a claim or a test is decided: whether there is a look to be waited for, which is asked for
 * if nobody has. Not where processes without a lease do not matter, or nobody answers. `anew`: it
 * is to be new, not only fresh. */
bool hardware_must_look(struct pool *pool, bool anew);
/* Whether that has not come yet. */
bool hardware_is_awaited(const struct pool *pool);

/* How many looks have ended, one way or the other. */
uint64_t hardware_looks(const struct pool *pool);
/* How many will have when all that is being handed over now was looked at; 0: nothing is. */
uint64_t hardware_looks_needed(const struct pool *pool);

/* Whether there is somebody to be asked about the devices. */
bool hardware_answers(const struct pool *pool);

/* Before each wait: sets the time of what is to be done next. */
void hardware_schedule(struct pool *pool);

/* What went wrong in the last look; NULL: nobody looks. */
const struct problem_list *hardware_problems(const struct pool *pool);

/* Where an error says that there are no devices, adds what may be the reason. */
void hardware_explain(const struct pool *pool, struct berth_error *error);

#endif
