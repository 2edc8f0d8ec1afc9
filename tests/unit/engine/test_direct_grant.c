/* SPDX-License-Identifier: Apache-2.0
 *
 * Leases outside the queue, on devices that a process uses already.
 */
#include "support/unit.h"

#include "base/count.h"
#include "support/engine/engine_steps.h"

static uint64_t given_slots(struct world *world, const char *words, const uint32_t *slots,
                            size_t count)
{
    struct berth_error error = {0};
    uint64_t lease = 0;

    world->in_steps = true;
    if (engine_grant_slots(world->engine, world_request(world, words), slots, count, &lease,
                           &error) != 0)
        fail_msg("%s", error.message);
    return lease;
}

/* Grants one slot. Returns the lease. */
static uint64_t given(struct world *world, const char *words, uint32_t slot)
{
    return given_slots(world, words, &slot, 1);
}

/* Checks that these slots are refused, with nothing changed. */
#define check_not_given(world, words, slots, count, wanted_code, wanted_message)               \
    do {                                                                                       \
        struct engine_request *request_ = world_request((world), (words));                     \
        struct text before_ = engine_state((world)->engine);                                   \
        struct text after_;                                                                    \
        struct berth_error error_ = {0};                                                       \
        uint64_t lease_ = 77;                                                                  \
        assert_int_equal(                                                                      \
            engine_grant_slots((world)->engine, request_, (slots), (count), &lease_, &error_), \
            wanted_code);                                                                      \
        assert_string_equal(error_.message, wanted_message);                                   \
        assert_int_equal(lease_, 77);                                                          \
        after_ = engine_state((world)->engine);                                                \
        assert_int_equal(before_.length, after_.length);                                       \
        assert_memory_equal(before_.bytes, after_.bytes, before_.length);                      \
        text_finish(&before_);                                                                 \
        text_finish(&after_);                                                                  \
    } while (0)

static const uint32_t all[] = {0, 1, 2, 3};

static void blocks_and_sickness_do_not_matter(void **state)
{
    static const enum block blocks[] = {BLOCK_SQUATTED, BLOCK_DIRTY, BLOCK_DRAINED};

    (void)state;
    for (size_t i = 0; i < COUNT(blocks); i++) {
        struct world world;
        uint64_t lease;

        world_init(&world, "nvidia0,nvidia1");
        engine_block(world.engine, 1, blocks[i]);
        engine_device_health(world.engine, 1, HEALTH_SICK);
        world_forget(&world);
        lease = given(&world, NULL, 1);
        check_told(&world, "request 1\ngranted lease 1: slots 1\n");
        assert_int_equal(slot_in(&world, 1).lease, lease);
        assert_int_equal(lease_in(&world, lease).claim, 0);
        released(&world, lease);
        /* Claims still do not get the device. */
        granted_to(&world, NULL);
        waits_with(&world, NULL);
        world_finish(&world);
    }
}

static void several_slots_come_in_any_order(void **state)
{
    static const uint32_t slots[] = {3, 1};
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2,nvidia3");
    engine_block(world.engine, 3, BLOCK_SQUATTED);
    world_forget(&world);
    given_slots(&world, "gpus=1-3 time=10", slots, 2);
    check_told(&world, "request 1\ngranted lease 1: slots 1,3\n");
    check_next_time(&world, 10);
    assert_int_equal(slot_in(&world, 0).lease, 0);
    assert_int_equal(slot_in(&world, 1).lease, 1);
    assert_int_equal(slot_in(&world, 3).lease, 1);
    world_finish(&world);
}

static void it_goes_past_those_who_wait(void **state)
{
    struct world world;
    uint64_t lease;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    lease = granted_to(&world, "device=nvidia0");
    waits_with(&world, "gpus=2");
    waits_with(&world, NULL);
    world_forget(&world);
    given(&world, NULL, 1);
    check_told(&world, "request 4\ngranted lease 4: slots 1\n");
    check_waiting(&world, "2 3");
    released(&world, lease);
    check_waiting(&world, "2 3");
    released(&world, 4);
    check_waiting(&world, "3");
    world_finish(&world);
}

