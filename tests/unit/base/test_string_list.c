/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/string_list.h"

#include <berth/error.h>
#include <stdio.h>
#include <string.h>

#include "support/failing_allocator.h"

static void strings_are_copied_in_order(void **state)
{
    struct string_list list = {0};
    char string[24];

    (void)state;
    for (int i = 0; i < 100; i++) {
        snprintf(string, sizeof(string), "/dev/nvidia%d", i);
        assert_int_equal(string_list_append(&list, string), 0);
    }
    assert_int_equal(list.count, 100);
    for (int i = 0; i < 100; i++) {
        snprintf(string, sizeof(string), "/dev/nvidia%d", i);
        assert_string_equal(list.items[i], string);
        assert_ptr_not_equal(list.items[i], string);
    }
    string_list_finish(&list);
}

static void empty_and_equal_strings_are_kept(void **state)
{
    struct string_list list = {0};

    (void)state;
    assert_int_equal(string_list_append(&list, ""), 0);
    assert_int_equal(string_list_append(&list, "same"), 0);
    assert_int_equal(string_list_append(&list, "same"), 0);
    assert_int_equal(list.count, 3);
    assert_string_equal(list.items[0], "");
    assert_string_equal(list.items[1], "same");
    assert_string_equal(list.items[2], "same");
    assert_ptr_not_equal(list.items[1], list.items[2]);
    string_list_finish(&list);
}

static void finish_leaves_an_empty_list(void **state)
{
    struct string_list list = {0};

    (void)state;
    string_list_finish(&list);
    assert_int_equal(string_list_append(&list, "one"), 0);
    string_list_finish(&list);
    assert_null(list.items);
    assert_int_equal(list.count, 0);
    assert_int_equal(list.capacity, 0);
    string_list_finish(&list);
    assert_int_equal(string_list_append(&list, "again"), 0);
    assert_string_equal(list.items[0], "again");
    string_list_finish(&list);
}

/* Appends enough strings to make the list grow twice. */
static int append_many(void *context)
{
    struct string_list list = {0};
    int code = 0;

    for (size_t i = 0; i < 20 && code == 0; i++) {
        size_t before = list.count;

        code = string_list_append(&list, context);
        assert_int_equal(list.count, before + (code == 0));
    }
    for (size_t i = 0; i < list.count; i++)
        assert_string_equal(list.items[i], context);
    string_list_finish(&list);
    return code;
}

static void out_of_memory_leaves_the_list_unchanged(void **state)
{
    char string[] = "renderD128";

    (void)state;
    assert_true(failing_allocator_try_all(append_many, string) >= 22);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_copied_in_order),
        cmocka_unit_test(empty_and_equal_strings_are_kept),
        cmocka_unit_test(finish_leaves_an_empty_list),
        cmocka_unit_test(out_of_memory_leaves_the_list_unchanged),
    };

    return cmocka_run_group_tests_name("string_list", tests, NULL, NULL);
}
