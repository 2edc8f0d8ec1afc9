/* SPDX-License-Identifier: Apache-2.0 */
#include "record/recorder.h"

#include <errno.h>
#include <poll.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "record/recorder_internal.h"

/* The interval between two writes. Events of about this time are lost when all processes are
 * killed. */
#define NEWS_INTERVAL (DURATION_SECOND / 4)
/* While a lease is held, the file is updated at least this often. */
#define SEEN_INTERVAL (10 * DURATION_SECOND)
/* The interval of checks for old leases, and the pause between two steps of deleting them. */
#define FORGET_MAX   DURATION_HOUR
#define FORGET_MIN   DURATION_SECOND
#define FORGET_PAUSE (DURATION_SECOND / 10)
/* The longest timeout that poll takes. */
#define POLL_MAX (100000 * DURATION_SECOND)

/* ---- Reading ---- */

/* Remembers a lease that is part of a sum if the file lists it as held. */
static void note_summed(struct recorder *recorder, uint64_t id)
{
    const uint64_t *held;
    uint64_t *added;

    vector_for_each (held, &recorder->held) {
        if (*held != id)
            continue;
        added = vector_append(&recorder->summed);
        if (added != NULL)
            *added = id;
    }
}

/* Moves the follower's ended leases to the backlog. */
static void add_ended(struct recorder *recorder)
{
    struct follower *follower = &recorder->follower;
    struct ended_lease *ended;

    if (follower->ended.count == 0 && follower->lost == 0)
        return;
    vector_for_each (ended, &follower->ended) {
        uint64_t id = ended->lease->id;

        if (short_leases_add(&recorder->short_leases, ended))
            note_summed(recorder, id);
        else
            backlog_add(&recorder->backlog, ended);
    }
    /* The follower no longer owns them. */
    follower->ended.count = 0;
    recorder->backlog.dropped += follower->lost;
    recorder->must_lose = recorder->must_lose || follower->lost > 0;
    recorder->has_changed = true;
    follower_forget_ended(follower);
}

static int receive_updates(struct recorder *recorder, struct berth_error *error)
{
    struct follower *follower = &recorder->follower;
    int news = follower_step(follower, error);

    add_ended(recorder);
    recorder->ended_known = follower->ended_count;
    if (news <= 0)
        return news;
    recorder->offset = follower->view.snapshot.time - clock_now();
    recorder->has_changed = true;
    return 0;
}

/* ---- Deleting old leases ---- */

static int64_t forget_interval(const struct recorder *recorder)
{
    int64_t interval = recorder->settings->keep / 8;

    return interval < FORGET_MIN ? FORGET_MIN : interval > FORGET_MAX ? FORGET_MAX : interval;
}

/* Deletes old leases when it is time, one step per call: the daemon may send events meanwhile. */
static void delete_old(struct recorder *recorder)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int64_t now = clock_now();
    bool more = false;

    if (recorder->record == NULL || now < recorder->forget_at)
        return;
    if (history_record_delete_old(recorder->record,
                                  clock_read(CLOCK_REALTIME) - recorder->settings->keep, &more,
                                  &error) < 0 ||
        (!more && history_record_make_room(recorder->record, 0, &more, &error) < 0))
        recorder_handle_failure(recorder, &error);
    recorder->forget_at = now + (more ? FORGET_PAUSE : forget_interval(recorder));
}

/* ---- The loop ---- */

/* Returns when to write next, by clock_now(); INT64_MAX: not before there is something new. */
static int64_t next_write(const struct recorder *recorder)
{
    int64_t at = INT64_MAX;

    if (recorder->has_changed)
        at = 0;
    else if (recorder->follower.view.snapshot.leases.count > 0)
        at = recorder->seen_at + SEEN_INTERVAL < recorder->record_at
                 ? recorder->seen_at + SEEN_INTERVAL
                 : recorder->record_at;
    /* A file that cannot be written is not tried before the end of the pause. */
    if (recorder->record == NULL && at < recorder->retry_at)
        at = recorder->retry_at;
    return at;
}

/* Returns the time until the next work without input, in milliseconds for poll. */
static int wait_time(const struct recorder *recorder)
{
    int64_t now = clock_now();
    int64_t wait = follower_next_timeout(&recorder->follower);
    int64_t write_at = next_write(recorder);

    if (write_at != INT64_MAX && write_at - now < wait)
        wait = write_at - now;
    if (recorder->record != NULL && recorder->forget_at - now < wait)
        wait = recorder->forget_at - now;
    if (wait > POLL_MAX)
        wait = POLL_MAX;
    /* Rounded up, because the work is not due before. */
    return wait <= 0 ? 0 : (int)((wait + 999999) / 1000000);
}

static int run_loop(struct recorder *recorder, struct berth_error *error)
{
    for (;;) {
        struct pollfd waiting = {
            .fd = follower_descriptor(&recorder->follower),
            .events = POLLIN,
        };
        int code;

        if (poll(&waiting, 1, wait_time(recorder)) < 0 && errno != EINTR)
            return error_set_errno(error, errno, "cannot wait for the pool");
        code = receive_updates(recorder, error);
        if (code < 0)
            return code;
        if (clock_now() >= next_write(recorder))
            recorder_write_pending(recorder);
        delete_old(recorder);
    }
}

static int follow_daemon(struct recorder *recorder, struct berth_error *error)
{
    struct history_position place = {0};
    struct follower_settings wanted = {
        .kinds = WIRE_NEWS_LEASE,
        .interval = NEWS_INTERVAL,
        .sections = 1U << WIRE_SECTION_LEASES,
        .keeps_ended = true,
    };
    int code;

    if (recorder->record != NULL)
        place = history_record_position(recorder->record);
    wanted.epoch = place.epoch;
    wanted.ended_known = place.known;
    recorder->ended_known = place.known;
    code = follower_open_connected(&recorder->follower, recorder->settings->connection, &wanted,
                                   error);
    if (code < 0)
        return code;
    code = run_loop(recorder, error);
    /* The daemon is gone, which is not an error here. */
    if (recorder->follower.session.socket < 0 || code == BERTH_ERROR_IO)
        code = 0;
    recorder->retry_at = 0;
    recorder->has_changed = true;
    recorder_write_pending(recorder);
    if (code == 0 && recorder->backlog.count > 0)
        code = error_set(error, BERTH_ERROR_IO, "%zu leases could not be written: %s",
                         recorder->backlog.count, recorder->problem);
    follower_close(&recorder->follower);
    return code;
}

int recorder_run(const struct recorder_settings *settings, struct berth_error *error)
{
    struct recorder recorder = {
        .settings = settings,
        .offset = clock_read(CLOCK_REALTIME) - clock_now(),
    };
    size_t bytes_max = BACKLOG_BYTES_MAX;
    int code;

    /* One batch must be small beside the file. */
    if (settings->size != 0 && settings->size / 32 < bytes_max)
        bytes_max = settings->size / 32;
    recorder.backlog.bytes_max = bytes_max;
    code = short_leases_init(&recorder.short_leases, settings->alone_max, bytes_max, error);
    if (code < 0)
        return code;
    recorder_open_file(&recorder);
    code = follow_daemon(&recorder, error);
    history_record_close(recorder.record);
    backlog_clear(&recorder.backlog);
    short_leases_finish(&recorder.short_leases);
    vector_finish(&recorder.held);
    vector_finish(&recorder.summed);
    user_names_finish(&recorder.users);
    return code;
}
