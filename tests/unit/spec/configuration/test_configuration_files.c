/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the files in tests/data/configuration. Each names the expected result: for a valid file all
 * values other than the defaults, for an invalid file the message without the file's name.
 */
#include "support/unit.h"

#include "spec/configuration/configuration.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/count.h"
#include "base/text/quantity.h"
#include "support/failing_allocator.h"
#include "support/source_root.h"
#include "support/spec/wanted_files.h"
#include "support/temporary_directory.h"

/* ---- Values other than the defaults, as text ---- */

#define MEMBER(member)                                  \
    {                                                   \
#member, offsetof(struct configuration, member) \
    }

struct named_member {
    const char *name;
    size_t offset;
};

static const struct named_member durations[] = {
    MEMBER(grace),        MEMBER(age_step),        MEMBER(default_time),
    MEMBER(longest_time), MEMBER(time_warning),    MEMBER(idle_warning),
    MEMBER(idle_reclaim), MEMBER(prolog.deadline), MEMBER(epilog.deadline),
};

static const struct named_member numbers[] = {
    MEMBER(time_slice_tenants), MEMBER(mps_tenants),    MEMBER(bounds.connections),
    MEMBER(bounds.messages),    MEMBER(bounds.waiting),
};

static const struct named_member number_lists[] = {
    MEMBER(admins.users),
    MEMBER(admins.groups),
    MEMBER(high.users),
    MEMBER(high.groups),
};

static const struct named_member string_lists[] = {
    MEMBER(squatters_except),
    MEMBER(prolog.argv),
    MEMBER(epilog.argv),
    MEMBER(notify),
};

static const void *member_of(const struct configuration *configuration,
                             const struct named_member *member)
{
    return (const char *)configuration + member->offset;
}

static void begin(struct text *out, const char *name)
{
    text_append_format(out, "%s%s", out->length == 0 ? "" : "; ", name);
}

static void describe_numbers(const struct number_list *list, struct text *out)
{
    const uint32_t *number;

    vector_for_each (number, list)
        text_append_format(out, " %u", *number);
}

static void describe_allowance(const char *name, const struct allowance *allowance,
                               struct text *out)
{
    if (allowance->devices == DEVICES_UNLIMITED && allowance->longest_time == 0)
        return;
    begin(out, name);
    if (allowance->devices != DEVICES_UNLIMITED)
        text_append_format(out, " %s",
                           quantity_format_decimal((int64_t)allowance->devices, 6).text);
    if (allowance->longest_time != 0)
        text_append_format(out, " for %s", quantity_format_duration(allowance->longest_time).text);
}

static void describe_limits(const struct configuration *configuration, struct text *out)
{
    const struct device_limit *limit;

    describe_allowance("each_user", &configuration->each_user, out);
    vector_for_each (limit, &configuration->limits) {
        struct text name = {0};

        text_append_format(&name, "%s %u:", limit->is_group ? "group" : "user", limit->key);
        describe_allowance(text_string(&name), &limit->allowance, out);
        text_finish(&name);
    }
}

static void describe_devices(const struct configuration *configuration, struct text *out)
{
    const struct reserved_device *reserved;
    const struct device_id *id;

    if (configuration->preferred.count > 0)
        begin(out, "preferred");
    vector_for_each (id, &configuration->preferred)
        text_append_format(out, " %s", device_id_format(*id).text);
    vector_for_each (reserved, &configuration->reserved) {
        begin(out, "reserved ");
        text_append_format(out, "%s: users", device_id_format(reserved->id).text);
        describe_numbers(&reserved->principals.users, out);
        text_append(out, ", groups");
        describe_numbers(&reserved->principals.groups, out);
    }
}

static void describe_lists(const struct configuration *configuration, struct text *out)
{
    for (size_t i = 0; i < COUNT(number_lists); i++) {
        const struct number_list *list = member_of(configuration, &number_lists[i]);

        if (list->count > 0)
            begin(out, number_lists[i].name);
        describe_numbers(list, out);
    }
    for (size_t i = 0; i < COUNT(string_lists); i++) {
        const struct string_list *list = member_of(configuration, &string_lists[i]);
        char **string;

        if (list->count > 0)
            begin(out, string_lists[i].name);
        vector_for_each (string, list)
            text_append_format(out, " '%s'", *string);
    }
}

