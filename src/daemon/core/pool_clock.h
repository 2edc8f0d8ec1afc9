/* SPDX-License-Identifier: Apache-2.0
 *
 * The pool's time: nanoseconds since 1970 UTC as the first daemon of this boot read them, counted
 * on by CLOCK_BOOTTIME. Setting the machine's clock does not change it, and it goes on while the
 * machine is suspended. A restored pool continues with the time of the daemon before.
 */
#ifndef DAEMON_CORE_POOL_CLOCK_H
#define DAEMON_CORE_POOL_CLOCK_H

#include <stdint.h>

#include "daemon/core/loop.h"

struct pool_clock {
    const struct loop *loop;
    int64_t offset; /* from the loop's time to the pool's */
};

/* Makes a clock that shows the machine's time now. `loop` must live as long as the clock. */
void pool_clock_init(struct pool_clock *clock, const struct loop *loop);

/* Returns the time of this turn of the loop. */
int64_t pool_clock_now(const struct pool_clock *clock);

/* Converts a time of the pool to the loop's; TIME_NEVER becomes LOOP_NEVER. */
int64_t pool_clock_loop_time(const struct pool_clock *clock, int64_t time);

#endif
