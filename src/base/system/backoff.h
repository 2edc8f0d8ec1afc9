/* SPDX-License-Identifier: Apache-2.0
 *
 * Trying again for a limited time, with pauses that grow. Zeroed memory has not begun.
 */
#ifndef CLIENT_PATIENCE_H
#define CLIENT_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/system/clock.h"

#define PATIENCE_FIRST   INT64_C(5000000)
#define PATIENCE_LONGEST INT64_C(500000000)

struct patience {
    int64_t until; /* 0: not begun */
    int64_t step;
};

static inline void patience_begin(struct patience *patience, int64_t time)
{
    patience->until = clock_after(clock_now(), time);
    patience->step = PATIENCE_FIRST;
}

/* Pauses; a signal cuts it short. Returns false at once when the time is over. */
static inline bool patience_pause(struct patience *patience)
{
    int64_t left = patience->until - clock_now();
    int64_t pause = patience->step < left ? patience->step : left;
    struct timespec time = {pause / 1000000000, pause % 1000000000};

    if (left <= 0)
        return false;
    nanosleep(&time, NULL);
    patience->step *= 2;
    if (patience->step > PATIENCE_LONGEST)
        patience->step = PATIENCE_LONGEST;
    return true;
}

#endif
