/* SPDX-License-Identifier: Apache-2.0
 *
 * NVIDIA's GPUs with NVML: facts, unknown values, impossible values, and sick cards.
 */
#include "support/unit.h"

#include "support/assert_error.h"
#include "support/failing_allocator.h"
#include "support/hardware/nvidia_world.h"

static void all_is_read(void **state)
{
    struct nvidia_world *world = *state;
    const struct device *device;

    world_says(WORLD_TWO);
    world_look(world);
    assert_int_equal(world->seen.found.count, 2);
    assert_int_equal(world->listed.problems.count, 0);
    device = world_device(world, "nvidia0");
    assert_string_equal(device->name, "NVIDIA A100-SXM4-80GB");
    assert_string_equal(device->uuid, "GPU-aaaaaaaa-0000-0000-0000-000000000000");
    assert_string_equal(pci_format(device->pci).text, "10007:0f:00.0");
    assert_number(device->minor, 4);
    assert_number(device->memory_total, 85899345920);
    assert_figure(device->load.memory_free, 80000000000);
    assert_figure(device->load.utilization, 370);
    assert_figure(device->load.temperature, 41000);
    assert_figure(device->load.power, 72500);
    assert_figure(device->load.frequency, 1400000000);
    assert_string_equal(capability_format(device->cap).text, "8.0");
    assert_int_equal(device->kind, DEVICE_KIND_DISCRETE);
    assert_int_equal(device->health, HEALTH_OK);
    assert_null(device->health_reason);
    assert_null(device->parent);
    assert_false(device->partitioned);
    assert_false(device->asleep);
    assert_int_equal(device->processes.count, 0);
    assert_string_equal(pci_format(world_device(world, "nvidia1")->pci).text, "0000:47:00.0");
    assert_figure(world_device(world, "nvidia1")->load.utilization, 0);
}

static void nvml_is_started_once(void **state)
{
    struct nvidia_world *world = *state;

    world_says(WORLD_TWO);
    world_look(world);
    world_look(world);
    assert_int_equal(world_logged("nvmlInit_v2"), 1);
    assert_int_equal(world_logged("nvmlShutdown"), 0);
    nvidia_table.close(&world->context);
    assert_int_equal(world_logged("nvmlShutdown"), 1);
}

static void the_place_comes_from_sysfs_and_files_from_dev(void **state)
{
    struct nvidia_world *world = *state;
    const struct device_finding *found;

    world_says(WORLD_TWO);
    world_gpu("0000:47:00.0", "active");
    machine_file("/dev/nvidia1", "");
    machine_file("/dev/nvidiactl", "");
    machine_file("/dev/nvidia-uvm", "");
    world_look(world);
    found = world_found(world, "nvidia1");
    assert_string_equal(found->path, "/sys/devices/pci0000:00/0000:47:00.0");
    assert_number(found->device->numa, 1);
    assert_string_equal(found->device->cpus, "8-15");
    assert_int_equal(found->device->nodes.count, 3);
    assert_string_equal(found->device->nodes.items[0], "/dev/nvidia1");
    assert_string_equal(found->device->nodes.items[1], "/dev/nvidiactl");
    assert_string_equal(found->device->nodes.items[2], "/dev/nvidia-uvm");
    found = world_found(world, "nvidia0");
    assert_null(found->path);
    assert_false(found->device->numa.known);
    assert_int_equal(found->device->nodes.count, 2);
}

/* The facts of a device as bits, to check which of them a failed call costs. */
enum told {
    TOLD_NAME = 1 << 0,
    TOLD_UUID = 1 << 1,
    TOLD_MEMORY = 1 << 2,
    TOLD_UTILIZATION = 1 << 3,
    TOLD_TEMPERATURE = 1 << 4,
    TOLD_POWER = 1 << 5,
    TOLD_FREQUENCY = 1 << 6,
    TOLD_CAPABILITY = 1 << 7,
    TOLD_MINOR = 1 << 8,
    TOLD_PCI = 1 << 9,
    TOLD_ALL = (1 << 10) - 1,
};

