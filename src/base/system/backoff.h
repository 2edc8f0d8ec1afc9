/* SPDX-License-Identifier: Apache-2.0
 *
 * Trying again for a limited time, with pauses that grow. Zeroed memory has not begun.
 */
#ifndef BASE_SYSTEM_BACKOFF_H
#define BASE_SYSTEM_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/system/clock.h"

#define BACKOFF_FIRST INT64_C(5000000)
#define BACKOFF_MAX   INT64_C(500000000)

struct backoff {
    int64_t until; /* 0: not begun */
    int64_t step;
};

static inline void backoff_begin(struct backoff *backoff, int64_t time)
{
    backoff->until = clock_after(clock_now(), time);
    backoff->step = BACKOFF_FIRST;
}

/* Pauses; a signal cuts it short. Returns false at once when the time is over. */
static inline bool backoff_pause(struct backoff *backoff)
{
    int64_t left = backoff->until - clock_now();
    int64_t pause = backoff->step < left ? backoff->step : left;
    struct timespec time = {pause / 1000000000, pause % 1000000000};

    if (left <= 0)
        return false;
    nanosleep(&time, NULL);
    backoff->step *= 2;
    if (backoff->step > BACKOFF_MAX)
        backoff->step = BACKOFF_MAX;
    return true;
}

#endif
