/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/stream/pool_counts.h"

#include <berth/error.h>

#include "base/count.h"

static void a_duration_is_in_the_first_bucket_that_holds_it(void **state)
{
    struct pool_counts counts;

    (void)state;
    for (unsigned bucket = 0; bucket < HISTOGRAM_BUCKETS - 1; bucket++) {
        pool_counts_init(&counts);
        pool_counts_add_granted(&counts, histogram_bounds[bucket]);
        assert_int_equal(counts.waited.counts[bucket], 1);
        pool_counts_add_granted(&counts, histogram_bounds[bucket] + 1);
        assert_int_equal(counts.waited.counts[bucket], 1);
        assert_int_equal(counts.waited.counts[bucket + 1], 1);
        assert_int_equal(counts.waited.sum, 2 * histogram_bounds[bucket] + 1);
        assert_int_equal(counts.tally.granted, 2);
        assert_ptr_equal(counts.tally.waited, &counts.waited);
    }
    pool_counts_init(&counts);
    pool_counts_add_held(&counts, INT64_MAX);
    assert_int_equal(counts.held.counts[HISTOGRAM_BUCKETS - 1], 1);
    assert_int_equal(counts.tally.granted, 0);
    assert_ptr_equal(counts.tally.held, &counts.held);
}

/* A restored lease may be older than the clock's offset says. */
static void a_negative_duration_counts_as_none(void **state)
{
    struct pool_counts counts;

    (void)state;
    pool_counts_init(&counts);
    pool_counts_add_held(&counts, -5);
    pool_counts_add_granted(&counts, INT64_MIN);
    assert_int_equal(counts.held.counts[0], 1);
    assert_int_equal(counts.held.sum, 0);
    assert_int_equal(counts.waited.counts[0], 1);
    assert_int_equal(counts.waited.sum, 0);
}

static void claims_without_a_lease_are_counted_by_their_reason(void **state)
{
    static const int refusals[] = {
        BERTH_ERROR_BUSY,  BERTH_ERROR_IMPOSSIBLE, BERTH_ERROR_NO_DEVICE, BERTH_ERROR_IMPOSSIBLE,
        BERTH_ERROR_LIMIT, BERTH_ERROR_PERMISSION, BERTH_ERROR_MEMORY,    BERTH_ERROR_INVALID,
    };
    static const enum lease_end ends[] = {
        LEASE_END_TIMED_OUT, LEASE_END_TIMED_OUT, LEASE_END_IMPOSSIBLE,
        LEASE_END_CANCELLED, LEASE_END_PARENT,    LEASE_END_DIED,
    };
    struct pool_counts counts;

    (void)state;
    pool_counts_init(&counts);
    for (size_t i = 0; i < COUNT(refusals); i++)
        pool_counts_add_refused(&counts, refusals[i]);
    assert_int_equal(counts.tally.busy, 1);
    assert_int_equal(counts.tally.impossible, 3);
    assert_int_equal(counts.tally.refused, 4);
    for (size_t i = 0; i < COUNT(ends); i++)
        pool_counts_add_gone(&counts, ends[i]);
    assert_int_equal(counts.tally.timed_out, 2);
    assert_int_equal(counts.tally.impossible, 4);
    assert_int_equal(counts.tally.cancelled, 3);
    assert_int_equal(counts.tally.granted, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_duration_is_in_the_first_bucket_that_holds_it),
        cmocka_unit_test(a_negative_duration_counts_as_none),
        cmocka_unit_test(claims_without_a_lease_are_counted_by_their_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
