/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/sysfs/locality.h"

#include "base/count.h"
#include "support/failing_allocator.h"
#include "support/hardware/made_up_machine.h"

#define HOST "/sys/devices/pci0000:00"

static void a_directory_tells_its_address(void **state)
{
    static const struct {
        const char *path;
        const char *address; /* NULL: none */
        size_t beyond;       /* length of the path after the PCI device */
    } cases[] = {
        {HOST "/0000:00:02.0", "0000:00:02.0", 0},
        {HOST "/0000:00:01.0/0000:01:00.0", "0000:01:00.0", 0},
        {HOST "/0000:00:02.0/", "0000:00:02.0", 1},
        {HOST "/0000:00:02.0/virtio0", "0000:00:02.0", 8},
        {"/sys/devices/pci0000:80/0000:80:05.5/pci10000:e0/10000:e1:00.0", "10000:e1:00.0", 0},
        {"/sys/devices/platform/vgem", NULL, 0},
        {HOST "/0000:00:14.0/usb1/1-1/1-1:1.0", NULL, 0},
        {HOST, NULL, 0},
        {"", NULL, 0},
        {"/", NULL, 0},
        {"/sys/devices/pci0000:00/00:02.0", NULL, 0},
        {"/sys/class/drm/card0/device", NULL, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t length = 4711;
        struct pci_address address = locality_pci_of(cases[i].path, &length);

        assert_int_equal(address.known, cases[i].address != NULL);
        if (cases[i].address == NULL) {
            assert_int_equal(length, 4711);
            continue;
        }
        assert_string_equal(pci_format(address).text, cases[i].address);
        assert_int_equal(length, strlen(cases[i].path) - cases[i].beyond);
    }
}

static void an_address_tells_its_directory(void **state)
{
    struct pci_address address;
    char *path;

    (void)state;
    machine_pci("/sys/devices/pci10000:00/10000:00:04.0", "8086:56a0");
    assert_int_equal(pci_parse("10000:00:04.0", &address, NULL), 0);
    path = locality_pci_path(&machine, address);
    assert_string_equal(path, "/sys/devices/pci10000:00/10000:00:04.0");
    free(path);
    assert_int_equal(pci_parse("0000:00:04.0", &address, NULL), 0);
    assert_null(locality_pci_path(&machine, address));
    assert_null(locality_pci_path(&machine, (struct pci_address){0}));
}

static void read_place(const char *path, struct device *device)
{
    struct berth_error error = BERTH_ERROR_INIT;

    *device = (struct device){0};
    assert_int_equal(locality_read(&machine, path, device, &error), 0);
    assert_string_equal(error.message, "");
}

static void node_and_cpus_are_read(void **state)
{
    static const char path[] = HOST "/0000:00:02.0";
    struct device device;

    (void)state;
    machine_value(path, "numa_node", "1");
    machine_value(path, "local_cpulist", "32-47,0-15,3");
    read_place(path, &device);
    assert_true(device.numa.known);
    assert_int_equal(device.numa.value, 1);
    assert_string_equal(device.cpus, "0-15,32-47");
    device_finish(&device);

    machine_directory(HOST "/0000:00:02.0/virtio0");
    read_place(HOST "/0000:00:02.0/virtio0", &device);
    assert_int_equal(device.numa.value, 1);
    assert_string_equal(device.cpus, "0-15,32-47");
    device_finish(&device);
}

static void what_is_filled_in_stays(void **state)
{
    static const char path[] = HOST "/0000:00:02.0";
    struct device device = {.numa = {true, 7}, .cpus = strdup("5")};

    (void)state;
    machine_value(path, "numa_node", "1");
    machine_value(path, "local_cpulist", "0-15");
    assert_int_equal(locality_read(&machine, path, &device, NULL), 0);
    assert_int_equal(device.numa.value, 7);
    assert_string_equal(device.cpus, "5");
    device_finish(&device);
}

static void nodes_that_are_none_are_unknown(void **state)
{
    static const char *const lies[] = {"-1", "1,2,3", "", "65536", "99999999999999999999", "one"};
    static const char path[] = HOST "/0000:00:02.0";
    struct device device;

    (void)state;
    read_place(path, &device);
    assert_false(device.numa.known);
    for (size_t i = 0; i < COUNT(lies); i++) {
        machine_value(path, "numa_node", lies[i]);
        read_place(path, &device);
        assert_false(device.numa.known);
    }
}

static void cpu_lists_that_are_none_are_unknown(void **state)
{
    static const char *const lies[] = {
        "",     "\x1b[31m0", "0-",    "-3",    "3-1",   "0;rm -rf",
        "0,,1", "0x10",      "65536", "0 1 2", "0-4/2", "99999999999999999999",
    };
    static const char path[] = HOST "/0000:00:02.0";
    char endless[3 * SYSROOT_VALUE_SIZE];
    struct device device;

    (void)state;
    read_place(path, &device);
    assert_null(device.cpus);
    for (size_t i = 0; i < COUNT(lies); i++) {
        machine_value(path, "local_cpulist", lies[i]);
        read_place(path, &device);
        assert_null(device.cpus);
    }
    machine_bytes(HOST "/0000:00:02.0/local_cpulist",
                  "0-3\0"
                  "5",
                  5);
    read_place(path, &device);
    assert_null(device.cpus);

    /* A list that is truncated in the middle of a number. */
    for (size_t i = 0; i + 4 < sizeof(endless); i += 4)
        memcpy(endless + i, "999,", 5);
    machine_value(path, "local_cpulist", endless);
    read_place(path, &device);
    assert_null(device.cpus);
}

static int read_with_failures(void *context)
{
    struct device device = {0};
    int code = locality_read(&machine, context, &device, NULL);

    device_finish(&device);
    return code;
}

static void failed_allocations_are_said(void **state)
{
    static char path[] = HOST "/0000:00:02.0";

    (void)state;
    machine_value(path, "numa_node", "0");
    machine_value(path, "local_cpulist", "0-15");
    assert_true(failing_allocator_try_all(read_with_failures, path) > 0);
}

static void only_a_suspended_device_sleeps(void **state)
{
    static const char path[] = HOST "/0000:00:02.0";

    (void)state;
    machine_directory(path);
    assert_false(locality_is_asleep(&machine, path));
    machine_value(path, "power/runtime_status", "active");
    assert_false(locality_is_asleep(&machine, path));
    machine_value(path, "power/runtime_status", "suspending");
    assert_false(locality_is_asleep(&machine, path));
    machine_value(path, "power/runtime_status", "suspended");
    assert_true(locality_is_asleep(&machine, path));
}

/* A switch is its upstream port and the downstream ports on the bus below. */
#define ROOT_PORT  HOST "/0000:00:01.0"
#define SWITCH     ROOT_PORT "/0000:01:00.0"
#define GPU_3      SWITCH "/0000:02:08.0/0000:03:00.0"
#define GPU_4      SWITCH "/0000:02:10.0/0000:04:00.0"
#define LOWER_ONE  SWITCH "/0000:02:18.0/0000:05:00.0"
#define LOWER_TWO  SWITCH "/0000:02:1c.0/0000:09:00.0"
#define GPU_7      LOWER_ONE "/0000:06:00.0/0000:07:00.0"
#define GPU_8      LOWER_ONE "/0000:06:01.0/0000:08:00.0"
#define GPU_B      LOWER_TWO "/0000:0a:00.0/0000:0b:00.0"
#define OTHER_PORT HOST "/0000:00:03.0"
#define GPU_20     OTHER_PORT "/0000:20:00.0"
#define FAR_GPU    "/sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0"
#define VMD_HOST   "/sys/devices/pci0000:80/0000:80:05.5/pci10000:e0"

#define NODE(number) \
    {                \
        true, number \
    }
#define NO_NODE  \
    {            \
        false, 0 \
    }

struct pair {
    const char *one;
    const char *other;
    struct optional_number one_numa;
    struct optional_number other_numa;
    bool known;
    enum link_kind kind;
};

static void check_pairs(const struct pair *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct pair *pair = &pairs[i];
        enum link_kind kind = LINK_NVLINK;

        for (int turn = 0; turn < 2; turn++) {
            bool known = turn == 0 ? locality_between(pair->one, pair->one_numa, pair->other,
                                                      pair->other_numa, &kind)
                                   : locality_between(pair->other, pair->other_numa, pair->one,
                                                      pair->one_numa, &kind);

            assert_int_equal(known, pair->known);
            assert_int_equal(kind, pair->known ? pair->kind : LINK_NVLINK);
        }
    }
}

