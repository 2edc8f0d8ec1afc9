/* SPDX-License-Identifier: Apache-2.0
 *
 * Partitioned NVIDIA GPUs and their processes.
 */
#include "support/unit.h"

#include "support/hardware/nvidia_world.h"

/* An A100 with three instances whose numbers have a gap, as nvidia-smi shows it. */
static const char partitioned[] = "gpu\n"
                                  " name NVIDIA A100-SXM4-80GB\n"
                                  " uuid GPU-0\n"
                                  " pci 0000:07:00.0\n"
                                  " minor 3\n"
                                  " memory 85899345920 80000000000 0\n"
                                  " utilization 0 0\n"
                                  " temperature 35\n"
                                  " capability 8 0\n"
                                  " call nvmlDeviceGetUtilizationRates return 3\n"
                                  " mig 1 1\n"
                                  " mig-most 7\n"
                                  " process compute 4001 1000 9 0\n"
                                  " process compute 4002 2000 11 1\n"
                                  " process compute 4003 - 11 1\n"
                                  " process compute 4001 500 11 1\n"
                                  " instance 0\n"
                                  "  name NVIDIA A100-SXM4-80GB MIG 1g.10gb\n"
                                  "  uuid MIG-0\n"
                                  "  memory 10000000000 9000000000 0\n"
                                  "  gpu-instance 9\n"
                                  "  compute-instance 0\n"
                                  " instance 2\n"
                                  "  name NVIDIA A100-SXM4-80GB MIG 2g.20gb\n"
                                  "  uuid MIG-2\n"
                                  "  memory 20000000000 19000000000 0\n"
                                  "  gpu-instance 11\n"
                                  "  compute-instance 1\n"
                                  " instance 3\n"
                                  "  uuid MIG-3\n"
                                  "gpu\n"
                                  " name NVIDIA A100-SXM4-80GB\n"
                                  " mig 0 1\n"
                                  " mig-most 7\n";

static void instances_are_devices(void **state)
{
    struct nvidia_world *world = *state;
    const struct device *device;

    world_says(partitioned);
    world_gpu("0000:07:00.0", "active");
    world_look(world);
    assert_int_equal(world->listed.found.count, 2);
    assert_int_equal(world->seen.found.count, 5);
    device = world_device(world, "nvidia0");
    assert_true(device->partitioned);
    assert_null(device->parent);
    assert_number(device->memory_total, 85899345920);
    assert_false(device->load.utilization.known);
    device = world_device(world, "nvidia0.2");
    assert_string_equal(device->name, "NVIDIA A100-SXM4-80GB MIG 2g.20gb");
    assert_string_equal(device->uuid, "MIG-2");
    assert_string_equal(device->parent, "nvidia0");
    assert_false(device->partitioned);
    assert_number(device->memory_total, 20000000000);
    assert_figure(device->load.memory_free, 19000000000);
    assert_string_equal(pci_format(device->pci).text, "0000:07:00.0");
    assert_string_equal(capability_format(device->cap).text, "8.0");
    assert_number(device->minor, 3);
    assert_number(device->numa, 1);
    assert_string_equal(device->cpus, "8-15");
    assert_int_equal(device->health, HEALTH_OK);
    assert_null(world_found(world, "nvidia0.2")->key);
    assert_string_equal(world_found(world, "nvidia0.2")->path,
                        "/sys/devices/pci0000:00/0000:07:00.0");
    /* An instance with few facts is still listed. */
    device = world_device(world, "nvidia0.3");
    assert_string_equal(device->name, "NVIDIA A100-SXM4-80GB");
    assert_false(device->memory_total.known);
    assert_int_equal(device->processes.count, 0);
    /* A GPU that will be in MIG mode after its next reset is not partitioned yet. */
    assert_false(world_device(world, "nvidia1")->partitioned);
}

