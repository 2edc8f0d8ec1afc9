/* SPDX-License-Identifier: Apache-2.0
 *
 * Reserved devices and preferred devices.
 */
#include "support/unit.h"

#include "base/count.h"
#include "support/engine/engine_steps.h"
#include "support/failing_allocator.h"

static const uint32_t alice[] = {5};
static const uint32_t professors[] = {70, 71};
static const struct allowed_users alice_or_professors = {alice, 1, professors, 2};
static const struct allowed_users only_alice = {.uids = alice, .uid_count = 1};
static const struct allowed_users nobody = {0};

/* Reserves a device, for which there is no event. */
static void reserve(struct world *world, uint32_t slot, const struct allowed_users *who)
{
    world->has_limits = true;
    world_forget(world);
    assert_int_equal(engine_reserve_device(world->engine, slot, who, NULL), 0);
}

/* ---- Reserved devices ---- */

static void others_do_not_get_it(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    reserve(&world, 0, &alice_or_professors);
    assert_int_equal(lease_in(&world, granted_to(&world, "uid=6 group=7")).slots[0], 1);
    waits_with(&world, NULL); /* root does not get it either */
    check_why(&world, 2, "needs 1: user 6 holds 1, 1 is reserved for others", TIME_NEVER);
    assert_int_equal(lease_in(&world, granted_to(&world, "uid=5")).slots[0], 0);
    released(&world, 3);
    assert_int_equal(lease_in(&world, granted_to(&world, "uid=6 group=7 group=71")).slots[0], 0);
    world_finish(&world);
}

static void what_nothing_else_could_do_is_impossible(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    reserve(&world, 0, &only_alice);
    reserve(&world, 1, &nobody);
    check_impossible(
        &world, "uid=6",
        "requested 1 device, but none of 2 devices is suitable: 2 are reserved for others");
    check_impossible(
        &world, "uid=5 gpus=2",
        "requested 2 devices, but only 1 of 2 devices is suitable: 1 is reserved for others");
    granted_to(&world, "uid=5");
    check_impossible(
        &world, "uid=6 vendor=amd",
        "requested 1 device, vendor amd, but none of 2 devices is suitable: 2 have another vendor");
    world_finish(&world);
}

static void those_who_wait_are_refused_or_start(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "uid=7");
    granted_to(&world, "uid=7");
    waits_with(&world, "uid=6 device=nvidia0");
    waits_with(&world, "uid=6 gpus=2");
    waits_with(&world, "uid=6");
    reserve(&world, 0, &only_alice);
    check_told(&world, "refused claim 3: impossible\nrefused claim 4: impossible\n");
    /* The holder keeps it. */
    assert_int_equal(slot_in(&world, 0).lease, 1);
    released(&world, 1);
    check_waiting(&world, "5");
    reserve(&world, 0, NULL);
    check_told(&world, "granted lease 6 of claim 5: slots 0\n");
    world_finish(&world);
}

/* A claim does not bar a device that it does not accept. */
static void it_bars_nobody_who_may_have_it(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    reserve(&world, 0, &only_alice);
    granted_to(&world, "uid=6");
    waits_with(&world, "uid=6");
    granted_to(&world, "uid=5");
    world_finish(&world);
}

static void several_are_taken_past_it(void **state)
{
    struct world world;
    uint64_t lease;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2,nvidia3");
    reserve(&world, 1, &only_alice);
    lease = granted_to(&world, "uid=6 gpus=2");
    assert_int_equal(lease_in(&world, lease).slots[0], 0);
    assert_int_equal(lease_in(&world, lease).slots[1], 2);
    lease = granted_to(&world, "uid=6");
    assert_int_equal(lease_in(&world, lease).slots[0], 3);
    check_impossible(
        &world, "uid=6 gpus=4",
        "requested 4 devices, but only 3 of 4 devices are suitable: 1 is reserved for others");
    lease = granted_to(&world, "uid=5 gpus=1-4");
    assert_int_equal(lease_in(&world, lease).slot_count, 1);
    released(&world, 1);
    assert_int_equal(lease_in(&world, granted_to(&world, "uid=6 gpus=1-4")).slot_count, 2);
    world_finish(&world);
}