static void devices_of_one_host_bridge(void **state)
{
    static const struct pair pairs[] = {
        {GPU_3, GPU_3, NODE(0), NODE(0), true, LINK_PSB},
        {GPU_3, SWITCH "/0000:02:08.0/0000:03:00.1", NODE(0), NODE(0), true, LINK_PSB},
        {GPU_3, GPU_4, NODE(0), NODE(0), true, LINK_PIX},
        {GPU_7, GPU_8, NODE(0), NODE(0), true, LINK_PIX},
        {GPU_3, GPU_7, NODE(0), NODE(0), true, LINK_PXB},
        {GPU_7, GPU_B, NODE(0), NODE(0), true, LINK_PXB},
        {GPU_3, GPU_20, NODE(0), NODE(0), true, LINK_PHB},
        {HOST "/0000:00:02.0", GPU_20, NO_NODE, NO_NODE, true, LINK_PHB},
        {HOST "/0000:00:02.0", HOST "/0000:00:03.0", NO_NODE, NO_NODE, true, LINK_PHB},
        {HOST "/0000:00:02.0", HOST "/0000:00:02.1", NO_NODE, NO_NODE, true, LINK_PSB},
        /* Both directly below one port, as on a plain PCI bus. */
        {ROOT_PORT "/0000:01:00.0", ROOT_PORT "/0000:01:01.0", NODE(0), NODE(0), true, LINK_PIX},
        /* The NUMA node does not matter if the bus decides. */
        {GPU_3, GPU_4, NO_NODE, NODE(3), true, LINK_PIX},
        {GPU_3, GPU_20, NODE(0), NODE(1), true, LINK_PHB},
        /* The part of a path that virtio adds is not a bridge. */
        {HOST "/0000:00:02.0/virtio0", HOST "/0000:00:03.0/virtio1", NO_NODE, NO_NODE, true,
         LINK_PHB},
        {ROOT_PORT "/0000:01:00.0/virtio0", ROOT_PORT "/0000:01:01.0/virtio1", NO_NODE, NO_NODE,
         true, LINK_PIX},
        {HOST "/0000:00:02.0/virtio0", HOST "/0000:00:02.0", NO_NODE, NO_NODE, true, LINK_PSB},
    };

    (void)state;
    check_pairs(pairs, COUNT(pairs));
}

