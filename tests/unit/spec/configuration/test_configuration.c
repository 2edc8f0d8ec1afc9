/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "spec/configuration/configuration.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count.h"
#include "base/text/quantity.h"
#include "support/spec/documents.h"
#include "support/temporary_directory.h"

/* Root exists everywhere, by name and as 0. */
static const char every_key[] =
    "policy: round-robin\n"
    "grace: 1m30s\n"
    "age_step: 2h\n"
    "time_slice_tenants: 2\n"
    "mps_tenants: 1024\n"
    "mps: yes\n"
    "mps_control: /opt/mps-control\n"
    "default_time: 8h\n"
    "longest_time: 2-00:00:00\n"
    "time_warning: 0s\n"
    "admins: {users: [root], groups: [0, root, 27]}\n"
    "high: [root, 1001, 4294967294]\n"
    "limits:\n"
    "  each_user: {devices: 4, longest_time: 1d}\n"
    "  users: {root: 2, 1001: {devices: 0.5}, 7: {longest_time: 4h}}\n"
    "  groups: {root: 0, 100: 1000000}\n"
    "bounds: {connections: 10, messages: 1000000, waiting: 1}\n"
    "preferred: [nvidia4, nvidia0.3, amd0]\n"
    "reserved:\n"
    "  nvidia7: {users: [root, 5], groups: [100]}\n"
    "  nvidia6: {}\n"
    "  nvidia5: nobody\n"
    "  amd1: [1001]\n"
    "squatters: ignore\n"
    "squatters_except: [Xorg, gnome-shell]\n"
    "idle_warning: 30m\n"
    "idle_reclaim: 2h\n"
    "prolog: {command: [/opt/check, --quick], deadline: 100ms, rights: yes}\n"
    "epilog: {command: /opt/clean}\n"
    "notify: [/opt/mail, -s, GPUs]\n"
    "history: /srv/berth/past.db\n"
    "history_keep: 365d\n"
    "squatter_memory: 4GiB\n"
    "history_size: 200MiB\n"
    "show_commands: all\n";

/* Reads a configuration, which must be valid; the caller finishes it. */
static struct configuration parse(const char *string)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct configuration configuration;
    char *copy = exact_copy(string, strlen(string));
    int code = configuration_parse(FILE_NAME, copy, strlen(string), &configuration, &error);

    free(copy);
    assert_string_equal(error.message, "");
    assert_int_equal(code, 0);
    return configuration;
}

/* Reads a configuration that must fail with this code, and with this message after the file's
 * name. */
static void check_refused(const char *bytes, size_t length, int code, const char *message)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct configuration configuration = {.grace = 4711};
    char *copy = exact_copy(bytes, length);
    int found = configuration_parse(FILE_NAME, copy, length, &configuration, &error);

    assert_int_equal(configuration_parse(FILE_NAME, copy, length, &configuration, NULL), found);
    free(copy);
    assert_int_equal(strncmp(error.message, FILE_NAME ":", strlen(FILE_NAME ":")), 0);
    assert_string_equal(error.message + strlen(FILE_NAME ":"), message);
    assert_int_equal(found, code);
    assert_int_equal(error.code, code);
    assert_int_equal(configuration.grace, 4711);
}

