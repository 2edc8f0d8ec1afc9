/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts from amdgpu: load, health and processes. A sleeping device is not woken.
 */
#include "base/count.h"
#include "base/system/clock.h"
#include "support/hardware/amd_machine.h"

#define GPU   "/sys/devices/pci0000:00/0000:03:00.0"
#define HWMON GPU "/hwmon/hwmon4"
#define PROC  "/sys/class/kfd/kfd/proc"

static void make_card(void)
{
    amd_card(GPU, "card0", "renderD128");
    machine_value(GPU, "mem_info_vram_total", "17163091968");
    machine_value(GPU, "mem_info_vram_used", "163091968");
    machine_value(GPU, "gpu_busy_percent", "37");
    machine_value(GPU, "unique_id", "00c0ffee00c0ffee");
    machine_value(HWMON, "name", "amdgpu");
    machine_value(HWMON, "temp1_input", "45000");
    machine_value(HWMON, "temp1_label", "edge");
    machine_value(HWMON, "power1_average", "90000000");
    machine_value(HWMON, "freq1_input", "1500000000");
    machine_value(HWMON, "freq1_label", "sclk");
}

static void check(const struct figure *figure, bool is_known, int64_t wanted)
{
    assert_int_equal(figure->known, is_known);
    if (is_known) {
        assert_true(figure->value == wanted);
        assert_true(figure->sampled_at > 0 && figure->sampled_at <= clock_read(CLOCK_REALTIME));
    }
}

static void figures_carry_their_times(void **state)
{
    struct findings findings = {0};
    struct device *device;

    (void)state;
    make_card();
    device = amd_look(0, &findings);
    assert_true(device->memory_total.value == UINT64_C(17163091968));
    check(&device->load.memory_free, true, INT64_C(17000000000));
    check(&device->load.utilization, true, 370);
    check(&device->load.temperature, true, 45000);
    check(&device->load.power, true, 90000);
    check(&device->load.frequency, true, 1500000000);
    assert_string_equal(device->uuid, "GPU-00c0ffee00c0ffee");
    assert_int_equal(device->health, HEALTH_OK);
    assert_false(device->asleep);
    findings_finish(&findings);
}

static void what_cannot_be_is_unknown(void **state)
{
    static const struct {
        const char *total;
        const char *used;
        const char *busy;
        bool is_total_known;
    } cases[] = {
        {"100", "101", "101", true},  {"100", "-1", "-1", true},
        {"0", "0", "", false},        {"9223372036854775808", "0", "99999999999999999999", false},
        {"lots", "0", "\xff", false}, {"-1", "-2", "1.5", false},
    };

    (void)state;
    make_card();
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct findings findings = {0};
        struct device *device;

        machine_value(GPU, "mem_info_vram_total", cases[i].total);
        machine_value(GPU, "mem_info_vram_used", cases[i].used);
        machine_value(GPU, "gpu_busy_percent", cases[i].busy);
        device = amd_look(0, &findings);
        assert_int_equal(device->memory_total.known, cases[i].is_total_known);
        check(&device->load.memory_free, false, 0);
        check(&device->load.utilization, false, 0);
        findings_finish(&findings);
    }
}

/* Opening a pipe blocks, so this shows that files that would wake the device are not opened. */
static void one_that_sleeps_is_left_so(void **state)
{
    static const char *const files[] = {
        "mem_info_vram_total",
        "mem_info_vram_used",
        "gpu_busy_percent",
        "unique_id",
        "product_name",
        "mem_info_vram_vendor",
        "ras/umc_err_count",
        "hwmon/hwmon4/temp1_input",
        "hwmon/hwmon4/power1_average",
        "hwmon/hwmon4/temp1_label",
    };
    struct findings findings = {0};
    struct device *device;

    (void)state;
    make_card();
    machine_value(GPU "/power", "runtime_status", "suspended");
    machine_value(GPU, "numa_node", "1");
    machine_value(GPU, "local_cpulist", "8-15");
    kfd_gpu(1, "11", "location_id 768\nunique_id 7\ngfx_target_version 110000");
    kfd_file(1, "mem_banks/0/properties", "heap_type 1\nsize_in_bytes 1000");
    machine_pipe(KFD_NODES "/1/mem_banks/0/used_memory");
    for (size_t i = 0; i < COUNT(files); i++) {
        char path[256];

        snprintf(path, sizeof(path), GPU "/%s", files[i]);
        machine_pipe(path);
    }
    alarm(20); /* ends the test instead of blocking forever */
    device = amd_look(0, &findings);
    alarm(0);
    assert_true(device->asleep);
    assert_string_equal(device->name, "AMD Radeon RX 7900 XT/7900 XTX");
    assert_string_equal(device->uuid, "GPU-0000000000000007");
    assert_string_equal(capability_format(device->cap).text, "11.0");
    assert_int_equal(device->memory_total.value, 1000);
    assert_int_equal(device->numa.value, 1);
    assert_string_equal(device->cpus, "8-15");
    assert_int_equal(device->health, HEALTH_UNKNOWN);
    check(&device->load.memory_free, false, 0);
    check(&device->load.utilization, false, 0);
    check(&device->load.temperature, false, 0);
    findings_finish(&findings);
}