static void all_means_those_that_are_not_others(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    reserve(&world, 1, &only_alice);
    assert_int_equal(lease_in(&world, granted_to(&world, "uid=6 gpus=all")).slot_count, 2);
    world_finish(&world);
}

static void within_a_lease_it_does_not_matter(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, "uid=6");
    reserve(&world, 0, &only_alice);
    granted_to(&world, "uid=6 parent=1");
    world_finish(&world);
}

static void it_is_not_given_either(void **state)
{
    struct berth_error error = {0};
    uint32_t slot = 0;
    uint64_t lease = 0;
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    reserve(&world, 0, &only_alice);
    assert_int_equal(
        engine_grant_slots(world.engine, world_request(&world, "uid=6"), &slot, 1, &lease, &error),
        BERTH_ERROR_INVALID);
    assert_string_equal(error.message, "cannot use nvidia0: it is reserved for others");
    assert_int_equal(
        engine_grant_slots(world.engine, world_request(&world, "uid=5"), &slot, 1, &lease, &error),
        0);
    world_finish(&world);
}

static void a_slot_keeps_it_whatever_comes(void **state)
{
    struct device device = {.id = {VENDOR_NVIDIA, 1, DEVICE_NO_MIG}};
    struct berth_error error = {0};
    struct world world;
    uint32_t slot = 0;

    (void)state;
    world_init(&world, "nvidia0");
    reserve(&world, 0, &only_alice);
    reserve(&world, 1, &only_alice);
    engine_device_gone(world.engine, 0);
    engine_device_back(world.engine, 0);
    assert_int_equal(engine_device_add(world.engine, &device, &slot, NULL), 0);
    assert_int_equal(slot, 1);
    check_impossible(
        &world, "uid=6",
        "requested 1 device, but none of 2 devices is suitable: 2 are reserved for others");
    granted_to(&world, "uid=5 gpus=2");
    assert_int_equal(engine_reserve_device(world.engine, 64, NULL, &error), BERTH_ERROR_INVALID);
    assert_string_equal(error.message, "expected a slot below 64, got 64");
    world_finish(&world);
}

static void leases_on_it_are_restored(void **state)
{
    struct world world;
    struct engine *twin;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, "uid=6");
    reserve(&world, 0, &only_alice);
    twin = world_twin(&world);
    assert_int_equal(engine_reserve_device(twin, 0, &only_alice, NULL), 0);
    replay_bytes(twin, &world.journal);
    engine_resume(twin);
    check_same_state(world.engine, twin);
    engine_destroy(twin);
    world_finish(&world);
}

struct attempt {
    struct engine *engine;
    struct engine_request *other;
};

static int reserve_without(void *context)
{
    struct attempt *attempt = context;
    int code = engine_reserve_device(attempt->engine, 0, &alice_or_professors, NULL);

    /* The device is still reserved after the failure. */
    if (code < 0)
        assert_int_equal(engine_would_grant(attempt->engine, attempt->other, NULL), CLAIM_GRANTED);
    return code;
}

static void without_memory_nothing_is_reserved(void **state)
{
    struct world world;
    struct attempt attempt;

    (void)state;
    world_init(&world, "nvidia0");
    attempt = (struct attempt){world.engine, world_request(&world, "uid=6")};
    assert_in_range(failing_allocator_try_all(reserve_without, &attempt), 2, 100);
    check_impossible(&world, "uid=6",
                     "requested 1 device, but the only device here is reserved for others");
    world_finish(&world);
}

/* ---- Preferred devices ---- */

static void prefer(struct world *world, uint32_t slot, uint32_t rank)
{
    world->has_limits = true;
    engine_set_rank(world->engine, slot, rank);
}

static void the_preferred_are_taken_first(void **state)
{
    static const uint32_t order[] = {3, 1, 0, 2};
    struct engine_request *request;
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2,nvidia3");
    request = world_request(&world, NULL);
    granted(&world, request); /* slot 0, because no device is preferred yet */
    prefer(&world, 3, 1);
    prefer(&world, 1, 2);
    released(&world, 1);
    for (size_t i = 0; i < COUNT(order); i++)
        assert_int_equal(lease_in(&world, granted(&world, request)).slots[0], order[i]);
    world_finish(&world);
}

