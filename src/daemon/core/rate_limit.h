/* SPDX-License-Identifier: Apache-2.0
 *
 * A token bucket that fills at an even rate. Its content is measured in time, so that one number is
 * enough: the time at which the bucket is full again. Times are nanoseconds of any clock that never
 * goes back.
 */
#ifndef DAEMON_CORE_RATE_LIMIT_H
#define DAEMON_CORE_RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed memory is a full bucket. */
struct rate_limit {
    int64_t full_at;
};

/* Takes the amount that flows in during `time`. The content may become negative. */
static inline void rate_limit_take(struct rate_limit *bucket, int64_t now, int64_t time)
{
    bucket->full_at = (bucket->full_at > now ? bucket->full_at : now) + time;
}

/* Returns the time from which the content is positive, for a bucket that fills in `size`. */
static inline int64_t rate_limit_ready_at(const struct rate_limit *bucket, int64_t size)
{
    return bucket->full_at - size;
}

static inline bool rate_limit_is_full(const struct rate_limit *bucket, int64_t now)
{
    return bucket->full_at <= now;
}

static inline void rate_limit_fill(struct rate_limit *bucket)
{
    bucket->full_at = 0;
}

#endif
