/* SPDX-License-Identifier: Apache-2.0
 *
 * The SQLite file behind a history: opening, its schema, and SQLite's failures as ours. For the
 * files of this room.
 *
 *     pool   number, name; epoch, known: how many of the leases that ended since this start of the
 *            daemon are in the file; seen: when it was last known what is held
 *     lease  one row for each lease of each pool; times and durations in nanoseconds, ended is NULL
 *            while it is held
 *
 * application_id tells our files from others, user_version which schema it is. A later version adds
 * a step to `migrations`, which are run in order when a file is opened for writing; readers know
 * how to ask each version that there was.
 */
#ifndef HISTORY_HISTORY_DATABASE_H
#define HISTORY_HISTORY_DATABASE_H

#include <berth/error.h>
#include <sqlite3.h>
#include <stdint.h>

#include "base/text/text.h"

#define HISTORY_APPLICATION_ID 0x42525448 /* BRTH */
#define HISTORY_VERSION        1

/* How long others may keep us waiting, milliseconds: they read, or write for a moment. */
enum { HISTORY_TIMEOUT = 2000 };

struct history_database {
    sqlite3 *connection;
    char *path;
};

/* Opens the file for reading. Fails as history_open_read; needs no clean-up then. */
int history_database_open_read(struct history_database *database, const char *path,
                               struct berth_error *error);

/* Opens or makes it for writing, by the newest schema. The directory is there. Fails likewise. */
int history_database_open_write(struct history_database *database, const char *path,
                                struct berth_error *error);

void history_database_close(struct history_database *database);

/* What SQLite's code means: "PATH: what SQLite says", and one of our codes. */
int history_database_fail(const struct history_database *database, int code,
                          struct berth_error *error);

/* Runs statements that answer nothing. */
int history_database_run(struct history_database *database, const char *statements,
                         struct berth_error *error);

/* Makes a statement ready; the caller finalizes it. */
int history_database_prepare(struct history_database *database, const char *words,
                             sqlite3_stmt **ret_statement, struct berth_error *error);

/* Runs one that answers nothing, and makes it ready for the next time. */
int history_database_step(struct history_database *database, sqlite3_stmt *statement,
                          struct berth_error *error);

#endif
