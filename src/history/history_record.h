/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a history. A daemon's events are written in one transaction together with the position in
 * its event stream, so that a later recorder neither misses nor repeats one. A lock beside the file
 * allows one writer at a time. Calls block on the disk.
 *
 *     history_record_open(path, pool, readers, &record, &error);
 *     history_record_begin(record, &error);
 *     history_record_put(record, &lease, &error);        // any number
 *     history_record_commit(record, &place, &error);
 */
#ifndef HISTORY_HISTORY_RECORD_H
#define HISTORY_HISTORY_RECORD_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "history/history.h"

/* The position in a daemon's event stream that the file has reached. */
struct history_position {
    uint64_t epoch; /* the daemon's epoch; 0: none yet */
    uint64_t known; /* number of leases in the file that ended since the daemon started */
    int64_t seen;   /* when the held leases were last known, nanoseconds since 1970 */
};

/* The users who may read the file. */
enum history_readers {
    HISTORY_FOR_OWNER,
    HISTORY_FOR_ALL,
};

struct history_record;

/* Opens the file for this pool; creates it and the directories of its path if necessary. Leases of
 * other pools that the file lists as held become "lost". Fails with BERTH_ERROR_BUSY if another
 * recorder writes to it, and like history_open_read. */
int history_record_open(const char *path, const char *pool, enum history_readers readers,
                        struct history_record **ret_record, struct berth_error *error);
/* Rolls back uncommitted changes. NULL is allowed. */
void history_record_close(struct history_record *record);

/* Returns the place of the last commit. */
struct history_position history_record_position(const struct history_record *record);

/* Returns whether the file is still at its path: a user may have removed or replaced it. */
bool history_record_file_exists(const struct history_record *record);

/* ---- One batch. If a call fails, the batch is rolled back; begin the next one. ---- */

int history_record_begin(struct history_record *record, struct berth_error *error);

/* Adds or updates a lease. An ended lease stays ended, unless it was only lost; a record of several
 * leases is replaced by one of more. Its `pool` and `seen` are ignored. */
int history_record_put(struct history_record *record, const struct history_lease *lease,
                       struct berth_error *error);

/* Marks the pool's leases that the file lists as held and that are not in this list as "lost", at
 * the time of the last commit. The ids must be ascending. */
int history_record_mark_lost(struct history_record *record, const uint64_t *held, size_t count,
                             struct berth_error *error);

int history_record_commit(struct history_record *record, const struct history_position *place,
                          struct berth_error *error);

/* Deletes a lease that the file lists as held, because a later record includes it. */
int history_record_remove_held(struct history_record *record, uint64_t id,
                               struct berth_error *error);

/* ---- Deleting old leases ---- */

/* Sets the maximum size of the file and its log together, in bytes. */
int history_record_limit(struct history_record *record, uint64_t size, struct berth_error *error);

/* Makes room for about `more` bytes below the maximum size: deletes the oldest leases of the user
 * with the most data, a little per call. Call it outside of a batch. Returns in *ret_more whether
 * there is more to delete. Fails with BERTH_ERROR_BUSY while another process locks the file so that
 * its log cannot shrink. */
int history_record_make_room(struct history_record *record, uint64_t more, bool *ret_more,
                             struct berth_error *error);

/* Deletes some of the leases that ended before this time and gives back some space, a little per
 * call. Returns in *ret_more whether there may be more. */
int history_record_delete_old(struct history_record *record, int64_t before, bool *ret_more,
                              struct berth_error *error);

#endif