static void check_defaults(struct configuration *configuration)
{
    assert_null(configuration->policy.name);
    assert_int_equal(configuration->grace, 10 * DURATION_SECOND);
    assert_int_equal(configuration->age_step, DURATION_HOUR);
    assert_int_equal(configuration->time_slice_tenants, 4);
    assert_int_equal(configuration->mps_tenants, 8);
    assert_int_equal(configuration->default_time, 0);
    assert_int_equal(configuration->longest_time, 0);
    assert_int_equal(configuration->time_warning, 5 * DURATION_MINUTE);
    assert_int_equal(configuration->admins.users.count + configuration->admins.groups.count, 0);
    assert_int_equal(configuration->high.users.count + configuration->high.groups.count, 0);
    assert_true(configuration->each_user.devices == DEVICES_UNLIMITED);
    assert_int_equal(configuration->each_user.longest_time, 0);
    assert_int_equal(configuration->limits.count, 0);
    assert_int_equal(configuration->bounds.connections, 1000);
    assert_int_equal(configuration->bounds.messages, 5000);
    assert_int_equal(configuration->bounds.waiting, 1000);
    assert_int_equal(configuration->preferred.count + configuration->reserved.count, 0);
    assert_int_equal(configuration->squatters, SQUATTING_AVOIDED);
    assert_int_equal(configuration->squatters_except.count, 0);
    assert_int_equal(configuration->idle_warning + configuration->idle_reclaim, 0);
    assert_int_equal(configuration->prolog.argv.count + configuration->epilog.argv.count, 0);
    assert_int_equal(configuration->prolog.deadline, 30 * DURATION_SECOND);
    assert_int_equal(configuration->epilog.deadline, 30 * DURATION_SECOND);
    assert_int_equal(configuration->notify.count, 0);
    assert_null(configuration->mps_control);
    assert_false(configuration->mps);
    assert_false(configuration->prolog.may_signal || configuration->epilog.may_signal);
    assert_false(configuration->history.is_off);
    assert_null(configuration->history.file);
    assert_int_equal(configuration->history_keep, 90 * DURATION_DAY);
    assert_int_equal(configuration->history_size.value, UINT64_C(1) << 30);
    assert_int_equal(configuration->squatter_memory.value, UINT64_C(1) << 30);
    assert_int_equal(configuration->show_commands, SHOW_COMMANDS_DEFAULT);
    assert_true(configuration_shows_commands(configuration, true));
    assert_false(configuration_shows_commands(configuration, false));
    configuration_finish(configuration);
}

static void check_limit(const struct device_limit *limit, uint32_t key, bool is_group, uint64_t max)
{
    assert_int_equal(limit->key, key);
    assert_int_equal(limit->is_group, is_group);
    assert_true(limit->allowance.devices == max);
}

/* Compares the numbers with a text that has them with blanks between. */
static void check_numbers(const struct number_list *list, const char *wanted)
{
    struct text found = {0};
    const uint32_t *number;

    vector_for_each (number, list)
        text_append_format(&found, "%s%u", number == list->items ? "" : " ", *number);
    assert_string_equal(text_string(&found), wanted);
    text_finish(&found);
}

static void check_strings(const struct string_list *list, const char *wanted)
{
    struct text found = {0};
    char **string;

    vector_for_each (string, list)
        text_append_format(&found, "%s%s", string == list->items ? "" : " ", *string);
    assert_string_equal(text_string(&found), wanted);
    text_finish(&found);
}

static void check_reserved(const struct reserved_device *reserved, const char *id,
                           const char *users, const char *groups)
{
    assert_string_equal(device_id_format(reserved->id).text, id);
    check_numbers(&reserved->principals.users, users);
    check_numbers(&reserved->principals.groups, groups);
}

/* ---- Valid files ---- */

static void every_key_is_read(void **state)
{
    struct configuration configuration = parse(every_key);

    (void)state;
    assert_string_equal(configuration.policy.name, "round-robin");
    assert_int_equal(configuration.policy.line, 1);
    assert_int_equal(configuration.policy.column, 9);
    assert_int_equal(configuration.grace, 90 * DURATION_SECOND);
    assert_int_equal(configuration.age_step, 2 * DURATION_HOUR);
    assert_int_equal(configuration.time_slice_tenants, 2);
    assert_int_equal(configuration.mps_tenants, 1024);
    assert_int_equal(configuration.default_time, 8 * DURATION_HOUR);
    assert_int_equal(configuration.longest_time, 2 * DURATION_DAY);
    assert_int_equal(configuration.time_warning, 0);
    assert_int_equal(configuration.bounds.connections, 10);
    assert_int_equal(configuration.bounds.messages, 1000000);
    assert_int_equal(configuration.bounds.waiting, 1);
    assert_int_equal(configuration.idle_warning, 30 * DURATION_MINUTE);
    assert_int_equal(configuration.idle_reclaim, 2 * DURATION_HOUR);
    configuration_finish(&configuration);
}

static void people_are_read(void **state)
{
    struct configuration configuration = parse(every_key);

    (void)state;
    check_numbers(&configuration.admins.users, "0");
    check_numbers(&configuration.admins.groups, "0 0 27");
    check_numbers(&configuration.high.users, "0 1001 4294967294");
    check_numbers(&configuration.high.groups, "");
    assert_true(configuration_number_list_has(&configuration.high.users, 1001));
    assert_false(configuration_number_list_has(&configuration.high.users, 1002));
    assert_false(configuration_number_list_has(&configuration.high.groups, 0));
    configuration_finish(&configuration);
}