static unsigned told(const struct device *device)
{
    return (device->name != NULL ? TOLD_NAME : 0) | (device->uuid != NULL ? TOLD_UUID : 0) |
           (device->memory_total.known && device->load.memory_free.known ? TOLD_MEMORY : 0) |
           (device->load.utilization.known ? TOLD_UTILIZATION : 0) |
           (device->load.temperature.known ? TOLD_TEMPERATURE : 0) |
           (device->load.power.known ? TOLD_POWER : 0) |
           (device->load.frequency.known ? TOLD_FREQUENCY : 0) |
           (device->cap.known ? TOLD_CAPABILITY : 0) | (device->minor.known ? TOLD_MINOR : 0) |
           (device->pci.known ? TOLD_PCI : 0);
}

static void one_call_that_fails_costs_one_figure(void **state)
{
    static const struct {
        const char *function;
        unsigned costs;
    } calls[] = {
        {"nvmlDeviceGetName", TOLD_NAME},
        {"nvmlDeviceGetUUID", TOLD_UUID},
        {"nvmlDeviceGetMemoryInfo_v2", 0}, /* the older function has the same facts */
        {"nvmlDeviceGetMemoryInfo", 0},
        {"nvmlDeviceGetBAR1MemoryInfo", 0},
        {"nvmlDeviceGetUtilizationRates", TOLD_UTILIZATION},
        {"nvmlDeviceGetTemperatureV", 0},
        {"nvmlDeviceGetTemperature", 0},
        {"nvmlDeviceGetPowerUsage", TOLD_POWER},
        {"nvmlDeviceGetClockInfo", TOLD_FREQUENCY},
        {"nvmlDeviceGetCudaComputeCapability", TOLD_CAPABILITY},
        {"nvmlDeviceGetMinorNumber", TOLD_MINOR},
        {"nvmlDeviceGetPciInfo_v3", TOLD_PCI},
        {"nvmlDeviceGetTotalEccErrors", 0},
        {"nvmlDeviceGetRemappedRows", 0},
        {"nvmlDeviceGetRetiredPagesPendingStatus", 0},
        {"nvmlDeviceGetMigMode", 0},
        {"nvmlDeviceGetComputeRunningProcesses_v3", 0},
        {"nvmlDeviceGetGraphicsRunningProcesses_v3", 0},
        {"nvmlDeviceGetMPSComputeRunningProcesses_v3", 0},
    };
    static const int codes[] = {3, 4, 13, 999};
    struct nvidia_world *world = *state;

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        for (size_t k = 0; k < sizeof(codes) / sizeof(codes[0]); k++) {
            char statements[4096];
            const struct device *device;

            snprintf(statements, sizeof(statements), "call %s return %d\n" WORLD_TWO,
                     calls[i].function, codes[k]);
            world_says(statements);
            world_look(world);
            device = world_device(world, "nvidia0");
            if (told(device) != (TOLD_ALL & ~calls[i].costs))
                fail_msg("%s: expected %x, got %x", calls[i].function, TOLD_ALL & ~calls[i].costs,
                         told(device));
            assert_int_equal(device->health, HEALTH_OK);
            assert_int_equal(device->kind, DEVICE_KIND_DISCRETE);
            assert_int_equal(told(world_device(world, "nvidia1")), TOLD_ALL & ~calls[i].costs);
        }
    }
}

