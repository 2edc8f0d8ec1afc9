/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums over leases, and their output as JSON and CSV.
 */
#include "support/unit.h"

#include <sqlite3.h>

#include "base/count.h"
#include "history/history_csv.h"
#include "support/temporary_directory.h"
#include "support/views/history_files.h"

#define HOURS(number) AT((number)*3600.0)

static const struct written_lease some[] = {
    /* Two devices for two hours, after one hour of waiting; idle for a quarter of the time. */
    {1, "ann", "train", "nvidia0,nvidia1", HOURS(0), HOURS(1), HOURS(3), "released",
     .judged = 4 * DURATION_HOUR, .idle = DURATION_HOUR},
    /* Half a device for four hours. */
    {2, "bob", NULL, "nvidia2", HOURS(1), HOURS(1), HOURS(5), "died", .share = 500000},
    /* A lease within lease 1, so its device is not counted again. */
    {3, "ann", "inner", "nvidia0", HOURS(1), HOURS(1), HOURS(3), "parent", .parent = 1},
    /* Still held, last seen after seven hours. */
    {4, "ann", "train", "nvidia0", HOURS(3), HOURS(5), 0, NULL, .judged = DURATION_HOUR},
    /* Two replicas on one device. */
    {5, "eve", "train", "nvidia3,nvidia3", HOURS(2), HOURS(2), HOURS(3), "expired",
     .share = 250000},
};

/* "key leases hours waited idle/judged" for each row, in hundredths of hours. */
static char *describe(const struct history_report *report)
{
    const struct history_row *row;
    struct text words = {0};

    vector_for_each (row, report)
        text_append_format(&words, "%s %d %d %d %d/%d; ", row->key == NULL ? "-" : row->key,
                           (int)row->leases, (int)(row->gpu_time / (DURATION_HOUR / 100)),
                           (int)(row->waited / (DURATION_HOUR / 100)),
                           (int)(row->idle / (DURATION_HOUR / 100)),
                           (int)(row->judged / (DURATION_HOUR / 100)));
    row = &report->total;
    text_append_format(&words, "%d %d %d", (int)row->leases,
                       (int)(row->gpu_time / (DURATION_HOUR / 100)),
                       (int)(row->waited / (DURATION_HOUR / 100)));
    return text_detach(&words);
}

static void check_report(struct history_query query, enum history_by by, const char *wanted)
{
    struct history *history = open_history();
    struct history_report report;
    struct berth_error error = BERTH_ERROR_INIT;
    char *found;

    if (query.now == 0)
        query.now = HOURS(7);
    if (history_report(history, &query, by, &report, &error) < 0)
        fail_msg("%s", error.message);
    found = describe(&report);
    assert_string_equal(found, wanted);
    free(found);
    history_report_finish(&report);
    history_close(history);
}

static int write_some(void **state)
{
    int code = temporary_directory_enter(state);

    if (code == 0)
        write_history(some, COUNT(some), HOURS(7));
    return code;
}

static void everything_is_added_up(void **state)
{
    (void)state;
    check_report((struct history_query){0}, HISTORY_BY_USER,
                 "ann 2 600 300 100/500; bob 1 200 0 0/0; eve 1 50 0 0/0; 4 850 300");
    check_report((struct history_query){0}, HISTORY_BY_NAME,
                 "train 3 650 300 100/500; - 1 200 0 0/0; 4 850 300");
    check_report((struct history_query){0}, HISTORY_BY_DEVICE,
                 "nvidia0 2 400 300 100/500; nvidia1 1 200 100 100/400; nvidia2 1 200 0 0/0; "
                 "nvidia3 1 50 0 0/0; 4 850 300");
}

static void only_the_part_inside_counts(void **state)
{
    (void)state;
    /* The first period has one hour of lease 1, a quarter of it idle. The second period begins
     * after three quarters of its waiting time. */
    check_report((struct history_query){.since = HOURS(2), .until = HOURS(4)}, HISTORY_BY_USER,
                 "ann 1 200 0 50/200; bob 1 100 0 0/0; eve 1 50 0 0/0; 3 350 0");
    check_report((struct history_query){.since = HOURS(0.75), .until = HOURS(1.5)}, HISTORY_BY_USER,
                 "ann 1 100 25 25/100; bob 1 25 0 0/0; 2 125 25");
    /* The sums of two periods add up to those of the whole time. */
    check_report((struct history_query){.until = HOURS(4)}, HISTORY_BY_USER,
                 "ann 1 400 100 100/400; bob 1 150 0 0/0; eve 1 50 0 0/0; 3 600 100");
    check_report((struct history_query){.since = HOURS(4)}, HISTORY_BY_USER,
                 "ann 1 200 100 0/100; bob 1 50 0 0/0; 2 250 100");
    check_report((struct history_query){.since = HOURS(100), .until = HOURS(101)}, HISTORY_BY_USER,
                 "ann 1 0 0 0/0; 1 0 0");
}

