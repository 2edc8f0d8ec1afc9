/* SPDX-License-Identifier: Apache-2.0 */
#include "support/hardware/vendor_looks.h"

#include "support/assert_error.h"

#include "base/count.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "hardware/sysfs/pci_names.h"

#define IGPU "/sys/devices/pci0000:00/0000:00:02.0"
#define CARD "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:03:00.0"

static void make_integrated(void)
{
    machine_pci(IGPU, "8086:5912");
    machine_driver(IGPU, "pci", "i915");
    machine_drm_node(IGPU, "card1");
    machine_drm_node(IGPU, "renderD129");
    machine_value(IGPU, "numa_node", "-1");
    machine_value(IGPU, "local_cpulist", "0-7");
    machine_value(IGPU, "power/runtime_status", "active");
}

static void make_discrete(void)
{
    machine_pci(CARD, "8086:56a0");
    machine_driver(CARD, "pci", "xe");
    machine_drm_node(CARD, "card0");
    machine_drm_node(CARD, "renderD128");
    machine_value(CARD, "numa_node", "0");
    machine_value(CARD, "local_cpulist", "0-15");
    machine_value(CARD, "power/runtime_status", "active");
}

static void make_names(void)
{
    machine_file("/usr/share/misc/pci.ids", "8086  Intel Corporation\n"
                                            "\t56a0  DG2 [Arc A770]\n"
                                            "\t5912  HD Graphics 630\n");
}

static void devices_are_counted_along_the_bus(void **state)
{
    struct findings findings;

    (void)state;
    make_discrete();
    make_integrated();
    findings = vendor_list(&intel_table);
    assert_int_equal(findings.found.count, 2);
    assert_int_equal(findings.found.items[0].device->id.index, 0);
    assert_string_equal(findings.found.items[0].path, IGPU);
    assert_string_equal(pci_format(findings.found.items[0].device->pci).text, "0000:00:02.0");
    assert_int_equal(findings.found.items[1].device->id.index, 1);
    assert_string_equal(findings.found.items[1].path, CARD);
    assert_string_equal(pci_format(findings.found.items[1].device->pci).text, "0000:03:00.0");
    findings_finish(&findings);
}

static void an_integrated_one_has_no_memory_of_its_own(void **state)
{
    struct findings findings;
    struct device *device;

    (void)state;
    make_names();
    make_integrated();
    machine_value(IGPU, "drm/card1/gt_act_freq_mhz", "350");
    machine_file("/dev/dri/renderD129", "");
    machine_file("/dev/dri/card1", "");
    findings = vendor_read(&intel_table, 1, 0);
    device = findings.found.items[0].device;
    assert_string_equal(device->name, "Intel HD Graphics 630");
    assert_int_equal(device->kind, DEVICE_KIND_INTEGRATED);
    assert_false(device->memory_total.known);
    assert_false(device->load.memory_free.known);
    assert_false(device->load.utilization.known);
    assert_false(device->load.temperature.known);
    assert_false(device->load.power.known);
    assert_sampled(device->load.frequency, 350000000);
    assert_false(device->numa.known);
    assert_string_equal(device->cpus, "0-7");
    assert_int_equal(device->health, HEALTH_OK);
    assert_false(device->asleep);
    assert_null(device->uuid);
    assert_false(device->cap.known);
    assert_int_equal(device->nodes.count, 2);
    assert_string_equal(device->nodes.items[0], "/dev/dri/renderD129");
    assert_string_equal(device->nodes.items[1], "/dev/dri/card1");
    findings_finish(&findings);
    pci_names_finish();
}

