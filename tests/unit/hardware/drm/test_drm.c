/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/drm/drm.h"

#include "support/assert_error.h"
#include "support/failing_allocator.h"
#include "support/hardware/made_up_machine.h"

#define HOST "/sys/devices/pci0000:00"
#define IGPU HOST "/0000:00:02.0"
#define CARD HOST "/0000:00:01.0/0000:01:00.0"

static const char *const some_drivers[] = {"i915", "xe", NULL};
static const struct vendor_table some_table = {
    .vendor = VENDOR_INTEL,
    .drivers = some_drivers,
    .pci_vendor = 0x8086,
};

/* Lists the devices as text: "path driver card render; ...". */
static char *list_all(const struct vendor_table *table)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct drm_list list = {0};
    struct text out = {0};
    struct drm_device *device;

    assert_int_equal(drm_list_claimed(&machine, table, &list, &error), 0);
    assert_string_equal(error.message, "");
    vector_for_each (device, &list)
        text_append_format(&out, "%s%s %s %s %s %s", out.length > 0 ? "; " : "",
                           device->pci.known ? pci_format(device->pci).text : "-", device->path,
                           device->driver == NULL ? "-" : device->driver,
                           device->card == NULL ? "-" : device->card,
                           device->render == NULL ? "-" : device->render);
    drm_list_finish(&list);
    text_append(&out, "");
    return text_detach(&out);
}

static void check_list(const struct vendor_table *table, const char *wanted)
{
    char *found = list_all(table);

    assert_string_equal(found, wanted);
    free(found);
}

/* Creates a complete device, as the kernel shows it. */
static void make_device(const char *path, const char *bus, const char *driver, const char *ids,
                        const char *card, const char *render)
{
    machine_directory(path);
    if (driver != NULL)
        machine_driver(path, bus, driver);
    if (ids != NULL)
        machine_pci(path, ids);
    if (card != NULL)
        machine_drm_node(path, card);
    if (render != NULL)
        machine_drm_node(path, render);
}

static void no_class_is_no_device(void **state)
{
    (void)state;
    check_list(&some_table, "");
    check_list(&dri_table, "");
    machine_directory("/sys/class/drm");
    check_list(&some_table, "");
}

static void nodes_of_one_device_belong_together(void **state)
{
    (void)state;
    make_device(IGPU, "pci", "i915", "8086:5912", "card10", "renderD130");
    make_device(CARD, "pci", "xe", "8086:56a0", "card2", "renderD128");
    check_list(&some_table, "0000:00:02.0 " IGPU " i915 card10 renderD130; "
                            "0000:01:00.0 " CARD " xe card2 renderD128");
    check_list(&dri_table, "");
}

static void the_order_is_that_of_the_bus(void **state)
{
    (void)state;
    make_device("/sys/devices/pci10000:00/10000:00:04.0", "pci", "xe", "8086:1", "card0",
                "renderD128");
    make_device("/sys/devices/platform/gpu.10", "platform", "xe", NULL, "card1", "renderD129");
    make_device("/sys/devices/platform/gpu.2", "platform", "xe", NULL, "card2", "renderD130");
    make_device("/sys/devices/pci0000:80/0000:80:02.0", "pci", "xe", "8086:1", "card3",
                "renderD131");
    check_list(&some_table,
               "0000:80:02.0 /sys/devices/pci0000:80/0000:80:02.0 xe card3 renderD131; "
               "10000:00:04.0 /sys/devices/pci10000:00/10000:00:04.0 xe card0 renderD128; "
               "- /sys/devices/platform/gpu.2 xe card2 renderD130; "
               "- /sys/devices/platform/gpu.10 xe card1 renderD129");
}

