/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/vector.h"

#include <berth/error.h>

#include "support/failing_allocator.h"

struct item {
    int number;
    const char *name;
};

struct item_list {
    VECTOR_OF(struct item);
};

static void an_empty_vector_has_nothing(void **state)
{
    struct item_list list = {0};
    struct item *item;

    (void)state;
    vector_for_each (item, &list)
        fail();
    assert_int_equal(vector_reserve(&list, 0), 0);
    assert_null(list.items);
    vector_finish(&list);
    vector_finish(&list);
}

static void appended_items_are_zeroed_and_stay(void **state)
{
    struct item_list list = {0};
    struct item *item;
    int expected = 0;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        item = vector_append(&list);
        assert_non_null(item);
        assert_int_equal(item->number, 0);
        assert_null(item->name);
        item->number = i;
        item->name = "set";
    }
    assert_int_equal(list.count, 1000);
    assert_true(list.capacity >= 1000);
    vector_for_each (item, &list)
        assert_int_equal(item->number, expected++);
    assert_int_equal(expected, 1000);
    vector_finish(&list);
    assert_null(list.items);
    assert_int_equal(list.count, 0);
    assert_int_equal(list.capacity, 0);
}

static void memory_that_was_used_is_zeroed_again(void **state)
{
    struct item_list list = {0};
    struct item *item = vector_append(&list);

    (void)state;
    item->number = 7;
    list.count = 0;
    item = vector_append(&list);
    assert_int_equal(item->number, 0);
    vector_finish(&list);
}

static void reserved_room_is_used_without_moving(void **state)
{
    struct item_list list = {0};
    const struct item *first;

    (void)state;
    assert_int_equal(vector_reserve(&list, 100), 0);
    assert_true(list.capacity >= 100);
    assert_int_equal(list.count, 0);
    first = list.items;
    for (int i = 0; i < 100; i++)
        assert_non_null(vector_append(&list));
    assert_ptr_equal(list.items, first);
    assert_int_equal(vector_reserve(&list, 1), 0);
    assert_ptr_equal(list.items, first);
    vector_finish(&list);
}

static void a_failure_changes_nothing(void **state)
{
    struct item_list list = {0};
    struct item *items;
    size_t capacity;

    (void)state;
    do {
        items = vector_append(&list);
        items->number = (int)list.count;
    } while (list.count < list.capacity);
    items = list.items;
    capacity = list.capacity;
    failing_allocator_start(1);
    assert_null(vector_append(&list));
    assert_int_equal(vector_reserve(&list, capacity + 1), BERTH_ERROR_MEMORY);
    failing_allocator_stop();
    assert_ptr_equal(list.items, items);
    assert_int_equal(list.count, capacity);
    assert_int_equal(list.capacity, capacity);
    assert_int_equal(list.items[capacity - 1].number, (int)capacity);
    vector_finish(&list);
}

static void an_absurd_count_is_out_of_memory(void **state)
{
    struct item_list list = {0};

    (void)state;
    /* The test allocator fails it, because sanitizers report a real request of this size. */
    failing_allocator_start(1);
    assert_int_equal(vector_reserve(&list, SIZE_MAX), BERTH_ERROR_MEMORY);
    assert_int_equal(vector_reserve(&list, SIZE_MAX / 2 + 2), BERTH_ERROR_MEMORY);
    failing_allocator_stop();
    assert_null(list.items);
    list.count = SIZE_MAX;
    assert_null(vector_append(&list));
    list.count = 0;
    vector_finish(&list);
}

static int fill(void *context)
{
    struct item_list list = {0};
    int code = 0;

    for (size_t i = 0; code == 0 && i < *(size_t *)context; i++)
        code = vector_append(&list) == NULL ? BERTH_ERROR_MEMORY : 0;
    vector_finish(&list);
    return code;
}

static void out_of_memory_is_reported(void **state)
{
    size_t count = 500;

    (void)state;
    /* The capacity doubles, so a long list needs few allocations. */
    assert_in_range(failing_allocator_try_all(fill, &count), 2, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_vector_has_nothing),
        cmocka_unit_test(appended_items_are_zeroed_and_stay),
        cmocka_unit_test(memory_that_was_used_is_zeroed_again),
        cmocka_unit_test(reserved_room_is_used_without_moving),
        cmocka_unit_test(a_failure_changes_nothing),
        cmocka_unit_test(an_absurd_count_is_out_of_memory),
        cmocka_unit_test(out_of_memory_is_reported),
    };

    return cmocka_run_group_tests_name("vector", tests, NULL, NULL);
}