/* A driver that hangs affects only the read of its own device; listing does not call it. */
static void listing_asks_no_driver(void **state)
{
    static const char *const files[] = {
        "mem_info_vram_total",
        "gpu_busy_percent",
        "unique_id",
        "product_name",
        "vendor",
        "device",
        "class",
        "uevent",
        "power/runtime_status",
        "numa_node",
        "hwmon/hwmon4/name",
    };
    struct findings findings = {0};

    (void)state;
    make_card();
    kfd_gpu(1, "11", "location_id 1280");
    for (size_t i = 0; i < COUNT(files); i++) {
        char path[256];

        snprintf(path, sizeof(path), GPU "/%s", files[i]);
        machine_pipe(path);
    }
    alarm(20);
    amd_list(&findings);
    alarm(0);
    assert_int_equal(findings.found.count, 2);
    assert_string_equal(findings.found.items[1].path, GPU);
    findings_finish(&findings);
}

static void check_health(enum health wanted, const char *reason)
{
    struct findings findings = {0};
    struct device *device = amd_look(0, &findings);

    assert_int_equal(device->health, wanted);
    if (reason == NULL)
        assert_null(device->health_reason);
    else
        assert_string_equal(device->health_reason, reason);
    findings_finish(&findings);
}

static void uncorrectable_errors_make_it_sick(void **state)
{
    (void)state;
    make_card();
    machine_value(GPU "/ras", "umc_err_count", "ue: 0\nce: 17");
    machine_value(GPU "/ras", "features", "feature mask: 0x1\nue: 5");
    machine_value(GPU "/ras", "gfx_err_count", "ue: many\nce: 0");
    machine_value(GPU "/ras", "_err_count", "ue: 3");
    check_health(HEALTH_OK, NULL);
    machine_value(GPU "/ras", "umc_err_count", "ue: 1\nce: 17");
    check_health(HEALTH_SICK, "1 uncorrectable error in umc");
    machine_value(GPU "/ras", "gfx_err_count", "ce: 0\nue: 12");
    check_health(HEALTH_SICK, "12 uncorrectable errors in gfx, 1 uncorrectable error in umc");
}

static void a_driver_that_says_nothing_has_no_health(void **state)
{
    (void)state;
    amd_card(GPU, "card0", "renderD128");
    check_health(HEALTH_UNKNOWN, NULL);
    machine_value(GPU, "gpu_busy_percent", "0");
    check_health(HEALTH_OK, NULL);
}

static void processes_are_those_with_memory_there(void **state)
{
    struct findings findings = {0};
    struct device *device;

    (void)state;
    make_card();
    kfd_gpu(1, "11", "location_id 768");
    kfd_gpu(2, "12", "location_id 1280");
    machine_value(PROC "/4711", "vram_11", "4096");
    machine_value(PROC "/4711", "vram_12", "0");
    machine_value(PROC "/815", "vram_11", "0");
    machine_value(PROC "/815", "vram_12", "8192");
    machine_value(PROC "/1", "vram_11", "-5");
    machine_value(PROC "/0", "vram_11", "5");
    machine_value(PROC "/99999999999", "vram_11", "5");
    machine_value(PROC "/self", "vram_11", "5");
    machine_value(PROC "/77", "vram_111", "5");
    device = amd_look(0, &findings);
    assert_int_equal(device->processes.count, 1);
    assert_int_equal(device->processes.items[0].pid, 4711);
    assert_int_equal(device->processes.items[0].memory.value, 4096);
    findings_finish(&findings);
    device = amd_look(1, &findings);
    assert_int_equal(device->processes.count, 1);
    assert_int_equal(device->processes.items[0].pid, 815);
    findings_finish(&findings);
}

/* The facts from amdgpu are those of the whole GPU. */
static void a_partition_claims_only_what_is_its_own(void **state)
{
    struct findings findings = {0};
    struct device *device;

    (void)state;
    make_card();
    machine_value(GPU "/ras", "umc_err_count", "ue: 2\nce: 0");
    kfd_gpu(1, "11", "location_id 768\nunique_id 9");
    kfd_gpu(2, "12", "location_id 268436224\nunique_id 9");
    kfd_file(2, "mem_banks/0/properties", "heap_type 1\nsize_in_bytes 1000");
    kfd_file(2, "mem_banks/0/used_memory", "100");
    device = amd_look(0, &findings);
    assert_false(device->memory_total.known);
    check(&device->load.memory_free, false, 0);
    findings_finish(&findings);
    device = amd_look(1, &findings);
    assert_int_equal(device->memory_total.value, 1000);
    check(&device->load.memory_free, true, 900);
    check(&device->load.utilization, false, 0);
    check(&device->load.power, false, 0);
    check(&device->load.frequency, false, 0);
    check(&device->load.temperature, true, 45000);
    assert_null(device->uuid);
    assert_int_equal(device->health, HEALTH_SICK);
    findings_finish(&findings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        AMD_TEST(figures_carry_their_times),
        AMD_TEST(what_cannot_be_is_unknown),
        AMD_TEST(one_that_sleeps_is_left_so),
        AMD_TEST(listing_asks_no_driver),
        AMD_TEST(uncorrectable_errors_make_it_sick),
        AMD_TEST(a_driver_that_says_nothing_has_no_health),
        AMD_TEST(processes_are_those_with_memory_there),
        AMD_TEST(a_partition_claims_only_what_is_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
