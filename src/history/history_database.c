/* SPDX-License-Identifier: Apache-2.0 */
#include "history/history_database.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"

/* The maximum length of a value. berth's values are much shorter; SQLite would accept a
 * gigabyte. */
enum { VALUE_MAX = 1024 * 1024 };

/* File systems whose files several machines may use. SQLite's log in shared memory does not work
 * there. */
static const unsigned long network_file_systems[] = {
    0x6969,     /* NFS */
    0xFF534D42, /* CIFS */
    0xFE534D42, /* SMB2 */
    0x517B,     /* SMB */
    0x01021997, /* 9P */
    0x5346414F, /* AFS */
    0x00C36400, /* Ceph */
    0x0BD00BD0, /* Lustre */
    0x47504653, /* GPFS */
    0x19830326, /* BeeGFS */
};

/* The steps from each version to the next. */
static const char *const migrations[HISTORY_VERSION] = {
    "CREATE TABLE pool (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
    " epoch INTEGER NOT NULL DEFAULT 0, known INTEGER NOT NULL DEFAULT 0,"
    " seen INTEGER NOT NULL DEFAULT 0);"
    "CREATE TABLE lease (pool INTEGER NOT NULL REFERENCES pool (number), id INTEGER NOT NULL,"
    " parent INTEGER, name TEXT, user TEXT NOT NULL, uid INTEGER NOT NULL, command TEXT,"
    " devices TEXT NOT NULL, share INTEGER NOT NULL, claimed INTEGER NOT NULL,"
    " granted INTEGER NOT NULL, ended INTEGER, end TEXT, exit_code INTEGER,"
    " judged INTEGER NOT NULL DEFAULT 0, idle INTEGER NOT NULL DEFAULT 0,"
    " UNIQUE (pool, id));"
    "CREATE INDEX lease_granted ON lease (granted);"
    "CREATE INDEX lease_ended ON lease (ended);"
    "CREATE INDEX lease_user ON lease (user, granted);"
    /* A view for users' own queries: a row for each device of each lease. */
    "CREATE VIEW lease_device AS SELECT device.value AS device, lease.*"
    " FROM lease, json_each('[\"' || replace(devices, ',', '\",\"') || '\"]') AS device;",
    "ALTER TABLE lease ADD COLUMN leases INTEGER NOT NULL DEFAULT 1;"
    "ALTER TABLE lease ADD COLUMN held INTEGER;"
    "ALTER TABLE lease ADD COLUMN waited INTEGER;",
};

/* ---- Failures ---- */

static int code_of(int code)
{
    switch (code & 0xFF) {
    case SQLITE_NOMEM:
        return BERTH_ERROR_MEMORY;
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return BERTH_ERROR_PERMISSION;
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
    case SQLITE_ERROR:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
        return BERTH_ERROR_SYNTAX;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return BERTH_ERROR_BUSY;
    default:
        return BERTH_ERROR_IO;
    }
}

/* Describes an SQLite code in plain words. */
static const char *describe_code(const struct history_database *database, int code)
{
    switch (code & 0xFF) {
    case SQLITE_NOTADB:
        return "expected a history, got something else";
    case SQLITE_CORRUPT:
        return "the file is damaged";
    case SQLITE_FULL:
        return "no space left on the disk";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return "another process has locked it";
    case SQLITE_ERROR:
        return sqlite3_errmsg(database->connection);
    default:
        return sqlite3_errstr(code);
    }
}

int history_database_fail(const struct history_database *database, int code,
                          struct berth_error *error)
{
    int number = sqlite3_system_errno(database->connection);
    int base = code & 0xFF;

    if (base == SQLITE_NOMEM)
        return error_set_memory(error);
    if (number != 0 && (base == SQLITE_IOERR || base == SQLITE_CANTOPEN || base == SQLITE_PERM))
        return error_set_errno(error, number, "cannot use %s", database->path);
    return error_set(error, code_of(code), base == SQLITE_NOTADB ? "%s: %s" : "cannot use %s: %s",
                     database->path, describe_code(database, code));
}

/* ---- Statements ---- */

int history_database_run(struct history_database *database, const char *statements,
                         struct berth_error *error)
{
    int code = sqlite3_exec(database->connection, statements, NULL, NULL, NULL);

    return code == SQLITE_OK ? 0 : history_database_fail(database, code, error);
}

int history_database_prepare(struct history_database *database, const char *words,
                             sqlite3_stmt **ret_statement, struct berth_error *error)
{
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(database->connection, words, -1, &statement, NULL);

    if (code != SQLITE_OK)
        return history_database_fail(database, code, error);
    *ret_statement = statement;
    return 0;
}

