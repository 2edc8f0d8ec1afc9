/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/leases/reader_events.h"

#include "support/daemons/played_readers.h"
#include "support/daemons/pool_stage.h"

static int begin(void **state)
{
    static const struct pool_part parts[] = {{reader_events_init, reader_events_finish}};

    *state =
        pool_stage_make(&(struct pool_stage_settings){.parts = parts, .part_count = COUNT(parts)});
    return 0;
}

static const struct reader_pool_events *events_of(const struct pool_stage *stage)
{
    return &stage->pool.readers->events;
}

/* Messages that wait for the searches of a user who turned out to be slow are looked at again. */
static void a_slow_user_delays_no_message(void **state)
{
    struct pool_stage *stage = *state;

    assert_false(stage->pool.has_looked);
    events_of(stage)->slowed(events_of(stage)->context);
    assert_true(stage->pool.has_looked);
}

static void a_stalled_process_is_logged(void **state)
{
    struct pool_stage *stage = *state;
    const struct stalled_process process = {.pid = 4711, .account = STAGE_USER};

    events_of(stage)->stalled(events_of(stage)->context, &process);
    assert_string_equal(pool_stage_log(stage), "stalled pid=4711 uid=1000\n");
}

/* A process of a container counts for the user whose range its uid is in. */
static void a_stalled_process_counts_for_its_owner(void **state)
{
    struct pool_stage *stage = *state;
    struct subordinate_range *range = vector_append(&stage->pool.accounts.ranges);

    assert_non_null(range);
    *range = (struct subordinate_range){.first = 100000, .last = 165535, .owner = STAGE_USER};
    assert_int_equal(events_of(stage)->find_account(events_of(stage)->context, 100001), STAGE_USER);
    assert_int_equal(events_of(stage)->find_account(events_of(stage)->context, STAGE_OTHER),
                     STAGE_OTHER);
}

static void lost_readers_are_logged(void **state)
{
    struct pool_stage *stage = *state;

    events_of(stage)->failed(events_of(stage)->context, "no \"berth-reader\" here");
    events_of(stage)->failed(events_of(stage)->context, NULL);
    assert_string_equal(pool_stage_log(stage),
                        "reader what=lost reason=\"no \\\"berth-reader\\\" here\"\n"
                        "reader what=back\n");
}

/* The spared processes belong to the readers' part: both end once. */
static void it_may_end_twice(void **state)
{
    struct pool_stage *stage = *state;

    reader_events_finish(&stage->pool);
    assert_null(stage->pool.readers);
    reader_events_finish(&stage->pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_slow_user_delays_no_message, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_stalled_process_is_logged, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_stalled_process_counts_for_its_owner, begin,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(lost_readers_are_logged, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(it_may_end_twice, begin, pool_stage_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
