/* SPDX-License-Identifier: Apache-2.0 */
#include "history/history_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "history/history_database.h"
#include "history/history_trim.h"

/* The maximum numbers of rows and pages that one call of history_record_delete_old deletes. */
#define ROWS_AT_ONCE  "500"
#define PAGES_AT_ONCE "64"

enum statement {
    STATEMENT_BEGIN,
    STATEMENT_PUT,
    STATEMENT_OPEN,
    STATEMENT_LOSE,
    STATEMENT_POSITION,
    STATEMENT_COMMIT,
    STATEMENT_FORGET,
    STATEMENT_REMOVE,
    STATEMENT_COUNT,
};

static const char *const statements[STATEMENT_COUNT] = {
    [STATEMENT_BEGIN] = "BEGIN IMMEDIATE",
    [STATEMENT_PUT] =
        "INSERT INTO lease (pool, id, parent, name, user, uid, command, devices, share, claimed,"
        " granted, ended, end, exit_code, judged, idle, leases, held, waited)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,"
        " ?18, ?19)"
        " ON CONFLICT (pool, id) DO UPDATE SET devices = ?8, share = ?9, ended = ?12, end = ?13,"
        " exit_code = ?14, judged = ?15, idle = ?16, leases = ?17, held = ?18, waited = ?19"
        " WHERE ended IS NULL OR end = 'lost' OR leases < ?17",
    [STATEMENT_OPEN] = "SELECT id FROM lease WHERE ended IS NULL AND pool = ?1 ORDER BY id",
    [STATEMENT_LOSE] = "UPDATE lease SET end = 'lost', ended = max(granted,"
                       " (SELECT seen FROM pool WHERE number = ?1)) WHERE pool = ?1 AND id = ?2",
    [STATEMENT_POSITION] = "UPDATE pool SET epoch = ?2, known = ?3, seen = ?4 WHERE number = ?1",
    [STATEMENT_COMMIT] = "COMMIT",
    [STATEMENT_FORGET] =
        "DELETE FROM lease WHERE rowid IN (SELECT rowid FROM lease WHERE ended < ?1"
        " LIMIT " ROWS_AT_ONCE ")",
    [STATEMENT_REMOVE] = "DELETE FROM lease WHERE pool = ?1 AND id = ?2 AND ended IS NULL",
};

struct history_record {
    struct history_database database;
    sqlite3_stmt *statements[STATEMENT_COUNT];
    int lock;
    dev_t device; /* of the file when it was opened */
    ino_t inode;
    int64_t pool; /* the pool's row number */
    struct history_position place;
    struct history_trim trim;
    struct text devices; /* buffer of history_record_put */
    struct {
        VECTOR_OF(uint64_t);
    } lost; /* buffer of history_record_mark_lost */
};

/* ---- The directory and the lock ---- */

/* Creates the missing directories of the path. */
static int make_directories(const char *path, mode_t mode, struct berth_error *error)
{
    char *way = strdup(path);
    int number = 0;

    if (way == NULL)
        return error_set_memory(error);
    for (char *slash = strchr(way + 1, '/'); slash != NULL && number == 0;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(way, mode) < 0 && errno != EEXIST) {
            number = errno;
            /* The directory may exist even if mkdir() fails for another reason. */
            number = access(way, F_OK) == 0
                         ? 0
                         : error_set_errno(error, number, "cannot create %s", way);
        }
        *slash = '/';
    }
    free(way);
    return number;
}

static int take_lock(const char *path, mode_t mode, int *ret_lock, struct berth_error *error)
{
    struct text name = {0};
    int lock;
    int code = 0;

    text_append(&name, path);
    text_append(&name, "-lock");
    if (text_failed(&name))
        return error_set_memory(error);
    lock = open(text_string(&name), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, mode);
    if (lock < 0)
        code = error_set_errno(error, errno, "cannot open %s", text_string(&name));
    else if (flock(lock, LOCK_EX | LOCK_NB) < 0)
        code = errno == EWOULDBLOCK
                   ? error_set(error, BERTH_ERROR_BUSY,
                               "cannot write %s: another recorder writes to it", path)
                   : error_set_errno(error, errno, "cannot lock %s", text_string(&name));
    text_finish(&name);
    if (code < 0 && lock >= 0)
        close(lock);
    if (code == 0)
        *ret_lock = lock;
    return code;
}