static void several_at_once_too(void **state)
{
    struct world world;
    uint64_t lease;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2,nvidia3");
    prefer(&world, 3, 1);
    prefer(&world, 2, 7);
    lease = granted_to(&world, "gpus=3");
    assert_int_equal(lease_in(&world, lease).slots[0], 0);
    assert_int_equal(lease_in(&world, lease).slots[1], 2);
    assert_int_equal(lease_in(&world, lease).slots[2], 3);
    world_finish(&world);
}

static void the_policy_comes_before_and_affinity_after(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    prefer(&world, 2, 1);
    released(&world, granted_to(&world, "device=nvidia1 affinity=x"));
    released(&world, granted_to(&world, "device=nvidia2"));
    assert_int_equal(lease_in(&world, granted_to(&world, "policy=round-robin")).slots[0], 0);
    released(&world, 3);
    assert_int_equal(lease_in(&world, granted_to(&world, "affinity=x")).slots[0], 2);
    assert_int_equal(lease_in(&world, granted_to(&world, "affinity=x")).slots[0], 1);
    world_finish(&world);
}

static void the_group_of_the_preferred_is_taken(void **state)
{
    struct world world;
    uint64_t lease;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,amd0,amd1");
    prefer(&world, 3, 1);
    lease = granted_to(&world, "gpus=2");
    assert_int_equal(lease_in(&world, lease).slots[0], 2);
    assert_int_equal(lease_in(&world, lease).slots[1], 3);
    world_finish(&world);
}

static void without_ranks_it_is_as_before(void **state)
{
    struct engine_request *request;
    struct world world;
    uint64_t lease;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    request = world_request(&world, NULL);
    prefer(&world, 1, 1);
    lease = granted(&world, request);
    assert_int_equal(lease_in(&world, lease).slots[0], 1);
    prefer(&world, 1, 0);
    released(&world, lease);
    assert_int_equal(lease_in(&world, granted(&world, request)).slots[0], 0);
    world_finish(&world);
}

static void within_a_lease_they_count_too(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    prefer(&world, 2, 1);
    granted_to(&world, "gpus=3");
    assert_int_equal(lease_in(&world, granted_to(&world, "parent=1")).slots[0], 2);
    prefer(&world, 1, 1);
    prefer(&world, 2, 2);
    released(&world, 2);
    assert_int_equal(lease_in(&world, granted_to(&world, "parent=1")).slots[0], 1);
    world_finish(&world);
}

/* A reservation moves to the devices that are preferred now, and frees the others. */
static void reservations_move(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    granted_to(&world, "device=nvidia0 time=100");
    granted_to(&world, "device=nvidia1 time=100");
    granted_to(&world, "device=nvidia2 time=50");
    waits_with(&world, "device=nvidia0,nvidia1");
    waits_with(&world, "device=nvidia0 time=200");
    check_reserved(&world, 4, "0", 100);
    prefer(&world, 1, 1);
    check_reserved(&world, 4, "1", 100);
    world_finish(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_do_not_get_it),
        cmocka_unit_test(what_nothing_else_could_do_is_impossible),
        cmocka_unit_test(those_who_wait_are_refused_or_start),
        cmocka_unit_test(it_bars_nobody_who_may_have_it),
        cmocka_unit_test(several_are_taken_past_it),
        cmocka_unit_test(all_means_those_that_are_not_others),
        cmocka_unit_test(within_a_lease_it_does_not_matter),
        cmocka_unit_test(it_is_not_given_either),
        cmocka_unit_test(a_slot_keeps_it_whatever_comes),
        cmocka_unit_test(leases_on_it_are_restored),
        cmocka_unit_test(without_memory_nothing_is_reserved),
        cmocka_unit_test(the_preferred_are_taken_first),
        cmocka_unit_test(several_at_once_too),
        cmocka_unit_test(the_policy_comes_before_and_affinity_after),
        cmocka_unit_test(the_group_of_the_preferred_is_taken),
        cmocka_unit_test(without_ranks_it_is_as_before),
        cmocka_unit_test(within_a_lease_they_count_too),
        cmocka_unit_test(reservations_move),
    };

    return cmocka_run_group_tests_name("engine_people", tests, NULL, NULL);
}
