/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs over the files in tests/data/inventory. What is wanted of each stands in its first line, as
 * a comment "# wanted: ...", or where a comment cannot be in a file beside it, x.wanted for x.json.
 * Of a good file that is its ids and the number of its links, of a bad one the message without the
 * file's name.
 */
#include "support/unit.h"

#include "spec/inventory.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "support/source_root.h"

enum { LARGEST = 1 << 20 };

static void read_whole(const char *path, struct text *ret_content)
{
    struct berth_error error = BERTH_ERROR_INIT;

    if (file_read(path, LARGEST, ret_content, &error) < 0)
        fail_msg("%s", error.message);
}

/* What is wanted of the file; the caller frees it. */
static char *read_wanted(const char *path)
{
    static const char lead[] = "# wanted: ";
    struct text content = {0};
    struct text beside = {0};
    const char *line;
    char *wanted;

    read_whole(path, &content);
    if (strncmp(text_string(&content), lead, strlen(lead)) != 0) {
        text_append_bytes(&beside, path, (size_t)(strrchr(path, '.') - path));
        text_append(&beside, ".wanted");
        read_whole(text_string(&beside), &content);
        line = text_string(&content);
    } else {
        line = text_string(&content) + strlen(lead);
    }
    wanted = strndup(line, strcspn(line, "\n"));
    assert_non_null(wanted);
    text_finish(&beside);
    text_finish(&content);
    return wanted;
}

/* Files are read by their bare names, so that no long path cuts a message. */
static const char *enter_directory(const char *path)
{
    char *directory = strndup(path, (size_t)(strrchr(path, '/') - path));

    assert_non_null(directory);
    assert_int_equal(chdir(directory), 0);
    free(directory);
    return strrchr(path, '/') + 1;
}

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
        fail_msg("%s: wanted \"%s\", found \"%s\"", path, wanted, text_string(&found));
    machine_finish(&machine);
    text_finish(&found);
    free(wanted);
}

static void check_bad(const char *path)
{
    const char *name = enter_directory(path);
    struct berth_error error = BERTH_ERROR_INIT;
    char *wanted = read_wanted(name);
    struct machine machine = {0};
    const char *found;
    int code = inventory_read(name, &machine, &error);

    if (code == 0)
        fail_msg("%s: wanted \"%s\", found no fault", path, wanted);
    assert_int_equal(error.code, code);
    assert_int_equal(strncmp(error.message, name, strlen(name)), 0);
    found = error.message + strlen(name);
    found += strspn(found, ": ");
    if (strcmp(found, wanted) != 0)
        fail_msg("%s: wanted \"%s\", found \"%s\"", path, wanted, found);
    free(wanted);
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
