/* SPDX-License-Identifier: Apache-2.0
 *
 * The links between NVIDIA's GPUs.
 */
#include "support/unit.h"

#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "support/hardware/nvidia_world.h"

/* Lists and reads the GPUs, then finds their links. */
static void look_at_links(struct nvidia_world *world)
{
    world_look(world);
    assert_int_equal(
        nvidia_table.links(&world->context, &world->seen.found, &world->seen, &world->error), 0);
}

/* Checks that the two GPUs have this link, and no other of its kind. */
static void check_link(const struct nvidia_world *world, size_t one, size_t other,
                       enum link_kind kind, uint32_t lanes)
{
    const struct link *link;
    unsigned found = 0;

    vector_for_each (link, &world->seen.links) {
        assert_true(link->between[0] < link->between[1]);
        if (link->between[0] != one || link->between[1] != other ||
            link_is_fabric(link->kind) != link_is_fabric(kind))
            continue;
        assert_int_equal(link->kind, kind);
        assert_int_equal(link->lanes, lanes);
        found++;
    }
    assert_int_equal(found, 1);
}

static void lanes_between_gpus_are_counted(void **state)
{
    struct nvidia_world *world = *state;

    world_says("topology 50\n"
               "gpu\n pci 0000:01:00.0\n"
               " lane 0 active gpu 0000:02:00.0\n lane 1 active gpu 0000:02:00.0\n"
               " lane 2 active gpu 0000:03:00.0\n lane 3 inactive gpu 0000:03:00.0\n"
               " lane 4 active gpu 0000:77:00.0\n" /* a GPU that is not visible here */
               " lane 5 active npu 0004:00:00.0\n"
               "gpu\n pci 0000:02:00.0\n"
               " lane 0 active gpu 0000:01:00.0\n lane 1 active gpu 0000:01:00.0\n"
               "gpu\n pci 0000:03:00.0\n" /* does not report its lanes */
               " call nvmlDeviceGetNvLinkState return 999\n");
    look_at_links(world);
    assert_int_equal(world->seen.links.count, 5);
    check_link(world, 0, 1, LINK_NVLINK, 2);
    check_link(world, 0, 2, LINK_NVLINK, 1);
    check_link(world, 0, 1, LINK_SYS, 0);
    check_link(world, 0, 2, LINK_SYS, 0);
    check_link(world, 1, 2, LINK_SYS, 0);
}

static void switches_link_all_to_all(void **state)
{
    struct nvidia_world *world = *state;

    world_says("gpu\n pci 0000:01:00.0\n"
               " lane 0 active switch 0000:c1:00.0\n lane 1 active switch 0000:c2:00.0\n"
               " lane 2 active switch 0000:c1:00.0\n"
               "gpu\n pci 0000:02:00.0\n"
               " lane 0 active switch 0000:c1:00.0\n lane 1 inactive switch 0000:c2:00.0\n"
               " lane 2 active switch\n" /* in another tray, so its address is unknown */
               "gpu\n pci 0000:03:00.0\n");
    look_at_links(world);
    assert_int_equal(world->seen.links.count, 1);
    check_link(world, 0, 1, LINK_NVLINK, 2);
}

/* Old libraries do not report the type of the other end. Sysfs shows a switch. */
static void switches_are_known_without_nvml(void **state)
{
    struct nvidia_world *world = *state;

    world_loads("-old");
    world_says("gpu\n pci 0000:01:00.0\n lane 0 active unknown 0000:c1:00.0\n"
               " lane 1 active unknown 0000:c2:00.0\n lane 2 active unknown 0000:02:00.0\n"
               "gpu\n pci 0000:02:00.0\n lane 0 active unknown 0000:c1:00.0\n"
               " lane 2 active unknown 0000:01:00.0\n");
    machine_file("/sys/bus/pci/devices/0000:c1:00.0/vendor", "0x10de\n");
    machine_file("/sys/bus/pci/devices/0000:c1:00.0/class", "0x068000\n");
    machine_file("/sys/bus/pci/devices/0000:c2:00.0/vendor", "0x1014\n");
    machine_file("/sys/bus/pci/devices/0000:c2:00.0/class", "0x068000\n");
    look_at_links(world);
    assert_int_equal(world->seen.links.count, 1);
    check_link(world, 0, 1, LINK_NVLINK, 2);
}