int history_database_step(struct history_database *database, sqlite3_stmt *statement,
                          struct berth_error *error)
{
    int code = sqlite3_step(statement);
    int failed = 0;

    if (code != SQLITE_DONE && code != SQLITE_ROW)
        failed = history_database_fail(database, code, error);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return failed;
}

int history_database_query(struct history_database *database, const char *query,
                           int64_t *ret_number, struct berth_error *error)
{
    sqlite3_stmt *statement = NULL;
    int code = history_database_prepare(database, query, &statement, error);

    if (code < 0)
        return code;
    code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        *ret_number = sqlite3_column_int64(statement, 0);
    code = code == SQLITE_ROW ? 0 : history_database_fail(database, code, error);
    sqlite3_finalize(statement);
    return code;
}

/* ---- Opening ---- */

void history_database_close(struct history_database *database)
{
    sqlite3_close_v2(database->connection);
    free(database->path);
    *database = (struct history_database){0};
}

/* A user may have edited the file: run nothing in it, and accept no huge value. */
static void restrict_connection(sqlite3 *connection, bool for_writing)
{
    sqlite3_extended_result_codes(connection, 1);
    sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_VIEW, for_writing ? 1 : 0, NULL);
    sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, VALUE_MAX);
    sqlite3_limit(connection, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_busy_timeout(connection, HISTORY_TIMEOUT);
}

static int open_connection(struct history_database *database, const char *name, int flags,
                           struct berth_error *error)
{
    int code = sqlite3_open_v2(name, &database->connection,
                               flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);

    if (database->connection == NULL)
        return error_set_memory(error);
    restrict_connection(database->connection, (flags & SQLITE_OPEN_READWRITE) != 0);
    return code == SQLITE_OK ? 0 : history_database_fail(database, code, error);
}

/* Checks the application id and reads the version; 0: an empty file. */
static int read_version(struct history_database *database, int64_t *ret_version,
                        struct berth_error *error)
{
    int64_t application = 0;
    int64_t version = 0;
    int64_t tables = 0;
    /* Read both in one transaction: another process may be creating the file. */
    int code = history_database_run(database, "BEGIN", error);

    if (code < 0)
        return code;
    code = history_database_query(database, "PRAGMA application_id", &application, error);
    if (code == 0)
        code = history_database_query(database, "PRAGMA user_version", &version, error);
    if (code == 0)
        code =
            history_database_query(database, "SELECT count(*) FROM sqlite_master", &tables, error);
    if (code < 0)
        return code;
    code = history_database_run(database, "COMMIT", error);
    if (code < 0)
        return code;
    if (application == 0 && version == 0 && tables == 0) {
        *ret_version = 0;
        return 0;
    }
    if (application != HISTORY_APPLICATION_ID || version < 1)
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "%s: expected a history of berth, got another database", database->path);
    if (version > HISTORY_VERSION)
        return error_set(error, BERTH_ERROR_INVALID,
                         "%s: expected a history of version %d, got version %lld of a later berth",
                         database->path, HISTORY_VERSION, (long long)version);
    *ret_version = version;
    return 0;
}

/* Checks that the path is a regular file that can be read. SQLite would wait for a pipe forever,
 * and its messages about files that it cannot open are vague. */
static int check_file(const char *path, struct berth_error *error)
{
    struct stat status = {0};
    int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    int number = descriptor < 0 || fstat(descriptor, &status) < 0 ? errno : 0;

    if (descriptor >= 0)
        close(descriptor);
    if (number != 0)
        return error_set_errno(error, number, "cannot open %s", path);
    if (!S_ISREG(status.st_mode))
        return error_set(error, BERTH_ERROR_INVALID, "%s: expected a file, got something else",
                         path);
    return 0;
}

static int keep_path(struct history_database *database, const char *path, struct berth_error *error)
{
    *database = (struct history_database){.path = strdup(path)};
    return database->path == NULL ? error_set_memory(error) : 0;
}

/* Returns whether everything that was written is in the file itself. */
static bool has_no_log(const char *path)
{
    struct text log = {0};
    struct stat status;
    bool has_none;

    text_append(&log, path);
    text_append(&log, "-wal");
    has_none = !text_failed(&log) && (stat(text_string(&log), &status) < 0 || status.st_size == 0);
    text_finish(&log);
    return has_none;
}

/* Reopens the file as immutable: a file without a writer, perhaps on a read-only disk, needs no log
 * beside it. Only a URI can carry this option. */
