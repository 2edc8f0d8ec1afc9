/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory on shared devices: reserved memory counts, not only used memory.
 */
#include "support/unit.h"

#include "support/engine/engine_steps.h"

/* A device with 80 bytes, all free. */
static void sampled(struct world *world, uint32_t slot, int64_t free_bytes)
{
    struct load load = {.memory_free = load_figure_sampled(free_bytes, engine_now(world->engine))};

    engine_set_load(world->engine, slot, &load);
}

static void not_sampled(struct world *world, uint32_t slot)
{
    engine_set_load(world->engine, slot, &(struct load){0});
}

static void world_init_eighty(struct world *world, const char *ids)
{
    struct machine machine = {0};

    machine_add_ids(&machine, ids);
    for (size_t i = 0; i < machine.devices.count; i++)
        machine.devices.items[i].memory_total = optional_number_of(80);
    world_init_with(world, &machine, NULL);
    for (uint32_t i = 0; i < engine_machine(world->engine)->devices.count; i++)
        sampled(world, i, 80);
}

static void a_slow_starter_keeps_what_it_reserved(void **state)
{
    struct world world;
    uint64_t slow;

    (void)state;
    world_init_eighty(&world, "nvidia0");
    slow = granted_to(&world, "sharing=time-slice memory=60");
    waits_with(&world, "sharing=time-slice min-free=21");
    check_why(&world, 2, "needs 1: 1 has too little unreserved memory", TIME_NEVER);
    cancelled(&world, 2);
    granted_to(&world, "sharing=time-slice min-free=20");
    waits_with(&world, "sharing=time-slice min-free=1");
    world_forget(&world);
    released(&world, slow);
    check_told(&world, "released lease 1\n"
                       "granted lease 5 of claim 4: slots 0\n");
    world_finish(&world);
}

static void who_has_started_is_not_counted_twice(void **state)
{
    struct world world;

    (void)state;
    world_init_eighty(&world, "nvidia0");
    granted_to(&world, "sharing=time-slice memory=40");
    sampled(&world, 0, 38); /* a little more than it announced */
    granted_to(&world, "sharing=time-slice memory=40");
    sampled(&world, 0, 0);
    waits_with(&world, "sharing=time-slice memory=1");
    world_finish(&world);
}

static void a_whole_device_is_reserved_whatever_its_driver_uses(void **state)
{
    struct world world;

    (void)state;
    world_init_eighty(&world, "nvidia0");
    sampled(&world, 0, 79);
    granted_to(&world, "sharing=time-slice memory=80");
    world_finish(&world);
}

static void what_others_use_without_a_reservation_cannot_be_reserved(void **state)
{
    struct world world;

    (void)state;
    world_init_eighty(&world, "nvidia0");
    granted_to(&world, "sharing=time-slice");
    sampled(&world, 0, 20);
    waits_with(&world, "sharing=time-slice memory=40");
    check_why(&world, 2, "needs 1: 1 has too little unreserved memory", TIME_NEVER);
    world_forget(&world);
    sampled(&world, 0, 39);
    check_told(&world, "");
    sampled(&world, 0, 40);
    check_told(&world, "granted lease 3 of claim 2: slots 0\n");
    /* The new tenant may not have started yet: no other tenant may use its 40 bytes. */
    waits_with(&world, "sharing=time-slice memory=1");
    waits_with(&world, "sharing=time-slice min-free=1");
    world_forget(&world);
    released(&world, 1);
    check_told(&world, "released lease 1\n"
                       "granted lease 6 of claim 4: slots 0\n"
                       "granted lease 7 of claim 5: slots 0\n");
    world_finish(&world);
}

static void requested_free_memory_counts_as_used(void **state)
{
    struct world world;

    (void)state;
    world_init_eighty(&world, "nvidia0");
    granted_to(&world, "sharing=time-slice min-free=50");
    waits_with(&world, "sharing=time-slice min-free=31");
    cancelled(&world, 2);
    waits_with(&world, "sharing=time-slice memory=31");
    cancelled(&world, 3);
    granted_to(&world, "sharing=time-slice min-free=30");
    assert_int_equal(slot_in(&world, 0).memory_used, 80);
    assert_false(lease_in(&world, 1).memory.known);
    world_finish(&world);
}

static void a_reservation_counts_instead_of_requested_free_memory(void **state)
{
    struct world world;

    (void)state;
    world_init_eighty(&world, "nvidia0");
    granted_to(&world, "sharing=time-slice min-free=60 memory=20");
    granted_to(&world, "sharing=time-slice min-free=60 memory=20");
    waits_with(&world, "sharing=time-slice min-free=60 memory=20");
    cancelled(&world, 3);
    granted_to(&world, "sharing=time-slice memory=40");
    assert_int_equal(slot_in(&world, 0).memory_used, 80);
    world_finish(&world);
}

