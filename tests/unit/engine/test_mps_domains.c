/* SPDX-License-Identifier: Apache-2.0
 *
 * Sharing by MPS: only one user in one pair of directories shares a device.
 */
#include "support/unit.h"

#include <stdio.h>

#include "base/count.h"
#include "support/engine/engine_steps.h"

static void tenants_have_the_same_directories(void **state)
{
    static const char *const others[] = {
        "sharing=mps uid=1",
        "sharing=mps uid=1 pipe=/p",
        "sharing=mps uid=1 log=/l",
        "sharing=mps uid=1 pipe=/p log=/m",
        "sharing=mps uid=1 pipe=/q log=/l",
        "sharing=mps uid=1 pipe=/p log=/l ranks gpus=1-2",
        "sharing=mps uid=1 pipe=/p log=/l replicas=2 share=100",
        "sharing=mps uid=2 pipe=/p log=/l",
    };
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, "sharing=mps uid=1 pipe=/p log=/l");
    for (size_t i = 0; i < COUNT(others); i++) {
        waits_with(&world, others[i]);
        cancelled(&world, 2 + i);
    }
    granted_to(&world, "sharing=mps uid=1 pipe=/p log=/l share=100");
    assert_int_equal(slot_in(&world, 0).uid, 1);
    world_finish(&world);
}

static void without_names_it_does_not_matter_how_many_there_are(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    granted_to(&world, "sharing=mps uid=1 ranks gpus=2");
    granted_to(&world, "sharing=mps uid=1");
    granted_to(&world, "sharing=mps uid=1 replicas=2");
    assert_int_equal(slot_in(&world, 0).tenants + slot_in(&world, 1).tenants, 5);
    world_finish(&world);
}

static void it_is_said_whose_mps_is_in_the_way(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, "sharing=mps uid=1 pipe=/p");
    waits_with(&world, "sharing=mps uid=2");
    check_why(&world, 2, "needs 1: 1 runs MPS for another user", TIME_NEVER);
    cancelled(&world, 2);
    waits_with(&world, "sharing=mps uid=1");
    check_why(&world, 3, "needs 1: 1 runs MPS in another directory", TIME_NEVER);
    world_finish(&world);
}

static void within_mps_there_is_only_the_same_mps(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    granted_to(&world, "sharing=mps uid=1 pipe=/p");
    check_impossible(&world, "parent=1 sharing=mps uid=1 share=10",
                     "requested 1 device, shared by mps, share 0.01, but the only device here is "
                     "outside the lease");
    granted_to(&world, "parent=1 sharing=mps uid=1 share=10 pipe=/p");
    world_finish(&world);
}

static void names_are_used_again(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0");
    for (uint64_t i = 1; i < 200; i += 2) {
        char words[64];

        snprintf(words, sizeof(words), "sharing=mps uid=%u pipe=/p%u", (unsigned)i % 7,
                 (unsigned)i);
        granted_to(&world, words);
        assert_int_equal(slot_in(&world, 0).uid, i % 7);
        waits_with(&world, "sharing=mps pipe=/other");
        cancelled(&world, i + 1);
        released(&world, i);
    }
    world_finish(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tenants_have_the_same_directories),
        cmocka_unit_test(without_names_it_does_not_matter_how_many_there_are),
        cmocka_unit_test(it_is_said_whose_mps_is_in_the_way),
        cmocka_unit_test(within_mps_there_is_only_the_same_mps),
        cmocka_unit_test(names_are_used_again),
    };

    return cmocka_run_group_tests_name("engine_domains", tests, NULL, NULL);
}