/* ---- Opening ---- */

static int prepare_all(struct history_record *record, struct berth_error *error)
{
    int code = 0;

    for (size_t i = 0; i < COUNT(record->statements) && code == 0; i++)
        code = history_database_prepare(&record->database, statements[i], &record->statements[i],
                                        error);
    return code;
}

/* Finds the pool's row, or adds it. */
static int find_pool(struct history_record *record, const char *pool, struct berth_error *error)
{
    static const char words[] = "INSERT INTO pool (name) VALUES (?1) ON CONFLICT (name) DO UPDATE"
                                " SET name = name RETURNING number, epoch, known, seen";
    sqlite3_stmt *statement;
    int code = history_database_prepare(&record->database, words, &statement, error);
    int stepped;

    if (code < 0)
        return code;
    sqlite3_bind_text(statement, 1, pool, -1, SQLITE_STATIC);
    stepped = sqlite3_step(statement);
    if (stepped == SQLITE_ROW) {
        record->pool = sqlite3_column_int64(statement, 0);
        record->place = (struct history_position){
            .epoch = (uint64_t)sqlite3_column_int64(statement, 1),
            .known = (uint64_t)sqlite3_column_int64(statement, 2),
            .seen = sqlite3_column_int64(statement, 3),
        };
        stepped = sqlite3_step(statement);
    }
    if (stepped != SQLITE_DONE)
        code = history_database_fail(&record->database, stepped, error);
    sqlite3_finalize(statement);
    return code;
}

static int remember_file(struct history_record *record, const char *path, struct berth_error *error)
{
    struct stat status;

    if (stat(path, &status) < 0)
        return error_set_errno(error, errno, "cannot read %s", path);
    record->device = status.st_dev;
    record->inode = status.st_ino;
    return 0;
}

/* Marks the held leases of other pools as lost, because their ends will never be known. Deletes
 * other pools without leases. */
static int mark_others_lost(struct history_record *record, struct berth_error *error)
{
    struct text words = {0};
    int code;

    text_append_format(&words,
                       "UPDATE lease SET end = 'lost', ended = max(granted, ifnull((SELECT seen"
                       " FROM pool WHERE number = lease.pool), 0))"
                       " WHERE ended IS NULL AND pool <> %lld;"
                       "DELETE FROM pool WHERE number <> %lld AND NOT EXISTS"
                       " (SELECT 1 FROM lease WHERE lease.pool = pool.number);",
                       (long long)record->pool, (long long)record->pool);
    code = text_failed(&words)
               ? error_set_memory(error)
               : history_database_run(&record->database, text_string(&words), error);
    text_finish(&words);
    return code;
}

static int open_record(struct history_record *record, const char *path, const char *pool,
                       enum history_readers readers, struct berth_error *error)
{
    bool for_all = readers == HISTORY_FOR_ALL;
    mode_t before = umask(for_all ? S_IWGRP | S_IWOTH : S_IRWXG | S_IRWXO);
    int code = make_directories(path, 0777, error);

    if (code == 0)
        code = take_lock(path, S_IRUSR | S_IWUSR, &record->lock, error);
    if (code == 0)
        code = history_database_open_write(&record->database, path, error);
    umask(before);
    if (code == 0)
        code = remember_file(record, path, error);
    if (code == 0)
        code = find_pool(record, pool, error);
    if (code == 0)
        code = mark_others_lost(record, error);
    if (code == 0)
        code = prepare_all(record, error);
    return code;
}

