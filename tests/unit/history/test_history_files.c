/* SPDX-License-Identifier: Apache-2.0
 *
 * Invalid files, and disks that fail.
 */
#include "support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/count.h"
#include "support/assert_error.h"
#include "support/failing_allocator.h"
#include "support/temporary_directory.h"
#include "support/views/history_files.h"

static const struct written_lease some[] = {
    {1, "ann", "train", "nvidia0", AT(0), AT(10), AT(20), .end = "released"},
    {2, "bob", NULL, "nvidia1,nvidia2", AT(5), AT(15), 0, .end = NULL},
};

static void write_file(const char *path, const char *content)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    fputs(content, file);
    fclose(file);
}

static void run_sql(const char *statements)
{
    sqlite3 *database;
    char *message = NULL;

    assert_int_equal(sqlite3_open(HISTORY_FILE, &database), SQLITE_OK);
    if (sqlite3_exec(database, statements, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s", message);
    sqlite3_close(database);
}

static void check_unreadable(int code, const char *message)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct history *history = (struct history *)&error;

    assert_fails(history_open_read(HISTORY_FILE, &history, &error), code, &error, message);
    assert_ptr_equal(history, &error);
}

static void check_unwritable(int code, const char *message)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct history_record *record;

    assert_fails(history_record_open(HISTORY_FILE, "one", HISTORY_FOR_OWNER, &record, &error), code,
                 &error, message);
}

static int read_all(struct berth_error *error)
{
    struct history *history;
    struct text out = {0};
    int code = history_open_read(HISTORY_FILE, &history, error);

    if (code < 0)
        return code;
    code = history_write_json(history, &(struct history_query){0}, JSON_COMPACT, &out, error);
    text_finish(&out);
    history_close(history);
    return code;
}

static void what_is_missing_is_said(void **state)
{
    (void)state;
    check_unreadable(BERTH_ERROR_NOT_FOUND, "cannot open history.db: No such file or directory");
    write_file(HISTORY_FILE, "");
    check_unreadable(BERTH_ERROR_NOT_FOUND, "history.db: nothing was recorded yet");
    /* An empty file counts as no file. */
    write_history(some, COUNT(some), AT(50));
    assert_found(&(struct history_query){0}, "2 1:released");
}

static void what_is_no_history_is_refused(void **state)
{
    (void)state;
    write_file(HISTORY_FILE, "This is a text, and long enough for a header of a database file: "
                             "one hundred bytes are needed for that, which these are.\n");
    check_unreadable(BERTH_ERROR_SYNTAX, "history.db: expected a history, got something else");
    check_unwritable(BERTH_ERROR_SYNTAX, "history.db: expected a history, got something else");
    unlink(HISTORY_FILE);
    run_sql("CREATE TABLE lease (id)");
    check_unreadable(BERTH_ERROR_SYNTAX,
                     "history.db: expected a history of berth, got another database");
    check_unwritable(BERTH_ERROR_SYNTAX,
                     "history.db: expected a history of berth, got another database");
    unlink(HISTORY_FILE);
    mkdir(HISTORY_FILE, 0700);
    check_unreadable(BERTH_ERROR_INVALID, "history.db: expected a file, got something else");
    check_unwritable(BERTH_ERROR_INVALID, "history.db: expected a file, got something else");
    rmdir(HISTORY_FILE);
    /* A pipe must not block the call. */
    mkfifo(HISTORY_FILE, 0600);
    check_unreadable(BERTH_ERROR_INVALID, "history.db: expected a file, got something else");
    check_unwritable(BERTH_ERROR_INVALID, "history.db: expected a file, got something else");
}

static void a_later_version_is_left_alone(void **state)
{
    (void)state;
    write_history(some, COUNT(some), AT(50));
    run_sql("PRAGMA user_version = 3");
    check_unreadable(BERTH_ERROR_INVALID,
                     "history.db: expected a history of version 2, got version 3 of a later berth");
    check_unwritable(BERTH_ERROR_INVALID,
                     "history.db: expected a history of version 2, got version 3 of a later berth");
}