/* A reservation that loses a device moves elsewhere, and frees its other devices. */
static void a_reservation_moves(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    granted_to(&world, "device=nvidia0 time=100");
    granted_to(&world, "device=nvidia1 time=200");
    waits_with(&world, "gpus=2"); /* claim 3 has slots 0 and 2 at 100 */
    waits_with(&world, "time=150 device=nvidia2");
    check_reserved(&world, 3, "0,2", 100);
    world_forget(&world);
    given(&world, NULL, 2);
    check_reserved(&world, 3, "0,1", 200);
    check_waiting(&world, "3 4");
    world_finish(&world);
}

static void limits_do_not_hold_it_up_but_count(void **state)
{
    struct world world;
    uint64_t first, second;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2,nvidia3");
    limit_user(&world, 5, 1000);
    first = given(&world, "uid=5", 0);
    second = given_slots(&world, "uid=5 gpus=2", all + 1, 2);
    waits_with(&world, "uid=5");
    check_why(&world, 3, "needs 1, but user 5 holds 3 of at most 1 device", TIME_NEVER);
    released(&world, second);
    check_pending(&world, 1);
    released(&world, first);
    check_pending(&world, 0);
    world_finish(&world);
}

static void what_is_free_does_not_matter(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    waits_with(&world, "min-free=100");
    given(&world, "min-free=100", 0);
    world_finish(&world);
}

static void an_exclusive_lease_leaves_no_room(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "device=nvidia1");
    check_not_given(&world, "gpus=2", all, 2, BERTH_ERROR_BUSY,
                    "cannot use nvidia1: no room beside lease 1");
    check_not_given(&world, "sharing=time-slice", all + 1, 1, BERTH_ERROR_BUSY,
                    "cannot use nvidia1: no room beside lease 1");
    released(&world, 1);
    granted_to(&world, "sharing=time-slice device=nvidia1");
    check_not_given(&world, NULL, all + 1, 1, BERTH_ERROR_BUSY,
                    "cannot use nvidia1: no room beside lease 2");
    engine_drain_lease(world.engine, 2, NULL);
    check_not_given(&world, NULL, all + 1, 1, BERTH_ERROR_BUSY,
                    "cannot use nvidia1: no room beside lease 2");
    vacated(&world, 2);
    given(&world, NULL, 1);
    world_finish(&world);
}

static void shared_devices_must_have_enough_left(void **state)
{
    static const char *const refused[] = {"sharing=time-slice uid=5", "sharing=mps uid=6",
                                          "sharing=mps uid=5 share=600",
                                          "sharing=mps uid=5 memory=500", "uid=5"};
    struct machine machine = {0};
    struct world world;

    (void)state;
    machine_add_ids(&machine, "nvidia0");
    machine.devices.items[0].memory_total = optional_number_of(1000);
    world_init_with(&world, &machine, NULL);
    engine_block(world.engine, 0, BLOCK_SQUATTED);
    given(&world, "sharing=mps uid=5 share=500 memory=600", 0);
    for (size_t i = 0; i < COUNT(refused); i++)
        check_not_given(&world, refused[i], all, 1, BERTH_ERROR_BUSY,
                        "cannot use nvidia0: no room beside lease 1");
    given(&world, "sharing=mps uid=5 share=500 memory=400", 0);
    check_not_given(&world, "sharing=mps uid=5 share=1", all, 1, BERTH_ERROR_BUSY,
                    "cannot use nvidia0: no room beside lease 1");
    world_finish(&world);
}

static void tenants_are_counted(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    for (int i = 0; i < 4; i++)
        given(&world, "sharing=time-slice share=100", 0);
    check_not_given(&world, "sharing=time-slice share=100", all, 1, BERTH_ERROR_BUSY,
                    "cannot use nvidia0: no room beside lease 1");
    world_finish(&world);
}