int history_record_open(const char *path, const char *pool, enum history_readers readers,
                        struct history_record **ret_record, struct berth_error *error)
{
    struct history_record *record = calloc(1, sizeof(*record));
    int code;

    if (record == NULL)
        return error_set_memory(error);
    record->lock = -1;
    code = open_record(record, path, pool, readers, error);
    if (code < 0) {
        history_record_close(record);
        return code;
    }
    *ret_record = record;
    return 0;
}

void history_record_close(struct history_record *record)
{
    if (record == NULL)
        return;
    for (size_t i = 0; i < COUNT(record->statements); i++)
        sqlite3_finalize(record->statements[i]);
    history_trim_finish(&record->trim);
    history_database_close(&record->database);
    if (record->lock >= 0)
        close(record->lock);
    text_finish(&record->devices);
    vector_finish(&record->lost);
    free(record);
}

bool history_record_file_exists(const struct history_record *record)
{
    struct stat status;

    return stat(record->database.path, &status) == 0 && status.st_ino == record->inode &&
           status.st_dev == record->device;
}

struct history_position history_record_position(const struct history_record *record)
{
    return record->place;
}

/* ---- A batch ---- */

static int undo_batch(struct history_record *record, int code)
{
    if (code < 0 && !sqlite3_get_autocommit(record->database.connection))
        sqlite3_exec(record->database.connection, "ROLLBACK", NULL, NULL, NULL);
    return code;
}

static int step_statement(struct history_record *record, enum statement which,
                          struct berth_error *error)
{
    return undo_batch(record,
                      history_database_step(&record->database, record->statements[which], error));
}

int history_record_begin(struct history_record *record, struct berth_error *error)
{
    return step_statement(record, STATEMENT_BEGIN, error);
}

static void bind_text(sqlite3_stmt *statement, int place, const char *text)
{
    if (text != NULL)
        sqlite3_bind_text(statement, place, text, -1, SQLITE_STATIC);
}

/* Appends the ids, separated by commas. */
static const char *write_devices(struct text *out, const struct device_id_list *devices)
{
    const struct device_id *id;

    text_clear(out);
    vector_for_each (id, devices) {
        if (out->length > 0)
            text_append_char(out, ',');
        device_id_append(*id, out);
    }
    return text_string(out);
}

int history_record_put(struct history_record *record, const struct history_lease *lease,
                       struct berth_error *error)
{
    sqlite3_stmt *statement = record->statements[STATEMENT_PUT];
    const char *devices = write_devices(&record->devices, &lease->devices);

    if (text_failed(&record->devices))
        return undo_batch(record, error_set_memory(error));
    sqlite3_bind_int64(statement, 1, record->pool);
    sqlite3_bind_int64(statement, 2, (int64_t)lease->id);
    if (lease->parent != 0)
        sqlite3_bind_int64(statement, 3, (int64_t)lease->parent);
    bind_text(statement, 4, lease->name);
    sqlite3_bind_text(statement, 5, lease->user == NULL ? "" : lease->user, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 6, lease->uid);
    bind_text(statement, 7, lease->command);
    sqlite3_bind_text(statement, 8, devices, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 9, lease->share);
    sqlite3_bind_int64(statement, 10, lease->claimed);
    sqlite3_bind_int64(statement, 11, lease->granted);
    if (lease->ended != 0) {
        sqlite3_bind_int64(statement, 12, lease->ended);
        sqlite3_bind_text(statement, 13, lease->end == NULL ? "ended" : lease->end, -1,
                          SQLITE_STATIC);
    }
    if (lease->exit_code.known)
        sqlite3_bind_int64(statement, 14, (int64_t)lease->exit_code.value);
    sqlite3_bind_int64(statement, 15, (int64_t)lease->judged_time);
    sqlite3_bind_int64(statement, 16, (int64_t)lease->idle_time);
    sqlite3_bind_int64(statement, 17, history_lease_is_sum(lease) ? (int64_t)lease->leases : 1);
    if (history_lease_is_sum(lease)) {
        sqlite3_bind_int64(statement, 18, (int64_t)lease->held_time);
        sqlite3_bind_int64(statement, 19, (int64_t)lease->waited_time);
    }
    return step_statement(record, STATEMENT_PUT, error);
}