static void a_card_of_xe_tells_tiles_sensors_and_frequency(void **state)
{
    struct findings findings;
    struct device *device;

    (void)state;
    make_names();
    make_discrete();
    machine_value(CARD, "tile0/physical_vram_size_bytes", "17179869184");
    machine_value(CARD, "tile1/physical_vram_size_bytes", "17179869184");
    machine_value(CARD, "tile0/gt0/freq0/act_freq", "2400");
    machine_value(CARD, "hwmon/hwmon3/name", "xe");
    machine_value(CARD, "hwmon/hwmon3/temp2_input", "51000");
    machine_value(CARD, "hwmon/hwmon3/temp2_label", "pkg");
    machine_value(CARD, "hwmon/hwmon3/temp3_input", "60000");
    machine_value(CARD, "hwmon/hwmon3/temp3_label", "vram");
    machine_value(CARD, "hwmon/hwmon3/energy1_input", "123456789");
    findings = vendor_read(&intel_table, 1, 0);
    device = findings.found.items[0].device;
    assert_string_equal(device->name, "Intel Arc A770");
    assert_int_equal(device->kind, DEVICE_KIND_DISCRETE);
    assert_true(device->memory_total.known);
    assert_int_equal(device->memory_total.value, 34359738368);
    assert_false(device->load.memory_free.known);
    assert_sampled(device->load.frequency, 2400000000);
    assert_true(device->tiles.known);
    assert_int_equal(device->tiles.value, 2);
    assert_sampled(device->load.temperature, 51000);
    assert_false(
        device->load.power.known); /* one sample of the energy is not enough for the power */
    assert_int_equal(device->numa.value, 0);
    assert_int_equal(device->nodes.count, 0);
    findings_finish(&findings);
    pci_names_finish();
}

static void power_is_known_from_the_second_look_on(void **state)
{
    struct vendor_context context = {.root = &machine};
    struct findings listed;
    int64_t start = clock_now();
    int64_t power = 0;

    (void)state;
    make_discrete();
    machine_value(CARD, "hwmon/hwmon3/name", "xe");
    machine_value(CARD, "hwmon/hwmon3/energy1_input", "1000000");
    listed = vendor_list(&intel_table);
    while (power == 0 && clock_now() - start < 10 * DURATION_SECOND) {
        struct findings findings = {0};
        const struct figure *figure;

        assert_int_equal(intel_table.read(&context, &listed.found.items[0], &findings, NULL), 0);
        figure = &findings.found.items[0].device->load.power;
        if (figure->known)
            power = figure->value;
        findings_finish(&findings);
        machine_value(CARD, "hwmon/hwmon3/energy1_input", "11000000");
    }
    /* Ten joules within 0.05 to 10 seconds. */
    assert_true(power >= 1000 && power <= 200000);
    vendor_close(&intel_table, &context);
    findings_finish(&listed);
}

static void a_card_of_i915_may_tell_what_is_free(void **state)
{
    struct findings findings;
    struct device *device;

    (void)state;
    machine_pci(CARD, "8086:56a0");
    machine_driver(CARD, "pci", "i915");
    machine_drm_node(CARD, "card0");
    machine_drm_node(CARD, "renderD128");
    machine_value(CARD, "drm/card0/lmem_total_bytes", "0x400000000");
    machine_value(CARD, "drm/card0/lmem_avail_bytes", "0x3f0000000");
    machine_value(CARD, "drm/card0/gt/gt0/rps_act_freq_mhz", "0");
    machine_value(CARD, "drm/card0/gt_act_freq_mhz", "999");
    findings = vendor_read(&intel_table, 1, 0);
    device = findings.found.items[0].device;
    assert_int_equal(device->memory_total.value, 0x400000000);
    assert_sampled(device->load.memory_free, 0x3f0000000);
    assert_sampled(device->load.frequency, 0); /* idle, which is a known value */
    findings_finish(&findings);
}

