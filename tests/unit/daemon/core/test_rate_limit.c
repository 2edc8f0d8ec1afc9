/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/text/quantity.h"
#include "daemon/core/rate_limit.h"
#include "support/random.h"

enum { STEPS = 100000 };
#define NOW INT64_C(1000000000000)

static void a_full_one_gives_what_it_holds_and_then_nothing(void **state)
{
    struct rate_limit bucket = {0};
    int64_t piece = DURATION_SECOND / 10;

    (void)state;
    assert_true(rate_limit_is_full(&bucket, NOW));
    for (int i = 0; i < 10; i++) {
        assert_true(rate_limit_ready_at(&bucket, DURATION_SECOND) < NOW);
        rate_limit_take(&bucket, NOW, piece);
    }
    assert_false(rate_limit_ready_at(&bucket, DURATION_SECOND) < NOW);
    assert_false(rate_limit_is_full(&bucket, NOW));
    /* One token is refilled in the time of one token. */
    assert_true(rate_limit_ready_at(&bucket, DURATION_SECOND) < NOW + 1);
    assert_false(rate_limit_is_full(&bucket, NOW + DURATION_SECOND - 1));
    assert_true(rate_limit_is_full(&bucket, NOW + DURATION_SECOND));
}

static void what_was_taken_too_much_is_waited_for(void **state)
{
    struct rate_limit bucket = {0};

    (void)state;
    rate_limit_take(&bucket, NOW, 3 * DURATION_SECOND);
    assert_int_equal(rate_limit_ready_at(&bucket, DURATION_SECOND), NOW + 2 * DURATION_SECOND);
    rate_limit_fill(&bucket);
    assert_true(rate_limit_is_full(&bucket, NOW));
}

static void a_long_rest_fills_it_only_once(void **state)
{
    struct rate_limit bucket = {0};
    int64_t later = NOW + 1000 * DURATION_SECOND;

    (void)state;
    rate_limit_take(&bucket, NOW, DURATION_SECOND);
    rate_limit_take(&bucket, later, DURATION_SECOND);
    assert_false(rate_limit_ready_at(&bucket, DURATION_SECOND) < later);
}

static void no_more_comes_out_than_went_in(void **state)
{
    struct test_random random = {3};
    struct rate_limit bucket = {0};
    int64_t now = NOW;
    int64_t taken = 0;

    (void)state;
    for (int step = 0; step < STEPS; step++) {
        int64_t piece = 1 + (int64_t)test_random_below(&random, DURATION_SECOND / 100);

        now += (int64_t)test_random_below(&random, DURATION_SECOND / 100);
        if (rate_limit_ready_at(&bucket, DURATION_SECOND) >= now)
            continue;
        rate_limit_take(&bucket, now, piece);
        taken += piece;
        /* The initial content, the refill since then, and the last token. */
        assert_true(taken <= DURATION_SECOND + (now - NOW) + DURATION_SECOND / 100);
    }
    assert_true(taken > (now - NOW) / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_one_gives_what_it_holds_and_then_nothing),
        cmocka_unit_test(what_was_taken_too_much_is_waited_for),
        cmocka_unit_test(a_long_rest_fills_it_only_once),
        cmocka_unit_test(no_more_comes_out_than_went_in),
    };

    return cmocka_run_group_tests_name("bucket", tests, NULL, NULL);
}
