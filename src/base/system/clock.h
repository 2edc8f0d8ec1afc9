/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the kernel's clocks, in nanoseconds. Any thread may call these.
 */
#ifndef BASE_SYSTEM_CLOCK_H
#define BASE_SYSTEM_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_read(clockid_t which)
{
    struct timespec now;

    clock_gettime(which, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Reads CLOCK_MONOTONIC. */
static inline int64_t clock_now(void)
{
    return clock_read(CLOCK_MONOTONIC);
}

/* Reads CLOCK_MONOTONIC several times faster, but up to a few milliseconds late. */
static inline int64_t clock_now_coarse(void)
{
    return clock_read(CLOCK_MONOTONIC_COARSE);
}

/* Returns now + wait, or INT64_MAX (never) when that does not fit. A negative wait counts as 0. */
static inline int64_t clock_after(int64_t now, int64_t wait)
{
    if (wait < 0)
        wait = 0;
    return wait > INT64_MAX - now ? INT64_MAX : now + wait;
}

#endif
