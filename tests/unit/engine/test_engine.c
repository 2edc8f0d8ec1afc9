/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "engine/engine.h"

#include "support/engine/engines.h"

static void claims_are_served_in_turn(void **state)
{
    struct world world;
    struct engine_request *one;
    uint64_t first, second, third;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    one = world_request(&world, NULL);
    assert_int_equal(engine_claim(world.engine, one, TIME_NEVER, NULL, &first, NULL),
                     CLAIM_GRANTED);
    assert_int_equal(engine_claim(world.engine, one, TIME_NEVER, NULL, &second, NULL),
                     CLAIM_GRANTED);
    assert_int_equal(engine_claim(world.engine, one, TIME_NEVER, NULL, &third, NULL), CLAIM_WAITS);
    assert_int_equal(engine_pending(world.engine), 1);
    check_told(&world, "request 1\n"
                       "granted lease 1: slots 0\n"
                       "granted lease 2: slots 1\n"
                       "queued claim 3\n");
    assert_int_equal(engine_release(world.engine, first, NULL), 0);
    check_told(&world, "released lease 1\n"
                       "granted lease 4 of claim 3: slots 0\n");
    assert_int_equal(engine_pending(world.engine), 0);
    assert_int_equal(engine_release(world.engine, first, NULL), BERTH_ERROR_NOT_FOUND);
    engine_request_close(world.engine, one);
    world_finish(&world);
}

static void a_wide_claim_is_not_starved(void **state)
{
    struct world world;
    struct engine_request *one, *both;
    uint64_t first, wide, late;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    one = world_request(&world, NULL);
    both = world_request(&world, "gpus=2");
    assert_int_equal(engine_claim(world.engine, one, TIME_NEVER, NULL, &first, NULL),
                     CLAIM_GRANTED);
    assert_int_equal(engine_claim(world.engine, both, TIME_NEVER, NULL, &wide, NULL), CLAIM_WAITS);
    assert_int_equal(engine_try(world.engine, one, &late, NULL), CLAIM_WAITS);
    assert_int_equal(engine_claim(world.engine, one, TIME_NEVER, NULL, &late, NULL), CLAIM_WAITS);
    check_why(&world, wide, "needs 2, 1 free: user 0 holds 1", TIME_NEVER);
    check_why(&world, late,
              "needs 1: user 0 holds 1, 1 is kept for earlier claims; 1 claim is before it",
              TIME_NEVER);
    world_forget(&world);
    assert_int_equal(engine_release(world.engine, first, NULL), 0);
    check_told(&world, "released lease 1\n"
                       "granted lease 4 of claim 2: slots 0,1\n");
    assert_int_equal(engine_cancel(world.engine, late, NULL), 0);
    check_told(&world, "refused claim 3: cancelled\n");
    world_finish(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims_are_served_in_turn),
        cmocka_unit_test(a_wide_claim_is_not_starved),
    };

    return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
