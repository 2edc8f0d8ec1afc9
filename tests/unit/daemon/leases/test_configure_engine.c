/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/leases/configure_engine.h"

#include <string.h>

#include "support/daemons/pool_stage.h"
#include "support/engine/machines.h"
#include "support/failing_allocator.h"

/* The first rules of each test, before any job: no limits, nothing reserved. */
static int begin(void **state)
{
    *state = pool_stage_make(&(struct pool_stage_settings){0});
    return 0;
}

static struct configuration parse(const char *text)
{
    struct configuration configuration = {0};
    struct berth_error error = BERTH_ERROR_INIT;

    if (configuration_parse("test", text, strlen(text), &configuration, &error) < 0)
        fail_msg("%s", error.message);
    return configuration;
}

/* Applies a configuration as a reload does. */
static void apply(struct pool_stage *stage, const char *text)
{
    struct configuration next = parse(text);

    engine_pause(stage->pool.engine);
    assert_int_equal(configure_engine_apply(&stage->pool, &next, NULL), 0);
    assert_int_equal(next.limits.count, 0);
    assert_int_equal(configure_engine_limit_all(&stage->pool, NULL), 0);
    engine_resume(stage->pool.engine);
}

/* Returns whether a claim that waited has its devices by now. */
static bool is_granted(const struct pool_stage *stage, const struct job *job)
{
    struct claim_view view;

    return !engine_get_claim(stage->pool.engine, job->by_id.id, &view);
}

/* Claims `count` devices one by one, and returns how many were granted. The user's limit is applied
 * as each claim does it. */
static int claim_some(struct pool_stage *stage, uint32_t uid, int count)
{
    int granted = 0;

    assert_int_equal(configure_engine_limit_user(&stage->pool, uid, NULL), 0);
    for (int i = 0; i < count; i++)
        granted += pool_stage_claim(stage, &(struct stage_claim){.uid = uid, .is_root = uid == 0})
                       ->state == JOB_HELD;
    return granted;
}

static void each_user_has_the_common_limit(void **state)
{
    struct pool_stage *stage = *state;

    apply(stage, "limits: {each_user: 1}");
    assert_int_equal(claim_some(stage, STAGE_USER, 2), 1);
    assert_int_equal(claim_some(stage, STAGE_OTHER, 2), 1);
    assert_int_equal(stage->pool.limited.count, 2);
    assert_int_equal(claim_some(stage, STAGE_USER, 1), 0);
    assert_int_equal(stage->pool.limited.count, 2);
}

static void a_user_of_the_list_has_another_limit(void **state)
{
    struct pool_stage *stage = *state;

    apply(stage, "limits: {each_user: 1, users: {1000: 2}}");
    assert_int_equal(claim_some(stage, STAGE_USER, 3), 2);
    assert_int_equal(claim_some(stage, STAGE_OTHER, 2), 1);
}

static void root_and_the_owner_have_only_limits_that_name_them(void **state)
{
    struct pool_stage *stage = *state;

    apply(stage, "limits: {each_user: 1}");
    assert_int_equal(claim_some(stage, STAGE_OWNER, 2), 2);
    assert_int_equal(claim_some(stage, 0, 2), 2);
    assert_int_equal(stage->pool.limited.count, 0);
}

static void root_may_be_limited_by_name(void **state)
{
    struct pool_stage *stage = *state;

    apply(stage, "limits: {users: {0: 1}}");
    assert_int_equal(claim_some(stage, 0, 2), 1);
}

/* Each step changes the rules while the user has a waiting claim. */
static void changed_limits_hold_for_waiting_claims(void **state)
{
    struct pool_stage *stage = *state;
    const struct job *third;
    const struct job *fourth;

    apply(stage, "limits: {each_user: 2}");
    assert_int_equal(claim_some(stage, STAGE_USER, 2), 2);
    third = pool_stage_claim(stage, &(struct stage_claim){0});
    fourth = pool_stage_claim(stage, &(struct stage_claim){0});
    assert_int_equal(third->state, JOB_WAITING);
    /* Another rule, but the same limit. */
    apply(stage, "limits: {users: {1000: 2}}");
    assert_false(is_granted(stage, third));
    apply(stage, "limits: {users: {1000: 3}}");
    assert_true(is_granted(stage, third));
    assert_false(is_granted(stage, fourth));
    apply(stage, "");
    assert_true(is_granted(stage, fourth));
}

static void a_limit_for_all_replaces_that_of_a_user(void **state)
{
    struct pool_stage *stage = *state;

    apply(stage, "limits: {each_user: 3, users: {1000: 1}}");
    assert_int_equal(claim_some(stage, STAGE_USER, 4), 1);
    apply(stage, "limits: {each_user: 2}");
    list_for_each (link, &stage->pool.jobs) {
        const struct job *job = container_of(link, struct job, in_pool);

        assert_int_equal(is_granted(stage, job), job->by_id.id <= 2);
    }
}