static void what_is_held_counts_until_it_was_seen(void **state)
{
    (void)state;
    check_report((struct history_query){.user = "ann", .since = HOURS(4), .now = HOURS(6)},
                 HISTORY_BY_USER, "ann 1 100 100 0/100; 1 100 100");
    /* A minute later it may still be held; a day later that is unknown. */
    check_report((struct history_query){.user = "ann", .since = HOURS(4), .now = HOURS(7.01)},
                 HISTORY_BY_USER, "ann 1 201 100 0/100; 1 201 100");
    check_report((struct history_query){.user = "ann", .since = HOURS(4), .now = HOURS(31)},
                 HISTORY_BY_USER, "ann 1 200 100 0/100; 1 200 100");
}

static void conditions_are_kept(void **state)
{
    (void)state;
    check_report((struct history_query){.name = "train", .device = "nvidia3", .max = 0},
                 HISTORY_BY_USER, "eve 1 50 0 0/0; 1 50 0");
    /* The maximum of listed leases does not change the sums. */
    check_report((struct history_query){.max = 1}, HISTORY_BY_NAME,
                 "train 3 650 300 100/500; - 1 200 0 0/0; 4 850 300");
}

static char *write_json(const struct history_query *query)
{
    struct history *history = open_history();
    struct text out = {0};

    assert_int_equal(history_write_json(history, query, JSON_COMPACT, &out, NULL), 0);
    history_close(history);
    return text_detach(&out);
}

static void programs_get_json(void **state)
{
    char *json = write_json(&(struct history_query){.user = "eve", .now = HOURS(7)});
    struct text empty = {0};

    (void)state;
    assert_string_equal(
        json, "{\"schema\":\"berth.history/1\",\"leases\":[{\"id\":5,\"name\":\"train\","
              "\"user\":\"eve\",\"uid\":1101,\"command\":\"python train.py\","
              "\"devices\":[\"nvidia3\",\"nvidia3\"],\"share\":0.25,\"parent\":null,"
              "\"waited_s\":0,\"held_s\":3600,\"claimed_at\":\"2026-11-01T02:00:00.000Z\","
              "\"granted_at\":\"2026-11-01T02:00:00.000Z\","
              "\"ended_at\":\"2026-11-01T03:00:00.000Z\",\"end\":\"expired\",\"exit_code\":null,"
              "\"idle_share\":null,\"pool\":\"one\",\"leases\":1}]}\n");
    free(json);
    json = write_json(&(struct history_query){.max = 1, .now = HOURS(6)});
    assert_non_null(strstr(json, "\"held_s\":3600,"));
    assert_non_null(strstr(json, "\"ended_at\":null,\"end\":null,\"exit_code\":null"));
    assert_non_null(strstr(json, "\"idle_share\":0,"));
    free(json);
    history_write_json_empty(JSON_COMPACT, &empty);
    assert_string_equal(text_string(&empty), "{\"schema\":\"berth.history/1\",\"leases\":[]}\n");
    text_finish(&empty);
}

static void reports_are_json_too(void **state)
{
    struct history *history = open_history();
    struct history_query query = {.until = HOURS(4), .now = HOURS(7)};
    struct history_report report;
    struct text out = {0};

    (void)state;
    assert_int_equal(history_report(history, &query, HISTORY_BY_NAME, &report, NULL), 0);
    history_write_report_json(&report, HISTORY_BY_NAME, JSON_COMPACT, &out);
    assert_string_equal(
        text_string(&out),
        "{\"schema\":\"berth.report/1\",\"by\":\"name\",\"rows\":["
        "{\"key\":\"train\",\"leases\":2,\"gpu_hours\":4.5,\"waited_s\":3600,\"idle_share\":0.25},"
        "{\"key\":null,\"leases\":1,\"gpu_hours\":1.5,\"waited_s\":0,\"idle_share\":null}],"
        "\"total\":{\"leases\":3,\"gpu_hours\":6,\"waited_s\":3600,\"idle_share\":0.25}}\n");
    text_finish(&out);
    history_report_finish(&report);
    history_close(history);
}

static void write_csv(const struct written_lease *written, struct text *out)
{
    struct history_lease lease = lease_as_put(written);

    history_csv_lease(&lease, HOURS(7), out);
    vector_finish(&lease.devices);
}