static void replicas_count_with_their_memory_each(void **state)
{
    struct world world;

    (void)state;
    world_init_eighty(&world, "nvidia0");
    check_impossible(&world, "sharing=time-slice replicas=3 min-free=30",
                     "requested 1 device for each of 3 replicas, at least 30 B free, shared by "
                     "time-slice, but this pool has room for only 2");
    granted_to(&world, "sharing=time-slice replicas=2 min-free=30");
    assert_int_equal(slot_in(&world, 0).memory_used, 60);
    world_finish(&world);
}

static void unknown_free_memory_is_not_none(void **state)
{
    struct world world;

    (void)state;
    world_init_eighty(&world, "nvidia0");
    not_sampled(&world, 0);
    granted_to(&world, "sharing=time-slice");
    granted_to(&world, "sharing=time-slice memory=80");
    released(&world, 2);
    waits_with(&world, "sharing=time-slice min-free=1");
    sampled(&world, 0, 0);
    check_pending(&world, 1);
    sampled(&world, 0, 1);
    check_pending(&world, 0);
    world_finish(&world);
}

static void an_unknown_total_bounds_nothing_but_the_sample_does(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    sampled(&world, 0, 50);
    granted_to(&world, "sharing=time-slice min-free=30");
    waits_with(&world, "sharing=time-slice min-free=21");
    cancelled(&world, 2);
    granted_to(&world, "sharing=time-slice min-free=20");
    world_finish(&world);
}

static void another_device_has_what_this_one_lacks(void **state)
{
    struct world world;

    (void)state;
    world_init_eighty(&world, "nvidia0,nvidia1");
    granted_to(&world, "sharing=time-slice memory=60");
    assert_int_equal(
        lease_in(&world, granted_to(&world, "sharing=time-slice min-free=30")).slots[0], 1);
    world_finish(&world);
}

static void within_a_lease_there_is_what_it_reserved(void **state)
{
    struct world world;

    (void)state;
    world_init_eighty(&world, "nvidia0");
    granted_to(&world, "sharing=time-slice memory=40");
    check_impossible(&world, "parent=1 min-free=41",
                     "requested 1 device, at least 41 B free, but the only device here has too "
                     "little or unknown memory");
    granted_to(&world, "parent=1 sharing=time-slice share=10 memory=30");
    waits_with(&world, "parent=1 sharing=time-slice share=10 min-free=11");
    cancelled(&world, 3);
    granted_to(&world, "parent=1 sharing=time-slice share=10 min-free=10");
    world_finish(&world);
}

static void within_a_lease_that_reserved_none_there_is_what_is_free(void **state)
{
    struct world world;

    (void)state;
    world_init_eighty(&world, "nvidia0");
    granted_to(&world, "sharing=time-slice");
    granted_to(&world, "parent=1 sharing=time-slice share=10 min-free=50");
    waits_with(&world, "parent=1 sharing=time-slice share=10 min-free=31");
    world_finish(&world);
}

static void samples_do_not_matter_to_what_is_given(void **state)
{
    struct world world;
    struct engine_request *request;
    uint32_t slot = 0;
    uint64_t lease;

    (void)state;
    world_init_eighty(&world, "nvidia0");
    granted_to(&world, "sharing=time-slice");
    sampled(&world, 0, 10);
    request = world_request(&world, "sharing=time-slice memory=40");
    assert_int_equal(engine_grant_slots(world.engine, request, &slot, 1, &lease, NULL), 0);
    assert_int_equal(engine_grant_slots(world.engine, request, &slot, 1, &lease, NULL), 0);
    assert_int_equal(engine_grant_slots(world.engine, request, &slot, 1, &lease, NULL),
                     BERTH_ERROR_BUSY);
    world_finish(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_starter_keeps_what_it_reserved),
        cmocka_unit_test(who_has_started_is_not_counted_twice),
        cmocka_unit_test(a_whole_device_is_reserved_whatever_its_driver_uses),
        cmocka_unit_test(what_others_use_without_a_reservation_cannot_be_reserved),
        cmocka_unit_test(requested_free_memory_counts_as_used),
        cmocka_unit_test(a_reservation_counts_instead_of_requested_free_memory),
        cmocka_unit_test(replicas_count_with_their_memory_each),
        cmocka_unit_test(unknown_free_memory_is_not_none),
        cmocka_unit_test(an_unknown_total_bounds_nothing_but_the_sample_does),
        cmocka_unit_test(another_device_has_what_this_one_lacks),
        cmocka_unit_test(within_a_lease_there_is_what_it_reserved),
        cmocka_unit_test(within_a_lease_that_reserved_none_there_is_what_is_free),
        cmocka_unit_test(samples_do_not_matter_to_what_is_given),
    };

    return cmocka_run_group_tests_name("engine_reserved", tests, NULL, NULL);
}
