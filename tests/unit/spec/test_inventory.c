/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "spec/inventory.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/count.h"
#include "support/failing_allocator.h"
#include "support/source_root.h"
#include "support/spec/inventories.h"
#include "support/units.h"

static const char contract_example[] =
    "devices:\n"
    "  - {vendor: nvidia, index: 0, name: NVIDIA A100-SXM4-80GB, memory: 80GiB, free: 79GiB,\n"
    "     cap: \"8.0\", pci: \"0000:07:00.0\", numa: 3, uuid: GPU-…, minor: 0}\n"
    "  - {vendor: nvidia, index: 1, name: NVIDIA A100-SXM4-80GB, memory: 80GiB, pci: "
    "\"0000:0f:00.0\", numa: 3}\n"
    "links:\n"
    "  - {between: [nvidia0, nvidia1], kind: nvlink, lanes: 12}   # nvlink | xgmi | psb | pix\n";

static void check_optional(struct optional_number number, uint64_t value)
{
    assert_true(number.known);
    assert_true(number.value == value);
}

static void check_figure(const struct figure *figure, int64_t value)
{
    assert_true(figure->known);
    assert_true(figure->value == value);
    assert_true(figure->sampled_at == FIGURE_DECLARED);
}

static void check_id(const struct device *device, const char *id)
{
    assert_string_equal(device_id_format(device->id).text, id);
}

static void check_link(const struct link *link, size_t low, size_t high, enum link_kind kind,
                       uint32_t lanes)
{
    assert_int_equal(link->between[0], low);
    assert_int_equal(link->between[1], high);
    assert_int_equal(link->kind, kind);
    assert_int_equal(link->lanes, lanes);
}

static void the_example_of_the_contract_is_read(void **state)
{
    struct machine machine = parse_inventory(contract_example);
    const struct device *device = machine.devices.items;

    (void)state;
    assert_int_equal(machine.devices.count, 2);
    check_id(&device[0], "nvidia0");
    assert_string_equal(device[0].name, "NVIDIA A100-SXM4-80GB");
    check_optional(device[0].memory_total, 80 * GIB);
    check_figure(&device[0].load.memory_free, (int64_t)(79 * GIB));
    assert_string_equal(capability_format(device[0].cap).text, "8.0");
    assert_string_equal(pci_format(device[0].pci).text, "0000:07:00.0");
    check_optional(device[0].numa, 3);
    assert_string_equal(device[0].uuid, "GPU-…");
    check_optional(device[0].minor, 0);
    check_id(&device[1], "nvidia1");
    assert_string_equal(pci_format(device[1].pci).text, "0000:0f:00.0");
    assert_int_equal(machine.links.count, 1);
    check_link(&machine.links.items[0], 0, 1, LINK_NVLINK, 12);
    machine_finish(&machine);
}

static void tiles_are_intels(void **state)
{
    struct machine machine = parse_inventory("devices:\n"
                                             "- {vendor: intel, index: 0, tiles: 2}\n"
                                             "- {vendor: intel, index: 1}\n");

    (void)state;
    check_optional(machine.devices.items[0].tiles, 2);
    assert_false(machine.devices.items[1].tiles.known);
    machine_finish(&machine);
}