static void lies_are_unknown(void **state)
{
    struct findings findings;
    struct device *device;

    (void)state;
    make_discrete();
    machine_value(CARD, "tile0/physical_vram_size_bytes", "18446744073709551615");
    machine_value(CARD, "tile0/gt0/freq0/act_freq", "99999999999999");
    findings = vendor_read(&intel_table, 1, 0);
    device = findings.found.items[0].device;
    assert_false(device->memory_total.known);
    assert_false(device->load.frequency.known);
    assert_int_equal(device->kind, DEVICE_KIND_DISCRETE); /* it is behind a bridge */
    findings_finish(&findings);

    machine_value(CARD, "tile0/physical_vram_size_bytes", "9223372036854775807");
    machine_value(CARD, "tile1/physical_vram_size_bytes", "1");
    machine_value(CARD, "drm/card0/lmem_total_bytes", "1000");
    machine_value(CARD, "drm/card0/lmem_avail_bytes", "1001");
    findings = vendor_read(&intel_table, 1, 0);
    device = findings.found.items[0].device;
    assert_int_equal(device->memory_total.value, 1000);
    assert_false(device->load.memory_free.known);
    findings_finish(&findings);
}

static void the_kind_is_unknown_where_nothing_tells(void **state)
{
    static const char path[] = "/sys/devices/pci0000:00/0000:00:06.0";
    struct findings findings;

    (void)state;
    machine_pci(path, "8086:56a0");
    machine_driver(path, "pci", "i915");
    machine_drm_node(path, "card0");
    machine_drm_node(path, "renderD128");
    findings = vendor_read(&intel_table, 1, 0);
    assert_int_equal(findings.found.items[0].device->kind, DEVICE_KIND_UNKNOWN);
    findings_finish(&findings);
}

static void make_card(const char *ids, const char *driver)
{
    machine_pci(CARD, ids);
    machine_driver(CARD, "pci", driver);
    machine_drm_node(CARD, "card0");
    machine_drm_node(CARD, "renderD128");
}

/* Checks the number of tiles; 0: unknown. */
static void check_tiles(uint64_t wanted)
{
    struct findings findings = vendor_read(&intel_table, 1, 0);
    struct optional_number tiles = findings.found.items[0].device->tiles;

    assert_int_equal(tiles.known, wanted > 0);
    if (wanted > 0)
        assert_int_equal(tiles.value, wanted);
    findings_finish(&findings);
}

static void i915_has_a_gt_for_each_tile_of_ponte_vecchio(void **state)
{
    static const char *const ids[] = {"0x0bd0", "0x0bdb", "0x0be0", "0x0be1", "0x0be5"};

    (void)state;
    make_card("8086:0bd0", "i915");
    check_tiles(0);
    machine_value(CARD, "drm/card0/gt/gt0/id", "0");
    machine_value(CARD, "drm/card0/gt/gt1/id", "1");
    for (size_t i = 0; i < COUNT(ids); i++) {
        machine_value(CARD, "device", ids[i]);
        check_tiles(2);
    }
}

static void the_second_gt_of_others_is_for_media(void **state)
{
    static const char *const ids[] = {"0x7d55", "0x0bcf", "0x0bdc", "0x0be2"};

    (void)state;
    make_card("8086:7d55", "i915");
    machine_value(CARD, "drm/card0/gt/gt0/id", "0");
    machine_value(CARD, "drm/card0/gt/gt1/id", "1");
    for (size_t i = 0; i < COUNT(ids); i++) {
        machine_value(CARD, "device", ids[i]);
        check_tiles(1);
    }
}

static void xe_shows_its_tiles(void **state)
{
    char name[32];

    (void)state;
    make_card("8086:e20b", "xe");
    check_tiles(0);
    machine_value(CARD, "tile0/gt0/name", "");
    machine_value(CARD, "tile0/gt1/name", "");
    check_tiles(1);
    for (unsigned tile = 0; tile < 99; tile++) {
        snprintf(name, sizeof(name), "tile%u/gt0/name", tile);
        machine_value(CARD, name, "");
    }
    check_tiles(DEVICE_TILES_MAX);
}

/* A file that would wake the device; reading it would block forever. */
static void make_fifo(const char *path)
{
    machine_parent(path);
    assert_int_equal(mkfifo(path + 1, 0600), 0);
}

