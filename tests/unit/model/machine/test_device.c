/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "model/machine/device.h"

#include <stdio.h>

#include "base/count.h"
#include "model/machine/machine.h"
#include "support/engine/machines.h"
#include "support/random.h"
#include "support/steps.h"

/* Gives the device everything that it can own. */
static void furnish(struct device *device)
{
    device->name = copy_of("NVIDIA A100-SXM4-80GB");
    device->uuid = copy_of("GPU-5a7c");
    device->parent = copy_of("nvidia0");
    device->cpus = copy_of("0-15,32-47");
    device->memory_total = optional_number_of(80 * GIB);
    device->numa = optional_number_of(3);
    device->minor = optional_number_of(0);
    device->tiles = optional_number_of(2);
    device->ordinal = optional_number_of(1);
    device->first_tile = optional_number_of(4);
    device->cap = (struct capability){true, 8, 0};
    device->health = HEALTH_OK;
    device->partitioned = true;
    device->load.power = load_figure_sampled(1, 2);
    device->pci.known = true;
    assert_int_equal(string_list_append(&device->nodes, "/dev/nvidia0"), 0);
    assert_int_equal(string_list_append(&device->nodes, "/dev/nvidiactl"), 0);
}

static void check_nothing_known(const struct device *device)
{
    assert_null(device->name);
    assert_null(device->uuid);
    assert_null(device->parent);
    assert_null(device->cpus);
    assert_false(device->pci.known);
    assert_false(device->memory_total.known);
    assert_false(device->numa.known);
    assert_false(device->minor.known);
    assert_false(device->tiles.known);
    assert_false(device->ordinal.known);
    assert_false(device->first_tile.known);
    assert_false(device->cap.known);
    assert_int_equal(device->health, HEALTH_UNKNOWN);
    assert_false(device->partitioned);
    assert_int_equal(device->nodes.count, 0);
    assert_false(device->load.memory_free.known);
    assert_false(device->load.utilization.known);
    assert_false(device->load.temperature.known);
    assert_false(device->load.power.known);
}

static void zeroed_memory_is_a_device_of_which_nothing_is_known(void **state)
{
    struct device device = {0};

    (void)state;
    check_nothing_known(&device);
    device_finish(&device);
    check_nothing_known(&device);
}

static void finish_frees_all_and_zeroes(void **state)
{
    struct device device = {.id = {VENDOR_DRI, 5, 6}};

    (void)state;
    furnish(&device);
    device_finish(&device);
    check_nothing_known(&device);
    assert_int_equal(device.id.vendor, 0);
    assert_int_equal(device.id.index, 0);
    assert_int_equal(device.id.mig, 0);
    device_finish(&device);
}

static void a_known_0_is_known(void **state)
{
    struct optional_number zero = optional_number_of(0);

    (void)state;
    assert_true(zero.known);
    assert_int_equal(zero.value, 0);
    assert_true(optional_number_of(UINT64_MAX).value == UINT64_MAX);
    assert_false(((struct optional_number){0}).known);
}

static void health_has_names_but_for_unknown(void **state)
{
    (void)state;
    assert_string_equal(choice_name(health_names, HEALTH_OK), "ok");
    assert_string_equal(choice_name(health_names, HEALTH_SICK), "sick");
    assert_null(choice_name(health_names, HEALTH_UNKNOWN));
    assert_null(health_names[2].name);
}