static void edited_values_do_no_harm(void **state)
{
    static const char *const edits[] = {
        "UPDATE lease SET id = -id, parent = 'x', uid = 1e300, share = -5",
        "UPDATE lease SET share = 9223372036854775807, judged = -1, idle = 9223372036854775807",
        "UPDATE lease SET claimed = 9223372036854775807, granted = -9223372036854775808",
        "UPDATE lease SET granted = 9223372036854775807, ended = -9223372036854775808",
        "UPDATE lease SET granted = -9223372036854775808, ended = 9223372036854775807",
        "UPDATE lease SET user = x'ff00fe', name = x'c328', command = 12.5, end = x'00'",
        "UPDATE lease SET exit_code = -7; UPDATE pool SET seen = 9223372036854775807, name = 5",
        "DELETE FROM pool",
        "UPDATE lease SET devices = ''",
        "UPDATE lease SET pool = 99",
    };
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    for (size_t i = 0; i < COUNT(edits); i++) {
        struct history_report report;
        struct history *history;

        unlink(HISTORY_FILE);
        write_history(some, COUNT(some), AT(50));
        run_sql(edits[i]);
        if (read_all(&error) < 0)
            fail_msg("%s: %s", edits[i], error.message);
        history = open_history();
        for (int by = HISTORY_BY_USER; by <= HISTORY_BY_DEVICE; by++) {
            const struct history_query query = {.since = AT(1), .until = AT(100)};

            assert_int_equal(history_report(history, &query, (enum history_by)by, &report, NULL),
                             0);
            history_report_finish(&report);
        }
        history_close(history);
    }
}

static void what_makes_no_sense_is_named(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    write_history(some, COUNT(some), AT(50));
    run_sql("UPDATE lease SET devices = 'nvidia0,toaster' WHERE id = 2");
    assert_int_equal(read_all(&error), BERTH_ERROR_SYNTAX);
    assert_int_equal(strncmp(error.message, "history.db: lease 2: expected", 29), 0);
    run_sql("ALTER TABLE lease RENAME COLUMN devices TO gone");
    assert_int_equal(read_all(&error), BERTH_ERROR_SYNTAX);
    assert_string_equal(error.message, "cannot use history.db: no such column: lease.devices");
}

/* Code that another program left in a table does not run. */
static void nothing_in_the_file_is_run(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    write_history(some, COUNT(some), AT(50));
    run_sql("DROP VIEW lease_device; ALTER TABLE lease RENAME TO other;"
            "CREATE VIEW lease AS SELECT * FROM other");
    assert_int_equal(read_all(&error), BERTH_ERROR_SYNTAX);
    unlink(HISTORY_FILE);
    write_history(some, COUNT(some), AT(50));
    run_sql("CREATE TRIGGER wild AFTER UPDATE ON pool BEGIN DELETE FROM lease; END");
    write_history(&some[1], 1, AT(51));
    assert_found(&(struct history_query){0}, "2 1:released");
}

/* Any changed bytes: the file is read up to the damage, or refused in one line. */
static void damage_is_survived(void **state)
{
    struct stat status;
    int damaged = 0;
    int refused = 0;

    (void)state;
    write_history(some, COUNT(some), AT(50));
    run_sql("PRAGMA journal_mode = DELETE");
    assert_int_equal(stat(HISTORY_FILE, &status), 0);
    for (off_t at = 0; at < status.st_size; at += 97) {
        struct berth_error error = BERTH_ERROR_INIT;
        unsigned char before;
        unsigned char after = 0xff;
        int file = open(HISTORY_FILE, O_RDWR | O_CLOEXEC);

        assert_int_equal(pread(file, &before, 1, at), 1);
        assert_int_equal(pwrite(file, &after, 1, at), 1);
        if (read_all(&error) < 0) {
            assert_null(strchr(error.message, '\n'));
            assert_non_null(strstr(error.message, HISTORY_FILE));
            refused++;
        }
        damaged++;
        assert_int_equal(pwrite(file, &before, 1, at), 1);
        close(file);
    }
    assert_true(damaged > 100);
    assert_true(refused > 0);
    assert_found(&(struct history_query){0}, "2 1:released");
    /* The file is truncated at any length. */
    for (off_t length = status.st_size - 1; length > 0; length /= 2) {
        struct berth_error error = BERTH_ERROR_INIT;

        assert_int_equal(truncate(HISTORY_FILE, length), 0);
        read_all(&error);
    }
}

static void one_recorder_at_a_time(void **state)
{
    struct history_record *record = open_record("one");

    (void)state;
    check_unwritable(BERTH_ERROR_BUSY, "cannot write history.db: another recorder writes to it");
    history_record_close(record);
    history_record_close(open_record("one"));
}

static void a_file_that_is_gone_is_noticed(void **state)
{
    struct history_record *record = open_record("one");

    (void)state;
    assert_true(history_record_file_exists(record));
    rename(HISTORY_FILE, "elsewhere");
    assert_false(history_record_file_exists(record));
    write_file(HISTORY_FILE, "");
    assert_false(history_record_file_exists(record));
    history_record_close(record);
}

