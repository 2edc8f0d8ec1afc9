/* SPDX-License-Identifier: Apache-2.0 */
#include "record/recorder_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/backoff.h"
#include "base/system/clock.h"
#include "base/text/choice.h"
#include "base/text/program_name.h"
#include "base/text/quantity.h"
#include "base/text/utf8.h"

/* Pauses between attempts to write a file that cannot be written (base/system/backoff.h). */
#define RETRY_PAUSE_MIN (DURATION_SECOND / 5)
#define RETRY_PAUSE_MAX (10 * DURATION_SECOND)
/* A file that another process writes is reported as a problem once the pause is this long. */
#define BUSY_PAUSE (4 * RETRY_PAUSE_MIN)

/* How long one write may spend on deleting leases for it. */
#define ROOM_TIME (5 * DURATION_SECOND)
/* A held lease gets a record after this time: a short lease, and the time until its end is known.
 */
#define HELD_MIN (2 * DURATION_SECOND)
/* The factor between a lease in memory and its record with all indices. */
enum { RECORD_FACTOR = 2 };

/* ---- Reports to the daemon ---- */

static void send_line(const struct recorder *recorder, const char *word, const char *words)
{
    char line[BERTH_ERROR_MESSAGE_SIZE + 32];
    int length = snprintf(line, sizeof(line), "%s%s%s\n", word, *words == '\0' ? "" : " ", words);

    /* If the daemon does not read, it misses the report; writing continues. */
    if (recorder->settings->problems >= 0)
        while (write(recorder->settings->problems, line, (size_t)length) < 0 && errno == EINTR)
            ;
}

static void send_number(const struct recorder *recorder, const char *word, uint64_t number)
{
    char digits[24];

    snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);
    send_line(recorder, word, digits);
}

void recorder_handle_failure(struct recorder *recorder, const struct berth_error *error)
{
    history_record_close(recorder->record);
    recorder->record = NULL;
    recorder->retry_pause = backoff_next(recorder->retry_pause, RETRY_PAUSE_MIN, RETRY_PAUSE_MAX);
    recorder->retry_at = clock_now() + recorder->retry_pause;
    /* The recorder of the previous daemon is about to end. */
    if (error->code == BERTH_ERROR_BUSY && recorder->retry_pause < BUSY_PAUSE)
        return;
    if (strcmp(recorder->problem, error->message) == 0)
        return;
    snprintf(recorder->problem, sizeof(recorder->problem), "%s", error->message);
    send_line(recorder, "problem", recorder->problem);
}

static void clear_failure(struct recorder *recorder)
{
    recorder->retry_pause = 0;
    if (recorder->problem[0] != '\0')
        send_line(recorder, "good", "");
    recorder->problem[0] = '\0';
}

/* ---- Writing ---- */

void recorder_open_file(struct recorder *recorder)
{
    const struct recorder_settings *settings = recorder->settings;
    struct berth_error error = BERTH_ERROR_INIT;

    if (recorder->record != NULL || clock_now() < recorder->retry_at)
        return;
    if (history_record_open(settings->file, settings->pool, settings->readers, &recorder->record,
                            &error) < 0) {
        recorder->record = NULL;
        recorder_handle_failure(recorder, &error);
        return;
    }
    if (history_record_limit(recorder->record, settings->size, &error) < 0) {
        recorder_handle_failure(recorder, &error);
        return;
    }
    /* The content of this file is not known yet. */
    recorder->held.count = recorder->summed.count = 0;
    recorder->must_lose = true;
    recorder->has_changed = true;
}

/* Returns the command line for the file, which all users may be able to read. */
static char *record_command(struct recorder *recorder, const char *command)
{
    size_t length;

    if (command == NULL)
        return NULL;
    if (recorder->settings->shows_commands)
        length = strlen(command);
    else
        command = program_name_find(command, &length);
    if (length > ENDED_COMMAND_MAX)
        length = utf8_boundary(command, ENDED_COMMAND_MAX);
    memcpy(recorder->command, command, length);
    recorder->command[length] = '\0';
    return recorder->command;
}

/* The result is valid until the next call. */
static struct history_lease lease_of(struct recorder *recorder, const struct lease_info *lease)
{
    return (struct history_lease){
        .id = lease->id,
        .parent = lease->parent,
        .name = lease->name,
        .user = (char *)user_names_find(&recorder->users, lease->uid),
        .uid = lease->uid,
        .command = record_command(recorder, lease->command),
        .devices = lease->devices,
        .share = lease->sharing == SHARING_EXCLUSIVE ? SHARE_WHOLE : lease->share,
        .claimed = lease->since,
        .granted = lease->granted,
        .judged_time = lease->judged_time,
        .idle_time = lease->idle_time,
    };
}

static int put_ended(struct recorder *recorder, const struct ended_lease *ended,
                     struct berth_error *error)
{
    struct history_lease lease = lease_of(recorder, ended->lease);

    lease.ended = ended->time;
    lease.end = (char *)choice_name(lease_end_names, (int)ended->end);
    lease.exit_code = ended->exit_code;
    return history_record_put(recorder->record, &lease, error);
}

static int put_sum(void *context, const struct short_lease_sum *sum, struct berth_error *error)
{
    struct recorder *recorder = context;
    struct history_lease lease = lease_of(recorder, sum->first.lease);

    lease.share = short_leases_share(sum);
    lease.ended = sum->ended;
    lease.end = (char *)choice_name(lease_end_names, (int)sum->end);
    lease.leases = sum->leases;
    lease.held_time = sum->held_time;
    lease.waited_time = sum->waited_time;
    if (sum->leases == 1)
        lease.exit_code = sum->first.exit_code;
    return history_record_put(recorder->record, &lease, error);
}