static void vendors_have_names(void **state)
{
    static const struct {
        enum vendor vendor;
        const char *name;
    } cases[] = {
        {VENDOR_NVIDIA, "nvidia"}, {VENDOR_AMD, "amd"}, {VENDOR_INTEL, "intel"},
        {VENDOR_APPLE, "apple"},   {VENDOR_DRI, "dri"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_string_equal(vendor_name(cases[i].vendor), cases[i].name);
        assert_string_equal(vendor_names[i].name, cases[i].name);
    }
    assert_null(vendor_names[COUNT(cases)].name);
}

static void a_device_is_found_by_its_whole_id(void **state)
{
    struct machine machine = {0};
    struct device_list empty = {0};

    (void)state;
    assert_int_equal(device_list_find(&empty, id_of("nvidia0")), 0);
    machine_add_ids(&machine, "nvidia5,amd0,nvidia0,nvidia0.0,nvidia0.1,dri0");
    assert_int_equal(device_list_find(&machine.devices, id_of("nvidia5")), 0);
    assert_int_equal(device_list_find(&machine.devices, id_of("amd0")), 1);
    assert_int_equal(device_list_find(&machine.devices, id_of("nvidia0")), 2);
    assert_int_equal(device_list_find(&machine.devices, id_of("nvidia0.0")), 3);
    assert_int_equal(device_list_find(&machine.devices, id_of("nvidia0.1")), 4);
    assert_int_equal(device_list_find(&machine.devices, id_of("dri0")), 5);
    assert_int_equal(device_list_find(&machine.devices, id_of("intel0")), 6);
    assert_int_equal(device_list_find(&machine.devices, id_of("nvidia1")), 6);
    assert_int_equal(device_list_find(&machine.devices, id_of("nvidia0.2")), 6);
    machine_finish(&machine);
}

/* Half of the ids are in the list; the others are not found. */
static void random_ids_are_found_at_their_slot(void **state)
{
    struct test_random random = {10};

    (void)state;
    for (unsigned long step = test_steps(500); step > 0; step--) {
        struct machine machine = {0};
        size_t slots[64];

        for (uint32_t i = 0; i < COUNT(slots); i++) {
            slots[i] = SIZE_MAX;
            if (test_random_below(&random, 2) == 0)
                continue;
            slots[i] = machine.devices.count;
            machine_add(&machine, (struct device_id){(enum vendor)(i % 2), i / 2, DEVICE_NO_MIG});
        }
        for (uint32_t i = 0; i < COUNT(slots); i++) {
            struct device_id id = {(enum vendor)(i % 2), i / 2, DEVICE_NO_MIG};

            assert_int_equal(device_list_find(&machine.devices, id),
                             slots[i] == SIZE_MAX ? machine.devices.count : slots[i]);
        }
        machine_finish(&machine);
    }
}

static void finishing_a_machine_frees_all_and_leaves_none(void **state)
{
    struct machine machine = {0};

    (void)state;
    machine_finish(&machine);
    for (uint32_t i = 0; i < 20; i++)
        furnish(machine_add(&machine, (struct device_id){VENDOR_AMD, i, DEVICE_NO_MIG}));
    assert_non_null(vector_append(&machine.links));
    machine_finish(&machine);
    assert_null(machine.devices.items);
    assert_int_equal(machine.devices.count, 0);
    assert_null(machine.links.items);
    assert_int_equal(machine.links.count, 0);
    machine_finish(&machine);
}

/* Checks whether a change of this member counts as a change of facts. */
#define check_fact(member, value, is_fact)                               \
    do {                                                                 \
        struct device one = {.id = {VENDOR_NVIDIA, 0, DEVICE_NO_MIG}};   \
        struct device other = {.id = {VENDOR_NVIDIA, 0, DEVICE_NO_MIG}}; \
                                                                         \
        furnish(&one);                                                   \
        furnish(&other);                                                 \
        assert_true(device_facts_equal(&one, &other));                   \
        other.member = (value);                                          \
        assert_int_equal(!device_facts_equal(&one, &other), (is_fact));  \
        assert_int_equal(!device_facts_equal(&other, &one), (is_fact));  \
        other.member = one.member; /* `value` may be a static text */    \
        device_finish(&one);                                             \
        device_finish(&other);                                           \
    } while (0)

static void facts_are_what_stays(void **state)
{
    static char text[] = "another";
    const struct optional_number unknown = {0};

    (void)state;
    check_fact(id.index, 1, true);
    check_fact(pci.bus, 9, true);
    check_fact(pci.known, false, true);
    check_fact(memory_total, optional_number_of(1), true);
    check_fact(numa, unknown, true);
    check_fact(minor.value, 3, true);
    check_fact(tiles, optional_number_of(1), true);
    check_fact(ordinal, unknown, false);
    check_fact(first_tile, unknown, false);
    check_fact(cap.minor, 6, true);
    check_fact(cap.known, false, true);
    check_fact(kind, DEVICE_KIND_DISCRETE, true);
    check_fact(partitioned, false, true);
    check_fact(host, 1, true);
    check_fact(health, HEALTH_SICK, false);
    check_fact(asleep, true, false);
    check_fact(old, true, false);
    check_fact(load.power, load_figure_declared(9), false);
    check_fact(health_reason, text, false);
}

static void texts_and_files_are_facts(void **state)
{
    struct device one = {0};
    struct device other = {0};
    char **const texts[] = {&other.name, &other.uuid, &other.parent, &other.cpus};

    (void)state;
    furnish(&one);
    furnish(&other);
    for (size_t i = 0; i < COUNT(texts); i++) {
        char *before = *texts[i];

        *texts[i] = NULL;
        assert_false(device_facts_equal(&one, &other));
        *texts[i] = copy_of("another");
        assert_false(device_facts_equal(&one, &other));
        free(*texts[i]);
        *texts[i] = before;
        assert_true(device_facts_equal(&one, &other));
    }
    assert_int_equal(string_list_append(&other.nodes, "/dev/nvidia-uvm"), 0);
    assert_false(device_facts_equal(&one, &other));
    assert_int_equal(string_list_append(&one.nodes, "/dev/nvidia-uvm-tools"), 0);
    assert_false(device_facts_equal(&one, &other));
    device_finish(&one);
    device_finish(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeroed_memory_is_a_device_of_which_nothing_is_known),
        cmocka_unit_test(finish_frees_all_and_zeroes),
        cmocka_unit_test(a_known_0_is_known),
        cmocka_unit_test(health_has_names_but_for_unknown),
        cmocka_unit_test(vendors_have_names),
        cmocka_unit_test(a_device_is_found_by_its_whole_id),
        cmocka_unit_test(random_ids_are_found_at_their_slot),
        cmocka_unit_test(finishing_a_machine_frees_all_and_leaves_none),
        cmocka_unit_test(facts_are_what_stays),
        cmocka_unit_test(texts_and_files_are_facts),
    };

    return cmocka_run_group_tests_name("device", tests, NULL, NULL);
}