static void memory_that_is_not_its_own_is_unknown(void **state)
{
    struct nvidia_world *world = *state;
    const struct device *device;

    world_says("gpu\n name NVIDIA GB10\n pci 0000000F:01:00.0\n utilization 5 0\n"
               "gpu\n name Refuses\n pci 0000:02:00.0\n bar1 100 100\n");
    world_look(world);
    device = world_device(world, "nvidia0");
    assert_false(device->memory_total.known);
    assert_false(device->load.memory_free.known);
    assert_int_equal(device->kind, DEVICE_KIND_INTEGRATED);
    assert_figure(device->load.utilization, 50);
    assert_string_equal(pci_format(device->pci).text, "000f:01:00.0");
    /* It has a window (BAR1) into its memory, so it has memory. */
    assert_int_equal(world_device(world, "nvidia1")->kind, DEVICE_KIND_UNKNOWN);
}

static void what_cannot_be_is_not_believed(void **state)
{
    struct nvidia_world *world = *state;
    const struct device *device;

    world_says("call nvmlDeviceGetName lie\n"
               "call nvmlDeviceGetUUID lie\n"
               "call nvmlDeviceGetUtilizationRates lie\n"
               "call nvmlDeviceGetTemperatureV lie\n"
               "call nvmlDeviceGetPowerUsage lie\n"
               "call nvmlDeviceGetClockInfo lie\n"
               "call nvmlDeviceGetMemoryInfo_v2 lie\n"
               "call nvmlDeviceGetCudaComputeCapability lie\n"
               "call nvmlDeviceGetMinorNumber lie\n"
               "call nvmlDeviceGetPciInfo_v3 lie\n"
               "call nvmlDeviceGetTotalEccErrors lie\n"
               "call nvmlDeviceGetMigMode lie\n"
               "call nvmlDeviceGetComputeRunningProcesses_v3 lie\n" WORLD_TWO);
    world_look(world);
    assert_int_equal(world->failures, 0);
    device = world_device(world, "nvidia0");
    assert_int_equal(told(device), TOLD_NAME | TOLD_UUID);
    assert_int_equal(strlen(device->name), 96);
    assert_int_equal(strspn(device->name, "A"), 96);
    assert_int_equal(device->health, HEALTH_OK);
    assert_false(device->partitioned);
    assert_int_equal(device->processes.count, 0);
}

static void free_memory_above_the_total_is_not_believed(void **state)
{
    struct nvidia_world *world = *state;

    world_says("gpu\n name T\n memory 1000 1001 0\ngpu\n name T\n memory 0 0 0\n");
    world_look(world);
    assert_number(world_device(world, "nvidia0")->memory_total, 1000);
    assert_false(world_device(world, "nvidia0")->load.memory_free.known);
    assert_false(world_device(world, "nvidia1")->memory_total.known);
}

static void names_are_made_printable(void **state)
{
    struct nvidia_world *world = *state;

    world_says("gpu\n name Ge\\xffForce\\x1b[31m \\xc3\\xa4\n");
    world_look(world);
    assert_string_equal(world_device(world, "nvidia0")->name, "Ge\xef\xbf\xbd"
                                                              "Force\xef\xbf\xbd[31m \xc3\xa4");
}

static void a_count_that_cannot_be_is_a_problem(void **state)
{
    struct nvidia_world *world = *state;

    world_says("count 4000000000\n" WORLD_TWO);
    assert_int_equal(world_list(world), 0);
    assert_int_equal(world->listed.problems.count, 1);
    assert_string_equal(world->listed.problems.items[0].message,
                        "NVML: expected at most 256 GPUs, got a count of 4000000000");
    assert_int_equal(world->listed.found.count, 256);
    /* The kernel's list of GPUs has the right number. */
    world_gpu("0000:47:00.0", "active");
    world_gpu("10007:0f:00.0", "active");
    assert_int_equal(world_list(world), 0);
    assert_int_equal(world->listed.found.count, 2);
}