static void describe(const struct configuration *configuration,
                     const struct configuration *ordinary, struct text *out)
{
    if (configuration->policy.name != NULL) {
        begin(out, "policy");
        text_append_format(out, " %s at %u:%u", configuration->policy.name,
                           configuration->policy.line, configuration->policy.column);
    }
    for (size_t i = 0; i < COUNT(durations); i++) {
        int64_t value = *(const int64_t *)member_of(configuration, &durations[i]);

        if (value == *(const int64_t *)member_of(ordinary, &durations[i]))
            continue;
        begin(out, durations[i].name);
        text_append_format(out, " %s", quantity_format_duration(value).text);
    }
    for (size_t i = 0; i < COUNT(numbers); i++) {
        uint32_t value = *(const uint32_t *)member_of(configuration, &numbers[i]);

        if (value == *(const uint32_t *)member_of(ordinary, &numbers[i]))
            continue;
        begin(out, numbers[i].name);
        text_append_format(out, " %u", value);
    }
    if (configuration->mps_control != NULL) {
        begin(out, "mps_control");
        text_append_format(out, " %s", configuration->mps_control);
    }
    if (configuration->squatters != SQUATTING_AVOIDED)
        begin(out, "squatters ignored");
    describe_lists(configuration, out);
    describe_limits(configuration, out);
    describe_devices(configuration, out);
    if (out->length == 0)
        text_append(out, "as usual");
}

/* ---- Valid and invalid files ---- */

static void check_good(const char *path)
{
    const char *name = enter_directory(path);
    struct berth_error error = BERTH_ERROR_INIT;
    char *wanted = read_wanted(name);
    struct configuration configuration;
    struct configuration ordinary;
    struct text found = {0};

    assert_int_equal(configuration_read(NULL, &ordinary, NULL), 0);
    if (configuration_read(name, &configuration, &error) < 0)
        fail_msg("%s", error.message);
    describe(&configuration, &ordinary, &found);
    if (strcmp(text_string(&found), wanted) != 0)
        fail_msg("%s: expected \"%s\", got \"%s\"", path, wanted, text_string(&found));
    configuration_finish(&configuration);
    text_finish(&found);
    free(wanted);
}

static void check_bad(const char *path)
{
    const char *name = enter_directory(path);
    struct berth_error error = BERTH_ERROR_INIT;
    struct configuration configuration = {.grace = 4711};
    int code = configuration_read(name, &configuration, &error);

    if (code == 0)
        fail_msg("%s: expected an error, got none", path);
    assert_int_equal(error.code, code);
    assert_int_equal(configuration.grace, 4711);
    check_wanted_message(path, name, error.message);
}

static void good_files_are_read(void **state)
{
    (void)state;
    assert_true(for_each_source_file("tests/data/configuration/good", ".yaml", check_good) >= 25);
    assert_true(for_each_source_file("tests/data/configuration/good", ".json", check_good) > 0);
}

static void bad_files_are_refused_with_the_right_words(void **state)
{
    (void)state;
    assert_true(for_each_source_file("tests/data/configuration/bad", ".yaml", check_bad) >= 50);
    assert_true(for_each_source_file("tests/data/configuration/bad", ".json", check_bad) > 0);
}

/* ---- Memory ---- */

static int attempt(void *context)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct configuration configuration = {.grace = 4711};
    int code = configuration_read(context, &configuration, &error);

    if (code == 0) {
        configuration_finish(&configuration);
    } else {
        assert_int_equal(configuration.grace, 4711);
        assert_int_equal(error.code, code);
    }
    return code;
}

static void try_good(const char *path)
{
    assert_true(failing_allocator_try_all(attempt, (void *)path) > 0);
}

static void try_bad(const char *path)
{
    failing_allocator_try_failing(attempt, (void *)path);
}

static void memory_runs_out_at_every_step(void **state)
{
    (void)state;
    assert_true(for_each_source_file("tests/data/configuration/good", ".yaml", try_good) > 0);
    assert_true(for_each_source_file("tests/data/configuration/bad", ".yaml", try_bad) > 0);
}

/* ---- Programs that must exist ---- */

static void write_file(const char *path, const char *content, mode_t mode)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fputs(content, file) < 0, 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

