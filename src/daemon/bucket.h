/* SPDX-License-Identifier: Apache-2.0
 *
 * How often something may happen: a bucket that fills at an even pace and that every happening
 * takes something out of. What is in it is measured in time, so that it needs only one number: when
 * it will be full again. Times are nanoseconds of any clock that goes on.
 */
#ifndef DAEMON_BUCKET_H
#define DAEMON_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed memory is a full one. */
struct bucket {
    int64_t full_at;
};

/* Takes what it needs `time` to fill up with; it may then hold less than nothing. */
static inline void bucket_take(struct bucket *bucket, int64_t now, int64_t time)
{
    bucket->full_at = (bucket->full_at > now ? bucket->full_at : now) + time;
}

/* When there is something in a bucket again that needs `size` to fill up from nothing; now or in
 * the past: there is. */
static inline int64_t bucket_ready_at(const struct bucket *bucket, int64_t size)
{
    return bucket->full_at - size;
}

static inline bool bucket_is_full(const struct bucket *bucket, int64_t now)
{
    return bucket->full_at <= now;
}

static inline void bucket_fill(struct bucket *bucket)
{
    bucket->full_at = 0;
}

#endif
