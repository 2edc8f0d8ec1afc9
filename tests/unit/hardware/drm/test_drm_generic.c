/* SPDX-License-Identifier: Apache-2.0 */
#include "support/hardware/vendor_looks.h"

#include "hardware/sysfs/pci_names.h"

#define HOST    "/sys/devices/pci0000:00"
#define NOUVEAU HOST "/0000:00:01.0/0000:01:00.0"
#define VIRTIO  HOST "/0000:00:03.0/virtio0"
#define MALI    "/sys/devices/platform/ff9a0000.gpu"
#define VGEM    "/sys/devices/platform/vgem"

static void make_nodes(const char *path, const char *card, const char *render)
{
    machine_drm_node(path, card);
    machine_drm_node(path, render);
}

static void make_nouveau(void)
{
    machine_pci(NOUVEAU, "10de:1b80");
    machine_driver(NOUVEAU, "pci", "nouveau");
    make_nodes(NOUVEAU, "card0", "renderD128");
    machine_value(NOUVEAU, "numa_node", "1");
    machine_file("/usr/share/misc/pci.ids",
                 "10de  NVIDIA Corporation\n\t1b80  GP104 [GeForce GTX 1080]\n");
}

static void make_virtio(void)
{
    machine_pci(HOST "/0000:00:03.0", "1af4:1050");
    machine_value(HOST "/0000:00:03.0", "numa_node", "0");
    machine_value(HOST "/0000:00:03.0", "local_cpulist", "0-1");
    machine_driver(VIRTIO, "virtio", "virtio_gpu");
    machine_value(VIRTIO, "vendor", "0x1af4");
    machine_value(VIRTIO, "device", "0x0010");
    make_nodes(VIRTIO, "card1", "renderD129");
}

static void make_mali(void)
{
    static const char compatible[] = "rockchip,rk3399-mali\0arm,mali-t860";

    machine_driver(MALI, "platform", "panfrost");
    make_nodes(MALI, "card2", "renderD130");
    machine_bytes("/sys/firmware/devicetree/base/gpu@ff9a0000/compatible", compatible,
                  sizeof(compatible));
    machine_link(MALI "/of_node", "/sys/firmware/devicetree/base/gpu@ff9a0000");
    machine_value(MALI, "devfreq/ff9a0000.gpu/cur_freq", "800000000");
}

static void make_vgem(void)
{
    machine_directory(VGEM);
    make_nodes(VGEM, "card3", "renderD131");
}

static void all_kinds_are_counted_along_their_buses(void **state)
{
    static const char *const paths[] = {VIRTIO, NOUVEAU, MALI, VGEM};
    struct findings findings;

    (void)state;
    make_vgem();
    make_mali();
    make_nouveau();
    make_virtio();
    findings = vendor_list(&dri_table);
    assert_int_equal(findings.found.count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(findings.found.items[i].path, paths[i]);
        assert_int_equal(findings.found.items[i].device->id.index, i);
    }
    assert_string_equal(pci_format(findings.found.items[0].device->pci).text, "0000:00:03.0");
    assert_string_equal(pci_format(findings.found.items[1].device->pci).text, "0000:01:00.0");
    assert_false(findings.found.items[2].device->pci.known);
    findings_finish(&findings);
}

static void a_card_with_a_driver_of_its_own(void **state)
{
    struct findings findings;
    struct device *device;

    (void)state;
    make_nouveau();
    machine_value(NOUVEAU, "hwmon/hwmon1/name", "nouveau");
    machine_value(NOUVEAU, "hwmon/hwmon1/temp1_input", "43000");
    machine_value(NOUVEAU, "hwmon/hwmon1/power1_input", "35500000");
    findings = vendor_read(&dri_table, 1, 0);
    device = findings.found.items[0].device;
    assert_string_equal(device_id_format(device->id).text, "dri0");
    assert_string_equal(device->name, "NVIDIA GeForce GTX 1080");
    assert_sampled(device->load.temperature, 43000);
    assert_sampled(device->load.power, 35500);
    assert_false(device->memory_total.known);
    assert_false(device->load.utilization.known);
    assert_int_equal(device->numa.value, 1);
    assert_int_equal(device->kind, DEVICE_KIND_UNKNOWN);
    assert_int_equal(device->health, HEALTH_OK);
    findings_finish(&findings);
    pci_names_finish();
}

static void memory_is_known_where_it_is_shown(void **state)
{
    struct findings findings;
    struct device *device;

    (void)state;
    make_nouveau();
    machine_value(NOUVEAU, "mem_info_vram_total", "8573157376");
    machine_value(NOUVEAU, "mem_info_vram_used", "1000000000");
    findings = vendor_read(&dri_table, 1, 0);
    device = findings.found.items[0].device;
    assert_int_equal(device->memory_total.value, 8573157376);
    assert_sampled(device->load.memory_free, 7573157376);
    assert_int_equal(device->kind, DEVICE_KIND_DISCRETE);
    findings_finish(&findings);

    machine_value(NOUVEAU, "mem_info_vram_used", "8573157377");
    findings = vendor_read(&dri_table, 1, 0);
    assert_false(findings.found.items[0].device->load.memory_free.known);
    findings_finish(&findings);

    machine_value(NOUVEAU, "mem_info_vram_total", "0");
    findings = vendor_read(&dri_table, 1, 0);
    assert_false(findings.found.items[0].device->memory_total.known);
    findings_finish(&findings);
    pci_names_finish();
}

