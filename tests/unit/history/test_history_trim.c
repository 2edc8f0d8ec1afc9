/* SPDX-License-Identifier: Apache-2.0
 *
 * The maximum size of a history.
 */
#include "support/unit.h"

#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>

#include "support/temporary_directory.h"
#include "support/views/history_files.h"

#define SIZE (UINT64_C(16) << 20)
/* The size of a batch, for which the caller makes room. */
enum { ROWS = 500, ROW_BYTES = 1000, BATCH_BYTES = ROWS * ROW_BYTES, QUIET = 100, FLOOD = 40000 };

static uint64_t file_size(const char *name)
{
    struct stat status;

    return stat(name, &status) == 0 ? (uint64_t)status.st_size : 0;
}

static uint64_t total_size(void)
{
    return file_size(HISTORY_FILE) + file_size(HISTORY_FILE "-wal");
}

/* Puts leases with these ids and long texts as one batch. */
static int put_batch(struct history_record *record, const char *user, uint64_t first,
                     uint64_t count, struct berth_error *error)
{
    char command[257];
    char name[256];
    int code = history_record_begin(record, error);

    memset(command, 'c', sizeof(command) - 1);
    command[sizeof(command) - 1] = '\0';
    for (uint64_t id = first; id < first + count && code == 0; id++) {
        struct history_lease lease = {
            .id = id,
            .name = name,
            .user = (char *)user,
            .uid = 1000,
            .command = command,
            .share = 1000000,
            .claimed = AT(id),
            .granted = AT(id),
            .ended = AT(id + 1),
            .end = (char *)"released",
        };

        snprintf(name, sizeof(name), "%0200llu", (unsigned long long)id);
        code = history_record_put(record, &lease, error);
    }
    return code == 0 ? history_record_commit(record, &(struct history_position){.epoch = 1}, error)
                     : code;
}

static int make_room(struct history_record *record, struct berth_error *error)
{
    bool more = true;
    int code = 0;

    while (code == 0 && more)
        code = history_record_make_room(record, BATCH_BYTES, &more, error);
    return code;
}

static struct history_record *open_limited(void)
{
    struct history_record *record = open_record("one");

    assert_int_equal(history_record_limit(record, SIZE, NULL), 0);
    return record;
}

static int64_t query(const char *words)
{
    sqlite3 *database;
    sqlite3_stmt *statement;
    int64_t number;

    assert_int_equal(sqlite3_open(HISTORY_FILE, &database), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(database, words, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(database);
    return number;
}

static void a_flood_loses_its_own_oldest_leases(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct history_record *record = open_limited();
    uint64_t largest = 0;

    (void)state;
    assert_int_equal(put_batch(record, "quiet", 1, QUIET, &error), 0);
    for (uint64_t id = QUIET + 1; id <= FLOOD; id += ROWS) {
        if (make_room(record, &error) < 0 || put_batch(record, "flood", id, ROWS, &error) < 0)
            fail_msg("%s", error.message);
        if (total_size() > largest)
            largest = total_size();
    }
    history_record_close(record);
    print_message("largest size %llu KiB, at last %llu KiB, %lld leases\n",
                  (unsigned long long)largest / 1024, (unsigned long long)total_size() / 1024,
                  (long long)query("SELECT count(*) FROM lease"));
    assert_true(largest <= SIZE);
    assert_int_equal(query("SELECT count(*) FROM lease WHERE user = 'quiet'"), QUIET);
    /* The newest leases of the flood are there, without a gap. */
    assert_true(query("SELECT count(*) FROM lease WHERE user = 'flood'") > 8000);
    assert_int_equal(
        query("SELECT max(id) - min(id) + 1 - count(*) FROM lease WHERE user = 'flood'"), 0);
    assert_true(query("SELECT max(id) FROM lease") >= FLOOD);
}

static void a_file_above_a_new_limit_shrinks(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct history_record *record = open_record("one");

    (void)state;
    for (uint64_t id = 1; id <= FLOOD; id += ROWS)
        assert_int_equal(put_batch(record, "flood", id, ROWS, &error), 0);
    assert_true(total_size() > SIZE);
    assert_int_equal(history_record_limit(record, SIZE, &error), 0);
    if (make_room(record, &error) < 0)
        fail_msg("%s", error.message);
    history_record_close(record);
    assert_true(total_size() <= SIZE);
}

static void a_reader_cannot_make_the_log_grow(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct history_record *record = open_limited();
    sqlite3 *reader;
    int code = 0;

    (void)state;
    assert_int_equal(put_batch(record, "quiet", 1, QUIET, &error), 0);
    assert_int_equal(sqlite3_open(HISTORY_FILE, &reader), SQLITE_OK);
    assert_int_equal(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM lease", NULL, NULL, NULL),
                     SQLITE_OK);
    for (uint64_t id = QUIET + 1; id <= FLOOD && code == 0; id += ROWS) {
        code = make_room(record, &error);
        if (code == 0)
            code = put_batch(record, "flood", id, ROWS, &error);
    }
    assert_int_equal(code, BERTH_ERROR_BUSY);
    assert_non_null(strstr(error.message, "another process keeps it locked"));
    assert_true(total_size() <= SIZE);
    sqlite3_close(reader);
    if (make_room(record, &error) < 0)
        fail_msg("%s", error.message);
    assert_true(file_size(HISTORY_FILE "-wal") <= SIZE / 8);
    history_record_close(record);
}

#define IN_DIRECTORY(test) \
    cmocka_unit_test_setup_teardown(test, temporary_directory_enter, temporary_directory_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIRECTORY(a_flood_loses_its_own_oldest_leases),
        IN_DIRECTORY(a_file_above_a_new_limit_shrinks),
        IN_DIRECTORY(a_reader_cannot_make_the_log_grow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