static int open_immutable(struct history_database *database, struct berth_error *error)
{
    struct text name = {0};
    int code;

    text_append(&name, "file:");
    for (const char *byte = database->path; *byte != '\0'; byte++) {
        if (strchr("%?#", *byte) != NULL)
            text_append_format(&name, "%%%02X", (unsigned char)*byte);
        else
            text_append_char(&name, *byte);
    }
    text_append(&name, "?immutable=1");
    sqlite3_close_v2(database->connection);
    database->connection = NULL;
    code = text_failed(&name) ? error_set_memory(error)
                              : open_connection(database, text_string(&name),
                                                SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, error);
    text_finish(&name);
    return code;
}

/* Returns whether opening failed because the log beside the file is missing and cannot be
 * created. */
static bool needs_log(const struct history_database *database)
{
    int code = sqlite3_errcode(database->connection) & 0xFF;

    return code == SQLITE_CANTOPEN || code == SQLITE_READONLY;
}

static int open_for_reading(struct history_database *database, struct berth_error *error)
{
    int64_t version = 0;
    int code = open_connection(database, database->path, SQLITE_OPEN_READONLY, error);

    if (code == 0)
        code = read_version(database, &version, error);
    if (code < 0 && needs_log(database) && has_no_log(database->path)) {
        code = open_immutable(database, error);
        if (code == 0)
            code = read_version(database, &version, error);
    }
    if (code < 0)
        return code;
    if (version == 0)
        return error_set(error, BERTH_ERROR_NOT_FOUND, "%s: nothing was recorded yet",
                         database->path);
    database->version = version;
    return 0;
}

int history_database_open_read(struct history_database *database, const char *path,
                               struct berth_error *error)
{
    int code = check_file(path, error);

    if (code < 0)
        return code;
    code = keep_path(database, path, error);
    if (code == 0)
        code = open_for_reading(database, error);
    if (code < 0)
        history_database_close(database);
    return code;
}

static int migrate_schema(struct history_database *database, int64_t version,
                          struct berth_error *error)
{
    struct text statements = {0};
    int code;

    text_append(&statements, "BEGIN IMMEDIATE;");
    for (; version < HISTORY_VERSION; version++)
        text_append(&statements, migrations[version]);
    text_append_format(&statements, "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT;",
                       HISTORY_APPLICATION_ID, HISTORY_VERSION);
    code = text_failed(&statements)
               ? error_set_memory(error)
               : history_database_run(database, text_string(&statements), error);
    if (code < 0)
        sqlite3_exec(database->connection, "ROLLBACK", NULL, NULL, NULL);
    text_finish(&statements);
    return code;
}

static bool is_on_network(const char *path)
{
    struct statfs about;

    if (statfs(path, &about) < 0)
        return false;
    for (size_t i = 0; i < COUNT(network_file_systems); i++) {
        if (((unsigned long)about.f_type & 0xFFFFFFFF) == network_file_systems[i])
            return true;
    }
    return false;
}

/* Chooses the journal mode. The log stays beside the file when no process writes: readers without
 * write permission in the directory need it. */
static int choose_journal(struct history_database *database, struct berth_error *error)
{
    int stays = 1;

    if (is_on_network(database->path))
        return history_database_run(database, "PRAGMA journal_mode = TRUNCATE", error);
    sqlite3_file_control(database->connection, "main", SQLITE_FCNTL_PERSIST_WAL, &stays);
    return history_database_run(
        database, "PRAGMA journal_mode = WAL; PRAGMA journal_size_limit = 4194304;", error);
}

static int open_for_writing(struct history_database *database, struct berth_error *error)
{
    int64_t version = 0;
    int code = open_connection(database, database->path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                               error);

    if (code == 0)
        code = read_version(database, &version, error);
    /* Lets SQLite give back the space of deleted rows; must come before the first table. */
    if (code == 0 && version == 0)
        code = history_database_run(database, "PRAGMA auto_vacuum = INCREMENTAL", error);
    if (code == 0)
        code = choose_journal(database, error);
    if (code == 0)
        code = history_database_run(
            database, "PRAGMA synchronous = NORMAL; PRAGMA cache_size = -512;", error);
    if (code == 0 && version < HISTORY_VERSION)
        code = migrate_schema(database, version, error);
    return code;
}

int history_database_open_write(struct history_database *database, const char *path,
                                struct berth_error *error)
{
    int code = check_file(path, error);

    if (code < 0 && code != BERTH_ERROR_NOT_FOUND)
        return code;
    code = keep_path(database, path, error);
    if (code == 0)
        code = open_for_writing(database, error);
    if (code < 0)
        history_database_close(database);
    return code;
}
