/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "cli/machine_source.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/count.h"
#include "base/text/quantity.h"
#include "support/assert_error.h"
#include "support/temporary_directory.h"

static void write_file(const char *path, const char *content)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* The variables that decide where devices come from. */
static const char *const variables[] = {"BERTH_INVENTORY", "BERTH_PROBE", "BERTH_PROBE_DEADLINE"};

static int enter(void **state)
{
    for (size_t i = 0; i < COUNT(variables); i++)
        unsetenv(variables[i]);
    return temporary_directory_enter(state);
}

static int leave(void **state)
{
    for (size_t i = 0; i < COUNT(variables); i++)
        unsetenv(variables[i]);
    return temporary_directory_leave(state);
}

/* Reads the file and checks the number of devices. */
static void check_file(const char *inventory, size_t devices)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct machine_source source;
    struct machine_report report;

    assert_int_equal(machine_source_open(&source, inventory, NULL, &error), 0);
    assert_true(source.is_virtual);
    assert_int_equal(machine_source_scan(&source, &report, &error), 0);
    assert_string_equal(error.message, "");
    assert_int_equal(report.machine.devices.count, devices);
    machine_report_finish(&report);
    assert_int_equal(machine_source_scan(&source, &report, &error), 0);
    assert_int_equal(report.machine.devices.count, 0);
    machine_report_finish(&report);
    machine_source_close(&source);
}

/* Checks that the source is the hardware, with the deadline `wanted`. */
static void check_hardware(const char *deadline, int64_t wanted)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct machine_source source;

    assert_int_equal(machine_source_open(&source, NULL, deadline, &error), 0);
    assert_false(source.is_virtual);
    assert_int_equal(source.deadline, wanted);
    machine_source_close(&source);
}

static void without_a_file_there_is_only_hardware(void **state)
{
    (void)state;
    check_hardware(NULL, PROBE_DEADLINE_DEFAULT);
    assert_int_equal(setenv("BERTH_INVENTORY", "", 1), 0);
    check_hardware(NULL, PROBE_DEADLINE_DEFAULT);
}

static void the_option_goes_before_the_environment(void **state)
{
    (void)state;
    write_file("none.yaml", "devices: []\n");
    write_file("one.yaml", "devices: [{vendor: amd, index: 0}]\n");
    check_file("one.yaml", 1);
    assert_int_equal(setenv("BERTH_INVENTORY", "one.yaml", 1), 0);
    check_file(NULL, 1);
    check_file("none.yaml", 0);
}

static void the_deadline_has_an_option_a_variable_and_a_default(void **state)
{
    (void)state;
    assert_int_equal(setenv("BERTH_PROBE_DEADLINE", "", 1), 0);
    check_hardware(NULL, PROBE_DEADLINE_DEFAULT);
    assert_int_equal(setenv("BERTH_PROBE_DEADLINE", "500ms", 1), 0);
    check_hardware(NULL, DURATION_SECOND / 2);
    check_hardware("1m", DURATION_MINUTE);
    assert_int_equal(setenv("BERTH_PROBE_DEADLINE", "soon", 1), 0);
    check_hardware("10ms", DURATION_SECOND / 100);
}

/* Checks that opening fails with this message and leaves the source unchanged. */
static void check_refused(const char *inventory, const char *deadline, int code,
                          const char *message)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct machine_source source = {.deadline = 4711};

    assert_fails(machine_source_open(&source, inventory, deadline, &error), code, &error, message);
    assert_int_equal(source.deadline, 4711);
}

static void bad_files_are_refused(void **state)
{
    (void)state;
    check_refused("", NULL, BERTH_ERROR_INVALID, "--inventory: expected a file, got nothing");
    check_refused("gone.yaml", NULL, BERTH_ERROR_NOT_FOUND,
                  "cannot read gone.yaml: No such file or directory");
    assert_int_equal(setenv("BERTH_INVENTORY", "gone.yaml", 1), 0);
    check_refused(NULL, NULL, BERTH_ERROR_NOT_FOUND,
                  "cannot read gone.yaml: No such file or directory");
}

static void bad_deadlines_are_refused(void **state)
{
    (void)state;
    check_refused(NULL, "9ms", BERTH_ERROR_RANGE, "--deadline: expected 10ms to 10m, got '9ms'");
    check_refused(NULL, "11m", BERTH_ERROR_RANGE, "--deadline: expected 10ms to 10m, got '11m'");
    assert_int_equal(setenv("BERTH_PROBE_DEADLINE", "0", 1), 0);
    check_refused(NULL, NULL, BERTH_ERROR_RANGE,
                  "BERTH_PROBE_DEADLINE: expected 10ms to 10m, got '0'");
}

static void a_probe_that_is_not_there(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct machine_report report = {.listed = 4711};
    struct machine_source source;

    (void)state;
    assert_int_equal(setenv("BERTH_PROBE", "/nonexistent/probe", 1), 0);
    assert_int_equal(machine_source_open(&source, NULL, NULL, &error), 0);
    assert_fails(machine_source_scan(&source, &report, &error), BERTH_ERROR_IO, &error,
                 "cannot start /nonexistent/probe: No such file or directory");
    assert_int_equal(error.code, BERTH_ERROR_IO);
    assert_int_equal(report.listed, 4711);
    machine_source_close(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_a_file_there_is_only_hardware, enter, leave),
        cmocka_unit_test_setup_teardown(the_option_goes_before_the_environment, enter, leave),
        cmocka_unit_test_setup_teardown(the_deadline_has_an_option_a_variable_and_a_default, enter,
                                        leave),
        cmocka_unit_test_setup_teardown(bad_files_are_refused, enter, leave),
        cmocka_unit_test_setup_teardown(bad_deadlines_are_refused, enter, leave),
        cmocka_unit_test_setup_teardown(a_probe_that_is_not_there, enter, leave),
    };

    return cmocka_run_group_tests_name("machine_source", tests, NULL, NULL);
}