static void limits_are_read(void **state)
{
    struct configuration configuration = parse(every_key);
    const struct device_limit *limits = configuration.limits.items;

    (void)state;
    assert_int_equal(configuration.each_user.devices, 4000000);
    assert_int_equal(configuration.each_user.longest_time, DURATION_DAY);
    assert_int_equal(configuration.limits.count, 5);
    check_limit(&limits[0], 0, false, 2000000);
    check_limit(&limits[1], 1001, false, 500000);
    check_limit(&limits[2], 7, false, DEVICES_UNLIMITED);
    check_limit(&limits[3], 0, true, 0);
    check_limit(&limits[4], 100, true, UINT64_C(1000000000000));
    assert_int_equal(limits[1].allowance.longest_time, 0);
    assert_int_equal(limits[2].allowance.longest_time, 4 * DURATION_HOUR);
    configuration_finish(&configuration);
}

static void devices_are_read(void **state)
{
    struct configuration configuration = parse(every_key);
    const struct reserved_device *reserved = configuration.reserved.items;

    (void)state;
    assert_int_equal(configuration.preferred.count, 3);
    assert_string_equal(device_id_format(configuration.preferred.items[0]).text, "nvidia4");
    assert_string_equal(device_id_format(configuration.preferred.items[1]).text, "nvidia0.3");
    assert_string_equal(device_id_format(configuration.preferred.items[2]).text, "amd0");
    assert_int_equal(configuration.reserved.count, 4);
    check_reserved(&reserved[0], "nvidia7", "0 5", "100");
    check_reserved(&reserved[1], "nvidia6", "", "");
    check_reserved(&reserved[2], "nvidia5", "", "");
    check_reserved(&reserved[3], "amd1", "1001", "");
    configuration_finish(&configuration);
}

static void programs_are_read(void **state)
{
    struct configuration configuration = parse(every_key);

    (void)state;
    assert_int_equal(configuration.squatters, SQUATTING_IGNORED);
    check_strings(&configuration.squatters_except, "Xorg gnome-shell");
    check_strings(&configuration.prolog.argv, "/opt/check --quick");
    assert_int_equal(configuration.prolog.deadline, DURATION_SECOND / 10);
    check_strings(&configuration.epilog.argv, "/opt/clean");
    assert_int_equal(configuration.epilog.deadline, 30 * DURATION_SECOND);
    check_strings(&configuration.notify, "/opt/mail -s GPUs");
    assert_false(configuration.history.is_off);
    assert_string_equal(configuration.history.file, "/srv/berth/past.db");
    assert_int_equal(configuration.history_keep, 365 * DURATION_DAY);
    assert_int_equal(configuration.history_size.value, UINT64_C(200) << 20);
    assert_int_equal(configuration.squatter_memory.value, UINT64_C(4) << 30);
    assert_int_equal(configuration.show_commands, SHOW_COMMANDS_ALL);
    assert_true(configuration_shows_commands(&configuration, false));
    assert_string_equal(configuration.mps_control, "/opt/mps-control");
    assert_true(configuration.mps);
    assert_true(configuration.prolog.may_signal);
    assert_false(configuration.epilog.may_signal);
    configuration_finish(&configuration);
}

static void json_is_read(void **state)
{
    struct configuration configuration =
        parse("{\"grace\": \"500ms\", \"high\": [\"1001\"], \"limits\": {\"users\": {\"5\": 1}}}");

    (void)state;
    assert_int_equal(configuration.grace, DURATION_SECOND / 2);
    assert_int_equal(configuration.high.users.items[0], 1001);
    check_limit(&configuration.limits.items[0], 5, false, 1000000);
    configuration_finish(&configuration);
}