/* A limit that is new must hold for the claims that wait already: their user need not claim again.
 */
static void a_first_limit_holds_for_waiting_claims(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const struct job *blocker =
        pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=4", .uid = STAGE_OTHER});
    const struct job *one;
    const struct job *other;

    assert_int_equal(claim_some(stage, STAGE_USER, 0), 0);
    one = pool_stage_claim(stage, &(struct stage_claim){0});
    other = pool_stage_claim(stage, &(struct stage_claim){0});
    apply(stage, "limits: {each_user: 1}");
    assert_int_equal(engine_release(pool->engine, blocker->by_lease.id, NULL), 0);
    assert_true(is_granted(stage, one));
    assert_false(is_granted(stage, other));
}

static void groups_have_limits_of_their_own(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const uint32_t groups[] = {77};
    struct cached_request *cached;
    struct request request;
    uint64_t id;

    apply(stage, "limits: {each_user: 2, groups: {77: 1}}");
    request_init(&request);
    assert_int_equal(
        request_cache_open(pool, &request,
                           &(struct requester){.uid = 77, .groups = groups, .group_count = 1},
                           &cached, NULL),
        0);
    assert_int_equal(engine_try(pool->engine, cached->request, &id, NULL), CLAIM_GRANTED);
    assert_int_equal(engine_try(pool->engine, cached->request, &id, NULL), CLAIM_WAITS);
    /* User 77 is another matter than group 77. */
    assert_int_equal(claim_some(stage, 77, 2), 1);
    /* A limit in the old and in the new rules stays. */
    apply(stage, "grace: 1s\nlimits: {groups: {77: 1}}");
    assert_int_equal(engine_try(pool->engine, cached->request, &id, NULL), CLAIM_WAITS);
    apply(stage, "limits: {users: {77: 0}}");
    assert_int_equal(engine_try(pool->engine, cached->request, &id, NULL), BERTH_ERROR_IMPOSSIBLE);
    apply(stage, "");
    assert_int_equal(engine_try(pool->engine, cached->request, &id, NULL), CLAIM_GRANTED);
    request_cache_release(pool, cached);
}

static void devices_are_reserved_and_preferred(void **state)
{
    struct pool_stage *stage = *state;
    const struct job *job;
    struct slot_view view;

    apply(stage, "preferred: [nvidia2]\nreserved: {nvidia0: {users: [1001]}}");
    pool_stage_claim(stage, &(struct stage_claim){0});
    engine_get_slot(stage->pool.engine, 2, &view);
    assert_true(view.taken);
    job = pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=2"});
    assert_int_equal(job->state, JOB_HELD);
    engine_get_slot(stage->pool.engine, 0, &view);
    assert_false(view.taken);
    job = pool_stage_claim(stage, &(struct stage_claim){.uid = STAGE_OTHER});
    assert_int_equal(job->state, JOB_HELD);
    job = pool_stage_claim(stage, &(struct stage_claim){0});
    assert_int_equal(job->state, JOB_WAITING);
    /* The other user's end leaves a device that this one may not have, until the rules change. */
    engine_get_slot(stage->pool.engine, 0, &view);
    assert_int_equal(engine_release(stage->pool.engine, view.lease, NULL), 0);
    assert_false(is_granted(stage, job));
    apply(stage, "");
    assert_true(is_granted(stage, job));
}

/* Without memory as many rules as possible hold, and the caller learns that some do not. */
static void without_memory_the_rest_of_the_rules_holds(void **state)
{
    struct pool_stage *stage = *state;
    struct configuration next =
        parse("grace: 7s\nlimits: {users: {1000: 1}}\nreserved: {nvidia0: {users: [1001]}}");
    struct berth_error error = BERTH_ERROR_INIT;
    int code;

    failing_allocator_start(1);
    code = configure_engine_apply(&stage->pool, &next, &error);
    assert_true(failing_allocator_stop());
    assert_int_equal(code, BERTH_ERROR_MEMORY);
    assert_int_equal(error.code, BERTH_ERROR_MEMORY);
    assert_int_equal(stage->pool.rules.grace, 7 * DURATION_SECOND);
    stage->pool.rules.each_user.devices = 1000000;
    failing_allocator_start(1);
    code = configure_engine_limit_user(&stage->pool, STAGE_OTHER, &error);
    assert_true(failing_allocator_stop());
    assert_int_equal(code, BERTH_ERROR_MEMORY);
    assert_int_equal(stage->pool.limited.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_user_has_the_common_limit, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_user_of_the_list_has_another_limit, begin,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(root_and_the_owner_have_only_limits_that_name_them, begin,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(root_may_be_limited_by_name, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(changed_limits_hold_for_waiting_claims, begin,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(a_limit_for_all_replaces_that_of_a_user, begin,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(a_first_limit_holds_for_waiting_claims, begin,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(groups_have_limits_of_their_own, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(devices_are_reserved_and_preferred, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(without_memory_the_rest_of_the_rules_holds, begin,
                                        pool_stage_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