static void other_names_of_the_class_are_no_devices(void **state)
{
    (void)state;
    make_device(IGPU, "pci", "i915", "8086:5912", "card0", "renderD128");
    machine_directory(IGPU "/drm/card0/card0-DP-1");
    machine_link("/sys/class/drm/card0-DP-1", IGPU "/drm/card0/card0-DP-1");
    machine_directory(IGPU "/drm/controlD64");
    machine_link("/sys/class/drm/controlD64", IGPU "/drm/controlD64");
    machine_directory("/sys/devices/virtual/drm/ttm");
    machine_link("/sys/class/drm/ttm", "/sys/devices/virtual/drm/ttm");
    machine_file("/sys/class/drm/version", "drm 1.1.0 20060810\n");
    machine_file("/sys/class/drm/card", "");
    machine_file("/sys/class/drm/card7", "");
    machine_link("/sys/class/drm/card8", "/nowhere");
    machine_directory("/sys/devices/virtual/drm/card9");
    machine_link("/sys/class/drm/card9", "/sys/devices/virtual/drm/card9");
    check_list(&some_table, "0000:00:02.0 " IGPU " i915 card0 renderD128");
    check_list(&dri_table, "");
}

static void a_device_without_a_render_node_is_recorded_badly_or_no_gpu(void **state)
{
    (void)state;
    make_device(IGPU, "pci", "i915", "8086:5912", "card0", NULL);
    make_device(CARD, "pci", "ast", "1a03:2000", "card1", NULL);
    check_list(&some_table, "0000:00:02.0 " IGPU " i915 card0 -");
    check_list(&dri_table, "");
    machine.recorded = false;
    check_list(&some_table, "");
    check_list(&dri_table, "");
}

static void what_nobody_claims_is_left_to_dri(void **state)
{
    (void)state;
    make_device(IGPU, "pci", "i915", "8086:5912", "card0", "renderD128");
    make_device(CARD, "pci", "nouveau", "10de:1b80", "card1", "renderD129");
    make_device(HOST "/0000:00:03.0", "pci", "radeon", "1002:6798", "card2", "renderD130");
    make_device(HOST "/0000:00:04.0", "pci", NULL, "8086:56a0", "card3", "renderD131");
    make_device("/sys/devices/platform/vgem", "platform", NULL, NULL, "card4", "renderD132");
    make_device("/sys/devices/platform/406400000.gpu", "platform", "asahi", NULL, "card5",
                "renderD133");
    check_list(&some_table, "0000:00:02.0 " IGPU " i915 card0 renderD128; "
                            "0000:00:04.0 " HOST "/0000:00:04.0 - card3 renderD131");
    check_list(&dri_table, "0000:00:03.0 " HOST "/0000:00:03.0 radeon card2 renderD130; "
                           "0000:01:00.0 " CARD " nouveau card1 renderD129; "
                           "- /sys/devices/platform/vgem - card4 renderD132");
    check_list(&apple_table, "- /sys/devices/platform/406400000.gpu asahi card5 renderD133");
}

static void partitions_of_amdgpu_are_in_no_list(void **state)
{
    (void)state;
    make_device("/sys/devices/platform/amdgpu_xcp_0", "platform", NULL, NULL, "card1",
                "renderD129");
    check_list(&dri_table, "");
    check_list(&some_table, "");
}

static void a_virtio_device_is_at_its_parents_address(void **state)
{
    (void)state;
    machine_pci(HOST "/0000:00:03.0", "1af4:1050");
    make_device(HOST "/0000:00:03.0/virtio0", "virtio", "virtio_gpu", NULL, "card0", "renderD128");
    check_list(&dri_table,
               "0000:00:03.0 " HOST "/0000:00:03.0/virtio0 virtio_gpu card0 renderD128");
}

/* A machine that was recorded without /sys/class/drm and the links. */
static void without_the_class_the_tree_is_walked(void **state)
{
    (void)state;
    machine_directory(IGPU "/drm/card1");
    machine_directory(IGPU "/drm/renderD129");
    machine_value(IGPU, "vendor", "0x8086");
    machine_directory("/sys/devices/pci0000:80/0000:80:05.5/pci10000:e0/10000:e1:00.0/drm/card0");
    machine_driver("/sys/devices/pci0000:80/0000:80:05.5/pci10000:e0/10000:e1:00.0", "pci", "xe");
    machine_directory(HOST "/0000:00:03.0/virtio0/drm/renderD130");
    machine_directory(HOST "/0000:00:04.0/not-a-device/drm/renderD131");
    check_list(&some_table,
               "0000:00:02.0 " IGPU " - card1 renderD129; "
               "10000:e1:00.0 /sys/devices/pci0000:80/0000:80:05.5/pci10000:e0/10000:e1:00.0 xe "
               "card0 -");
    check_list(&dri_table, "0000:00:03.0 " HOST "/0000:00:03.0/virtio0 - - renderD130");
    machine.recorded = false;
    check_list(&some_table, "");
}

