/* SPDX-License-Identifier: Apache-2.0 */
#include "history/history_trim.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"

/* The maximum numbers of rows and pages that one step deletes. */
#define ROWS_AT_ONCE  "200"
#define PAGES_AT_ONCE "256"
/* The log is written back to the file when it has this many bytes, unless the size is small. */
#define LOG_WRITTEN_BACK (UINT64_C(4) << 20)
enum { PAGE_BYTES = 4096 };

/* The approximate size of a row with its entries in the indices. */
#define ROW_BYTES                                                                  \
    "200 + 2 * length(CAST(user AS BLOB)) + ifnull(length(CAST(name AS BLOB)), 0)" \
    " + ifnull(length(CAST(command AS BLOB)), 0) + length(CAST(devices AS BLOB))"

/* ---- Sizes ---- */

/* Returns the part of the size that the file may take. The rest is for the log: one eighth before a
 * batch, and what one batch adds to both. */
static uint64_t data_max(const struct history_trim *trim)
{
    return trim->size / 16 * 11;
}

static uint64_t log_max(const struct history_trim *trim)
{
    return trim->size / 8;
}

static uint64_t log_size(const struct history_database *database)
{
    struct text name = {0};
    struct stat status;
    uint64_t size = 0;

    text_append_format(&name, "%s-wal", database->path);
    if (!text_failed(&name) && stat(text_string(&name), &status) == 0)
        size = (uint64_t)status.st_size;
    text_finish(&name);
    return size;
}

/* Returns the bytes of the file, and those of them that hold data. */
static int measure_file(struct history_database *database, uint64_t *ret_file, uint64_t *ret_used,
                        struct berth_error *error)
{
    int64_t pages = 0;
    int64_t unused = 0;
    int64_t bytes = 0;
    int code = history_database_query(database, "PRAGMA page_count", &pages, error);

    if (code == 0)
        code = history_database_query(database, "PRAGMA freelist_count", &unused, error);
    if (code == 0)
        code = history_database_query(database, "PRAGMA page_size", &bytes, error);
    *ret_file = (uint64_t)(pages * bytes);
    *ret_used = (uint64_t)((pages - unused) * bytes);
    return code;
}

/* Writes a long log back to the file. Fails if a process that reads without end prevents that,
 * because the log would fill the disk. */
static int shrink_log(const struct history_trim *trim, struct history_database *database,
                      struct berth_error *error)
{
    uint64_t size = log_size(database);
    int64_t busy = 0;
    int code;

    if (size <= log_max(trim))
        return 0;
    code = history_database_query(database, "PRAGMA wal_checkpoint(TRUNCATE)", &busy, error);
    if (code == 0 && log_size(database) > log_max(trim))
        code = error_set(error, BERTH_ERROR_BUSY,
                         "cannot write %s: another process keeps it locked, and %s-wal has already "
                         "%" PRIu64 " MiB",
                         database->path, database->path, size >> 20);
    return code;
}

int history_trim_init(struct history_trim *trim, struct history_database *database, uint64_t size,
                      struct berth_error *error)
{
    struct text words = {0};
    uint64_t log = size / 32 < LOG_WRITTEN_BACK ? size / 32 : LOG_WRITTEN_BACK;
    int code;

    trim->size = size;
    if (size == 0)
        return 0;
    text_append_format(
        &words, "PRAGMA wal_autocheckpoint = %" PRIu64 "; PRAGMA journal_size_limit = %" PRIu64,
        log / PAGE_BYTES, log);
    code = text_failed(&words) ? error_set_memory(error)
                               : history_database_run(database, text_string(&words), error);
    text_finish(&words);
    return code;
}

/* ---- Users ---- */

static void forget_shares(struct history_trim *trim)
{
    struct history_share *share;

    vector_for_each (share, &trim->shares)
        free(share->user);
    vector_finish(&trim->shares);
    trim->is_deleting = false;
}

void history_trim_finish(struct history_trim *trim)
{
    forget_shares(trim);
}