static void what_is_left_out_is_as_usual(void **state)
{
    static const char *const texts[] = {
        "",
        "# nothing\n",
        "~",
        "{}",
        "policy:\ngrace: ~\nage_step: null\nhigh:\nlimits:\n",
        "limits: {each_user: , users: ~, groups: {}}\nhigh: []\nadmins: {}\n",
        "bounds: {}\npreferred: []\nreserved: {}\nsquatters: avoid\nsquatters_except: []\n",
        "bounds: {waiting: ~}\nhigh: {users: ~, groups: []}\nprolog: ~\nnotify:\n",
        "history: yes\nhistory_keep: 90d\nhistory_size: 1GiB\n",
        "history:\nhistory_keep: ~\nhistory_size: ~\nshow_commands:\n",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct configuration configuration = parse(texts[i]);

        check_defaults(&configuration);
    }
}

static void extremes_are_taken(void **state)
{
    struct configuration configuration = parse("grace: 1ms\nage_step: 1s\nmps_tenants: 1\n"
                                               "default_time: 1h\nlongest_time: 1h\n");

    (void)state;
    assert_int_equal(configuration.grace, DURATION_SECOND / 1000);
    assert_int_equal(configuration.age_step, DURATION_SECOND);
    assert_int_equal(configuration.mps_tenants, 1);
    assert_int_equal(configuration.default_time, configuration.longest_time);
    configuration_finish(&configuration);
}

static void zeroed_memory_is_finished(void **state)
{
    struct configuration configuration = {0};

    (void)state;
    configuration_finish(&configuration);
    configuration_finish(&configuration);
}

/* ---- Invalid files ---- */

/* Checks the codes; the messages are in tests/data/configuration/bad. */
static const struct {
    const char *text;
    int code;
    const char *message;
} bad[] = {
    {"polcy: first", BERTH_ERROR_SYNTAX,
     "1:1: a configuration has no field 'polcy', did you mean 'policy'?"},
    {"[]", BERTH_ERROR_SYNTAX,
     "1:1: expected a configuration with fields such as 'policy', got a list of 0"},
    {"policy: [first]", BERTH_ERROR_SYNTAX, "1:9: policy: expected a text, got a list of 1"},
    {"grace: 0", BERTH_ERROR_RANGE, "1:8: grace: expected at least 1ms, got '0'"},
    {"grace: -1s", BERTH_ERROR_SYNTAX,
     "1:8: grace: expected a duration such as 90s, 1h30m or 2-00:00:00, got '-1s'"},
    {"default_time: 0s", BERTH_ERROR_RANGE, "1:15: default_time: expected at least 1s, got '0s'"},
    {"longest_time: 0", BERTH_ERROR_RANGE, "1:15: longest_time: expected at least 1s, got '0'"},
    {"longest_time: 99999999999h", BERTH_ERROR_RANGE,
     "1:15: longest_time: expected a duration of at most 106751 days, got '99999999999h'"},
    {"longest_time: 1h\ndefault_time: 2h", BERTH_ERROR_INVALID,
     "2:15: default_time: expected at most longest_time (1h), got 2h"},
    {"time_slice_tenants: 1025", BERTH_ERROR_RANGE,
     "1:21: time_slice_tenants: expected a whole number from 1 to 1024, got 1025"},
    {"mps_tenants: many", BERTH_ERROR_SYNTAX,
     "1:14: mps_tenants: expected a whole number, got 'many'"},
    {"high:\n- root\n- nobody by this name", BERTH_ERROR_INVALID,
     "3:3: high: expected a user that is known here, got 'nobody by this name'"},
    {"limits: {groups: {nobody by this name: 1}}", BERTH_ERROR_INVALID,
     "1:19: groups: expected a group that is known here, got 'nobody by this name'"},
    {"limits: {users: {0: 1, root: 2}}", BERTH_ERROR_INVALID, "1:24: users: 'root' is given twice"},
    {"limits: {users: {0: 1000001}}", BERTH_ERROR_RANGE,
     "1:21: users: expected a number from 0 to 1000000, got '1000001'"},
    {"limits: {users: {[0]: 1}}", BERTH_ERROR_SYNTAX,
     "1:18: users: expected a user, got a list of 1"},
    {"preferred: [nvidia0, nvidia0]", BERTH_ERROR_INVALID,
     "1:22: preferred: 'nvidia0' is given twice"},
    {"mps: true", BERTH_ERROR_INVALID, "1:6: mps: expected yes or no, got 'true'"},
    {"epilog: {command: /opt/x, rights: kill}", BERTH_ERROR_INVALID,
     "1:35: rights: expected yes or no, got 'kill'"},
    {"history: maybe", BERTH_ERROR_INVALID,
     "1:10: history: expected yes, no or the absolute path of a file, got 'maybe'"},
    {"history: past.db", BERTH_ERROR_INVALID,
     "1:10: history: expected yes, no or the absolute path of a file, got 'past.db'"},
    {"history: /var/lib/", BERTH_ERROR_INVALID,
     "1:10: history: expected yes, no or the absolute path of a file, got '/var/lib/'"},
    {"history: []", BERTH_ERROR_SYNTAX,
     "1:10: history: expected yes, no or the absolute path of a file, got a list of 0"},
    {"history_keep: 0s", BERTH_ERROR_RANGE, "1:15: history_keep: expected at least 1s, got '0s'"},
    {"history_size: 15MiB", BERTH_ERROR_RANGE,
     "1:15: history_size: expected a size from 16 MiB to 1 PiB, got '15MiB'"},
    {"show_commands: mine", BERTH_ERROR_INVALID,
     "1:16: show_commands: expected one of owner, all, got 'mine'"},
    {"notify: berth-mail", BERTH_ERROR_INVALID,
     "1:9: notify: expected an absolute path, got 'berth-mail'"},
    {"squatters: avoidd", BERTH_ERROR_INVALID,
     "1:12: squatters: expected one of avoid, ignore, got 'avoidd' (did you mean avoid?)"},
    {"grace: [", BERTH_ERROR_SYNTAX,
     "2:1: expected YAML or JSON: did not find expected node content"},
    {"high: &a [*a]", BERTH_ERROR_SYNTAX,
     "1:11: expected an alias to a complete value, got 'a' within itself"},
};

