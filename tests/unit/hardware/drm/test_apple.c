/* SPDX-License-Identifier: Apache-2.0 */
#include "support/hardware/vendor_looks.h"

#define GPU  "/sys/devices/platform/soc/406400000.gpu"
#define NODE "/sys/firmware/devicetree/base/soc/gpu@406400000"

static void make_gpu(void)
{
    machine_driver(GPU, "platform", "asahi");
    machine_drm_node(GPU, "card0");
    machine_drm_node(GPU, "renderD128");
    machine_value(GPU, "power/runtime_status", "active");
}

/* Writes `compatible` of the device tree: strings that each end with a zero byte. */
static void make_compatible(const char *strings, size_t length)
{
    machine_bytes(NODE "/compatible", strings, length);
    if (access(&GPU "/of_node"[1], F_OK) < 0)
        machine_link(GPU "/of_node", NODE);
}

#define COMPATIBLE(strings) make_compatible(strings, sizeof(strings))

static void check_name(const char *wanted)
{
    struct findings findings = vendor_read(&apple_table, 1, 0);

    assert_string_equal(findings.found.items[0].device->name, wanted);
    findings_finish(&findings);
}

static void it_is_integrated_and_on_no_bus(void **state)
{
    struct findings findings;
    struct device *device;

    (void)state;
    make_gpu();
    COMPATIBLE("apple,agx-t8103\0apple,agx-g13g");
    machine_file("/dev/dri/renderD128", "");
    machine_file("/dev/dri/card0", "");
    findings = vendor_read(&apple_table, 1, 0);
    device = findings.found.items[0].device;
    assert_string_equal(device_id_format(device->id).text, "apple0");
    assert_string_equal(device->name, "Apple M1 (agx-g13g)");
    assert_int_equal(device->kind, DEVICE_KIND_INTEGRATED);
    assert_int_equal(device->health, HEALTH_OK);
    assert_false(device->pci.known);
    assert_false(device->memory_total.known);
    assert_false(device->numa.known);
    assert_null(device->cpus);
    assert_int_equal(device->nodes.count, 2);
    assert_string_equal(device->nodes.items[0], "/dev/dri/renderD128");
    findings_finish(&findings);
}

static void names_come_from_the_device_tree(void **state)
{
    char endless[2 * SYSROOT_VALUE_SIZE];

    (void)state;
    make_gpu();
    check_name("Apple AGX");
    COMPATIBLE("apple,agx-g13g");
    check_name("Apple M1 (agx-g13g)");
    COMPATIBLE("apple,agx-t6022\0apple,agx-g14d");
    check_name("Apple M2 Ultra (agx-g14d)");
    COMPATIBLE("apple,agx-g99");
    check_name("Apple AGX g99");
    COMPATIBLE("vendor,else\0apple,agx-t6021");
    check_name("Apple M2 Max (agx-t6021)");
    COMPATIBLE("vendor,else");
    check_name("Apple AGX");
    COMPATIBLE("");
    check_name("Apple AGX");
    COMPATIBLE("\0\0\0");
    check_name("Apple AGX");
    COMPATIBLE("apple,agx-\x1b[2J");
    check_name("Apple AGX \xef\xbf\xbd[2J");

    memset(endless, 'a', sizeof(endless));
    make_compatible(endless, sizeof(endless));
    check_name("Apple AGX");
}

static void one_that_sleeps_is_listed(void **state)
{
    struct findings findings;

    (void)state;
    make_gpu();
    COMPATIBLE("apple,agx-g13g");
    machine_value(GPU, "power/runtime_status", "suspended");
    findings = vendor_read(&apple_table, 1, 0);
    assert_true(findings.found.items[0].device->asleep);
    assert_string_equal(findings.found.items[0].device->name, "Apple M1 (agx-g13g)");
    findings_finish(&findings);
}

static void other_machines_have_none(void **state)
{
    struct findings findings;

    (void)state;
    findings = vendor_list(&apple_table);
    assert_int_equal(findings.found.count, 0);
    findings_finish(&findings);
    machine_driver("/sys/devices/platform/soc/ffe40000.gpu", "platform", "panfrost");
    machine_drm_node("/sys/devices/platform/soc/ffe40000.gpu", "renderD128");
    findings = vendor_list(&apple_table);
    assert_int_equal(findings.found.count, 0);
    findings_finish(&findings);
}

static void failed_allocations_are_said(void **state)
{
    (void)state;
    make_gpu();
    COMPATIBLE("apple,agx-g13g");
    machine_file("/dev/dri/renderD128", "");
    vendor_look_with_failures(&apple_table);
}

#define MACHINE_TEST(function) \
    cmocka_unit_test_setup_teardown(function, machine_enter, machine_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MACHINE_TEST(it_is_integrated_and_on_no_bus), MACHINE_TEST(names_come_from_the_device_tree),
        MACHINE_TEST(one_that_sleeps_is_listed),      MACHINE_TEST(other_machines_have_none),
        MACHINE_TEST(failed_allocations_are_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