/* Writes the sums of short leases, and removes the records that they had while they were held. */
static int put_sums(struct recorder *recorder, struct berth_error *error)
{
    const uint64_t *id;
    int code = short_leases_each_changed(&recorder->short_leases, put_sum, recorder, error);

    vector_for_each (id, &recorder->summed) {
        if (code == 0)
            code = history_record_remove_held(recorder->record, *id, error);
    }
    return code;
}

/* Returns when a held lease gets a record, in the pool's time: short leases get none before they
 * end, because they may become a part of a sum. */
static int64_t record_time(const struct lease_info *lease)
{
    return lease->granted + HELD_MIN;
}

/* Writes the held leases that the file does not list yet. */
static int put_held(struct recorder *recorder, int64_t now, struct berth_error *error)
{
    const struct lease_info *lease;
    size_t known = 0;
    int code = 0;

    vector_for_each (lease, &recorder->follower.view.snapshot.leases) {
        struct history_lease row;

        while (known < recorder->held.count && recorder->held.items[known] < lease->id)
            known++;
        if (known < recorder->held.count && recorder->held.items[known] == lease->id)
            continue;
        /* A lease whose holder was not notified yet may go back to the queue. */
        if (lease->preparing || record_time(lease) > now)
            continue;
        row = lease_of(recorder, lease);
        code = history_record_put(recorder->record, &row, error);
        if (code < 0)
            break;
    }
    return code;
}

/* Stores the ids of the held leases, which the file lists after the commit. */
static int remember_held(struct recorder *recorder, int64_t now, struct berth_error *error)
{
    const struct lease_info *lease;

    recorder->held.count = 0;
    recorder->record_at = INT64_MAX;
    vector_for_each (lease, &recorder->follower.view.snapshot.leases) {
        uint64_t *id;

        if (lease->preparing)
            continue;
        if (record_time(lease) > now) {
            if (record_time(lease) - recorder->offset < recorder->record_at)
                recorder->record_at = record_time(lease) - recorder->offset;
            continue;
        }
        id = vector_append(&recorder->held);
        if (id == NULL)
            return error_set_memory(error);
        *id = lease->id;
    }
    return 0;
}

static int mark_missing_lost(struct recorder *recorder, struct berth_error *error)
{
    struct berth_error ignored = BERTH_ERROR_INIT;

    if (!recorder->must_lose || !recorder->follower.has_view)
        return 0;
    if (remember_held(recorder, INT64_MAX, &ignored) < 0)
        return error_set_memory(error);
    return history_record_mark_lost(recorder->record, recorder->held.items, recorder->held.count,
                                    error);
}

static int write_batch(struct recorder *recorder, struct berth_error *error)
{
    int64_t now = clock_now() + recorder->offset;
    struct history_position place = {
        .epoch = recorder->follower.epoch,
        .known = recorder->ended_known,
        .seen = now,
    };
    const struct ended_lease *ended;
    int code = history_record_begin(recorder->record, error);

    if (code == 0)
        code = put_held(recorder, now, error);
    vector_for_each (ended, &recorder->backlog) {
        if (code == 0)
            code = put_ended(recorder, ended, error);
    }
    if (code == 0)
        code = put_sums(recorder, error);
    if (code == 0)
        code = mark_missing_lost(recorder, error);
    if (code == 0)
        code = history_record_commit(recorder->record, &place, error);
    if (code == 0)
        code = remember_held(recorder, now, error);
    return code;
}

/* Makes room for the pending leases. Deleting stops after a while: the rest is deleted later. */
static int make_room(struct recorder *recorder, struct berth_error *error)
{
    uint64_t bytes = RECORD_FACTOR * (recorder->backlog.bytes + recorder->short_leases.bytes);
    int64_t until = clock_now() + ROOM_TIME;
    bool more = true;
    int code = 0;

    while (code == 0 && more && clock_now() < until)
        code = history_record_make_room(recorder->record, bytes, &more, error);
    return code;
}

void recorder_write_pending(struct recorder *recorder)
{
    struct berth_error error = BERTH_ERROR_INIT;
    uint64_t dropped = recorder->backlog.dropped;

    if (recorder->record != NULL && !history_record_file_exists(recorder->record)) {
        history_record_close(recorder->record);
        recorder->record = NULL;
        recorder->retry_at = 0;
    }
    recorder_open_file(recorder);
    if (recorder->record == NULL)
        return;
    if (make_room(recorder, &error) < 0 || write_batch(recorder, &error) < 0) {
        recorder_handle_failure(recorder, &error);
        return;
    }
    if (recorder->follower.has_view)
        recorder->must_lose = false;
    recorder->has_changed = false;
    recorder->seen_at = clock_now();
    backlog_clear(&recorder->backlog);
    short_leases_written(&recorder->short_leases, recorder->seen_at + recorder->offset);
    recorder->summed.count = 0;
    /* Before the daemon's first event this is the count of an earlier daemon. */
    if (recorder->follower.has_view)
        send_number(recorder, "known", recorder->ended_known);
    if (dropped > 0)
        send_number(recorder, "missing", dropped);
    clear_failure(recorder);
}
