/* SPDX-License-Identifier: Apache-2.0
 *
 * engine_try(), and requests that are refused at once: no devices, or impossible.
 */
#include "support/unit.h"

#include "support/engine/engine_steps.h"

/* Checks that engine_would_grant() and engine_try() change nothing and send no event. */
static void check_only_waits(struct world *world, struct engine_request *request)
{
    struct text before = engine_state(world->engine);
    struct text after;
    uint64_t id = 77;

    world_forget(world);
    assert_int_equal(engine_would_grant(world->engine, request, NULL), CLAIM_WAITS);
    assert_int_equal(engine_try(world->engine, request, &id, NULL), CLAIM_WAITS);
    after = engine_state(world->engine);
    assert_int_equal(before.length, after.length);
    assert_memory_equal(before.bytes, after.bytes, before.length);
    check_told(world, "");
    assert_int_equal(id, 77);
    text_finish(&before);
    text_finish(&after);
}

static void trying_grants_what_a_claim_would_get(void **state)
{
    struct world world;
    struct engine_request *both;
    uint64_t lease;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    both = world_request(&world, "gpus=2");
    assert_int_equal(engine_would_grant(world.engine, both, NULL), CLAIM_GRANTED);
    check_told(&world, "request 1\n");
    assert_int_equal(engine_try(world.engine, both, &lease, NULL), CLAIM_GRANTED);
    assert_int_equal(lease, 1);
    check_told(&world, "granted lease 1: slots 0,1\n");
    world_finish(&world);
}

static void trying_leaves_nothing_behind_when_devices_are_busy(void **state)
{
    struct world world;
    struct engine_request *one;

    (void)state;
    world_init(&world, "nvidia0");
    one = world_request(&world, NULL);
    granted(&world, one);
    check_only_waits(&world, one);
    check_pending(&world, 0);
    world_finish(&world);
}

static void trying_takes_nothing_that_is_kept_for_a_waiting_claim(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, NULL);
    waits_with(&world, "gpus=2");
    check_only_waits(&world, world_request(&world, NULL));
    check_only_waits(&world, world_request(&world, "time=1"));
    world_finish(&world);
}

static void trying_with_a_request_that_waits_already_gets_nothing(void **state)
{
    struct world world;
    struct engine_request *wide;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, NULL);
    wide = world_request(&world, "gpus=2");
    waits(&world, wide);
    check_only_waits(&world, wide);
    world_finish(&world);
}

static void trying_at_a_limit_gets_nothing(void **state)
{
    struct world world;
    struct engine_request *one;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    limit_user(&world, 5, 1000);
    one = world_request(&world, "uid=5");
    granted(&world, one);
    check_only_waits(&world, one);
    world_finish(&world);
}

static void trying_revokes_nobody(void **state)
{
    struct world world;
    struct engine_request *one;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, "opportunistic");
    one = world_request(&world, NULL);
    check_only_waits(&world, one);
    waits(&world, one);
    check_told(&world, "queued claim 2\n"
                       "notice lease 1\n");
    world_finish(&world);
}

static void trying_with_a_high_class_goes_before_those_that_wait(void **state)
{
    struct world world;
    uint64_t lease;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, NULL);
    waits_with(&world, "gpus=2");
    assert_int_equal(engine_try(world.engine, world_request(&world, "priority=high"), &lease, NULL),
                     CLAIM_GRANTED);
    world_finish(&world);
}

static void a_full_engine_says_so(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, NULL);
    assert_false(engine_is_full(world.engine));
    granted_to(&world, "sharing=time-slice share=900");
    assert_false(engine_is_full(world.engine));
    granted_to(&world, "sharing=time-slice share=100");
    assert_true(engine_is_full(world.engine));
    world_finish(&world);
}

static void an_empty_engine_has_no_device_for_anybody(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "");
    check_refused(&world, world_request(&world, NULL), BERTH_ERROR_NO_DEVICE,
                  "this pool has no devices");
    check_refused(&world, world_request(&world, "gpus=all"), BERTH_ERROR_NO_DEVICE,
                  "this pool has no devices");
    check_pending(&world, 0);
    world_finish(&world);
}

static void too_many_devices_are_impossible(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    check_impossible(&world, "gpus=3", "requested 3 devices, but this pool has only 2");
    check_impossible(&world, "gpus=2 replicas=2",
                     "requested 2 devices for each of 2 replicas, but this pool has only 2");
    check_impossible(&world, "gpus=1000000", "requested 1000000 devices, but this pool has only 2");
    world_finish(&world);
}

static void a_model_that_is_not_here_is_impossible(void **state)
{
    struct machine machine = {0};
    struct world world;

    (void)state;
    machine_add_ids(&machine, "nvidia0,nvidia1");
    machine.devices.items[0].name = copy_of("A100");
    world_init_with(&world, &machine, NULL);
    check_impossible(
        &world, "model=h100",
        "requested 1 device, model h100, but none of 2 devices is suitable: 2 are other models");
    check_impossible(
        &world, "model=a100 gpus=2",
        "requested 2 devices, model a100, but only 1 of 2 devices is suitable: 1 is another model");
    world_finish(&world);
}