static void a_walk_ends(void **state)
{
    struct text path = {0};

    (void)state;
    text_append(&path, HOST);
    for (int depth = 0; depth < 40; depth++) {
        text_append_format(&path, "/0000:%02x:00.0", depth);
        machine_directory(text_string(&path));
        if (depth == 10 || depth == 30) {
            char *nodes;

            assert_true(asprintf(&nodes, "%s/drm/renderD%d", text_string(&path), depth) > 0);
            machine_directory(nodes);
            free(nodes);
            machine_driver(text_string(&path), "pci", "nouveau");
        }
    }
    text_finish(&path);
    machine_link("/sys/devices/pci0000:00/0000:00:1f.0", "/sys/devices/pci0000:00"); /* a loop */
    {
        struct drm_list list = {0};

        assert_int_equal(drm_list_claimed(&machine, &dri_table, &list, NULL), 0);
        assert_true(list.count >= 1);
        assert_string_equal(list.items[0].render, "renderD10");
        drm_list_finish(&list);
    }
}

/* A machine that was recorded with directories in place of links. */
static void a_class_of_directories_tells_by_uevent(void **state)
{
    static const char path[] = "/sys/class/drm/card1/device";
    struct drm_device device;

    (void)state;
    machine_value(path, "uevent",
                  "DRIVER=i915\nPCI_CLASS=30000\nPCI_SLOT_NAME=0000:00:02.0\nMODALIAS=pci");
    machine_driver(path, "pci", "i915");
    machine_directory("/sys/class/drm/card1/card1-DP-1");
    check_list(&some_table, "0000:00:02.0 /sys/class/drm/card1/device i915 card1 -");
    assert_int_equal(drm_device_at(&machine, path, &device, NULL), 0);
    assert_string_equal(device.card, "card1");
    assert_null(device.render);
    assert_string_equal(device.driver, "i915");
    assert_string_equal(pci_format(device.pci).text, "0000:00:02.0");
    drm_device_finish(&device);

    machine_value(path, "uevent", "PCI_SLOT_NAME=nonsense");
    check_list(&some_table, "- /sys/class/drm/card1/device i915 card1 -");
}

/* Reading this file would block forever. */
static void make_fifo(const char *path)
{
    machine_parent(path);
    assert_int_equal(mkfifo(path + 1, 0600), 0);
}

static void listing_reads_no_file_of_a_driver(void **state)
{
    (void)state;
    make_device(IGPU, "pci", "i915", NULL, "card0", "renderD128");
    make_fifo(IGPU "/vendor");
    make_fifo(IGPU "/device");
    make_fifo(IGPU "/uevent");
    make_fifo(IGPU "/power/runtime_status");
    make_fifo(IGPU "/drm/card0/dev");
    make_fifo(IGPU "/drm/card0/uevent");
    check_list(&some_table, "0000:00:02.0 " IGPU " i915 card0 renderD128");
    check_list(&dri_table, "");
}

static void a_class_that_cannot_be_listed_is_an_error(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct drm_list list = {0};

    (void)state;
    machine_directory("/sys/class");
    assert_int_equal(symlink("drm", "sys/class/drm"), 0);
    assert_fails(drm_list_claimed(&machine, &some_table, &list, &error), BERTH_ERROR_IO, &error,
                 "cannot list /sys/class/drm: Too many levels of symbolic links");
    assert_int_equal(list.count, 0);
}

static void a_known_path_tells_the_same(void **state)
{
    struct drm_device device;

    (void)state;
    make_device(IGPU, "pci", "i915", "8086:5912", "card10", "renderD130");
    machine_directory(IGPU "/drm/card2");
    machine_directory(IGPU "/drm/controlD64");
    assert_int_equal(drm_device_at(&machine, IGPU, &device, NULL), 0);
    assert_string_equal(device.path, IGPU);
    assert_string_equal(device.card, "card2");
    assert_string_equal(device.render, "renderD130");
    assert_string_equal(device.driver, "i915");
    assert_string_equal(pci_format(device.pci).text, "0000:00:02.0");
    drm_device_finish(&device);

    assert_int_equal(drm_device_at(&machine, "/sys/devices/platform/none", &device, NULL), 0);
    assert_null(device.card);
    assert_null(device.render);
    assert_null(device.driver);
    assert_false(device.pci.known);
    drm_device_finish(&device);
}

