/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "cli/machine_source.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/assert_error.h"
#include "support/temporary_directory.h"

static void write_file(const char *path, const char *content)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int enter(void **state)
{
    unsetenv("BERTH_INVENTORY");
    return temporary_directory_enter(state);
}

static int leave(void **state)
{
    unsetenv("BERTH_INVENTORY");
    return temporary_directory_leave(state);
}

/* Reads the machine, which must have so many devices, from a file or not. */
static void check_machine(const char *inventory, size_t devices, bool from_file)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct machine machine;
    bool is_virtual = !from_file;

    assert_int_equal(machine_source_read(inventory, &machine, &is_virtual, &error), 0);
    assert_string_equal(error.message, "");
    assert_int_equal(machine.devices.count, devices);
    assert_int_equal(is_virtual, from_file);
    machine_finish(&machine);
}

static void without_a_file_there_is_only_hardware(void **state)
{
    (void)state;
    check_machine(NULL, 0, false);
    assert_int_equal(setenv("BERTH_INVENTORY", "", 1), 0);
    check_machine(NULL, 0, false);
}

static void the_option_goes_before_the_environment(void **state)
{
    (void)state;
    write_file("none.yaml", "devices: []\n");
    write_file("one.yaml", "devices: [{vendor: amd, index: 0}]\n");
    check_machine("one.yaml", 1, true);
    assert_int_equal(setenv("BERTH_INVENTORY", "one.yaml", 1), 0);
    check_machine(NULL, 1, true);
    check_machine("none.yaml", 0, true);
}

static void bad_files_are_refused(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct machine machine = {.devices = {.count = 4711}};
    bool is_virtual;

    (void)state;
    assert_fails(machine_source_read("", &machine, &is_virtual, &error), BERTH_ERROR_INVALID,
                 &error, "--inventory: wanted a file, found nothing");
    assert_fails(machine_source_read("gone.yaml", &machine, &is_virtual, &error),
                 BERTH_ERROR_NOT_FOUND, &error, "gone.yaml: No such file or directory");
    assert_int_equal(setenv("BERTH_INVENTORY", "gone.yaml", 1), 0);
    assert_fails(machine_source_read(NULL, &machine, &is_virtual, &error), BERTH_ERROR_NOT_FOUND,
                 &error, "gone.yaml: No such file or directory");
    assert_int_equal(machine.devices.count, 4711);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_a_file_there_is_only_hardware, enter, leave),
        cmocka_unit_test_setup_teardown(the_option_goes_before_the_environment, enter, leave),
        cmocka_unit_test_setup_teardown(bad_files_are_refused, enter, leave),
    };

    return cmocka_run_group_tests_name("machine_source", tests, NULL, NULL);
}