/* Finds the open leases that are not in the list. */
static int find_lost(struct history_record *record, const uint64_t *held, size_t count,
                     struct berth_error *error)
{
    sqlite3_stmt *statement = record->statements[STATEMENT_OPEN];
    size_t next = 0;
    int stepped;
    int code = 0;

    record->lost.count = 0;
    sqlite3_bind_int64(statement, 1, record->pool);
    while (code == 0 && (stepped = sqlite3_step(statement)) == SQLITE_ROW) {
        uint64_t id = (uint64_t)sqlite3_column_int64(statement, 0);
        uint64_t *place;

        while (next < count && held[next] < id)
            next++;
        if (next < count && held[next] == id)
            continue;
        place = vector_append(&record->lost);
        if (place == NULL)
            code = error_set_memory(error);
        else
            *place = id;
    }
    if (code == 0 && stepped != SQLITE_DONE)
        code = history_database_fail(&record->database, stepped, error);
    sqlite3_reset(statement);
    return undo_batch(record, code);
}

int history_record_mark_lost(struct history_record *record, const uint64_t *held, size_t count,
                             struct berth_error *error)
{
    const uint64_t *id;
    int code = find_lost(record, held, count, error);

    vector_for_each (id, &record->lost) {
        if (code < 0)
            break;
        sqlite3_bind_int64(record->statements[STATEMENT_LOSE], 1, record->pool);
        sqlite3_bind_int64(record->statements[STATEMENT_LOSE], 2, (int64_t)*id);
        code = step_statement(record, STATEMENT_LOSE, error);
    }
    return code;
}

int history_record_remove_held(struct history_record *record, uint64_t id,
                               struct berth_error *error)
{
    sqlite3_bind_int64(record->statements[STATEMENT_REMOVE], 1, record->pool);
    sqlite3_bind_int64(record->statements[STATEMENT_REMOVE], 2, (int64_t)id);
    return step_statement(record, STATEMENT_REMOVE, error);
}

int history_record_limit(struct history_record *record, uint64_t size, struct berth_error *error)
{
    return history_trim_init(&record->trim, &record->database, size, error);
}

int history_record_make_room(struct history_record *record, uint64_t more, bool *ret_more,
                             struct berth_error *error)
{
    return history_trim_step(&record->trim, &record->database, more, ret_more, error);
}

int history_record_commit(struct history_record *record, const struct history_position *place,
                          struct berth_error *error)
{
    sqlite3_stmt *statement = record->statements[STATEMENT_POSITION];
    int code;

    sqlite3_bind_int64(statement, 1, record->pool);
    sqlite3_bind_int64(statement, 2, (int64_t)place->epoch);
    sqlite3_bind_int64(statement, 3, (int64_t)place->known);
    sqlite3_bind_int64(statement, 4, place->seen);
    code = step_statement(record, STATEMENT_POSITION, error);
    if (code == 0)
        code = step_statement(record, STATEMENT_COMMIT, error);
    if (code == 0)
        record->place = *place;
    return code;
}

int history_record_delete_old(struct history_record *record, int64_t before, bool *ret_more,
                              struct berth_error *error)
{
    int code;
    bool more;

    sqlite3_bind_int64(record->statements[STATEMENT_FORGET], 1, before);
    code = step_statement(record, STATEMENT_FORGET, error);
    if (code < 0)
        return code;
    more = sqlite3_changes(record->database.connection) > 0;
    code = history_database_run(&record->database, "PRAGMA incremental_vacuum(" PAGES_AT_ONCE ")",
                                error);
    if (code == 0)
        *ret_more = more;
    return code;
}