static void device_files_are_those_that_are_there(void **state)
{
    struct drm_device device = {.card = (char[]){"card0"}, .render = (char[]){"renderD128"}};
    struct string_list nodes = {0};

    (void)state;
    assert_int_equal(drm_nodes(&machine, &device, &nodes, NULL), 0);
    assert_int_equal(nodes.count, 0);
    assert_true(drm_is_reachable(&machine, &device));
    machine.recorded = false;
    assert_false(drm_is_reachable(&machine, &device));
    machine_file("/dev/dri/card0", "");
    assert_false(drm_is_reachable(&machine, &device));
    machine_file("/dev/dri/renderD128", "");
    assert_true(drm_is_reachable(&machine, &device));
    assert_int_equal(drm_nodes(&machine, &device, &nodes, NULL), 0);
    assert_int_equal(nodes.count, 2);
    assert_string_equal(nodes.items[0], "/dev/dri/renderD128");
    assert_string_equal(nodes.items[1], "/dev/dri/card0");
    string_list_finish(&nodes);
    device.render = NULL;
    assert_false(drm_is_reachable(&machine, &device));
}

static int list_with_failures(void *context)
{
    struct drm_list list = {0};
    int code = drm_list_claimed(&machine, context, &list, NULL);

    drm_list_finish(&list);
    return code;
}

static int look_with_failures(void *context)
{
    struct string_list nodes = {0};
    struct drm_device device = {0};
    int code = drm_device_at(&machine, context, &device, NULL);

    if (code == 0)
        code = drm_nodes(&machine, &device, &nodes, NULL);
    string_list_finish(&nodes);
    drm_device_finish(&device);
    return code;
}

static void failed_allocations_are_said(void **state)
{
    static char path[] = IGPU;

    (void)state;
    make_device(IGPU, "pci", "i915", "8086:5912", "card0", "renderD128");
    machine_file("/dev/dri/card0", "");
    machine_file("/dev/dri/renderD128", "");
    assert_true(failing_allocator_try_all(list_with_failures, (void *)&some_table) > 0);
    assert_true(failing_allocator_try_all(look_with_failures, path) > 0);
}

static void failed_allocations_in_a_walk_are_said(void **state)
{
    (void)state;
    machine_directory(IGPU "/drm/renderD129");
    machine_driver(IGPU, "pci", "i915");
    assert_true(failing_allocator_try_all(list_with_failures, (void *)&some_table) > 0);
}

#define MACHINE_TEST(function) \
    cmocka_unit_test_setup_teardown(function, machine_enter, machine_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MACHINE_TEST(no_class_is_no_device),
        MACHINE_TEST(nodes_of_one_device_belong_together),
        MACHINE_TEST(the_order_is_that_of_the_bus),
        MACHINE_TEST(other_names_of_the_class_are_no_devices),
        MACHINE_TEST(a_device_without_a_render_node_is_recorded_badly_or_no_gpu),
        MACHINE_TEST(what_nobody_claims_is_left_to_dri),
        MACHINE_TEST(partitions_of_amdgpu_are_in_no_list),
        MACHINE_TEST(a_virtio_device_is_at_its_parents_address),
        MACHINE_TEST(without_the_class_the_tree_is_walked),
        MACHINE_TEST(a_walk_ends),
        MACHINE_TEST(a_class_of_directories_tells_by_uevent),
        MACHINE_TEST(listing_reads_no_file_of_a_driver),
        MACHINE_TEST(a_class_that_cannot_be_listed_is_an_error),
        MACHINE_TEST(a_known_path_tells_the_same),
        MACHINE_TEST(device_files_are_those_that_are_there),
        MACHINE_TEST(failed_allocations_are_said),
        MACHINE_TEST(failed_allocations_in_a_walk_are_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
