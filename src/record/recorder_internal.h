/* SPDX-License-Identifier: Apache-2.0
 *
 * The recorder's state, and the functions of recorder_write.c that recorder.c uses.
 */
#ifndef RECORD_RECORDER_INTERNAL_H
#define RECORD_RECORDER_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/system/user_names.h"
#include "base/vector.h"
#include "model/request.h"
#include "record/backlog.h"
#include "record/recorder.h"
#include "record/short_leases.h"
#include "view/follower.h"

struct recorder {
    const struct recorder_settings *settings;
    struct follower follower;
    struct history_record *record; /* NULL: it cannot be written */
    int64_t retry_at;              /* next attempt; times are clock_now()'s */
    int64_t retry_pause;
    struct backlog backlog; /* ended leases that are not in the file */
    struct short_leases short_leases;
    uint64_t ended_known; /* number of ended leases up to the last one in the backlog */
    struct {
        VECTOR_OF(uint64_t);
    } held; /* ids that the file lists as held, ascending */
    struct {
        VECTOR_OF(uint64_t);
    } summed;          /* those of them that are in short_leases now */
    bool must_lose;    /* the file's list of held leases may be wrong */
    bool has_changed;  /* there is something to write */
    int64_t offset;    /* difference between clock_now() and the pool's time */
    int64_t record_at; /* when the next held lease gets a record; INT64_MAX: all have one */
    int64_t seen_at;   /* last time that the held leases were written */
    int64_t forget_at; /* next check for old leases */
    struct user_names users;
    char command[ENDED_COMMAND_MAX + 1];    /* of the last lease_of */
    char problem[BERTH_ERROR_MESSAGE_SIZE]; /* last reported problem; "": none */
};

/* Opens the file if it is not open and the next attempt is due. */
void recorder_open_file(struct recorder *recorder);

/* Closes the file after a failure and schedules the next attempt. Reports a new problem. */
void recorder_handle_failure(struct recorder *recorder, const struct berth_error *error);

/* Writes everything that is pending as one transaction. */
void recorder_write_pending(struct recorder *recorder);

#endif