static void devices_of_several_host_bridges(void **state)
{
    static const struct pair pairs[] = {
        {GPU_3, FAR_GPU, NODE(0), NODE(1), true, LINK_SYS},
        {GPU_3, FAR_GPU, NODE(2), NODE(2), true, LINK_NODE},
        {GPU_3, FAR_GPU, NODE(0), NO_NODE, false, 0},
        {GPU_3, FAR_GPU, NO_NODE, NO_NODE, false, 0},
        /* The same bus and device in another domain is another device. */
        {"/sys/devices/pci0000:00/0000:00:02.0", "/sys/devices/pci10000:00/10000:00:02.0", NODE(0),
         NODE(1), true, LINK_SYS},
        {"/sys/devices/pci10000:00/10000:00:00.0", "/sys/devices/pci10000:00/10000:00:04.0",
         NO_NODE, NO_NODE, true, LINK_PHB},
        /* A domain behind a device of another domain (VMD). */
        {VMD_HOST "/10000:e0:02.0/10000:e1:00.0", VMD_HOST "/10000:e0:03.0/10000:e2:00.0", NO_NODE,
         NO_NODE, true, LINK_PHB},
        {VMD_HOST "/10000:e0:02.0/10000:e1:00.0", VMD_HOST "/10000:e0:02.0/10000:e1:01.0", NO_NODE,
         NO_NODE, true, LINK_PIX},
        {VMD_HOST "/10000:e0:02.0/10000:e1:00.0", FAR_GPU, NO_NODE, NO_NODE, true, LINK_PHB},
        /* Host bridges that are platform devices. */
        {"/sys/devices/platform/a/pci0000:00/0000:00:00.0/0000:01:00.0",
         "/sys/devices/platform/a/pci0000:00/0000:00:00.0/0000:01:01.0", NO_NODE, NO_NODE, true,
         LINK_PIX},
        {"/sys/devices/platform/a/pci0000:00/0000:00:00.0/0000:01:00.0",
         "/sys/devices/platform/b/pci0001:00/0001:00:00.0/0001:01:00.0", NODE(0), NODE(0), true,
         LINK_NODE},
    };

    (void)state;
    check_pairs(pairs, COUNT(pairs));
}

static void devices_that_are_not_on_pci(void **state)
{
    static const struct pair pairs[] = {
        {"/sys/devices/platform/soc/gpu", "/sys/devices/platform/soc/gpu", NO_NODE, NO_NODE, true,
         LINK_PSB},
        {"/sys/devices/platform/soc/gpu", "/sys/devices/platform/vgem", NODE(0), NODE(0), false, 0},
        {"/sys/devices/platform/vgem", GPU_3, NODE(0), NODE(0), false, 0},
        {"/sys/class/drm/card0/device", "/sys/class/drm/card1/device", NODE(0), NODE(0), false, 0},
        {"", "/", NODE(0), NODE(0), false, 0},
        {"/sys/devices/pcifoo:00/0000:00:01.0", "/sys/devices/pcifoo:00/0000:00:02.0", NODE(0),
         NODE(0), false, 0},
    };

    (void)state;
    check_pairs(pairs, COUNT(pairs));
}

#define MACHINE_TEST(function) \
    cmocka_unit_test_setup_teardown(function, machine_enter, machine_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_directory_tells_its_address),
        MACHINE_TEST(an_address_tells_its_directory),
        MACHINE_TEST(node_and_cpus_are_read),
        MACHINE_TEST(what_is_filled_in_stays),
        MACHINE_TEST(nodes_that_are_none_are_unknown),
        MACHINE_TEST(cpu_lists_that_are_none_are_unknown),
        MACHINE_TEST(failed_allocations_are_said),
        MACHINE_TEST(only_a_suspended_device_sleeps),
        cmocka_unit_test(devices_of_one_host_bridge),
        cmocka_unit_test(devices_of_several_host_bridges),
        cmocka_unit_test(devices_that_are_not_on_pci),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