static void a_device_that_is_not_here_is_named(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    check_impossible(&world, "device=nvidia9",
                     "no device named nvidia9 here; there are nvidia0 to nvidia2");
    check_impossible(&world, "device=amd1,nvidia9 gpus=2",
                     "no device named amd1 here; there are nvidia0 to nvidia2");
    /* One of the devices is here. */
    check_impossible(&world, "device=nvidia2,nvidia9 gpus=2",
                     "requested 2 devices, only nvidia2,nvidia9, but only 1 of 3 devices is "
                     "suitable: 2 are not named in the request");
    granted(&world, world_request(&world, "device=nvidia2,nvidia9"));
    world_finish(&world);
}

static void what_lies_outside_the_mask_is_impossible(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    check_impossible(&world, "mask=nvidia1 gpus=2",
                     "requested 2 devices, but only 1 of 2 devices is suitable: 1 is hidden by the "
                     "inherited mask");
    world_forget(&world);
    granted(&world, world_request(&world, "mask=nvidia1"));
    check_told(&world, "request 2\n"
                       "granted lease 1: slots 1\n");
    world_finish(&world);
}

static void what_is_gone_is_impossible(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    engine_device_gone(world.engine, 0);
    check_impossible(&world, "gpus=2",
                     "requested 2 devices, but only 1 of 2 devices is suitable: 1 is gone");
    engine_device_gone(world.engine, 1);
    check_impossible(&world, NULL,
                     "requested 1 device, but none of 2 devices is suitable: 2 are gone");
    world_finish(&world);
}

static void more_than_a_limit_is_impossible(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    limit_user(&world, 5, 1000);
    limit_group(&world, 7, 500);
    check_impossible(&world, "uid=5 gpus=2",
                     "requested 2 devices, but user 5 may hold at most 1 device");
    check_impossible(&world, "uid=6 group=7",
                     "requested 1 device, but group 7 may hold at most 0.5 devices");
    world_finish(&world);
}

static void what_is_outside_a_lease_is_impossible_within_it(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    granted_to(&world, "gpus=2");
    check_impossible(
        &world, "parent=1 gpus=3",
        "requested 3 devices, but only 2 of 3 devices are suitable: 1 is outside the lease");
    world_finish(&world);
}

static void two_vendors_in_one_replica_are_impossible_unless_any(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,amd0");
    check_impossible(&world, "gpus=2",
                     "requested 2 devices, but all devices of a replica must have one vendor, "
                     "unless vendor is any");
    granted_to(&world, "gpus=2 vendor=any");
    world_finish(&world);
}

static void what_cannot_be_shared_is_impossible(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,amd0");
    check_impossible(&world, "sharing=mps device=amd0",
                     "requested 1 device, only amd0, shared by mps, but none of 2 devices is "
                     "suitable: 1 is not named in the request, 1 does not support MPS");
    world_finish(&world);
}

static void what_only_waiting_can_tell_is_not_impossible(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    engine_device_health(world.engine, 0, HEALTH_SICK);
    waits_with(&world, NULL);
    engine_device_health(world.engine, 0, HEALTH_OK);
    engine_block(world.engine, 0, BLOCK_DRAINED);
    waits_with(&world, "min-free=10");
    world_finish(&world);
}

static void a_request_that_contradicts_itself_is_not_opened(void **state)
{
    struct engine_request *request = NULL;
    struct berth_error error = {0};
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    assert_int_equal(world_open(&world, "share=500", &request, &error), BERTH_ERROR_INVALID);
    assert_int_equal(world_open(&world, "policy=best", &request, &error), BERTH_ERROR_INVALID);
    assert_memory_equal(error.message, "policy: expected one of first, ", 31);
    assert_non_null(strstr(error.message, "; got 'best'"));
    assert_null(request);
    check_told(&world, "");
    world_finish(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trying_grants_what_a_claim_would_get),
        cmocka_unit_test(trying_leaves_nothing_behind_when_devices_are_busy),
        cmocka_unit_test(trying_takes_nothing_that_is_kept_for_a_waiting_claim),
        cmocka_unit_test(trying_with_a_request_that_waits_already_gets_nothing),
        cmocka_unit_test(trying_at_a_limit_gets_nothing),
        cmocka_unit_test(trying_revokes_nobody),
        cmocka_unit_test(trying_with_a_high_class_goes_before_those_that_wait),
        cmocka_unit_test(a_full_engine_says_so),
        cmocka_unit_test(an_empty_engine_has_no_device_for_anybody),
        cmocka_unit_test(too_many_devices_are_impossible),
        cmocka_unit_test(a_model_that_is_not_here_is_impossible),
        cmocka_unit_test(a_device_that_is_not_here_is_named),
        cmocka_unit_test(what_lies_outside_the_mask_is_impossible),
        cmocka_unit_test(what_is_gone_is_impossible),
        cmocka_unit_test(more_than_a_limit_is_impossible),
        cmocka_unit_test(what_is_outside_a_lease_is_impossible_within_it),
        cmocka_unit_test(two_vendors_in_one_replica_are_impossible_unless_any),
        cmocka_unit_test(what_cannot_be_shared_is_impossible),
        cmocka_unit_test(what_only_waiting_can_tell_is_not_impossible),
        cmocka_unit_test(a_request_that_contradicts_itself_is_not_opened),
    };

    return cmocka_run_group_tests_name("engine_try", tests, NULL, NULL);
}