static void one_card_of_eight_is_out_of_reach(void **state)
{
    static const char sick[] = "gpu\n name Sick\n call nvmlDeviceGetHandleByIndex_v2 return 15\n";
    struct nvidia_world *world = *state;
    struct text statements = {0};

    for (unsigned i = 0; i < 8; i++) {
        char address[16];

        snprintf(address, sizeof(address), "0000:%02x:00.0", i + 1);
        world_gpu(address, "active");
        if (i == 3)
            text_append(&statements, sick);
        else
            text_append_format(&statements, "gpu\n name Well\n pci %s\n", address);
    }
    world_says(text_string(&statements));
    world_look(world);
    assert_int_equal(world->listed.found.count, 8);
    assert_int_equal(world->seen.found.count, 7);
    assert_int_equal(world->failures, 1);
    assert_string_equal(world->failure.message, "cannot open GPU index 3: GPU is lost (NVML 15)");
    assert_string_equal(device_id_format(world->listed.found.items[3].device->id).text, "nvidia3");
    assert_string_equal(pci_format(world->listed.found.items[3].device->pci).text, "0000:04:00.0");
    assert_string_equal(world->listed.found.items[3].path, "/sys/devices/pci0000:00/0000:04:00.0");
    /* If two are out of reach, neither can be identified. */
    text_append(&statements, "gpu\n name Sick\n call nvmlDeviceGetHandleByIndex_v2 return 999\n");
    world_says(text_string(&statements));
    world_gpu("0000:09:00.0", "active");
    world_look(world);
    assert_int_equal(world->listed.found.count, 9);
    assert_int_equal(world->failures, 2);
    assert_false(world->listed.found.items[3].device->pci.known);
    assert_false(world->listed.found.items[8].device->pci.known);
    text_finish(&statements);
}

static void one_that_comes_back_is_where_nvml_says(void **state)
{
    struct nvidia_world *world = *state;
    struct findings findings = {0};

    world_says("gpu\n name A\n pci 0000:01:00.0\n call nvmlDeviceGetHandleByIndex_v2 return 999\n"
               "gpu\n name B\n pci 0000:02:00.0\n call nvmlDeviceGetHandleByIndex_v2 return 999\n");
    world_gpu("0000:01:00.0", "active");
    world_gpu("0000:02:00.0", "active");
    assert_int_equal(world_list(world), 0);
    assert_int_equal(world->listed.found.count, 2);
    assert_false(world->listed.found.items[1].device->pci.known);
    world_says("gpu\n name A\n pci 0000:01:00.0\ngpu\n name B\n pci 0000:02:00.0\n");
    assert_int_equal(
        nvidia_table.read(&world->context, &world->listed.found.items[1], &findings, NULL), 0);
    assert_string_equal(pci_format(findings.found.items[0].device->pci).text, "0000:02:00.0");
    assert_string_equal(findings.found.items[0].path, "/sys/devices/pci0000:00/0000:02:00.0");
    assert_number(findings.found.items[0].device->numa, 1);
    findings_finish(&findings);
}

/* Checks that this statement makes the first GPU sick for this reason. */
static void check_sick(struct nvidia_world *world, const char *statement, const char *reason)
{
    char statements[1024];
    const struct device *device;

    snprintf(statements, sizeof(statements),
             "gpu\n name A\n memory 10 10 0\n %s\ngpu\n name B\n memory 10 10 0\n", statement);
    world_says(statements);
    world_look(world);
    assert_int_equal(world->failures, 0);
    device = world_device(world, "nvidia0");
    assert_int_equal(device->health, HEALTH_SICK);
    assert_string_equal(device->health_reason, reason);
    assert_string_equal(device->name, "A");
    assert_int_equal(world_device(world, "nvidia1")->health, HEALTH_OK);
}

