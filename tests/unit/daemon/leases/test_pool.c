/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/leases/pool.h"

#include <string.h>

#include "base/error.h"
#include "support/daemons/pool_stage.h"
#include "support/failing_allocator.h"

/* The calls of the made-up parts below. */
static struct text calls;

static int init_first(struct pool *pool, struct berth_error *error)
{
    (void)pool;
    (void)error;
    text_append(&calls, "+first ");
    return 0;
}

static void finish_first(struct pool *pool)
{
    (void)pool;
    text_append(&calls, "-first ");
}

static int init_second(struct pool *pool, struct berth_error *error)
{
    (void)pool;
    text_append(&calls, "+second ");
    return error_set(error, BERTH_ERROR_RANGE, "the second fails");
}

static void finish_second(struct pool *pool)
{
    (void)pool;
    text_append(&calls, "-second ");
}

static void finish_third(struct pool *pool)
{
    (void)pool;
    text_append(&calls, "-third ");
}

static int forget_calls(void **state)
{
    (void)state;
    text_finish(&calls);
    return 0;
}

static void parts_are_finished_in_reverse_order(void **state)
{
    static const struct pool_part parts[] = {
        {init_first, finish_first}, {NULL, finish_third}, {init_first, NULL}};
    size_t count = 99;

    (void)state;
    assert_int_equal(pool_init_parts(NULL, parts, COUNT(parts), &count, NULL), 0);
    assert_int_equal(count, COUNT(parts));
    pool_finish_parts(NULL, parts, count);
    assert_string_equal(text_string(&calls), "+first +first -third -first ");
}

static void the_part_that_failed_is_finished_too(void **state)
{
    static const struct pool_part parts[] = {
        {init_first, finish_first}, {init_second, finish_second}, {init_first, finish_third}};
    struct berth_error error = BERTH_ERROR_INIT;
    size_t count = 99;

    (void)state;
    assert_int_equal(pool_init_parts(NULL, parts, COUNT(parts), &count, &error), BERTH_ERROR_RANGE);
    assert_string_equal(error.message, "the second fails");
    assert_int_equal(count, 2);
    pool_finish_parts(NULL, parts, count);
    assert_string_equal(text_string(&calls), "+first +second -second -first ");
}

static int begin(void **state)
{
    struct pool_stage *stage = pool_stage_make(&(struct pool_stage_settings){0});

    /* The coordinator makes its own jobs. */
    job_finish_pool(&stage->pool);
    *state = stage;
    return 0;
}

/* Whichever part finds no memory: the daemon can finish what there is. */
static void every_part_may_find_no_memory(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    unsigned long count = 0;
    int code;

    do {
        struct berth_error error = BERTH_ERROR_INIT;

        failing_allocator_start(++count);
        code = pool_init(pool, &error);
        assert_int_equal(failing_allocator_stop(), code < 0);
        assert_int_equal(code, code < 0 ? BERTH_ERROR_MEMORY : 0);
        assert_int_equal(error.code, code);
        pool_finish(pool);
        assert_null(pool->drains);
        assert_null(pool->checks);
        assert_null(pool->readers);
        assert_null(pool->followers);
        assert_null(pool->lease_warnings);
        pool_finish(pool); /* does nothing */
    } while (code < 0);
    assert_true(count > 10);
}

static void the_pool_of_a_connection_is_found(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);

    assert_ptr_equal(pool_of(client.connection), &stage->pool);
    pool_stage_hang_up(stage, &client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(parts_are_finished_in_reverse_order, forget_calls),
        cmocka_unit_test_teardown(the_part_that_failed_is_finished_too, forget_calls),
        cmocka_unit_test_setup_teardown(every_part_may_find_no_memory, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(the_pool_of_a_connection_is_found, pool_stage_begin,
                                        pool_stage_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
