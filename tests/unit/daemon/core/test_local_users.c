/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the functions with a reader of the two files that knows nothing of the C library's.
 */
#include "support/unit.h"

#include "daemon/core/local_users.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/temporary_directory.h"

/* Returns the number in the first line of the name, as its third field; -1: there is none. */
static int64_t number_in_file(const char *path, const char *name)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t size = 0;
    int64_t number = -1;

    assert_non_null(file);
    while (number < 0 && getline(&line, &size, file) > 0) {
        char *rest = line;
        const char *field = strsep(&rest, ":");
        const char *value = rest == NULL || strsep(&rest, ":") == NULL ? NULL : strsep(&rest, ":");

        if (value != NULL && *value != '\0' && strcmp(field, name) == 0)
            number = (int64_t)strtoul(value, NULL, 10);
    }
    free(line);
    fclose(file);
    return number;
}

/* Checks each name of the file. */
static void check_file(const char *path)
{
    struct local_users users = {0};
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t size = 0;
    int count = 0;

    assert_non_null(file);
    local_users_read(&users, path);
    while (getline(&line, &size, file) > 0) {
        const char *name = strtok(line, ":");
        uint32_t number = 4711;
        int64_t wanted;

        /* Entries of name services begin with + or -. */
        if (name == NULL || strchr("+-#\n", *name) != NULL)
            continue;
        wanted = number_in_file(path, name);
        if (wanted < 0)
            continue;
        assert_true(local_users_find(&users, name, &number));
        assert_int_equal(number, wanted);
        count++;
    }
    assert_true(count > 0);
    local_users_finish(&users);
    free(line);
    fclose(file);
}

static void all_users_of_the_file_are_found(void **state)
{
    (void)state;
    check_file("/etc/passwd");
    check_file("/etc/group");
}

static void other_names_are_not_found(void **state)
{
    static const char *const files[] = {"/etc/passwd", "/etc/group"};
    static const char *const names[] = {"", "roo", "root2", "root:x", "no-such-name", "0"};
    struct local_users users = {0};
    uint32_t number = 4711;

    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        local_users_read(&users, files[i]);
        for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
            assert_false(local_users_find(&users, names[k], &number));
        assert_true(local_users_find(&users, "root", &number));
        assert_int_equal(number, 0);
        number = 4711;
    }
    local_users_read(&users, "/no/such/file");
    assert_false(local_users_find(&users, "root", &number));
    local_users_finish(&users);
}

static void invalid_lines_are_left_out(void **state)
{
    static const char content[] = "+nis:x:1:\n-nis:x:2:\n#ann:x:3:\n:x:4:\n\nann\nann:x\nann:x:5\n"
                                  "ann:x::\nann:x:-1:\nann:x:4294967296:\nann:x:6x:\n"
                                  "ann:x:7:7:::\nann:x:8:8:::\nben:x:4294967295:";
    struct local_users users = {0};
    uint32_t number;
    FILE *file = fopen("users", "we");

    (void)state;
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
    local_users_read(&users, "users");
    assert_int_equal(users.count, 3);
    assert_true(local_users_find(&users, "ann", &number));
    assert_int_equal(number, 7);
    assert_true(local_users_find(&users, "ben", &number));
    assert_int_equal(number, UINT32_MAX);
    assert_false(local_users_find(&users, "+nis", &number));
    local_users_finish(&users);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_users_of_the_file_are_found),
        cmocka_unit_test(other_names_are_not_found),
        cmocka_unit_test_setup_teardown(invalid_lines_are_left_out, temporary_directory_enter,
                                        temporary_directory_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
