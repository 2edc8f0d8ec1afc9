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

typedef bool find_function(const char *name, uint32_t *ret_number);

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
static void check_file(const char *path, find_function *find)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t size = 0;
    int count = 0;

    assert_non_null(file);
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
        assert_true(find(name, &number));
        assert_int_equal(number, wanted);
        count++;
    }
    assert_true(count > 0);
    free(line);
    fclose(file);
}

static void all_users_of_the_file_are_found(void **state)
{
    (void)state;
    check_file("/etc/passwd", local_users_find_user);
    check_file("/etc/group", local_users_find_group);
}

static void other_names_are_not_found(void **state)
{
    static find_function *const functions[] = {local_users_find_user, local_users_find_group};
    static const char *const names[] = {"", "roo", "root2", "root:x", "no-such-name", "0"};
    uint32_t number = 4711;

    (void)state;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
            assert_false(functions[i](names[k], &number));
        assert_true(functions[i]("root", &number));
        assert_int_equal(number, 0);
        number = 4711;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_users_of_the_file_are_found),
        cmocka_unit_test(other_names_are_not_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
