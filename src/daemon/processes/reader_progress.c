/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/processes/reader_progress.h"

#include "base/text/quantity.h"

/* A reader that makes no progress for this long, although no process keeps it asleep, is lost. */
#define SILENCE_MAX DURATION_SECOND

void reader_progress_begin(struct reader_progress *progress, const struct reader *reader,
                           int64_t now)
{
    struct reader_touch touch = reader_touch(reader);

    *progress = (struct reader_progress){
        .touch = touch,
        .sent_at = now,
        .touched_at = now,
        .silent_since = now,
        .looked_at = now,
        .processor = reader_processor_time(reader),
        .first_count = touch.count,
    };
}

bool reader_progress_is_same(const struct reader_progress *progress, const struct reader *reader)
{
    struct reader_touch touch = reader_touch(reader);

    return touch.pid == progress->touch.pid && touch.count == progress->touch.count;
}

/* Adds the time since the last look to the reader's present state. */
static void add_time(struct reader_progress *progress, const struct reader *reader,
                     enum reader_activity activity, int64_t now)
{
    if (activity == READER_STOPPED)
        progress->stopped += now - progress->looked_at;
    else if (activity == READER_SUSPENDED && reader_touch(reader).pid != 0)
        progress->suspended += now - progress->looked_at;
    progress->looked_at = now;
}

enum reader_verdict reader_progress_look(struct reader_progress *progress,
                                         const struct reader *reader, int64_t limit, int64_t now)
{
    enum reader_activity activity = reader_activity(reader);

    add_time(progress, reader, activity, now);
    if (!reader_progress_is_same(progress, reader)) {
        progress->touch = reader_touch(reader);
        progress->touched_at = progress->silent_since = now;
    } else if (now - progress->silent_since >= SILENCE_MAX &&
               (progress->touch.pid == 0 || activity != READER_SUSPENDED)) {
        return READER_LOST;
    } else if (now - progress->touched_at >= limit && activity != READER_SUSPENDED) {
        progress->touched_at = now; /* the reader waits for a CPU */
    } else if (now - progress->touched_at >= limit && progress->touch.pid != 0) {
        return READER_STALLS;
    }
    return READER_GOES_ON;
}

int64_t reader_progress_spent(const struct reader_progress *progress, const struct reader *reader,
                              int64_t now)
{
    struct reader_progress sum = *progress;

    add_time(&sum, reader, reader_activity(reader), now);
    return sum.suspended + reader_processor_time(reader) - sum.processor;
}

int64_t reader_progress_waited(const struct reader_progress *progress, const struct reader *reader,
                               int64_t now)
{
    struct reader_progress sum = *progress;

    add_time(&sum, reader, reader_activity(reader), now);
    return sum.suspended + sum.stopped + reader_processor_time(reader) - sum.processor;
}

uint32_t reader_progress_accesses(const struct reader_progress *progress,
                                  const struct reader *reader)
{
    return reader_touch(reader).count - progress->first_count;
}
