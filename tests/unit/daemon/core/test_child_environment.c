/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/core/child_environment.h"

static void values_are_added_in_order(void **state)
{
    struct child_environment variables = {0};

    (void)state;
    child_environment_add(&variables, "BERTH_NAME", "train");
    child_environment_add(&variables, "BERTH_MESSAGE", NULL);
    child_environment_add_number(&variables, "BERTH_LEASE", UINT64_MAX);
    assert_false(variables.failed);
    assert_int_equal(variables.list.count, 2);
    assert_string_equal(variables.list.items[0], "BERTH_NAME=train");
    assert_string_equal(variables.list.items[1], "BERTH_LEASE=18446744073709551615");
    string_list_finish(&variables.list);
}

/* A user's text must not start a second line or a terminal sequence in a script's output. */
static void control_characters_are_replaced(void **state)
{
    struct child_environment variables = {0};

    (void)state;
    child_environment_add(&variables, "NAME", "a\nPATH=/tmp\x1b[2J\xff");
    assert_false(variables.failed);
    for (const char *at = variables.list.items[0]; *at != '\0'; at++)
        assert_true((unsigned char)*at >= ' ');
    string_list_finish(&variables.list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_added_in_order),
        cmocka_unit_test(control_characters_are_replaced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
