/* SPDX-License-Identifier: Apache-2.0
 *
 * A history returns the leases that were written to it.
 */
#include "support/unit.h"

#include <sqlite3.h>

#include "base/count.h"
#include "support/temporary_directory.h"
#include "support/views/history_files.h"

static const struct written_lease some[] = {
    {1, "ann", "train", "nvidia0", AT(0), AT(10), AT(20), "released", .exit_code = 3},
    {2, "bob", NULL, "nvidia1,nvidia2", AT(5), AT(15), AT(40), .end = "died"},
    {3, "ann", "TRAIN-big", "nvidia0,nvidia10", AT(20), AT(30), 0, .end = NULL},
    {4, "7", "x", "amd0", AT(30), AT(30), AT(30), .end = "expired"},
};

static void all_are_told_the_last_first(void **state)
{
    (void)state;
    write_history(some, COUNT(some), AT(50));
    assert_found(&(struct history_query){0}, "4:expired 3 2:died 1:released");
    assert_found(&(struct history_query){.max = 2}, "4:expired 3");
}

static void conditions_are_kept(void **state)
{
    (void)state;
    write_history(some, COUNT(some), AT(50));
    assert_found(&(struct history_query){.user = "ann"}, "3 1:released");
    assert_found(&(struct history_query){.user = "an"}, "");
    /* By number, and by a name that is a number. */
    assert_found(&(struct history_query){.user = "1098"}, "2:died");
    assert_found(&(struct history_query){.user = "7"}, "4:expired");
    assert_found(&(struct history_query){.name = "rain"}, "3 1:released");
    assert_found(&(struct history_query){.name = "%"}, "");
    assert_found(&(struct history_query){.device = "nvidia1"}, "2:died");
    assert_found(&(struct history_query){.device = "nvidia0"}, "3 1:released");
    assert_found((&(struct history_query){.user = "ann", .device = "nvidia10", .name = "big"}),
                 "3");
}

static void times_are_kept(void **state)
{
    static const struct {
        double since;
        double until;
        const char *wanted;
    } rows[] = {
        {19, 0, "4:expired 3 2:died 1:released"},
        {20, 0, "4:expired 3 2:died"}, /* lease 1 ended at that moment */
        {30, 0, "4:expired 3 2:died"}, /* lease 4 was held for no time at that moment */
        {31, 0, "3 2:died"},
        {40, 0, "3"},
        {1000, 0, "3"},
        {0, 10, ""},
        {0, 11, "1:released"},
        {0, 30, "2:died 1:released"},
        {20, 30, "2:died"},
        {12, 13, "1:released"},
        {30, 30.5, "4:expired 3 2:died"},
    };

    (void)state;
    write_history(some, COUNT(some), AT(50));
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct history_query query = {
            .since = rows[i].since == 0 ? 0 : AT(rows[i].since),
            .until = rows[i].until == 0 ? 0 : AT(rows[i].until),
        };

        assert_found(&query, rows[i].wanted);
    }
}

static int compare_whole(void *context, const struct history_lease *lease,
                         struct berth_error *error)
{
    const struct written_lease *wanted = context;

    (void)error;
    assert_int_equal(lease->id, wanted->id);
    assert_string_equal(lease->pool, "one");
    assert_string_equal(lease->user, wanted->user);
    assert_string_equal(lease->name, wanted->name);
    assert_string_equal(lease->command, "python train.py");
    assert_int_equal(lease->uid, 1000 + wanted->user[0]);
    assert_int_equal(lease->parent, wanted->parent);
    assert_int_equal(lease->devices.count, 3);
    assert_string_equal(device_id_format(lease->devices.items[1]).text, "nvidia0.2");
    assert_int_equal(lease->share, wanted->share);
    assert_int_equal(lease->claimed, wanted->claimed);
    assert_int_equal(lease->granted, wanted->granted);
    assert_int_equal(lease->ended, wanted->ended);
    assert_int_equal(lease->seen, wanted->ended);
    assert_string_equal(lease->end, wanted->end);
    assert_true(lease->exit_code.known);
    assert_int_equal(lease->exit_code.value, wanted->exit_code);
    assert_int_equal(lease->judged_time, wanted->judged);
    assert_int_equal(lease->idle_time, wanted->idle);
    assert_int_equal(history_lease_waited(lease), wanted->granted - wanted->claimed);
    assert_int_equal(history_lease_held(lease, 0), wanted->ended - wanted->granted);
    return 17;
}

