/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the files in tests/data/inventory. Each names the expected result: for a valid file its ids
 * and the number of its links, for an invalid file the message without the file's name.
 */
#include "support/unit.h"

#include "spec/inventory.h"

#include <stdlib.h>
#include <string.h>

#include "support/source_root.h"
#include "support/spec/wanted_files.h"

static void describe(const struct machine *machine, struct text *out)
{
    const struct device *device;

    vector_for_each (device, &machine->devices)
        text_append_format(out, "%s%s", device == machine->devices.items ? "" : ",",
                           device_id_format(device->id).text);
    text_append_format(out, "; %zu links", machine->links.count);
}

static void check_good(const char *path)
{
    const char *name = enter_directory(path);
    struct berth_error error = BERTH_ERROR_INIT;
    char *wanted = read_wanted(name);
    struct machine machine = {0};
    struct text found = {0};

    if (inventory_read(name, &machine, &error) < 0)
        fail_msg("%s", error.message);
    describe(&machine, &found);
    if (strcmp(text_string(&found), wanted) != 0)
        fail_msg("%s: expected \"%s\", got \"%s\"", path, wanted, text_string(&found));
    machine_finish(&machine);
    text_finish(&found);
    free(wanted);
}

static void check_bad(const char *path)
{
    const char *name = enter_directory(path);
    struct berth_error error = BERTH_ERROR_INIT;
    struct machine machine = {0};
    int code = inventory_read(name, &machine, &error);

    if (code == 0)
        fail_msg("%s: expected an error, got none", path);
    assert_int_equal(error.code, code);
    check_wanted_message(path, name, error.message);
}

static void good_files_are_read(void **state)
{
    (void)state;
    assert_true(for_each_source_file("tests/data/inventory/good", ".yaml", check_good) > 0);
    assert_true(for_each_source_file("tests/data/inventory/good", ".json", check_good) > 0);
}

static void bad_files_are_refused_with_the_right_words(void **state)
{
    (void)state;
    assert_true(for_each_source_file("tests/data/inventory/bad", ".yaml", check_bad) >= 40);
    assert_true(for_each_source_file("tests/data/inventory/bad", ".json", check_bad) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_files_are_read),
        cmocka_unit_test(bad_files_are_refused_with_the_right_words),
    };

    return cmocka_run_group_tests_name("inventory_files", tests, NULL, NULL);
}
