/* SPDX-License-Identifier: Apache-2.0
 *
 * The SQLite file of a history: opening, the schema, and SQLite's errors as berth's. Only for this
 * component.
 *
 *     pool   number, name; epoch, known: how many of the leases that ended since the daemon started
 *            are in the file; seen: when the held leases were last known
 *     lease  one row for each lease of each pool; times and durations in nanoseconds; ended is NULL
 *            while the lease is held. Several short leases can share a row: `leases` is their
 *            number, `held` and `waited` are sums, which are NULL for a single lease
 *
 * application_id marks berth's files, user_version is the version of the schema. A later version
 * adds a step to `migrations`, which run in order when a file is opened for writing. Readers can
 * query every version.
 */
#ifndef HISTORY_HISTORY_DATABASE_H
#define HISTORY_HISTORY_DATABASE_H

#include <berth/error.h>
#include <sqlite3.h>
#include <stdint.h>

#include "base/text/text.h"

#define HISTORY_APPLICATION_ID 0x42525448 /* BRTH */
#define HISTORY_VERSION        2

/* How long to wait for other readers and writers, in milliseconds. */
enum { HISTORY_TIMEOUT = 2000 };

struct history_database {
    sqlite3 *connection;
    char *path;
    int64_t version; /* of the schema, when the file was opened for reading */
};

/* Opens the file for reading. Fails like history_open_read and needs no clean-up then. */
int history_database_open_read(struct history_database *database, const char *path,
                               struct berth_error *error);

/* Opens or creates the file for writing and migrates it to the newest schema. The directory must
 * exist. Fails like history_database_open_read. */
int history_database_open_write(struct history_database *database, const char *path,
                                struct berth_error *error);

void history_database_close(struct history_database *database);

/* Sets an error from an SQLite code: "PATH: SQLite's message", with one of berth's codes. */
int history_database_fail(const struct history_database *database, int code,
                          struct berth_error *error);

/* Runs statements without a result. */
int history_database_run(struct history_database *database, const char *statements,
                         struct berth_error *error);

/* Prepares a statement; the caller finalizes it. */
int history_database_prepare(struct history_database *database, const char *words,
                             sqlite3_stmt **ret_statement, struct berth_error *error);

/* Runs a query, and returns the first number of its first row. */
int history_database_query(struct history_database *database, const char *query,
                           int64_t *ret_number, struct berth_error *error);

/* Runs a statement without a result, and resets it. */
int history_database_step(struct history_database *database, sqlite3_stmt *statement,
                          struct berth_error *error);

#endif