static void bad_ones_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        check_refused(bad[i].text, strlen(bad[i].text), bad[i].code, bad[i].message);
}

static void zero_bytes_are_refused(void **state)
{
    (void)state;
    check_refused(BYTES("high: [\"root\\0\"]"), BERTH_ERROR_SYNTAX,
                  "1:8: high: expected a user, got 'root?' with a zero byte");
    check_refused(BYTES("limits: {users: {\"0\\0\": 1}}"), BERTH_ERROR_SYNTAX,
                  "1:18: users: expected a user, got '0?' with a zero byte");
    check_refused(BYTES("\"grace\\0\": 1s"), BERTH_ERROR_SYNTAX,
                  "1:1: a configuration has no field 'grace?', did you mean 'grace'?");
}

/* Checks that a list of `max` items is valid, and that one more item is refused. The items are
 * numbered: "ITEM0VALUE, ITEM1VALUE, ", between `before` and `after`. */
static void check_too_many(const char *before, const char *item, const char *value,
                           const char *after, unsigned max, const char *message)
{
    for (unsigned times = max; times <= max + 1; times++) {
        struct text text = {0};
        struct configuration configuration;

        text_append(&text, before);
        for (unsigned i = 0; i < times; i++)
            text_append_format(&text, "%s%u%s, ", item, i, value);
        text_append(&text, after);
        assert_false(text_failed(&text));
        if (times > max) {
            check_refused(text_string(&text), text.length, BERTH_ERROR_LIMIT, message);
        } else {
            configuration = parse(text_string(&text));
            configuration_finish(&configuration);
        }
        text_finish(&text);
    }
}

static void lists_that_are_too_long_are_refused(void **state)
{
    (void)state;
    check_too_many("high: [", "", "", "]", CONFIGURED_PRINCIPALS_MAX,
                   "1:7: high: expected at most 10000 users, got 10001");
    check_too_many("admins: {groups: [", "", "", "]}", CONFIGURED_PRINCIPALS_MAX,
                   "1:18: groups: expected at most 10000 groups, got 10001");
    check_too_many("limits: {users: {", "", ": 1", "}}", CONFIGURED_LIMITS_MAX,
                   "1:88908: users: expected at most 10000 limits, got more");
    check_too_many("preferred: [", "nvidia", "", "]", DEVICE_ID_LIST_MAX,
                   "1:12: preferred: expected at most 4096 device ids, got 4097");
    check_too_many("reserved: {", "nvidia", ": {}", "}", DEVICE_ID_LIST_MAX,
                   "1:11: reserved: expected at most 4096 device ids, got 4097");
    check_too_many("squatters_except: [", "program", "", "]", CONFIGURED_PROGRAMS_MAX,
                   "1:19: squatters_except: expected at most 1000 names of programs, got 1001");
    check_too_many("notify: [", "/", "", "]", CONFIGURED_ARGUMENTS_MAX,
                   "1:9: notify: expected at most 1000 words, got 1001");
}