static void a_sick_card_says_why(void **state)
{
    struct nvidia_world *world = *state;

    check_sick(world, "ecc 5 1",
               "1 uncorrectable memory error since the driver was loaded: it needs a reset");
    check_sick(world, "ecc 5 7",
               "7 uncorrectable memory errors since the driver was loaded: it needs a reset");
    check_sick(world, "remapped 0 1 1 0", "bad memory rows must be remapped: it needs a reset");
    check_sick(world, "remapped 0 1 0 1",
               "bad memory rows could not be remapped: it needs service");
    check_sick(world, "retired-pending 1", "bad memory pages must be retired: it needs a reset");
    check_sick(world, "call nvmlDeviceGetUtilizationRates return 15",
               "lost: it has fallen off the bus or does not answer");
    check_sick(world, "call nvmlDeviceGetComputeRunningProcesses_v3 return 15",
               "lost: it has fallen off the bus or does not answer");
    check_sick(world, "call nvmlDeviceGetRemappedRows return 16",
               "needs a reset before it can be used again");
}

static void health_that_was_repaired_is_well(void **state)
{
    struct nvidia_world *world = *state;

    world_says("gpu\n name A\n ecc 9 0\n remapped 3 2 0 0\n retired-pending 0\n");
    world_look(world);
    assert_int_equal(world_device(world, "nvidia0")->health, HEALTH_OK);
}

static void the_machine_changes_while_it_is_looked_at(void **state)
{
    struct nvidia_world *world = *state;

    world_says("gpu\n name A\n pci 0000:01:00.0\n utilization 10 0\n");
    world_gpu("0000:01:00.0", "active");
    world_look(world);
    assert_figure(world_device(world, "nvidia0")->load.utilization, 100);
    world_says("gpu\n name A\n pci 0000:01:00.0\n utilization 20 0\n");
    world_look(world);
    assert_figure(world_device(world, "nvidia0")->load.utilization, 200);
    assert_int_equal(world_logged("nvmlInit_v2"), 1);
    /* A card is added: NVML sees it only after a restart. */
    world_says("gpu\n name A\n pci 0000:01:00.0\ngpu\n name B\n pci 0000:02:00.0\n");
    world_gpu("0000:02:00.0", "active");
    world_look(world);
    assert_int_equal(world->seen.found.count, 2);
    assert_int_equal(world_logged("nvmlInit_v2"), 2);
}

/* A card that disappears changes the indices of the others, but no GPU is mistaken for another. */
static void a_device_is_found_again_by_its_address(void **state)
{
    struct nvidia_world *world = *state;
    struct findings findings = {0};
    struct berth_error error = BERTH_ERROR_INIT;

    world_says("gpu\n name A\n pci 0000:01:00.0\ngpu\n name B\n pci 0000:02:00.0\n");
    assert_int_equal(world_list(world), 0);
    world_says("gpu\n name B\n pci 0000:02:00.0\n");
    assert_fails(
        nvidia_table.read(&world->context, &world->listed.found.items[0], &findings, &error),
        BERTH_ERROR_IO, &error, "cannot open GPU pci 0000:01:00.0: Not Found (NVML 6)");
    findings_finish(&findings);
    findings = (struct findings){0};
    assert_int_equal(
        nvidia_table.read(&world->context, &world->listed.found.items[1], &findings, &error), 0);
    assert_string_equal(findings.found.items[0].device->name, "B");
    assert_int_equal(findings.found.items[0].device->id.index, 1);
    findings_finish(&findings);
}

static void an_old_library_tells_as_much(void **state)
{
    struct nvidia_world *world = *state;
    const struct device *device;

    world_loads("-old");
    world_says(WORLD_TWO " process compute 77 4096\n");
    world_look(world);
    assert_int_equal(told(world_device(world, "nvidia0")), TOLD_ALL);
    device = world_device(world, "nvidia1");
    assert_int_equal(device->processes.count, 1);
    assert_int_equal(device->processes.items[0].pid, 77);
    assert_number(device->processes.items[0].memory, 4096);
}