static void directories_are_made(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct history_record *record;
    struct stat status;
    char *path;

    assert_true(asprintf(&path, "%s/a/b/history.db", (char *)*state) > 0);
    assert_int_equal(history_record_open(path, "one", HISTORY_FOR_OWNER, &record, &error), 0);
    history_record_close(record);
    assert_int_equal(stat("a/b", &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    assert_int_equal(stat("a/b/history.db", &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    unlink("a/b/history.db");
    unlink("a/b/history.db-wal");
    unlink("a/b/history.db-shm");
    assert_int_equal(history_record_open(path, "one", HISTORY_FOR_ALL, &record, &error), 0);
    history_record_close(record);
    for (const char *const *ending = (const char *const[]){"", "-wal", "-shm", NULL};
         *ending != NULL; ending++) {
        char name[64];

        snprintf(name, sizeof(name), "a/b/history.db%s", *ending);
        assert_int_equal(stat(name, &status), 0);
        assert_int_equal(status.st_mode & 0777, 0644);
    }
    free(path);
    /* A file is where the directory should be. */
    write_file("file", "");
    assert_true(asprintf(&path, "%s/file/history.db", (char *)*state) > 0);
    assert_int_equal(history_record_open(path, "one", HISTORY_FOR_OWNER, &record, &error),
                     BERTH_ERROR_NOT_FOUND);
    free(path);
}

/* Reads root's file in root's directory as a user without write access. */
static int read_as_nobody(void)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        struct berth_error error = BERTH_ERROR_INIT;
        int code;

        if (setgid(65534) < 0 || setuid(65534) < 0)
            _exit(99);
        code = read_all(&error);
        if (code < 0)
            fprintf(stderr, "%s\n", error.message);
        _exit(-code);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void others_read_what_they_cannot_write(void **state)
{
    struct history_record *record;

    if (geteuid() != 0) {
        print_message("skip: only root can become another user\n");
        skip();
    }
    assert_int_equal(chmod(*state, 0755), 0);
    assert_int_equal(history_record_open(HISTORY_FILE, "one", HISTORY_FOR_ALL, &record, NULL), 0);
    put_leases(record, some, COUNT(some), &(struct history_position){.epoch = 1, .seen = AT(50)});
    assert_int_equal(read_as_nobody(), 0);
    history_record_close(record);
    /* The writer has ended. */
    assert_int_equal(read_as_nobody(), 0);
    /* A copy of the database without its -wal and -shm files. */
    unlink(HISTORY_FILE "-wal");
    unlink(HISTORY_FILE "-shm");
    assert_int_equal(read_as_nobody(), 0);
    assert_int_equal(chmod(HISTORY_FILE, 0600), 0);
    assert_int_equal(read_as_nobody(), -BERTH_ERROR_PERMISSION);
}

/* A file system of this process alone, which ends with it. */
static bool mount_disk(unsigned long flags, const char *size)
{
    mkdir("disk", 0700);
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", "disk", "tmpfs", flags, size) == 0;
}

/* A full disk: the recorded data stays, and writing continues when there is space again. */
static void a_full_disk_is_survived(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    const struct history_position place = {.epoch = 1, .seen = AT(50)};
    struct written_lease lease = some[0];
    struct history_record *record;
    int code = 0;

    (void)state;
    if (!mount_disk(0, "size=512k")) {
        print_message("skip: no file system may be mounted here\n");
        skip();
    }
    assert_int_equal(chdir("disk"), 0);
    record = open_record("one");
    put_leases(record, some, 1, &place);
    write_file("filler", "");
    while (code == 0 && lease.id < 100000) {
        code = history_record_begin(record, &error);
        for (int i = 0; i < 100 && code == 0; i++) {
            struct history_lease put = lease_as_put(&lease);

            put.id = ++lease.id;
            code = history_record_put(record, &put, &error);
            vector_finish(&put.devices);
        }
        if (code == 0)
            code = history_record_commit(record, &place, &error);
    }
    assert_fails(code, BERTH_ERROR_IO, &error, "cannot use history.db: no space left on the disk");
    history_record_close(record);
    assert_int_equal(mount("none", ".", "tmpfs", MS_REMOUNT, "size=8m"), 0);
    record = open_record("one");
    lease.id = 200000;
    put_leases(record, &lease, 1, &place);
    history_record_close(record);
    assert_found((&(struct history_query){.max = 1}), "200000:released");
    assert_int_equal(chdir(".."), 0);
    assert_int_equal(umount("disk"), 0);
}

static void a_directory_that_cannot_be_written_is_said(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct history_record *record;

    (void)state;
    if (!mount_disk(MS_RDONLY, "size=512k")) {
        print_message("skip: no file system may be mounted here\n");
        skip();
    }
    assert_fails(history_record_open("disk/history.db", "one", HISTORY_FOR_OWNER, &record, &error),
                 BERTH_ERROR_IO, &error, "cannot open disk/history.db-lock: Read-only file system");
    assert_int_equal(umount("disk"), 0);
}

/* ---- Without memory ---- */

static int write_and_read(void)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct history_record *record = NULL;
    struct history *history = NULL;
    struct history_report report = {0};
    struct device_id device = {0};
    struct history_lease lease = {
        .id = 1,
        .user = (char *)"ann",
        .devices = {.items = &device, .count = 1},
        .granted = AT(1),
    };
    struct text out = {0};
    bool more;
    int code = history_record_open(HISTORY_FILE, "one", HISTORY_FOR_OWNER, &record, &error);

    if (code == 0)
        code = history_record_begin(record, &error);
    if (code == 0)
        code = history_record_put(record, &lease, &error);
    if (code == 0)
        code = history_record_mark_lost(record, NULL, 0, &error);
    if (code == 0)
        code = history_record_commit(record, &(struct history_position){.seen = AT(2)}, &error);
    if (code == 0)
        code = history_record_delete_old(record, AT(0), &more, &error);
    if (code == 0)
        code = history_open_read(HISTORY_FILE, &history, &error);
    if (code == 0)
        code = history_write_json(history, &(struct history_query){0}, JSON_COMPACT, &out, &error);
    if (code == 0)
        code =
            history_report(history, &(struct history_query){0}, HISTORY_BY_DEVICE, &report, &error);
    history_report_finish(&report);
    text_finish(&out);
    history_close(history);
    history_record_close(record);
    return code;
}

/* The calls succeed if SQLite tolerates the failed allocation. */
static void memory_that_runs_out_is_survived(void **state)
{
    bool is_refused = true;
    unsigned long failed = 0;

    (void)state;
    assert_int_equal(write_and_read(), 0);
    for (unsigned long n = 1; is_refused; n++) {
        int code;

        failing_allocator_start(n);
        code = write_and_read();
        is_refused = failing_allocator_stop();
        if (code != 0 && code != BERTH_ERROR_MEMORY)
            fail_msg("allocation %lu: code %d", n, code);
        failed += code != 0;
    }
    assert_true(failed > 50);
    assert_found(&(struct history_query){0}, "1:lost");
}

/* SQLite uses the test's allocator, so its allocations can fail, too. */
static void *take(int size)
{
    return malloc((size_t)size);
}

static void *change(void *memory, int size)
{
    return realloc(memory, (size_t)size);
}

static int size_of(void *memory)
{
    return (int)malloc_usable_size(memory);
}

static int round_up(int size)
{
    return (size + 7) & ~7;
}

static int begin(void *context)
{
    (void)context;
    return SQLITE_OK;
}

static void end(void *context)
{
    (void)context;
}

static const sqlite3_mem_methods allocator = {
    .xMalloc = take,
    .xFree = free,
    .xRealloc = change,
    .xSize = size_of,
    .xRoundup = round_up,
    .xInit = begin,
    .xShutdown = end,
};

#define IN_DIRECTORY(test) \
    cmocka_unit_test_setup_teardown(test, temporary_directory_enter, temporary_directory_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIRECTORY(what_is_missing_is_said),
        IN_DIRECTORY(what_is_no_history_is_refused),
        IN_DIRECTORY(a_later_version_is_left_alone),
        IN_DIRECTORY(edited_values_do_no_harm),
        IN_DIRECTORY(what_makes_no_sense_is_named),
        IN_DIRECTORY(nothing_in_the_file_is_run),
        IN_DIRECTORY(damage_is_survived),
        IN_DIRECTORY(one_recorder_at_a_time),
        IN_DIRECTORY(a_file_that_is_gone_is_noticed),
        IN_DIRECTORY(directories_are_made),
        IN_DIRECTORY(others_read_what_they_cannot_write),
        IN_DIRECTORY(a_full_disk_is_survived),
        IN_DIRECTORY(a_directory_that_cannot_be_written_is_said),
        IN_DIRECTORY(memory_that_runs_out_is_survived),
    };

    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &allocator) != SQLITE_OK)
        return EXIT_FAILURE;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