static void a_lease_comes_back_whole(void **state)
{
    /* The same device twice, for two replicas, and a name with characters of every quoting rule. */
    struct written_lease written = {
        .id = INT64_MAX,
        .user = "ann",
        .name = "'; DROP TABLE lease; --\n\"<b>\xff\x1b[31m",
        .devices = "nvidia0,nvidia0.2,nvidia0",
        .claimed = AT(1),
        .granted = AT(2),
        .ended = AT(3.5),
        .end = "released",
        .share = 250000,
        .parent = 7,
        .judged = 90,
        .idle = 30,
        .exit_code = 255,
    };
    struct history *history;

    (void)state;
    write_history(&written, 1, AT(4));
    history = open_history();
    /* The visitor's result ends the loop and is returned. */
    assert_int_equal(
        history_each(history, &(struct history_query){0}, compare_whole, &written, NULL), 17);
    history_close(history);
}

static int check_held(void *context, const struct history_lease *lease, struct berth_error *error)
{
    const int64_t *times = context;

    (void)error;
    assert_int_equal(lease->ended, 0);
    assert_null(lease->end);
    assert_false(lease->exit_code.known);
    assert_int_equal(history_lease_held(lease, times[0]), times[1]);
    return 0;
}

static void what_is_held_was_held_until_it_was_seen(void **state)
{
    const struct written_lease written = {1, "ann", "x", "nvidia0", AT(0), AT(10), 0, .end = NULL};
    const int64_t lately[] = {AT(70), 60 * DURATION_SECOND};
    const int64_t long_ago[] = {AT(7000), 40 * DURATION_SECOND};
    const int64_t before[] = {AT(5), 0};
    struct history *history;

    (void)state;
    write_history(&written, 1, AT(50));
    history = open_history();
    history_each(history, &(struct history_query){0}, check_held, (void *)lately, NULL);
    /* The last report that it is held is too old. */
    history_each(history, &(struct history_query){0}, check_held, (void *)long_ago, NULL);
    /* The clock was set back. */
    history_each(history, &(struct history_query){0}, check_held, (void *)before, NULL);
    history_close(history);
}

static void a_lease_is_there_once(void **state)
{
    struct written_lease lease = {1, "ann", "x", "nvidia0", AT(0), AT(10), 0, .end = NULL};
    struct history_record *record = open_record("one");
    const struct history_position place = {.epoch = 1, .seen = AT(15)};

    (void)state;
    put_leases(record, &lease, 1, &place);
    put_leases(record, &lease, 1, &place);
    assert_found(&(struct history_query){0}, "1");
    lease.ended = AT(20);
    lease.end = "released";
    put_leases(record, &lease, 1, &place);
    put_leases(record, &lease, 1, &place);
    assert_found(&(struct history_query){0}, "1:released");
    /* It has ended, even if an older report says that it is held. */
    lease.ended = 0;
    put_leases(record, &lease, 1, &place);
    assert_found(&(struct history_query){0}, "1:released");
    lease.ended = AT(30);
    lease.end = "expired";
    put_leases(record, &lease, 1, &place);
    assert_found(&(struct history_query){0}, "1:released");
    history_record_close(record);
}

static void pools_count_for_themselves(void **state)
{
    const struct written_lease lease = {1,     "ann",  "x",    "nvidia0",
                                        AT(0), AT(10), AT(11), .end = "died"};
    struct history_record *record;

    (void)state;
    write_history(&lease, 1, AT(15));
    record = open_record("two");
    assert_int_equal(history_record_position(record).epoch, 0);
    put_leases(record, &lease, 1,
               &(struct history_position){.epoch = 9, .known = 1, .seen = AT(16)});
    history_record_close(record);
    assert_found(&(struct history_query){0}, "1:died 1:died");
}

static void how_far_it_got_is_remembered(void **state)
{
    const struct history_position place = {.epoch = UINT64_MAX - 1, .known = 12345, .seen = AT(1)};
    struct history_record *record = open_record("one");

    (void)state;
    assert_int_equal(history_record_position(record).epoch, 0);
    put_leases(record, NULL, 0, &place);
    history_record_close(record);
    record = open_record("one");
    assert_true(history_record_position(record).epoch == place.epoch);
    assert_int_equal(history_record_position(record).known, 12345);
    assert_int_equal(history_record_position(record).seen, AT(1));
    /* An uncommitted transaction is undone. */
    assert_int_equal(history_record_begin(record, NULL), 0);
    history_record_close(record);
    assert_found(&(struct history_query){0}, "");
}

static void lose(struct history_record *record, const uint64_t *held, size_t count, int64_t seen)
{
    assert_int_equal(history_record_begin(record, NULL), 0);
    assert_int_equal(history_record_mark_lost(record, held, count, NULL), 0);
    assert_int_equal(
        history_record_commit(record, &(struct history_position){.epoch = 2, .seen = seen}, NULL),
        0);
}

static int check_ended(void *context, const struct history_lease *lease, struct berth_error *error)
{
    (void)error;
    if (lease->id == 2)
        *(int64_t *)context = lease->ended;
    return 0;
}