static void every_field_has_its_member(void **state)
{
    struct machine machine =
        parse_inventory("devices:\n"
                        "- vendor: nvidia\n"
                        "  index: 999999\n"
                        "  mig: 6\n"
                        "  name: a name\n"
                        "  uuid: MIG-1\n"
                        "  parent: GPU-1\n"
                        "  pci: '10000:FE:1f.7'\n"
                        "  minor: 1048575\n"
                        "  memory: 10GB\n"
                        "  free: 1000\n"
                        "  cap: 12.1\n"
                        "  numa: 1023\n"
                        "  cpus: ' 8,0-3,2-5 '\n"
                        "  health: sick\n"
                        "  utilization: 0.255\n"
                        "  temperature: 81.5\n"
                        "  power: 300.001\n"
                        "  nodes: [/dev/nvidia0, /dev/nvidia-caps/nvidia-cap1]\n");
    const struct device *device = machine.devices.items;

    (void)state;
    assert_int_equal(machine.devices.count, 1);
    assert_int_equal(device->id.vendor, VENDOR_NVIDIA);
    assert_int_equal(device->id.index, 999999);
    assert_int_equal(device->id.mig, 6);
    assert_string_equal(device->name, "a name");
    assert_string_equal(device->uuid, "MIG-1");
    assert_string_equal(device->parent, "GPU-1");
    assert_string_equal(pci_format(device->pci).text, "10000:fe:1f.7");
    check_optional(device->minor, 1048575);
    check_optional(device->memory_total, UINT64_C(10000000000));
    check_figure(&device->load.memory_free, 1000);
    assert_string_equal(capability_format(device->cap).text, "12.1");
    check_optional(device->numa, 1023);
    assert_string_equal(device->cpus, "0-5,8");
    assert_int_equal(device->health, HEALTH_SICK);
    check_figure(&device->load.utilization, 255);
    check_figure(&device->load.temperature, 81500);
    check_figure(&device->load.power, 300001);
    assert_int_equal(device->nodes.count, 2);
    assert_string_equal(device->nodes.items[0], "/dev/nvidia0");
    assert_string_equal(device->nodes.items[1], "/dev/nvidia-caps/nvidia-cap1");
    assert_false(device->partitioned);
    machine_finish(&machine);
}

static void what_is_left_out_is_unknown(void **state)
{
    static const char *const texts[] = {
        "devices: [{vendor: dri, index: 0}]",
        ("devices:\n- {vendor: dri, index: 0, mig: ~, name: , uuid: ~, parent: ~, pci: ~, minor: "
         "~, "
         "memory: ~, free: ~, cap: ~, numa: ~, cpus: ~, health: ~, utilization: ~, temperature: ~, "
         "power: ~, nodes: ~}\nlinks: ~\n"),
    };

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct machine machine = parse_inventory(texts[i]);
        struct device wanted = {.id = {.vendor = VENDOR_DRI, .mig = DEVICE_NO_MIG}};

        assert_int_equal(machine.devices.count, 1);
        assert_int_equal(machine.links.count, 0);
        assert_memory_equal(&machine.devices.items[0].id, &wanted.id, sizeof(wanted.id));
        machine.devices.items[0].id = wanted.id;
        assert_memory_equal(&machine.devices.items[0], &wanted, sizeof(wanted));
        machine_finish(&machine);
    }
}

static void every_vendor_is_known(void **state)
{
    static const char *const ids[] = {"nvidia0", "amd0", "intel0", "apple0", "dri0"};
    struct machine machine = parse_inventory("devices:\n"
                                             "- {vendor: nvidia, index: 0}\n"
                                             "- {vendor: amd, index: 0}\n"
                                             "- {vendor: intel, index: 0}\n"
                                             "- {vendor: apple, index: 0}\n"
                                             "- {vendor: dri, index: 0}\n");

    (void)state;
    assert_int_equal(machine.devices.count, COUNT(ids));
    for (size_t i = 0; i < COUNT(ids); i++)
        check_id(&machine.devices.items[i], ids[i]);
    machine_finish(&machine);
}

static void an_inventory_may_be_empty(void **state)
{
    struct machine machine = parse_inventory("{\"devices\": [], \"links\": []}");

    (void)state;
    assert_int_equal(machine.devices.count, 0);
    assert_int_equal(machine.links.count, 0);
    machine_finish(&machine);
}

static void slots_are_in_the_order_of_the_file(void **state)
{
    struct machine machine = parse_inventory("links:\n"
                                             "- {kind: sys, between: [amd7, nvidia2]}\n"
                                             "- {lanes: 4, between: [nvidia2, nvidia0], kind: "
                                             "nvlink}\n"
                                             "devices:\n"
                                             "- {index: 2, vendor: nvidia, pci: '02:00.0'}\n"
                                             "- {index: 7, pci: '01:00.0', vendor: amd}\n"
                                             "- {pci: '00:00.0', vendor: nvidia, index: 0}\n");
    const struct link *link = machine.links.items;

    (void)state;
    assert_int_equal(machine.devices.count, 3);
    check_id(&machine.devices.items[0], "nvidia2");
    check_id(&machine.devices.items[1], "amd7");
    check_id(&machine.devices.items[2], "nvidia0");
    assert_int_equal(machine.links.count, 2);
    check_link(&link[0], 0, 1, LINK_SYS, 0);
    check_link(&link[1], 0, 2, LINK_NVLINK, 4);
    machine_finish(&machine);
}