static void a_sleeping_card_is_left_asleep(void **state)
{
    struct findings findings;
    struct device *device;

    (void)state;
    make_names();
    make_discrete();
    machine_value(CARD, "power/runtime_status", "suspended");
    make_fifo(CARD "/tile0/physical_vram_size_bytes");
    make_fifo(CARD "/tile0/gt0/freq0/act_freq");
    make_fifo(CARD "/hwmon/hwmon3/name");
    make_fifo(CARD "/drm/card0/lmem_total_bytes");
    findings = vendor_read(&intel_table, 1, 0);
    device = findings.found.items[0].device;
    assert_true(device->asleep);
    assert_string_equal(device->name, "Intel Arc A770");
    assert_int_equal(device->numa.value, 0);
    assert_int_equal(device->kind, DEVICE_KIND_DISCRETE);
    assert_int_equal(device->tiles.value, 1);
    assert_false(device->memory_total.known);
    assert_false(device->load.frequency.known);
    assert_int_equal(device->health, HEALTH_UNKNOWN);
    findings_finish(&findings);
    pci_names_finish();
}

static void a_container_shows_what_it_was_given(void **state)
{
    struct findings findings;

    (void)state;
    make_integrated();
    make_discrete();
    machine.recorded = false;
    machine_file("/dev/dri/renderD128", "");
    findings = vendor_list(&intel_table);
    assert_int_equal(findings.found.count, 1);
    assert_string_equal(findings.found.items[0].path, CARD);
    assert_int_equal(findings.found.items[0].device->id.index, 0);
    assert_int_equal(findings.problems.count, 1);
    assert_string_equal(findings.problems.items[0].backend, "intel");
    assert_string_equal(findings.problems.items[0].message, IGPU
                        ": left out, because its device file /dev/dri/renderD129 is missing here");
    findings_finish(&findings);
}

static void one_that_is_gone_cannot_be_read(void **state)
{
    struct vendor_context context = {.root = &machine};
    struct berth_error error = BERTH_ERROR_INIT;
    struct device device = {.id = {.vendor = VENDOR_INTEL, .mig = DEVICE_NO_MIG}};
    struct device_finding wanted = {.device = &device, .key = (char[]){IGPU}};
    struct findings findings = {0};

    (void)state;
    assert_fails(intel_table.read(&context, &wanted, &findings, &error), BERTH_ERROR_NOT_FOUND,
                 &error, "cannot read " IGPU ": no such directory");
    assert_int_equal(findings.found.count, 0);
    findings_finish(&findings);
}

static void failed_allocations_are_said(void **state)
{
    (void)state;
    make_names();
    make_discrete();
    machine_file("/dev/dri/renderD128", "");
    machine_value(CARD, "hwmon/hwmon3/name", "xe");
    machine_value(CARD, "hwmon/hwmon3/temp2_input", "51000");
    vendor_look_with_failures(&intel_table);
    pci_names_finish();
}

#define MACHINE_TEST(function) \
    cmocka_unit_test_setup_teardown(function, machine_enter, machine_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MACHINE_TEST(devices_are_counted_along_the_bus),
        MACHINE_TEST(an_integrated_one_has_no_memory_of_its_own),
        MACHINE_TEST(a_card_of_xe_tells_tiles_sensors_and_frequency),
        MACHINE_TEST(power_is_known_from_the_second_look_on),
        MACHINE_TEST(a_card_of_i915_may_tell_what_is_free),
        MACHINE_TEST(lies_are_unknown),
        MACHINE_TEST(the_kind_is_unknown_where_nothing_tells),
        MACHINE_TEST(i915_has_a_gt_for_each_tile_of_ponte_vecchio),
        MACHINE_TEST(the_second_gt_of_others_is_for_media),
        MACHINE_TEST(xe_shows_its_tiles),
        MACHINE_TEST(a_sleeping_card_is_left_asleep),
        MACHINE_TEST(a_container_shows_what_it_was_given),
        MACHINE_TEST(one_that_is_gone_cannot_be_read),
        MACHINE_TEST(failed_allocations_are_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