static void levels_have_names(void **state)
{
    struct nvidia_world *world = *state;

    world_says("topology 0 1 0\ntopology 0 2 10\ntopology 0 3 20\ntopology 1 2 30\n"
               "topology 1 3 40\ntopology 2 3 50\n"
               "gpu\n name A\ngpu\n name B\ngpu\n name C\ngpu\n name D\n");
    look_at_links(world);
    assert_int_equal(world->seen.links.count, 6);
    check_link(world, 0, 1, LINK_PSB, 0);
    check_link(world, 0, 2, LINK_PIX, 0);
    check_link(world, 0, 3, LINK_PXB, 0);
    check_link(world, 1, 2, LINK_PHB, 0);
    check_link(world, 1, 3, LINK_NODE, 0);
    check_link(world, 2, 3, LINK_SYS, 0);
}

static void what_nvml_does_not_say_is_left_to_sysfs(void **state)
{
    struct nvidia_world *world = *state;

    world_says("gpu\n name A\ngpu\n name B\ngpu\n name C\n");
    look_at_links(world);
    assert_int_equal(world->seen.links.count, 0);
    /* Called once, for one pair, and not again. */
    assert_int_equal(world_logged("nvmlDeviceGetTopologyCommonAncestor 0"), 1);
    world_says("topology 4711\ngpu\n name A\ngpu\n name B\n");
    look_at_links(world);
    assert_int_equal(world->seen.links.count, 0);
}

static void instances_and_lost_cards_have_no_links(void **state)
{
    struct nvidia_world *world = *state;

    world_says("topology 10\ngpu\n name A\n mig 1 1\n mig-most 1\n instance 0\n name I\n"
               "gpu\n name B\ngpu\n name C\n call nvmlDeviceGetNvLinkState return 15\n");
    look_at_links(world);
    assert_int_equal(world->seen.found.count, 4);
    assert_int_equal(world->seen.links.count, 1);
    check_link(world, 0, 2, LINK_PIX, 0);
}

static void sixty_four_gpus_are_quick(void **state)
{
    struct nvidia_world *world = *state;
    struct text statements = {0};
    int64_t began;

    text_append(&statements, "topology 50\n");
    for (unsigned i = 0; i < 64; i++) {
        text_append_format(&statements, "gpu\n name A\n pci 0000:%02x:00.0\n", i);
        for (unsigned lane = 0; lane < 18; lane++)
            text_append_format(&statements, " lane %u active switch\n", lane);
    }
    world_says(text_string(&statements));
    text_finish(&statements);
    unsetenv("NVML_DOUBLE_LOG");
    world_look(world);
    began = clock_now();
    look_at_links(world);
    assert_int_equal(world->seen.links.count, 2 * 64 * 63 / 2);
    /* It takes a few milliseconds; the limit is for sanitizers on a busy machine. */
    assert_true(clock_now() - began < 2 * DURATION_SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lanes_between_gpus_are_counted, world_enter, world_leave),
        cmocka_unit_test_setup_teardown(switches_link_all_to_all, world_enter, world_leave),
        cmocka_unit_test_setup_teardown(switches_are_known_without_nvml, world_enter, world_leave),
        cmocka_unit_test_setup_teardown(levels_have_names, world_enter, world_leave),
        cmocka_unit_test_setup_teardown(what_nvml_does_not_say_is_left_to_sysfs, world_enter,
                                        world_leave),
        cmocka_unit_test_setup_teardown(instances_and_lost_cards_have_no_links, world_enter,
                                        world_leave),
        cmocka_unit_test_setup_teardown(sixty_four_gpus_are_quick, world_enter, world_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
