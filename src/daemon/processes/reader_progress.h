/* SPDX-License-Identifier: Apache-2.0
 *
 * The progress of a reader of /proc with one request. Distinguishes a reader that is slow because
 * the machine is busy from a reader that a process keeps asleep: only the second one's time counts.
 */
#ifndef DAEMON_PROCESSES_READER_PROGRESS_H
#define DAEMON_PROCESSES_READER_PROGRESS_H

#include <stdint.h>

#include "reader/reader.h"

enum reader_verdict {
    READER_GOES_ON,
    READER_STALLS, /* it has been in the access of `touch` for longer than the limit */
    READER_LOST,   /* no process keeps it asleep, but it does nothing: it may have been stopped */
};

struct reader_progress {
    struct reader_touch touch; /* at the last look */
    int64_t sent_at;           /* the request */
    int64_t touched_at;        /* the start of the present access */
    int64_t silent_since;      /* the last sign of life */
    int64_t looked_at;
    int64_t suspended;    /* how long processes have kept it asleep, up to the last look */
    int64_t stopped;      /* how long it was stopped, up to the last look */
    int64_t processor;    /* its processor time when the request was sent */
    uint32_t first_count; /* its count of accesses when the request was sent */
};

/* Notes that the request is sent now. All times are the loop's. */
void reader_progress_begin(struct reader_progress *progress, const struct reader *reader,
                           int64_t now);

/* Looks at the reader, at least every 20 ms. `limit` is for one access. */
enum reader_verdict reader_progress_look(struct reader_progress *progress,
                                         const struct reader *reader, int64_t limit, int64_t now);

/* Returns whether the reader is still in the access of the last look. */
bool reader_progress_is_same(const struct reader_progress *progress, const struct reader *reader);

/* Returns the time that the request has taken so far: the reader's time on a CPU, and the time that
 * processes kept it asleep. */
int64_t reader_progress_spent(const struct reader_progress *progress, const struct reader *reader,
                              int64_t now);

/* Returns the same, plus the time that the reader was stopped. Only the time that it waited for a
 * CPU is missing. */
int64_t reader_progress_waited(const struct reader_progress *progress, const struct reader *reader,
                               int64_t now);

/* Returns the number of accesses to processes so far. */
uint32_t reader_progress_accesses(const struct reader_progress *progress,
                                  const struct reader *reader);

#endif