static int add_share(struct history_trim *trim, sqlite3_stmt *row, struct berth_error *error)
{
    const char *user = (const char *)sqlite3_column_text(row, 0);
    char *copy = strdup(user == NULL ? "" : user);
    struct history_share *share = copy == NULL ? NULL : vector_append(&trim->shares);

    if (share == NULL) {
        free(copy);
        return error_set_memory(error);
    }
    *share = (struct history_share){.user = copy, .bytes = sqlite3_column_int64(row, 1)};
    return 0;
}

/* Adds up the data of each user's ended leases. Reads the whole file, so it runs only after the
 * data has changed by some percent of the size. */
static int count_shares(struct history_trim *trim, struct history_database *database,
                        struct berth_error *error)
{
    sqlite3_stmt *statement;
    int stepped = SQLITE_DONE;
    int code = history_database_prepare(database,
                                        "SELECT user, sum(" ROW_BYTES
                                        ") FROM lease WHERE ended IS NOT NULL GROUP BY user",
                                        &statement, error);

    if (code < 0)
        return code;
    forget_shares(trim);
    while (code == 0 && (stepped = sqlite3_step(statement)) == SQLITE_ROW)
        code = add_share(trim, statement, error);
    if (code == 0 && stepped != SQLITE_DONE)
        code = history_database_fail(database, stepped, error);
    sqlite3_finalize(statement);
    trim->is_deleting = code == 0;
    return code;
}

static struct history_share *find_largest(const struct history_trim *trim)
{
    struct history_share *largest = NULL;
    struct history_share *share;

    vector_for_each (share, &trim->shares) {
        if (largest == NULL || share->bytes > largest->bytes)
            largest = share;
    }
    return largest;
}

/* ---- Deleting ---- */

/* Deletes some of the oldest leases of the user with the most data. Returns in *ret_any whether
 * there were any. */
static int delete_some(struct history_trim *trim, struct history_database *database, bool *ret_any,
                       struct berth_error *error)
{
    struct history_share *share = find_largest(trim);
    sqlite3_stmt *statement;
    int stepped = SQLITE_DONE;
    bool any = false;
    int code;

    *ret_any = share != NULL;
    if (share == NULL)
        return 0;
    code = history_database_prepare(
        database,
        "DELETE FROM lease WHERE rowid IN (SELECT rowid FROM lease WHERE user = ?1"
        " AND ended IS NOT NULL ORDER BY granted LIMIT " ROWS_AT_ONCE ") RETURNING " ROW_BYTES,
        &statement, error);
    if (code < 0)
        return code;
    sqlite3_bind_text(statement, 1, share->user, -1, SQLITE_STATIC);
    while ((stepped = sqlite3_step(statement)) == SQLITE_ROW) {
        share->bytes -= sqlite3_column_int64(statement, 0);
        any = true;
    }
    if (stepped != SQLITE_DONE)
        code = history_database_fail(database, stepped, error);
    sqlite3_finalize(statement);
    if (!any) {
        free(share->user);
        *share = trim->shares.items[--trim->shares.count];
    }
    return code;
}

int history_trim_step(struct history_trim *trim, struct history_database *database, uint64_t more,
                      bool *ret_more, struct berth_error *error)
{
    uint64_t most = data_max(trim);
    uint64_t file = 0;
    uint64_t used = 0;
    bool any = true;
    int code;

    *ret_more = false;
    if (trim->size == 0)
        return 0;
    code = shrink_log(trim, database, error);
    if (code == 0)
        code = measure_file(database, &file, &used, error);
    if (code < 0)
        return code;
    /* Deleting more than necessary makes counting rare. */
    if (used + more <= (trim->is_deleting ? most - most / 32 : most)) {
        forget_shares(trim);
        if (file <= most)
            return 0;
        *ret_more = file > used;
        return history_database_run(database, "PRAGMA incremental_vacuum(" PAGES_AT_ONCE ")",
                                    error);
    }
    if (!trim->is_deleting)
        code = count_shares(trim, database, error);
    if (code == 0)
        code = delete_some(trim, database, &any, error);
    *ret_more = any;
    return code;
}
