/* SPDX-License-Identifier: Apache-2.0
 *
 * How a reader of /proc gets on with one request. A reader that is slow because the machine is busy
 * is told from one that a process keeps asleep: only the latter's time counts.
 */
#ifndef DAEMON_PROCESSES_READER_PROGRESS_H
#define DAEMON_PROCESSES_READER_PROGRESS_H

#include <stdint.h>

#include "reader/reader.h"

enum reader_verdict {
    READER_GOES_ON,
    READER_STALLS, /* in the access of `touch`, for longer than the limit */
    READER_LOST,   /* no process keeps it, but it does nothing: it may have been stopped */
};

struct reader_progress {
    struct reader_touch touch; /* at the last look */
    int64_t sent_at;           /* the request */
    int64_t touched_at;        /* since then it is in the same access */
    int64_t silent_since;      /* the last sign of life */
    int64_t looked_at;
    int64_t suspended;    /* so long processes have kept it asleep, up to the last look */
    int64_t stopped;      /* so long it was stopped, likewise */
    int64_t processor;    /* its processor time when the request was sent */
    uint32_t first_count; /* of accesses, likewise */
};

/* The request is sent now; all times are the loop's. */
void reader_progress_begin(struct reader_progress *progress, const struct reader *reader,
                           int64_t now);

/* Looks at the reader, at least every 20 ms. `limit` is for one access. */
enum reader_verdict reader_progress_look(struct reader_progress *progress,
                                         const struct reader *reader, int64_t limit, int64_t now);

/* Returns whether the reader is still in the access of the last look. */
bool reader_progress_is_same(const struct reader_progress *progress, const struct reader *reader);

/* Returns the time that the request has taken so far: on a CPU, and kept asleep by processes. */
int64_t reader_progress_spent(const struct reader_progress *progress, const struct reader *reader,
                              int64_t now);

/* Returns the same with the time that the reader was stopped: all but its time in the queue for a
 * CPU. */
int64_t reader_progress_waited(const struct reader_progress *progress, const struct reader *reader,
                               int64_t now);

/* Returns the number of accesses to processes so far. */
uint32_t reader_progress_accesses(const struct reader_progress *progress,
                                  const struct reader *reader);

#endif