static void a_virtio_device_is_where_its_parent_is(void **state)
{
    struct findings findings;
    struct device *device;

    (void)state;
    make_virtio();
    findings = vendor_read(&dri_table, 1, 0);
    device = findings.found.items[0].device;
    assert_string_equal(device->name, "virtio_gpu");
    assert_string_equal(pci_format(device->pci).text, "0000:00:03.0");
    assert_int_equal(device->numa.value, 0);
    assert_string_equal(device->cpus, "0-1");
    assert_int_equal(device->kind, DEVICE_KIND_UNKNOWN);
    findings_finish(&findings);
}

static void a_part_of_the_chip_is_named_by_the_device_tree(void **state)
{
    struct findings findings;
    struct device *device;

    (void)state;
    make_mali();
    findings = vendor_read(&dri_table, 1, 0);
    device = findings.found.items[0].device;
    assert_string_equal(device->name, "panfrost arm,mali-t860");
    assert_int_equal(device->kind, DEVICE_KIND_INTEGRATED);
    assert_sampled(device->load.frequency, 800000000);
    assert_false(device->pci.known);
    findings_finish(&findings);

    machine_file("/sys/firmware/devicetree/base/gpu@ff9a0000/compatible", "brcm,2711-v3d");
    findings = vendor_read(&dri_table, 1, 0);
    assert_string_equal(findings.found.items[0].device->name, "panfrost brcm,2711-v3d");
    findings_finish(&findings);
}

static void check_only_name(const char *wanted)
{
    struct findings findings = vendor_read(&dri_table, 1, 0);

    assert_string_equal(findings.found.items[0].device->name, wanted);
    findings_finish(&findings);
}

static void a_bus_without_drivers_gives_its_devices_name(void **state)
{
    (void)state;
    make_vgem();
    check_only_name("vgem");
}

static void the_driver_of_the_faux_bus_is_no_name(void **state)
{
    (void)state;
    machine_driver("/sys/devices/faux/vgem", "faux", "faux_driver");
    make_nodes("/sys/devices/faux/vgem", "card0", "renderD128");
    check_only_name("vgem");
}

static void display_chips_are_none(void **state)
{
    struct findings findings;

    (void)state;
    machine_pci(HOST "/0000:00:02.0", "1013:00b8");
    machine_driver(HOST "/0000:00:02.0", "pci", "cirrus");
    machine_drm_node(HOST "/0000:00:02.0", "card0");
    machine_driver("/sys/devices/platform/vkms", "platform", "vkms");
    machine_drm_node("/sys/devices/platform/vkms", "card1");
    findings = vendor_list(&dri_table);
    assert_int_equal(findings.found.count, 0);
    assert_int_equal(findings.problems.count, 0);
    findings_finish(&findings);
}

static void one_that_sleeps_is_not_asked(void **state)
{
    struct findings findings;

    (void)state;
    make_mali();
    assert_int_equal(unlink(&MALI "/devfreq/ff9a0000.gpu/cur_freq"[1]), 0);
    assert_int_equal(mkfifo(&MALI "/devfreq/ff9a0000.gpu/cur_freq"[1], 0600), 0);
    assert_int_equal(mkfifo(&MALI "/mem_info_vram_total"[1], 0600), 0);
    machine_value(MALI, "power/runtime_status", "suspended");
    findings = vendor_read(&dri_table, 1, 0);
    assert_true(findings.found.items[0].device->asleep);
    assert_false(findings.found.items[0].device->load.frequency.known);
    findings_finish(&findings);
}

static void one_out_of_reach_is_a_problem(void **state)
{
    struct findings findings;

    (void)state;
    make_vgem();
    machine.recorded = false;
    findings = vendor_list(&dri_table);
    assert_int_equal(findings.found.count, 0);
    assert_int_equal(findings.problems.count, 1);
    assert_string_equal(findings.problems.items[0].backend, "dri");
    assert_string_equal(findings.problems.items[0].message, VGEM
                        ": left out, because its device file /dev/dri/renderD131 is missing here");
    findings_finish(&findings);
}

static void failed_allocations_are_said(void **state)
{
    (void)state;
    make_nouveau();
    vendor_look_with_failures(&dri_table);
    pci_names_finish();
}

static void failed_allocations_off_the_bus_are_said(void **state)
{
    (void)state;
    make_mali();
    vendor_look_with_failures(&dri_table);
}

#define MACHINE_TEST(function) \
    cmocka_unit_test_setup_teardown(function, machine_enter, machine_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MACHINE_TEST(all_kinds_are_counted_along_their_buses),
        MACHINE_TEST(a_card_with_a_driver_of_its_own),
        MACHINE_TEST(memory_is_known_where_it_is_shown),
        MACHINE_TEST(a_virtio_device_is_where_its_parent_is),
        MACHINE_TEST(a_part_of_the_chip_is_named_by_the_device_tree),
        MACHINE_TEST(a_bus_without_drivers_gives_its_devices_name),
        MACHINE_TEST(the_driver_of_the_faux_bus_is_no_name),
        MACHINE_TEST(display_chips_are_none),
        MACHINE_TEST(one_that_sleeps_is_not_asked),
        MACHINE_TEST(one_out_of_reach_is_a_problem),
        MACHINE_TEST(failed_allocations_are_said),
        MACHINE_TEST(failed_allocations_off_the_bus_are_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