/* Appends the text, with the directory in place of each @. */
static void append_filled(struct text *out, const char *text, const char *directory)
{
    for (; *text != '\0'; text++) {
        if (*text == '@')
            text_append(out, directory);
        else
            text_append_char(out, *text);
    }
}

/* Checks that the programs of a configuration pass (NULL) or fail for this reason. In both texts @
 * is the directory of this test. */
static void check_programs(const char *configuration, const char *reason)
{
    struct berth_error error = BERTH_ERROR_INIT;
    char *directory = getcwd(NULL, 0);
    struct text content = {0};
    struct text wanted = {0};
    int code;

    assert_non_null(directory);
    append_filled(&content, configuration, directory);
    append_filled(&wanted, reason == NULL ? "" : reason, directory);
    write_file("berth.yaml", text_string(&content), 0600);
    code = configuration_check_programs("berth.yaml", &error);
    assert_string_equal(error.message, text_string(&wanted));
    assert_int_equal(code, reason == NULL ? 0 : BERTH_ERROR_INVALID);
    text_finish(&content);
    text_finish(&wanted);
    free(directory);
}

static void programs_have_to_be_there(void **state)
{
    (void)state;
    write_file("program", "#!/bin/sh\n", 0755);
    write_file("text", "", 0644);
    check_programs("prolog: {command: [@/program, -v]}\nepilog: {command: @/program}\n"
                   "notify: [@/program]\n",
                   NULL);
    check_programs("grace: 1s\nprolog: ~\nnotify:\n", NULL);
    check_programs("mps_control: @/program\n", NULL);
    check_programs("mps_control: @/none\n", "berth.yaml:1:14: mps_control: @/none: no such file");
    check_programs("", NULL);
    check_programs("grace: 1s\nprolog: {deadline: 1s, command: [@/none, -v]}\n",
                   "berth.yaml:2:34: prolog: @/none: no such file");
    check_programs("epilog:\n  command: @/program/none\n",
                   "berth.yaml:2:12: epilog: @/program/none: no such file");
    check_programs("notify: @/text\n", "berth.yaml:1:9: notify: @/text: is not executable");
    check_programs("notify: [@, a]\n", "berth.yaml:1:10: notify: @: is a directory");
    check_programs("notify: /dev/null\n", "berth.yaml:1:9: notify: /dev/null: is not a file");
}

static void what_may_not_be_looked_at_is_not_missing(void **state)
{
    (void)state;
    if (geteuid() == 0) {
        print_message("skip: root may read everything\n");
        skip();
    }
    assert_int_equal(mkdir("closed", 0), 0);
    check_programs("notify: @/closed/program\n", NULL);
    assert_int_equal(chmod("closed", 0700), 0);
}

static void without_a_file_no_program_is_missing(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    assert_int_equal(configuration_check_programs(NULL, &error), 0);
    assert_int_equal(configuration_check_programs("none.yaml", &error), 0);
    assert_string_equal(error.message, "");
    assert_true(configuration_check_programs(".", &error) < 0);
    assert_string_equal(error.message, "cannot read .: it is a directory");
}

static int attempt_check(void *context)
{
    return configuration_check_programs(context, NULL);
}

static void memory_runs_out_while_checking(void **state)
{
    (void)state;
    check_programs("notify: @/program\n", "berth.yaml:1:9: notify: @/program: no such file");
    write_file("berth.yaml", "notify: /bin/sh\n", 0600);
    assert_true(failing_allocator_try_all(attempt_check, (void *)"berth.yaml") > 3);
}

#define IN_DIRECTORY(test) \
    cmocka_unit_test_setup_teardown(test, temporary_directory_enter, temporary_directory_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_files_are_read),
        cmocka_unit_test(bad_files_are_refused_with_the_right_words),
        cmocka_unit_test(memory_runs_out_at_every_step),
        IN_DIRECTORY(programs_have_to_be_there),
        IN_DIRECTORY(what_may_not_be_looked_at_is_not_missing),
        IN_DIRECTORY(without_a_file_no_program_is_missing),
        IN_DIRECTORY(memory_runs_out_while_checking),
    };

    return cmocka_run_group_tests_name("configuration_files", tests, NULL, NULL);
}