static void partitions_mark_their_parent(void **state)
{
    struct machine machine =
        parse_inventory("devices:\n"
                        "- {vendor: nvidia, index: 0, mig: 1, pci: '07:00.0'}\n"
                        "- {vendor: nvidia, index: 0, pci: '07:00.0'}\n"
                        "- {vendor: nvidia, index: 0, mig: 0, pci: '07:00.0'}\n"
                        "- {vendor: nvidia, index: 1, uuid: GPU-1}\n"
                        "- {vendor: nvidia, index: 1, mig: 0, parent: GPU-1}\n"
                        "- {vendor: nvidia, index: 2}\n"
                        "- {vendor: amd, index: 0, parent: card, pci: '08:00.0'}\n"
                        "- {vendor: amd, index: 1, parent: card, pci: '08:00.0'}\n"
                        "- {vendor: amd, index: 2, parent: amd2}\n"
                        "- {vendor: amd, index: 3, parent: nvidia9}\n"
                        "links:\n"
                        "- {between: [nvidia0.1, nvidia0.0], kind: pix}\n");
    static const bool marked[] = {false, true, false, true};

    (void)state;
    assert_int_equal(machine.devices.count, 10);
    for (size_t i = 0; i < machine.devices.count; i++)
        assert_int_equal(machine.devices.items[i].partitioned, i < COUNT(marked) && marked[i]);
    assert_string_equal(machine.devices.items[0].parent, "nvidia0");
    assert_null(machine.devices.items[1].parent);
    assert_string_equal(machine.devices.items[2].parent, "nvidia0");
    assert_string_equal(machine.devices.items[4].parent, "GPU-1");
    assert_string_equal(machine.devices.items[6].parent, "card");
    assert_int_equal(machine.links.items[0].between[0], 0);
    assert_int_equal(machine.links.items[0].between[1], 2);
    machine_finish(&machine);
}

static void a_pair_may_have_a_fabric_link_and_a_path(void **state)
{
    struct machine machine =
        parse_inventory("devices: [{vendor: amd, index: 0}, {vendor: amd, index: 1}]\n"
                        "links:\n"
                        "- {between: [amd0, amd1], kind: xgmi}\n"
                        "- {between: [amd1, amd0], kind: pxb}\n");

    (void)state;
    assert_int_equal(machine.links.count, 2);
    assert_int_equal(machine.links.items[0].kind, LINK_XGMI);
    assert_int_equal(machine.links.items[0].lanes, 0);
    assert_int_equal(machine.links.items[1].kind, LINK_PXB);
    machine_finish(&machine);
}

static void every_kind_of_link_is_known(void **state)
{
    (void)state;
    for (const struct choice *kind = link_kind_names; kind->name != NULL; kind++) {
        const char *vendor = kind->value == LINK_XGMI ? "amd" : "nvidia";
        struct text text = {0};
        struct machine machine;

        text_append_format(&text,
                           "devices: [{vendor: %s, index: 0}, {vendor: %s, index: 1}]\n"
                           "links: [{between: [%s0, %s1], kind: %s}]\n",
                           vendor, vendor, vendor, vendor, kind->name);
        machine = parse_inventory(text_string(&text));
        assert_int_equal(machine.links.items[0].kind, kind->value);
        machine_finish(&machine);
        text_finish(&text);
    }
}

static void duplicates_through_an_alias_are_reported_at_the_alias(void **state)
{
    (void)state;
    check_inventory_refused("devices:\n- &gpu {vendor: nvidia, index: 0}\n- *gpu\n",
                            BERTH_ERROR_SYNTAX,
                            "3:3: index: expected each device id once, got that of nvidia0 again");
}

/* Devices in a ring, each linked to the next. */
static void append_ring(struct text *text, unsigned count)
{
    text_append(text, "devices:\n");
    for (unsigned i = 0; i < count; i++)
        text_append_format(text,
                           "- {vendor: nvidia, index: %u, name: NVIDIA H100, memory: 80GiB, uuid: "
                           "GPU-%08x, pci: '%x:%02x:00.0', numa: %u}\n",
                           (i * 7919) % count, i, i / 256, i % 256, i % 8);
    text_append(text, "links:\n");
    for (unsigned i = 0; i < count; i++)
        text_append_format(text, "- {between: [nvidia%u, nvidia%u], kind: nvlink, lanes: 12}\n", i,
                           (i + 1) % count);
}