static void processes_belong_to_instances(void **state)
{
    struct nvidia_world *world = *state;
    const struct device *device;

    world_says(partitioned);
    world_look(world);
    device = world_device(world, "nvidia0");
    assert_int_equal(device->processes.count, 3);
    assert_int_equal(device->processes.items[0].pid, 4001);
    assert_number(device->processes.items[0].memory, 1500); /* on two instances */
    device = world_device(world, "nvidia0.0");
    assert_int_equal(device->processes.count, 1);
    assert_int_equal(device->processes.items[0].pid, 4001);
    assert_number(device->processes.items[0].memory, 1000);
    device = world_device(world, "nvidia0.2");
    assert_int_equal(device->processes.count, 3);
    assert_number(device->processes.items[0].memory, 500);
    assert_int_equal(device->processes.items[2].pid, 4003);
    assert_false(device->processes.items[2].memory.known);
}

/* If the instances do not list their processes, the GPU's list has the instance of each process. */
static void processes_of_the_gpu_are_told_apart(void **state)
{
    struct nvidia_world *world = *state;
    struct text statements = {0};
    const char *second = strstr(partitioned, " instance 2\n");

    text_append_bytes(&statements, partitioned, (size_t)(second - partitioned));
    text_append(&statements, "  call nvmlDeviceGetComputeRunningProcesses_v3 return 3\n");
    world_says(text_string(&statements));
    text_finish(&statements);
    world_look(world);
    assert_int_equal(world_device(world, "nvidia0.0")->processes.count, 1);
    assert_int_equal(world_device(world, "nvidia0.0")->processes.items[0].pid, 4001);
}

static void capability_files_come_with_instances(void **state)
{
    struct nvidia_world *world = *state;
    const struct string_list *nodes;

    world_says(partitioned);
    machine_file("/dev/nvidia3", "");
    machine_file("/dev/nvidiactl", "");
    machine_file("/dev/nvidia-caps/nvidia-cap30", "");
    machine_file("/dev/nvidia-caps/nvidia-cap31", "");
    machine_file("/proc/driver/nvidia/capabilities/gpu3/mig/gi9/access",
                 "DeviceFileMinor: 30\nDeviceFileMode: 292\nDeviceFileModify: 1\n");
    machine_file("/proc/driver/nvidia/capabilities/gpu3/mig/gi9/ci0/access",
                 "DeviceFileMinor: 31\nDeviceFileMode: 292\n");
    machine_file("/proc/driver/nvidia/capabilities/gpu3/mig/gi11/access",
                 "DeviceFileMinor: 39\n"); /* this file does not exist */
    machine_file("/proc/driver/nvidia/capabilities/gpu3/mig/gi11/ci1/access",
                 "DeviceFileMinor: 99999999999999999999\n");
    world_look(world);
    nodes = &world_device(world, "nvidia0.0")->nodes;
    assert_int_equal(nodes->count, 4);
    assert_string_equal(nodes->items[0], "/dev/nvidia3");
    assert_string_equal(nodes->items[1], "/dev/nvidiactl");
    assert_string_equal(nodes->items[2], "/dev/nvidia-caps/nvidia-cap30");
    assert_string_equal(nodes->items[3], "/dev/nvidia-caps/nvidia-cap31");
    assert_int_equal(world_device(world, "nvidia0.2")->nodes.count, 2);
    assert_int_equal(world_device(world, "nvidia0")->nodes.count, 2);
}

static void a_lie_about_instances_is_bounded(void **state)
{
    struct nvidia_world *world = *state;

    world_says("gpu\n name A\n mig 1 1\n call nvmlDeviceGetMaxMigDeviceCount lie\n"
               " instance 6\n  name I\n");
    world_look(world);
    assert_int_equal(world->seen.found.count, 2);
    assert_string_equal(world_device(world, "nvidia0.6")->name, "I");
    assert_int_equal(world_logged("nvmlDeviceGetMigDeviceHandleByIndex 0"), 64);
}

