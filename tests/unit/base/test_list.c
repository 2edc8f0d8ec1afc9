/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/list.h"

#include <stdlib.h>

#include "support/random.h"
#include "support/steps.h"

enum { ITEMS = 20 };

struct item {
    int number; /* first, so that the link is not at the item's own address */
    struct list_link in_list;
};

static struct item *item_of(struct list_link *link)
{
    return container_of(link, struct item, in_list);
}

static void an_empty_list_has_nothing(void **state)
{
    struct list list;

    (void)state;
    list_init(&list);
    assert_true(list_is_empty(&list));
    assert_null(list_first(&list));
    assert_null(list_last(&list));
    list_for_each (link, &list)
        fail();
}

static void links_know_whether_they_are_in_a_list(void **state)
{
    struct list list;
    struct item item = {0};

    (void)state;
    list_init(&list);
    assert_false(list_is_linked(&item.in_list));
    list_remove(&item.in_list);
    assert_false(list_is_linked(&item.in_list));
    list_append(&list, &item.in_list);
    assert_true(list_is_linked(&item.in_list));
    assert_false(list_is_empty(&list));
    assert_ptr_equal(list_first(&list), &item.in_list);
    assert_ptr_equal(list_last(&list), &item.in_list);
    assert_ptr_equal(item_of(list_first(&list)), &item);
    list_remove(&item.in_list);
    assert_false(list_is_linked(&item.in_list));
    assert_true(list_is_empty(&list));
    list_remove(&item.in_list);
    assert_true(list_is_empty(&list));
}

static void items_move_from_list_to_list(void **state)
{
    struct list from, to;
    struct item items[3] = {{.number = 0}, {.number = 1}, {.number = 2}};
    int expected = 0;

    (void)state;
    list_init(&from);
    list_init(&to);
    for (size_t i = 0; i < 3; i++)
        list_append(&from, &items[i].in_list);
    list_for_each (link, &from) {
        list_remove(link);
        list_append(&to, link);
    }
    assert_true(list_is_empty(&from));
    list_for_each (link, &to)
        assert_int_equal(item_of(link)->number, expected++);
    assert_int_equal(expected, 3);
}

static void items_may_be_freed_while_iterating(void **state)
{
    struct list list;
    int seen = 0;

    (void)state;
    list_init(&list);
    for (int i = 0; i < 10; i++) {
        struct item *item = calloc(1, sizeof(*item));

        assert_non_null(item);
        item->number = i;
        list_append(&list, &item->in_list);
    }
    list_for_each (link, &list) {
        struct item *item = item_of(link);

        assert_int_equal(item->number, seen++);
        list_remove(link);
        free(item);
    }
    assert_int_equal(seen, 10);
    assert_true(list_is_empty(&list));
}

static void lists_nest(void **state)
{
    struct list list;
    struct item items[3] = {0};
    int pairs = 0;

    (void)state;
    list_init(&list);
    for (size_t i = 0; i < 3; i++)
        list_append(&list, &items[i].in_list);
    list_for_each (outer, &list) {
        list_for_each (inner, &list)
            pairs++;
    }
    assert_int_equal(pairs, 9);
}

/* A list, and an array of the numbers of the items that it must have. */
struct world {
    struct test_random random;
    struct list list;
    struct item items[ITEMS];
    int model[ITEMS];
    int count;
};

static void model_insert(struct world *world, int position, int number)
{
    for (int i = world->count++; i > position; i--)
        world->model[i] = world->model[i - 1];
    world->model[position] = number;
}

static void model_remove(struct world *world, int number)
{
    int kept = 0;

    for (int i = 0; i < world->count; i++) {
        if (world->model[i] != number)
            world->model[kept++] = world->model[i];
    }
    world->count = kept;
}

/* Inserts the item at a random position. */
static void insert_random(struct world *world, struct item *item)
{
    int position = (int)test_random_below(&world->random, (uint64_t)world->count + 1);

    if (position == world->count) {
        list_append(&world->list, &item->in_list);
    } else {
        struct item *next = &world->items[world->model[position]];

        list_insert_before(&next->in_list, &item->in_list);
    }
    model_insert(world, position, item->number);
}

/* Removes about a third of the items in one pass. */
static void remove_while_iterating(struct world *world)
{
    list_for_each (link, &world->list) {
        if (test_random_below(&world->random, 3) > 0)
            continue;
        model_remove(world, item_of(link)->number);
        list_remove(link);
    }
}

static void check(const struct world *world)
{
    int position = 0;

    list_for_each (link, &world->list) {
        assert_true(position < world->count);
        assert_int_equal(item_of(link)->number, world->model[position++]);
    }
    assert_int_equal(position, world->count);
    for (const struct list_link *link = world->list.ends.previous; link != &world->list.ends;
         link = link->previous)
        assert_ptr_equal(link, &world->items[world->model[--position]].in_list);
    assert_int_equal(position, 0);
    assert_int_equal(list_is_empty(&world->list), world->count == 0);
    if (world->count > 0) {
        assert_ptr_equal(list_first(&world->list), &world->items[world->model[0]].in_list);
        assert_ptr_equal(list_last(&world->list),
                         &world->items[world->model[world->count - 1]].in_list);
    }
}

static void random_operations_agree_with_a_model(void **state)
{
    struct world world = {.random = {10}};

    (void)state;
    list_init(&world.list);
    for (int i = 0; i < ITEMS; i++)
        world.items[i].number = i;
    for (unsigned long step = test_steps(20000); step > 0; step--) {
        struct item *item = &world.items[test_random_below(&world.random, ITEMS)];

        if (test_random_below(&world.random, 20) == 0) {
            remove_while_iterating(&world);
        } else if (list_is_linked(&item->in_list)) {
            list_remove(&item->in_list);
            model_remove(&world, item->number);
        } else {
            insert_random(&world, item);
        }
        check(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_list_has_nothing),
        cmocka_unit_test(links_know_whether_they_are_in_a_list),
        cmocka_unit_test(items_move_from_list_to_list),
        cmocka_unit_test(items_may_be_freed_while_iterating),
        cmocka_unit_test(lists_nest),
        cmocka_unit_test(random_operations_agree_with_a_model),
    };

    return cmocka_run_group_tests_name("list", tests, NULL, NULL);
}
