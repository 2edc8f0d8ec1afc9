/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing a history: what a daemon told goes in as one transaction, with how far its news got, so
 * that whoever goes on later neither misses anything nor has anything twice. One writer at a time
 * for each file, which a lock beside it sees to. Calls block as long as the disk does.
 *
 *     history_record_open(path, pool, mode, &record, &error);
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

/* How far the daemon's news are in the file. */
struct history_position {
    uint64_t epoch; /* of the daemon; 0: none yet */
    uint64_t known; /* how many of the leases that have ended since it started are in the file */
    int64_t seen;   /* when it was known what is held, nanoseconds since 1970 */
};

/* Who may read the file. */
enum history_readers {
    HISTORY_FOR_OWNER,
    HISTORY_FOR_ALL,
};

struct history_record;

/* Opens the file, making it and directories on the way to it, and goes on with this pool. Leases of
 * other pools that are held as far as the file knows are over: they are "lost". Fails with
 * BERTH_ERROR_BUSY when another recorder has it, and as history_open_read. */
int history_record_open(const char *path, const char *pool, enum history_readers readers,
                        struct history_record **ret_record, struct berth_error *error);
/* Undoes what was not committed. NULL is nothing to close. */
void history_record_close(struct history_record *record);

/* What was committed last. */
struct history_position history_record_position(const struct history_record *record);

/* Whether the file is still where it was: somebody may have removed it, or put another there. */
bool history_record_file_exists(const struct history_record *record);

/* ---- One batch. When one of these fails, the batch is undone and the next begins anew. ---- */

int history_record_begin(struct history_record *record, struct berth_error *error);

/* Adds a lease, or says how it is now. One that has ended stays so, unless it was only lost. `pool`
 * and `seen` of it mean nothing here. */
int history_record_put(struct history_record *record, const struct history_lease *lease,
                       struct berth_error *error);

/* The leases of the pool that are held as far as the file knows, and are none of these: they are
 * "lost", at the time of the last commit. The ids rise. */
int history_record_mark_lost(struct history_record *record, const uint64_t *held, size_t count,
                             struct berth_error *error);

int history_record_commit(struct history_record *record, const struct history_position *place,
                          struct berth_error *error);

/* ---- Forgetting ---- */

/* Deletes some of the leases that ended before then, and gives back some of the room: a little at a
 * time. Says whether there may be more. */
int history_record_delete_old(struct history_record *record, int64_t before, bool *ret_more,
                              struct berth_error *error);

#endif