static void what_nobody_holds_any_more_is_lost(void **state)
{
    struct written_lease held[] = {
        {1, "ann", "x", "nvidia0", AT(0), AT(10), 0, .end = NULL},
        {2, "ann", "x", "nvidia1", AT(0), AT(10), 0, .end = NULL},
        {3, "ann", "x", "nvidia2", AT(0), AT(10), 0, .end = NULL},
        {4, "ann", "x", "nvidia3", AT(0), AT(60), 0, .end = NULL},
    };
    const uint64_t left[] = {1, 3, 99};
    struct history_record *record = open_record("one");
    struct history *history;
    int64_t ended = 0;

    (void)state;
    put_leases(record, held, COUNT(held), &(struct history_position){.epoch = 1, .seen = AT(50)});
    lose(record, left, COUNT(left), AT(100));
    assert_found(&(struct history_query){0}, "4:lost 3 2:lost 1");
    history = open_history();
    history_each(history, &(struct history_query){0}, check_ended, &ended, NULL);
    history_close(history);
    /* The time when it was last known to be held, not the time of the check. */
    assert_int_equal(ended, AT(50));
    /* Later reports correct how it ended, or that it is still held. */
    held[1].ended = AT(49);
    held[1].end = "revoked";
    put_leases(record, &held[1], 1, &(struct history_position){.epoch = 2, .seen = AT(101)});
    put_leases(record, &held[3], 1, &(struct history_position){.epoch = 2, .seen = AT(101)});
    assert_found(&(struct history_query){0}, "4 3 2:revoked 1");
    lose(record, NULL, 0, AT(102));
    assert_found(&(struct history_query){0}, "4:lost 3:lost 2:revoked 1:lost");
    history_record_close(record);
}

static void leases_of_other_pools_are_lost(void **state)
{
    const struct written_lease held = {5, "ann", "x", "nvidia0", AT(0), AT(10), 0, .end = NULL};
    struct history_record *record;

    (void)state;
    write_history(&held, 1, AT(50));
    record = open_record("one");
    assert_found(&(struct history_query){0}, "5");
    history_record_close(record);
    record = open_record("two");
    assert_found(&(struct history_query){0}, "5:lost");
    history_record_close(record);
}

static void old_ones_are_forgotten(void **state)
{
    enum { MANY = 1200 };
    struct history_record *record = open_record("one");
    struct written_lease lease = {0, "ann", "x", "nvidia0", AT(0), AT(10), AT(20), .end = "died"};
    const struct history_position place = {.epoch = 1, .seen = AT(50)};
    bool more = true;
    int steps = 0;

    (void)state;
    assert_int_equal(history_record_begin(record, NULL), 0);
    for (lease.id = 1; lease.id <= MANY; lease.id++) {
        struct history_lease put = lease_as_put(&lease);

        assert_int_equal(history_record_put(record, &put, NULL), 0);
        vector_finish(&put.devices);
    }
    assert_int_equal(history_record_commit(record, &place, NULL), 0);
    lease.ended = AT(30);
    put_leases(record, &lease, 1, &place);
    lease.id++;
    lease.ended = 0;
    put_leases(record, &lease, 1, &place);
    for (; more; steps++)
        assert_int_equal(history_record_delete_old(record, AT(30), &more, NULL), 0);
    /* A few at a time, and never a held lease. */
    assert_int_equal(steps, 4);
    assert_found(&(struct history_query){0}, "1202 1201:died");
    history_record_close(record);
}

/* SQL that users may run, as in the documentation. */
static void every_device_has_its_row(void **state)
{
    sqlite3 *database;
    sqlite3_stmt *statement;

    (void)state;
    write_history(some, COUNT(some), AT(50));
    assert_int_equal(sqlite3_open(HISTORY_FILE, &database), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(database,
                           "SELECT group_concat(device || '/' || id, ' ') FROM (SELECT device, id"
                           " FROM lease_device ORDER BY id, device)",
                           -1, &statement, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(statement, 0),
                        "nvidia0/1 nvidia1/2 nvidia2/2 nvidia0/3 nvidia10/3 amd0/4");
    sqlite3_finalize(statement);
    sqlite3_close(database);
}

#define IN_DIRECTORY(test) \
    cmocka_unit_test_setup_teardown(test, temporary_directory_enter, temporary_directory_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIRECTORY(all_are_told_the_last_first),
        IN_DIRECTORY(conditions_are_kept),
        IN_DIRECTORY(times_are_kept),
        IN_DIRECTORY(a_lease_comes_back_whole),
        IN_DIRECTORY(what_is_held_was_held_until_it_was_seen),
        IN_DIRECTORY(a_lease_is_there_once),
        IN_DIRECTORY(pools_count_for_themselves),
        IN_DIRECTORY(how_far_it_got_is_remembered),
        IN_DIRECTORY(what_nobody_holds_any_more_is_lost),
        IN_DIRECTORY(leases_of_other_pools_are_lost),
        IN_DIRECTORY(old_ones_are_forgotten),
        IN_DIRECTORY(every_device_has_its_row),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