static void spreadsheets_get_csv(void **state)
{
    static const struct {
        const char *name;
        const char *cell;
    } rows[] = {
        {"plain", "plain"},
        {"a,b", "\"a,b\""},
        {"say \"hi\"", "\"say \"\"hi\"\"\""},
        {"=1+1", "'=1+1"},
        {"+1", "'+1"},
        {"-1", "'-1"},
        {"@x", "'@x"},
        {"=HYPERLINK(\"x\",\"y\")", "\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\""},
        {"two\r\nlines", "two\xef\xbf\xbd\xef\xbf\xbdlines"},
        {"\t=1", "'\xef\xbf\xbd=1"},
        {"", ""},
        {NULL, ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct written_lease written = {5,        "eve",    rows[i].name, "nvidia3,nvidia4",
                                        HOURS(2), HOURS(2), HOURS(3),     "expired",
                                        250000,   7,        400,          .idle = 100};
        struct text out = {0};
        struct text wanted = {0};

        write_csv(&written, &out);
        text_append_format(&wanted,
                           "5,%s,eve,1101,python train.py,nvidia3 nvidia4,0.25,7,0,3600,"
                           "2026-11-01T02:00:00.000Z,2026-11-01T02:00:00.000Z,"
                           "2026-11-01T03:00:00.000Z,expired,,0.25,,1\r\n",
                           rows[i].cell);
        assert_string_equal(text_string(&out), text_string(&wanted));
        text_finish(&out);
        text_finish(&wanted);
    }
}

static void csv_has_a_header(void **state)
{
    const struct history_row row = {.key = (char *)"=ann", .leases = 2, .gpu_time = DURATION_HOUR};
    const struct history_report report = {.items = (struct history_row *)&row, .count = 1};
    struct text out = {0};
    size_t commas = 0;

    (void)state;
    history_csv_report(&report, HISTORY_BY_USER, &out);
    assert_string_equal(text_string(&out),
                        "user,leases,gpu_hours,waited_s,idle_share\r\n'=ann,2,1,0,\r\n");
    text_clear(&out);
    /* The heading has as many cells as the rows. */
    history_csv_begin(&out);
    write_csv(&some[1], &out);
    for (const char *byte = text_string(&out); *byte != '\0'; byte++)
        commas += *byte == ',';
    assert_int_equal(commas, 2 * 17);
    text_finish(&out);
}

static void sums_count_as_their_leases(void **state)
{
    /* Ninety leases within half an hour, which together held two devices for 12 minutes. */
    static const struct written_lease sum[] = {
        {6, "eve", "tests", "nvidia0,nvidia1", HOURS(0), HOURS(1), HOURS(1.5), "released",
         .leases = 90, .held_time = DURATION_HOUR / 5, .waited_time = 2 * DURATION_HOUR},
    };
    char *json;

    (void)state;
    write_history(sum, COUNT(sum), HOURS(7));
    check_report((struct history_query){0}, HISTORY_BY_DEVICE,
                 "nvidia0 90 20 200 0/0; nvidia1 90 20 200 0/0; 90 40 200");
    check_report((struct history_query){.since = HOURS(1.25)}, HISTORY_BY_NAME,
                 "tests 90 20 100 0/0; 90 20 100");
    json = write_json(&(struct history_query){0});
    assert_non_null(strstr(json, "\"waited_s\":7200,\"held_s\":720,"));
    assert_non_null(strstr(json, "\"leases\":90"));
    free(json);
}

static void old_files_have_no_sums(void **state)
{
    struct written_lease written = {7,        "ann",    "old",  "nvidia0",  HOURS(1),
                                    HOURS(1), HOURS(2), "died", .leases = 1};
    sqlite3 *database;

    (void)state;
    write_history(&written, 1, HOURS(7));
    assert_int_equal(sqlite3_open(HISTORY_FILE, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database,
                                  "ALTER TABLE lease DROP COLUMN leases;"
                                  "ALTER TABLE lease DROP COLUMN held;"
                                  "ALTER TABLE lease DROP COLUMN waited;"
                                  "PRAGMA user_version = 1",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(database);
    check_report((struct history_query){0}, HISTORY_BY_USER, "ann 1 100 0 0/0; 1 100 0");
    /* The next recorder adds the columns. */
    history_record_close(open_record("one"));
    check_report((struct history_query){0}, HISTORY_BY_USER, "ann 1 100 0 0/0; 1 100 0");
}

#define IN_DIRECTORY(test) \
    cmocka_unit_test_setup_teardown(test, temporary_directory_enter, temporary_directory_leave)
#define ON_SOME(test) cmocka_unit_test_setup_teardown(test, write_some, temporary_directory_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SOME(everything_is_added_up),
        ON_SOME(only_the_part_inside_counts),
        ON_SOME(what_is_held_counts_until_it_was_seen),
        ON_SOME(conditions_are_kept),
        ON_SOME(programs_get_json),
        ON_SOME(reports_are_json_too),
        IN_DIRECTORY(sums_count_as_their_leases),
        IN_DIRECTORY(old_files_have_no_sums),
        cmocka_unit_test(spreadsheets_get_csv),
        cmocka_unit_test(csv_has_a_header),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