/* As with a vGPU: the memory is known, the processes are not. */
static void a_driver_may_list_no_processes(void **state)
{
    struct nvidia_world *world = *state;

    world_says("call nvmlDeviceGetComputeRunningProcesses_v3 return 3\n"
               "call nvmlDeviceGetGraphicsRunningProcesses_v3 return 3\n"
               "call nvmlDeviceGetMPSComputeRunningProcesses_v3 return 3\n" WORLD_TWO);
    world_look(world);
    assert_true(world_device(world, "nvidia0")->hides_processes);
    assert_true(world_device(world, "nvidia0")->load.memory_free.known);
    world_says("call nvmlDeviceGetMPSComputeRunningProcesses_v3 return 3\n" WORLD_TWO);
    world_look(world);
    assert_false(world_device(world, "nvidia0")->hides_processes);
}

/* Each allocation fails in turn: nothing leaks or crashes, and the failure is reported. */
static void without_memory_it_fails_cleanly(void **state)
{
    struct nvidia_world *world = *state;
    bool was_refused = true;

    world_says(WORLD_TWO " mig 1 1\n mig-most 2\n process compute 7 8 1 0\n instance 1\n name I\n"
                         " gpu-instance 1\n compute-instance 0\n");
    world_gpu("0000:47:00.0", "active");
    world_gpu("10007:0f:00.0", "active");
    for (unsigned long n = 1; was_refused; n++) {
        struct findings listed = {0};
        int code;

        failing_allocator_start(n);
        code = nvidia_table.list(&world->context, NULL, &listed, NULL);
        for (size_t i = 0; i < listed.found.count && code == 0; i++) {
            struct findings findings = {0};

            code = nvidia_table.read(&world->context, &listed.found.items[i], &findings, NULL);
            findings_finish(&findings);
        }
        if (code == 0)
            code = nvidia_table.links(&world->context, &listed.found, &listed, NULL);
        nvidia_table.close(&world->context);
        was_refused = failing_allocator_stop();
        assert_true(code == 0 || (was_refused && code == BERTH_ERROR_MEMORY));
        findings_finish(&listed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_is_read, world_enter, world_leave),
        cmocka_unit_test_setup_teardown(nvml_is_started_once, world_enter, world_leave),
        cmocka_unit_test_setup_teardown(the_place_comes_from_sysfs_and_files_from_dev, world_enter,
                                        world_leave),
        cmocka_unit_test_setup_teardown(one_call_that_fails_costs_one_figure, world_enter,
                                        world_leave),
        cmocka_unit_test_setup_teardown(memory_that_is_not_its_own_is_unknown, world_enter,
                                        world_leave),
        cmocka_unit_test_setup_teardown(what_cannot_be_is_not_believed, world_enter, world_leave),
        cmocka_unit_test_setup_teardown(free_memory_above_the_total_is_not_believed, world_enter,
                                        world_leave),
        cmocka_unit_test_setup_teardown(names_are_made_printable, world_enter, world_leave),
        cmocka_unit_test_setup_teardown(a_count_that_cannot_be_is_a_problem, world_enter,
                                        world_leave),
        cmocka_unit_test_setup_teardown(one_card_of_eight_is_out_of_reach, world_enter,
                                        world_leave),
        cmocka_unit_test_setup_teardown(one_that_comes_back_is_where_nvml_says, world_enter,
                                        world_leave),
        cmocka_unit_test_setup_teardown(a_sick_card_says_why, world_enter, world_leave),
        cmocka_unit_test_setup_teardown(health_that_was_repaired_is_well, world_enter, world_leave),
        cmocka_unit_test_setup_teardown(the_machine_changes_while_it_is_looked_at, world_enter,
                                        world_leave),
        cmocka_unit_test_setup_teardown(a_device_is_found_again_by_its_address, world_enter,
                                        world_leave),
        cmocka_unit_test_setup_teardown(an_old_library_tells_as_much, world_enter, world_leave),
        cmocka_unit_test_setup_teardown(a_driver_may_list_no_processes, world_enter, world_leave),
        cmocka_unit_test_setup_teardown(without_memory_it_fails_cleanly, world_enter, world_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
