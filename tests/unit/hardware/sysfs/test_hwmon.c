/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/sysfs/hwmon.h"

#include "base/count.h"
#include "base/system/clock.h"
#include "support/hardware/made_up_machine.h"

#define GPU   "/sys/devices/pci0000:00/0000:03:00.0"
#define NVME  GPU "/hwmon/hwmon0"
#define HWMON GPU "/hwmon/hwmon7"

static const char *const amdgpu[] = {"amdgpu", NULL};
static const char *const labels[] = {"edge", "junction", "sclk", NULL};

static void check(const struct figure *figure, bool is_known, int64_t wanted)
{
    assert_int_equal(figure->known, is_known);
    if (!is_known)
        return;
    assert_int_equal(figure->value, wanted);
    assert_true(clock_read(CLOCK_REALTIME) - figure->sampled_at < INT64_C(60000000000));
    assert_true(figure->sampled_at <= clock_read(CLOCK_REALTIME));
}

static void the_directory_is_known_by_its_name(void **state)
{
    struct load load = {0};

    (void)state;
    machine_value(NVME, "name", "nvme");
    machine_value(NVME, "temp1_input", "11000");
    machine_value(HWMON, "name", "amdgpu");
    machine_value(HWMON, "temp1_input", "45000");
    machine_value(HWMON, "power1_average", "37000000");
    hwmon_read(&machine, GPU, amdgpu, labels, &load);
    check(&load.temperature, true, 45000);
    check(&load.power, true, 37000);
    check(&load.frequency, false, 0);
    hwmon_read(&machine, GPU, NULL, NULL, &load);
    check(&load.temperature, true, 11000);
    check(&load.power, true, 37000); /* a missing value stays as it is */
    assert_true(hwmon_has(&machine, GPU, amdgpu, "power1_average"));
    assert_false(hwmon_has(&machine, GPU, amdgpu, "power1_input"));
    assert_false(hwmon_has(&machine, GPU, NULL, "power1_average"));
}

static void sensors_are_known_by_their_labels(void **state)
{
    struct load load = {0};

    (void)state;
    machine_value(HWMON, "name", "amdgpu");
    machine_value(HWMON, "temp1_input", "90000");
    machine_value(HWMON, "temp1_label", "mem");
    machine_value(HWMON, "temp2_input", "60000");
    machine_value(HWMON, "temp2_label", "junction");
    hwmon_read(&machine, GPU, amdgpu, labels, &load);
    check(&load.temperature, true, 60000);
    machine_value(HWMON, "temp3_input", "50000");
    machine_value(HWMON, "temp3_label", "edge");
    hwmon_read(&machine, GPU, amdgpu, labels, &load);
    check(&load.temperature, true, 50000);
    hwmon_read(&machine, GPU, amdgpu, NULL, &load);
    check(&load.temperature, true, 90000); /* the first sensor, because none is preferred */
}

static void a_frequency_needs_its_label(void **state)
{
    struct load load = {0};

    (void)state;
    machine_value(HWMON, "name", "amdgpu");
    machine_value(HWMON, "freq1_input", "1000000000");
    hwmon_read(&machine, GPU, amdgpu, labels, &load);
    check(&load.frequency, false, 0);
    machine_value(HWMON, "freq1_label", "mclk");
    machine_value(HWMON, "freq2_input", "2100000000");
    machine_value(HWMON, "freq2_label", "sclk");
    hwmon_read(&machine, GPU, amdgpu, labels, &load);
    check(&load.frequency, true, INT64_C(2100000000));
}

static void power_of_now_where_there_is_no_mean(void **state)
{
    struct load load = {0};

    (void)state;
    machine_value(HWMON, "power1_input", "12345678");
    hwmon_read(&machine, GPU, NULL, labels, &load);
    check(&load.power, true, 12345);
    machine_value(HWMON, "power1_average", "");
    machine_value(HWMON, "power1_input", "22000000");
    hwmon_read(&machine, GPU, NULL, labels, &load);
    check(&load.power, true, 22000);
}

static void frost_is_a_temperature(void **state)
{
    struct load load = {0};

    (void)state;
    machine_value(HWMON, "temp1_input", "-12500");
    hwmon_read(&machine, GPU, NULL, NULL, &load);
    check(&load.temperature, true, -12500);
}

static void what_no_sensor_says_is_unknown(void **state)
{
    static const char *const values[] = {
        "", "-300000", "1000001", "nan", "0x", "12 3", "\xff", "99999999999999999999", "1.5"};

    (void)state;
    machine_value(HWMON, "freq1_label", "sclk");
    for (size_t i = 0; i < COUNT(values); i++) {
        struct load load = {0};

        machine_value(HWMON, "temp1_input", values[i]);
        machine_value(HWMON, "power1_average",
                      strcmp(values[i], "1000001") == 0 ? "1000000000000001" : values[i]);
        machine_value(HWMON, "freq1_input",
                      strcmp(values[i], "1000001") == 0 ? "100000000001" : values[i]);
        hwmon_read(&machine, GPU, NULL, labels, &load);
        check(&load.temperature, false, 0);
        check(&load.power, false, 0);
        check(&load.frequency, false, 0);
    }
}

static void a_device_without_sensors_has_no_figures(void **state)
{
    struct load load = {0};

    (void)state;
    hwmon_read(&machine, GPU, amdgpu, labels, &load);
    machine_value(HWMON, "name", "amdgpux");
    machine_value(HWMON, "temp1_input", "45000");
    machine_value(NVME, "temp1_input", "45000"); /* no name at all */
    hwmon_read(&machine, GPU, amdgpu, labels, &load);
    check(&load.temperature, false, 0);
    assert_false(hwmon_has(&machine, GPU, amdgpu, "temp1_input"));
}

#define MACHINE_TEST(function) \
    cmocka_unit_test_setup_teardown(function, machine_enter, machine_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MACHINE_TEST(the_directory_is_known_by_its_name),
        MACHINE_TEST(sensors_are_known_by_their_labels),
        MACHINE_TEST(a_frequency_needs_its_label),
        MACHINE_TEST(power_of_now_where_there_is_no_mean),
        MACHINE_TEST(frost_is_a_temperature),
        MACHINE_TEST(what_no_sensor_says_is_unknown),
        MACHINE_TEST(a_device_without_sensors_has_no_figures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