static void instances_of_a_sick_gpu_are_sick(void **state)
{
    struct nvidia_world *world = *state;
    const struct device *device;

    world_says("gpu\n name A\n mig 1 1\n mig-most 7\n remapped 0 0 0 1\n instance 1\n name I\n"
               "gpu\n name B\n mig 1 1\n mig-most 7\n instance 1\n name I\n"
               "  call nvmlDeviceGetMemoryInfo_v2 return 3\n"
               "  call nvmlDeviceGetMemoryInfo return 15\n");
    world_look(world);
    device = world_device(world, "nvidia0.1");
    assert_int_equal(device->health, HEALTH_SICK);
    assert_string_equal(device->health_reason, world_device(world, "nvidia0")->health_reason);
    device = world_device(world, "nvidia1.1");
    assert_int_equal(device->health, HEALTH_SICK);
    assert_string_equal(device->health_reason, "its GPU is lost, or needs a reset");
}

static void processes_of_all_kinds_are_listed_once(void **state)
{
    struct nvidia_world *world = *state;
    const struct device_process_list *processes;

    world_says("gpu\n name A\n"
               " process graphics 30 300\n"
               " process compute 10 100\n"
               " process graphics 10 100\n"
               " process mps 20 -\n"
               " process compute 0 5\n"          /* an invalid pid */
               " process compute 4294967295 5\n" /* another one */
               " process compute 40 18446744073709551614\n");
    world_look(world);
    processes = &world_device(world, "nvidia0")->processes;
    assert_int_equal(processes->count, 4);
    assert_int_equal(processes->items[0].pid, 10);
    assert_number(processes->items[0].memory, 100);
    assert_int_equal(processes->items[1].pid, 20);
    assert_false(processes->items[1].memory.known);
    assert_int_equal(processes->items[2].pid, 30);
    assert_number(processes->items[2].memory, 300);
    assert_int_equal(processes->items[3].pid, 40);
    assert_false(processes->items[0].draws || processes->items[1].draws);
    assert_true(processes->items[2].draws);
    assert_false(processes->items[3].memory.known);
}

static void many_processes_are_asked_for_with_more_room(void **state)
{
    struct nvidia_world *world = *state;
    const struct device_process_list *processes;

    world_says("gpu\n name A\n processes compute 3000\ngpu\n name B\n processes compute 5000\n");
    world_look(world);
    processes = &world_device(world, "nvidia0")->processes;
    assert_int_equal(processes->count, 3000);
    assert_int_equal(processes->items[2999].pid, 3999);
    assert_int_equal(world_logged("nvmlDeviceGetComputeRunningProcesses_v3 0"), 2);
    /* More processes are not kept, and NVML returns no part of the list. */
    assert_int_equal(world_device(world, "nvidia1")->processes.count, 0);
    assert_int_equal(world_device(world, "nvidia1")->health, HEALTH_OK);
}

/* R535 had larger entries in some releases. */
static void entries_of_another_size_are_read_right(void **state)
{
    struct nvidia_world *world = *state;
    const struct device_process_list *processes;

    world_loads("-wide");
    world_says("gpu\n name A\n process compute 11 100\n process compute 12 200\n"
               " process compute 13 300\n process graphics 14 400\n");
    world_look(world);
    processes = &world_device(world, "nvidia0")->processes;
    assert_int_equal(processes->count, 4);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(processes->items[i].pid, 11 + i);
        assert_number(processes->items[i].memory, 100 * (i + 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(instances_are_devices, world_enter, world_leave),
        cmocka_unit_test_setup_teardown(processes_belong_to_instances, world_enter, world_leave),
        cmocka_unit_test_setup_teardown(processes_of_the_gpu_are_told_apart, world_enter,
                                        world_leave),
        cmocka_unit_test_setup_teardown(capability_files_come_with_instances, world_enter,
                                        world_leave),
        cmocka_unit_test_setup_teardown(a_lie_about_instances_is_bounded, world_enter, world_leave),
        cmocka_unit_test_setup_teardown(instances_of_a_sick_gpu_are_sick, world_enter, world_leave),
        cmocka_unit_test_setup_teardown(processes_of_all_kinds_are_listed_once, world_enter,
                                        world_leave),
        cmocka_unit_test_setup_teardown(many_processes_are_asked_for_with_more_room, world_enter,
                                        world_leave),
        cmocka_unit_test_setup_teardown(entries_of_another_size_are_read_right, world_enter,
                                        world_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
