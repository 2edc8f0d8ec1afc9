/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the function with a reader of the file that knows nothing of the C library's.
 */
#include "support/unit.h"

#include "daemon/core/local_users.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the number in the first line of the name, as its third field; -1: there is none. */
static int64_t number_in_file(const char *name)
{
    FILE *file = fopen("/etc/passwd", "re");
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

static void all_users_of_the_file_are_found(void **state)
{
    FILE *file = fopen("/etc/passwd", "re");
    char *line = NULL;
    size_t size = 0;
    int count = 0;

    (void)state;
    assert_non_null(file);
    while (getline(&line, &size, file) > 0) {
        const char *name = strtok(line, ":");
        uint32_t number = 4711;
        int64_t wanted;

        /* Entries of name services begin with + or -. */
        if (name == NULL || strchr("+-#\n", *name) != NULL)
            continue;
        wanted = number_in_file(name);
        if (wanted < 0)
            continue;
        assert_true(local_users_find_user(name, &number));
        assert_int_equal(number, wanted);
        count++;
    }
    assert_true(count > 0);
    free(line);
    fclose(file);
}

static void other_names_are_not_found(void **state)
{
    static const char *const names[] = {"", "roo", "root2", "root:x", "no-such-name", "0"};
    uint32_t number = 4711;

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_false(local_users_find_user(names[i], &number));
    assert_true(local_users_find_user("root", &number));
    assert_int_equal(number, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_users_of_the_file_are_found),
        cmocka_unit_test(other_names_are_not_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