static void it_must_be_what_the_request_says(void **state)
{
    static const uint32_t twice[] = {1, 1};
    static const uint32_t mixed[] = {0, 2};
    static const uint32_t nowhere[] = {9};
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,amd0");
    check_not_given(&world, "gpus=1-2", all, 0, BERTH_ERROR_INVALID,
                    "expected 1 to 2 devices, got 0");
    check_not_given(&world, NULL, all, 2, BERTH_ERROR_INVALID, "expected 1 to 1 devices, got 2");
    check_not_given(&world, "replicas=2", all, 2, BERTH_ERROR_INVALID,
                    "expected a request for 1 replica, got 2 replicas");
    check_not_given(&world, NULL, nowhere, 1, BERTH_ERROR_INVALID,
                    "expected a slot below 3, got 9");
    check_not_given(&world, "gpus=2", twice, 2, BERTH_ERROR_INVALID,
                    "nvidia1: expected each device once, got it twice");
    check_not_given(&world, "gpus=2", mixed, 2, BERTH_ERROR_INVALID,
                    "nvidia0 and amd0: expected devices of one host and vendor");
    check_not_given(&world, "vendor=amd", all, 1, BERTH_ERROR_INVALID,
                    "cannot use nvidia0: it has another vendor");
    check_not_given(&world, "gpus=all", mixed, 2, BERTH_ERROR_INVALID,
                    "cannot use amd0: it is not one of the devices that \"all\" means here");
    engine_device_gone(world.engine, 1);
    check_not_given(&world, NULL, all + 1, 1, BERTH_ERROR_INVALID,
                    "cannot use nvidia1: it is gone");
    given_slots(&world, "gpus=2 vendor=any", mixed, 2);
    world_finish(&world);
}

static void within_a_lease_it_gets_what_that_has(void **state)
{
    struct engine_request *within;
    struct world world;
    uint64_t lease;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "device=nvidia1");
    lease = given(&world, "parent=1", 1);
    assert_int_equal(lease_in(&world, lease).parent, 1);
    within = world_request(&world, "parent=1");
    check_not_given(&world, "parent=1", all, 1, BERTH_ERROR_INVALID,
                    "cannot use nvidia0: it is outside the lease");
    check_not_given(&world, "parent=1", all + 1, 1, BERTH_ERROR_BUSY,
                    "cannot use nvidia1: no room beside lease 2");
    released(&world, 1);
    assert_int_equal(engine_grant_slots(world.engine, within, all, 1, &lease, NULL),
                     BERTH_ERROR_NOT_FOUND);
    engine_request_close(world.engine, within);
    world_finish(&world);
}

static void an_opportunistic_one_gives_way(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    given(&world, "opportunistic", 0);
    waits_with(&world, NULL);
    check_told(&world, "request 1\ngranted lease 1: slots 0\nrequest 2\nqueued claim 2\n"
                       "notice lease 1\n");
    world_finish(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_and_sickness_do_not_matter),
        cmocka_unit_test(several_slots_come_in_any_order),
        cmocka_unit_test(it_goes_past_those_who_wait),
        cmocka_unit_test(a_reservation_moves),
        cmocka_unit_test(limits_do_not_hold_it_up_but_count),
        cmocka_unit_test(what_is_free_does_not_matter),
        cmocka_unit_test(an_exclusive_lease_leaves_no_room),
        cmocka_unit_test(shared_devices_must_have_enough_left),
        cmocka_unit_test(tenants_are_counted),
        cmocka_unit_test(it_must_be_what_the_request_says),
        cmocka_unit_test(within_a_lease_it_gets_what_that_has),
        cmocka_unit_test(an_opportunistic_one_gives_way),
    };

    return cmocka_run_group_tests_name("engine_give", tests, NULL, NULL);
}