static void words_may_be_as_long_as_a_path(void **state)
{
    struct text text = {0};
    struct configuration configuration;

    (void)state;
    text_append(&text, "notify: /");
    text_append_repeated(&text, 'x', 4094);
    configuration = parse(text_string(&text));
    assert_int_equal(strlen(configuration.notify.items[0]), 4095);
    configuration_finish(&configuration);
    text_append_char(&text, 'x');
    check_refused(text_string(&text), text.length, BERTH_ERROR_RANGE,
                  "1:9: notify: expected a text of 1 to 4095 bytes, got 4096");
    text_finish(&text);
}

/* ---- Files ---- */

static void write_file(const char *path, const char *content)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fputs(content, file) < 0, 0);
    assert_int_equal(fclose(file), 0);
}

static void files_are_read(void **state)
{
    struct configuration configuration;

    (void)state;
    write_file("berth.yaml", "grace: 3s\n");
    assert_int_equal(configuration_read("berth.yaml", &configuration, NULL), 0);
    assert_int_equal(configuration.grace, 3 * DURATION_SECOND);
    configuration_finish(&configuration);
}

static void a_file_that_is_not_there_says_nothing(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct configuration configuration;

    (void)state;
    assert_int_equal(configuration_read("none.yaml", &configuration, &error), 0);
    check_defaults(&configuration);
    assert_int_equal(configuration_read("no/such/directory.yaml", &configuration, &error), 0);
    check_defaults(&configuration);
    assert_int_equal(configuration_read(NULL, &configuration, &error), 0);
    check_defaults(&configuration);
    assert_string_equal(error.message, "");
    assert_int_equal(error.code, 0);
}

static void what_cannot_be_read_is_refused(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct configuration configuration = {.grace = 4711};

    (void)state;
    assert_true(configuration_read(".", &configuration, &error) < 0);
    assert_string_equal(error.message, "cannot read .: it is a directory");
    write_file("bad.yaml", "grace: 3s\nhihg: []\n");
    assert_int_equal(configuration_read("bad.yaml", &configuration, &error), BERTH_ERROR_SYNTAX);
    assert_string_equal(error.message,
                        "bad.yaml:2:1: a configuration has no field 'hihg', did you mean 'high'?");
    assert_int_equal(configuration_read("bad.yaml", &configuration, NULL), BERTH_ERROR_SYNTAX);
    assert_int_equal(chmod("bad.yaml", 0), 0);
    if (geteuid() != 0)
        assert_int_equal(configuration_read("bad.yaml", &configuration, &error),
                         BERTH_ERROR_PERMISSION);
    assert_int_equal(configuration.grace, 4711);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_read),
        cmocka_unit_test(people_are_read),
        cmocka_unit_test(limits_are_read),
        cmocka_unit_test(devices_are_read),
        cmocka_unit_test(programs_are_read),
        cmocka_unit_test(json_is_read),
        cmocka_unit_test(what_is_left_out_is_as_usual),
        cmocka_unit_test(extremes_are_taken),
        cmocka_unit_test(zeroed_memory_is_finished),
        cmocka_unit_test(bad_ones_are_refused),
        cmocka_unit_test(zero_bytes_are_refused),
        cmocka_unit_test(lists_that_are_too_long_are_refused),
        cmocka_unit_test(words_may_be_as_long_as_a_path),
        cmocka_unit_test_setup_teardown(files_are_read, temporary_directory_enter,
                                        temporary_directory_leave),
        cmocka_unit_test_setup_teardown(a_file_that_is_not_there_says_nothing,
                                        temporary_directory_enter, temporary_directory_leave),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_is_refused, temporary_directory_enter,
                                        temporary_directory_leave),
    };

    return cmocka_run_group_tests_name("configuration", tests, NULL, NULL);
}
