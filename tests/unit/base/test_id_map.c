/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/id_map.h"

#include <stdbool.h>
#include <string.h>

#include "support/failing_allocator.h"
#include "support/random.h"
#include "support/steps.h"

enum { LINKS = 500 };

static void what_was_added_is_found_until_it_is_removed(void **state)
{
    struct id_link one = {.id = 7}, other = {.id = 8};
    struct id_map map;

    (void)state;
    assert_int_equal(id_map_init(&map), 0);
    assert_null(id_map_find(&map, 7));
    id_map_add(&map, &one);
    id_map_add(&map, &other);
    assert_ptr_equal(id_map_find(&map, 7), &one);
    assert_ptr_equal(id_map_find(&map, 8), &other);
    id_map_remove(&map, &one);
    assert_null(id_map_find(&map, 7));
    assert_ptr_equal(id_map_find(&map, 8), &other);
    id_map_finish(&map);
}

static void ids_of_one_bucket_are_told_apart(void **state)
{
    struct id_link links[4];
    struct id_map map;

    (void)state;
    assert_int_equal(id_map_init(&map), 0);
    for (uint64_t i = 0; i < 4; i++) {
        links[i].id = 5 + i * (map.mask + 1);
        id_map_add(&map, &links[i]);
    }
    id_map_remove(&map, &links[2]); /* neither the first nor the last of its bucket */
    assert_null(id_map_find(&map, links[2].id));
    assert_ptr_equal(id_map_find(&map, links[0].id), &links[0]);
    assert_ptr_equal(id_map_find(&map, links[1].id), &links[1]);
    assert_ptr_equal(id_map_find(&map, links[3].id), &links[3]);
    id_map_finish(&map);
}

static void any_number_is_an_id(void **state)
{
    struct id_link none = {.id = 0}, max = {.id = UINT64_MAX};
    struct id_map map;

    (void)state;
    assert_int_equal(id_map_init(&map), 0);
    id_map_add(&map, &none);
    id_map_add(&map, &max);
    assert_ptr_equal(id_map_find(&map, 0), &none);
    assert_ptr_equal(id_map_find(&map, UINT64_MAX), &max);
    id_map_finish(&map);
}

/* Checks that the map has exactly the links that are present. */
static void check_all(const struct id_map *map, struct id_link *links, const bool *present)
{
    for (size_t i = 0; i < LINKS; i++)
        assert_ptr_equal(id_map_find(map, links[i].id), present[i] ? &links[i] : NULL);
}

static void a_larger_map_has_the_same_links(void **state)
{
    static struct id_link links[LINKS];
    static bool present[LINKS];
    struct id_map map;

    (void)state;
    assert_int_equal(id_map_init(&map), 0);
    for (size_t i = 0; i < LINKS; i++) {
        links[i].id = i * 3;
        id_map_add(&map, &links[i]);
        present[i] = true;
    }
    id_map_reserve(&map, LINKS);
    assert_true(map.mask + 1 >= LINKS);
    check_all(&map, links, present);
    id_map_reserve(&map, 1);
    assert_true(map.mask + 1 >= LINKS);
    check_all(&map, links, present);
    id_map_finish(&map);
}

static void without_memory_a_map_stays_as_large_as_it_is(void **state)
{
    static struct id_link links[LINKS];
    static bool present[LINKS];
    struct id_map map;

    (void)state;
    assert_int_equal(id_map_init(&map), 0);
    for (size_t i = 0; i < LINKS; i++) {
        links[i].id = i;
        id_map_add(&map, &links[i]);
        present[i] = true;
    }
    failing_allocator_start(1);
    id_map_reserve(&map, LINKS * 10);
    assert_true(failing_allocator_stop());
    check_all(&map, links, present);
    id_map_finish(&map);
}

static int attempt(void *context)
{
    struct id_map map;
    int code = id_map_init(&map);

    (void)context;
    id_map_finish(&map);
    return code;
}

static void without_memory_there_is_no_map(void **state)
{
    (void)state;
    assert_int_equal(failing_allocator_try_all(attempt, NULL), 1);
}

static void random_changes_agree_with_a_model(void **state)
{
    static struct id_link links[LINKS];
    static bool present[LINKS];
    struct test_random random = {1};
    struct id_map map;

    (void)state;
    memset(present, 0, sizeof(present));
    for (size_t i = 0; i < LINKS; i++)
        links[i].id = (test_random_next(&random) & 0xFFFFFFFF) * LINKS + i;
    assert_int_equal(id_map_init(&map), 0);
    for (unsigned long step = 0; step < test_steps(20000); step++) {
        size_t which = test_random_below(&random, LINKS);

        if (present[which])
            id_map_remove(&map, &links[which]);
        else
            id_map_add(&map, &links[which]);
        present[which] = !present[which];
        if (step % 2000 == 1000)
            id_map_reserve(&map, step / 20);
        if (step % 1000 == 0)
            check_all(&map, links, present);
    }
    check_all(&map, links, present);
    id_map_finish(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_added_is_found_until_it_is_removed),
        cmocka_unit_test(ids_of_one_bucket_are_told_apart),
        cmocka_unit_test(any_number_is_an_id),
        cmocka_unit_test(a_larger_map_has_the_same_links),
        cmocka_unit_test(without_memory_a_map_stays_as_large_as_it_is),
        cmocka_unit_test(without_memory_there_is_no_map),
        cmocka_unit_test(random_changes_agree_with_a_model),
    };

    return cmocka_run_group_tests_name("id_map", tests, NULL, NULL);
}