/* Returns the processor time for reading so many devices. */
static double seconds_to_read(unsigned devices)
{
    struct text text = {0};
    struct machine machine;
    clock_t start;
    double seconds;

    append_ring(&text, devices);
    start = clock();
    machine = parse_inventory(text_string(&text));
    seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    assert_int_equal(machine.devices.count, devices);
    assert_int_equal(machine.links.count, devices);
    machine_finish(&machine);
    text_finish(&text);
    print_message("%u devices with links in %.2f s\n", devices, seconds);
    return seconds;
}

/* Compares two sizes, because sanitizers and valgrind are slow: quadratic time would be a hundred
 * times as long for ten times as many devices. */
static void a_cluster_is_read_in_reasonable_time(void **state)
{
    double few;
    double many;

    (void)state;
    /* Filling memory, as MALLOC_PERTURB_ requests, would take longer than reading. */
    mallopt(M_PERTURB, 0);
    few = seconds_to_read(10000);
    many = seconds_to_read(100000);
    assert_true(many < 2 || many < few * 30);
}

static void check_example(const char *path)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct machine machine = {0};
    int code;

    if (strcmp(strrchr(path, '/'), "/berth.yaml") == 0) /* a configuration */
        return;
    code = inventory_read(path, &machine, &error);
    assert_string_equal(error.message, "");
    assert_int_equal(code, 0);
    assert_true(machine.devices.count > 0);
    machine_finish(&machine);
}

static void the_examples_are_read(void **state)
{
    (void)state;
    assert_true(for_each_source_file("examples", ".yaml", check_example) >= 4);
}

static void a_missing_file_is_not_found(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct machine machine = {.devices = {.count = 4711}};

    (void)state;
    assert_int_equal(inventory_read("no/such/file", &machine, &error), BERTH_ERROR_NOT_FOUND);
    assert_string_equal(error.message, "cannot read no/such/file: No such file or directory");
    assert_int_equal(machine.devices.count, 4711);
}

static int attempt(void *context)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct machine machine;
    int code = inventory_parse(FILE_NAME, context, strlen(context), &machine, &error);

    if (code == 0)
        machine_finish(&machine);
    return code;
}

static void out_of_memory_is_reported_at_every_allocation(void **state)
{
    static char text[] =
        "devices:\n"
        "- &a {vendor: nvidia, index: 0, name: A, uuid: GPU-0, pci: '07:00.0', memory: 8G, free: "
        "1G, cap: 8.0, numa: 0, cpus: 0-3, nodes: [/dev/a, /dev/b], utilization: 0.5}\n"
        "- {vendor: nvidia, index: 0, mig: 0, parent: GPU-0}\n"
        "- {vendor: nvidia, index: 0, mig: 1}\n"
        "links:\n"
        "- {between: [nvidia0.0, nvidia0.1], kind: pix}\n"
        "- {between: [nvidia0.0, nvidia0], kind: nvlink, lanes: 2}\n";

    (void)state;
    assert_true(failing_allocator_try_all(attempt, text) > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_of_the_contract_is_read),
        cmocka_unit_test(tiles_are_intels),
        cmocka_unit_test(every_field_has_its_member),
        cmocka_unit_test(what_is_left_out_is_unknown),
        cmocka_unit_test(every_vendor_is_known),
        cmocka_unit_test(an_inventory_may_be_empty),
        cmocka_unit_test(slots_are_in_the_order_of_the_file),
        cmocka_unit_test(partitions_mark_their_parent),
        cmocka_unit_test(a_pair_may_have_a_fabric_link_and_a_path),
        cmocka_unit_test(every_kind_of_link_is_known),
        cmocka_unit_test(duplicates_through_an_alias_are_reported_at_the_alias),
        cmocka_unit_test(a_cluster_is_read_in_reasonable_time),
        cmocka_unit_test(the_examples_are_read),
        cmocka_unit_test(a_missing_file_is_not_found),
        cmocka_unit_test(out_of_memory_is_reported_at_every_allocation),
    };

    return cmocka_run_group_tests_name("inventory", tests, NULL, NULL);
}
