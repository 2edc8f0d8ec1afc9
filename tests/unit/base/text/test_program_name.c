/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/text/program_name.h"

#include <stdlib.h>
#include <string.h>

#include "base/count.h"

static void names_of_commands(void **state)
{
    static const char *const cases[][2] = {
        {"python train.py --key=secret", "python"},
        {"/usr/bin/python3 train.py", "python3"},
        {"./run", "run"},
        {"  nice -n 5 make", "nice"},
        {"sh -c /bin/true", "sh"},
        {"tab\tfollows/x", "tab"},
        {"folder/ x", "folder/"},
        {"/", "/"},
        {"", ""},
        {" \t ", ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *name = program_name_copy(cases[i][0]);

        assert_non_null(name);
        assert_string_equal(name, cases[i][1]);
        free(name);
    }
}

static void no_command_has_no_name(void **state)
{
    (void)state;
    assert_null(program_name_copy(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_commands),
        cmocka_unit_test(no_command_has_no_name),
    };

    return cmocka_run_group_tests_name("program_name", tests, NULL, NULL);
}
