/* SPDX-License-Identifier: Apache-2.0
 *
 * Retries with growing pauses. Any thread may call these.
 */
#ifndef BASE_SYSTEM_BACKOFF_H
#define BASE_SYSTEM_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/system/clock.h"

/* The pauses of struct backoff, in nanoseconds. */
#define BACKOFF_PAUSE_MIN INT64_C(5000000)
#define BACKOFF_PAUSE_MAX INT64_C(500000000)

/* Returns the pause that follows `pause`: twice as long, but at least `min` and at most `max`. The
 * pause before the first retry is 0. */
static inline int64_t backoff_next(int64_t pause, int64_t min, int64_t max)
{
    if (pause < min)
        return min;
    return pause < max / 2 ? 2 * pause : max;
}

/* Retries for a limited time. Call backoff_begin() before backoff_sleep(). */
struct backoff {
    int64_t until;     /* end of the retries, by clock_now(); 0: backoff_begin() was not called */
    int64_t pause;     /* the last pause; 0: none yet */
    int64_t pause_max; /* the longest pause */
};

/* Starts the retries, which end after `time` nanoseconds. */
static inline void backoff_begin(struct backoff *backoff, int64_t time, int64_t pause_max)
{
    *backoff = (struct backoff){
        .until = clock_after(clock_now(), time),
        .pause_max = pause_max,
    };
}

/* Sleeps until the next retry, or until a signal arrives. Returns false at once when the time is
 * over. */
static inline bool backoff_sleep(struct backoff *backoff)
{
    int64_t left = backoff->until - clock_now();
    int64_t pause;

    if (left <= 0)
        return false;
    backoff->pause = backoff_next(backoff->pause, BACKOFF_PAUSE_MIN, backoff->pause_max);
    pause = backoff->pause < left ? backoff->pause : left;
    nanosleep(&(struct timespec){pause / 1000000000, pause % 1000000000}, NULL);
    return true;
}

#endif
