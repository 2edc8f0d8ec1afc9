/* SPDX-License-Identifier: Apache-2.0
 *
 * Sleeping NVIDIA GPUs, and machines without a usable NVML.
 */
#include "support/unit.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "support/assert_error.h"
#include "support/hardware/nvidia_world.h"

#define INFORMATION                                           \
    "Model: \t\t NVIDIA GeForce RTX 4070 Laptop GPU\n"        \
    "IRQ:   \t\t 178\n"                                       \
    "GPU UUID: \t GPU-dddddddd-1111-2222-3333-444444444444\n" \
    "Video BIOS: \t 95.06.1e.00.6c\n"                         \
    "Bus Type: \t PCIe\n"                                     \
    "Device Minor: \t 2\n"                                    \
    "GPU Excluded:\t No\n"

static void all_asleep_and_nvml_is_not_even_loaded(void **state)
{
    struct nvidia_world *world = *state;
    const struct device_finding *found;

    world_says("gpu\n name Must not be asked\n pci 0000:01:00.0\n");
    world_gpu("0000:01:00.0", "suspended");
    machine_file("/proc/driver/nvidia/gpus/0000:01:00.0/information", INFORMATION);
    machine_file("/dev/nvidia2", "");
    machine_file("/dev/nvidiactl", "");
    world_look(world);
    assert_int_equal(world->listed.found.count, 1);
    assert_true(world->listed.found.items[0].device->asleep);
    found = world_found(world, "nvidia0");
    assert_true(found->device->asleep);
    assert_string_equal(found->device->name, "NVIDIA GeForce RTX 4070 Laptop GPU");
    assert_string_equal(found->device->uuid, "GPU-dddddddd-1111-2222-3333-444444444444");
    assert_number(found->device->minor, 2);
    assert_number(found->device->numa, 1);
    assert_string_equal(found->device->cpus, "8-15");
    assert_int_equal(found->device->nodes.count, 2);
    assert_string_equal(found->device->nodes.items[0], "/dev/nvidia2");
    assert_string_equal(found->path, "/sys/devices/pci0000:00/0000:01:00.0");
    assert_false(found->device->load.temperature.known);
    assert_false(found->device->memory_total.known);
    assert_int_equal(found->device->health, HEALTH_UNKNOWN);
    assert_int_equal(access("machine.log", F_OK), -1);
    assert_null(world->context.own);
}

static void one_asleep_among_three_is_not_touched(void **state)
{
    struct nvidia_world *world = *state;

    world_says("topology 10\ngpu\n name A\n pci 0000:01:00.0\ngpu\n name B\n pci 0000:02:00.0\n"
               "gpu\n name C\n pci 0000:03:00.0\n");
    world_gpu("0000:01:00.0", "active");
    world_gpu("0000:02:00.0", "suspended");
    world_gpu("0000:03:00.0", "active");
    world_look(world);
    assert_int_equal(
        nvidia_table.links(&world->context, &world->seen.found, &world->seen, &world->error), 0);
    assert_int_equal(world->seen.found.count, 3);
    assert_string_equal(world_device(world, "nvidia0")->name, "A");
    assert_null(world_device(world, "nvidia1")->name);
    assert_true(world_device(world, "nvidia1")->asleep);
    assert_string_equal(pci_format(world_device(world, "nvidia1")->pci).text, "0000:02:00.0");
    assert_string_equal(world_device(world, "nvidia2")->name, "C");
    assert_false(world_device(world, "nvidia2")->asleep);
    assert_int_equal(world->seen.links.count, 1);
    assert_int_equal(world->seen.links.items[0].between[1], 2);
    assert_int_equal(world_logged("nvmlInit_v2"), 0);
    assert_true(world_logged("nvmlInitWithFlags") > 0);
    assert_int_equal(world_logged("attach 1"), 0);
    assert_true(world_logged("attach 0") > 0);
    assert_true(world_logged("attach 2") > 0);
    /* A GPU that is open cannot sleep, so NVML is stopped after each step. */
    assert_int_equal(world_logged("nvmlShutdown"), world_logged("nvmlInitWithFlags"));
}

static void a_gpu_that_may_sleep_is_let_go(void **state)
{
    struct nvidia_world *world = *state;

    world_says("gpu\n name A\n pci 0000:01:00.0\n utilization 7 0\n");
    world_gpu("0000:01:00.0", "active");
    machine_file("/sys/devices/pci0000:00/0000:01:00.0/power/control", "auto\n");
    world_look(world);
    assert_figure(world_device(world, "nvidia0")->load.utilization, 70);
    assert_int_equal(world_logged("nvmlInit_v2"), 2);
    assert_int_equal(world_logged("nvmlShutdown"), 2);
}

static void one_that_fell_asleep_after_it_was_listed_is_left_so(void **state)
{
    struct nvidia_world *world = *state;
    struct findings findings = {0};

    world_says("gpu\n name A\n pci 0000:01:00.0\n");
    world_gpu("0000:01:00.0", "active");
    assert_int_equal(world_list(world), 0);
    assert_false(world->listed.found.items[0].device->asleep);
    world_gpu("0000:01:00.0", "suspended");
    assert_int_equal(
        nvidia_table.read(&world->context, &world->listed.found.items[0], &findings, NULL), 0);
    assert_true(findings.found.items[0].device->asleep);
    assert_int_equal(world_logged("nvmlDeviceGetName 0"), 0);
    findings_finish(&findings);
}

static void an_index_is_given_once(void **state)
{
    struct nvidia_world *world = *state;

    /* NVML does not count the sleeping GPU, so its indices differ. */
    world_says("gpu\n name B\n pci 0000:02:00.0\ngpu\n name C\n pci 0000:03:00.0\n");
    world_gpu("0000:01:00.0", "suspended");
    world_gpu("0000:02:00.0", "active");
    world_gpu("0000:03:00.0", "active");
    world_look(world);
    assert_int_equal(world->seen.found.count, 3);
    assert_true(world_device(world, "nvidia0")->asleep);
    assert_string_equal(world_device(world, "nvidia1")->name, "B");
    assert_string_equal(world_device(world, "nvidia2")->name, "C");
}

static void what_the_driver_says_may_be_nonsense(void **state)
{
    struct nvidia_world *world = *state;
    const struct device *device;

    world_gpu("0000:01:00.0", "suspended");
    machine_file("/proc/driver/nvidia/gpus/0000:01:00.0/information",
                 "Model: \t \nGPU UUID: GPU-????????\nDevice Minor: 99999999\nModel: B\n");
    world_look(world);
    device = world_device(world, "nvidia0");
    assert_null(device->name);
    assert_null(device->uuid);
    assert_false(device->minor.known);
}

static void without_the_library_there_are_none(void **state)
{
    struct nvidia_world *world = *state;

    setenv("BERTH_NVML", "/nonexistent/libnvidia-ml.so.1", 1);
    world_look(world);
    assert_int_equal(world->listed.found.count, 0);
    assert_int_equal(world->listed.problems.count, 0);
    unsetenv("BERTH_NVML");
    world_look(world);
    assert_int_equal(world->listed.found.count, 0);
    assert_int_equal(world->listed.problems.count, 0);
}

static void without_the_library_the_drivers_gpus_are_a_problem(void **state)
{
    struct nvidia_world *world = *state;

    setenv("BERTH_NVML", "/nonexistent/libnvidia-ml.so.1", 1);
    world_gpu("0000:01:00.0", "active");
    world_gpu("0000:02:00.0", "suspended");
    world_look(world);
    assert_int_equal(world->listed.found.count, 1);
    assert_true(world_device(world, "nvidia1")->asleep);
    assert_int_equal(world->listed.problems.count, 1);
    assert_string_equal(world->listed.problems.items[0].backend, "nvidia");
    assert_string_equal(world->listed.problems.items[0].message,
                        "cannot read 1 GPU of the kernel's nvidia driver: cannot load "
                        "/nonexistent/libnvidia-ml.so.1: no such library");
}

static void a_library_of_something_else_is_an_error(void **state)
{
    struct nvidia_world *world = *state;

    machine_file("/libnvidia-ml.so.1", "not a library\n");
    setenv("BERTH_NVML", "./libnvidia-ml.so.1", 1);
    assert_int_equal(world_list(world), BERTH_ERROR_INVALID);
    assert_non_null(strstr(world->error.message, "./libnvidia-ml.so.1"));
}

static void without_the_driver_there_are_none(void **state)
{
    struct nvidia_world *world = *state;

    world_says("init 9\n");
    world_look(world);
    assert_int_equal(world->listed.found.count, 0);
    assert_int_equal(world->listed.problems.count, 0);
    /* The driver is loaded later. */
    world_says("gpu\n name A\n");
    world_look(world);
    assert_int_equal(world->seen.found.count, 1);
}

static void an_updated_driver_wants_a_reboot(void **state)
{
    struct nvidia_world *world = *state;

    world_says("init 18\n");
    assert_fails(world_list(world), BERTH_ERROR_IO, &world->error,
                 "cannot start NVML: it does not match the running driver (NVML 18): the driver "
                 "was updated, reboot to load the new one");
}

static void nvml_says_why_it_does_not_start(void **state)
{
    struct nvidia_world *world = *state;

    world_says("init 999\n");
    assert_fails(world_list(world), BERTH_ERROR_IO, &world->error,
                 "cannot start NVML: Unknown Error (NVML 999)");
    world_says("init 4\n");
    assert_fails(world_list(world), BERTH_ERROR_PERMISSION, &world->error,
                 "cannot start NVML: Insufficient Permissions (NVML 4)");
    world_says("call nvmlDeviceGetCount_v2 return 999\ngpu\n name A\n");
    assert_fails(world_list(world), BERTH_ERROR_IO, &world->error,
                 "cannot count the GPUs: Unknown Error (NVML 999)");
}

/* Starts a listing in a child process. */
static pid_t look_in_child(struct nvidia_world *world)
{
    struct findings findings = {0};
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0)
        _exit(nvidia_table.list(&world->context, NULL, &findings, NULL) == 0 &&
                      nvidia_table.read(&world->context, &findings.found.items[0], &findings,
                                        NULL) == 0
                  ? 0
                  : 1);
    return child;
}

static int status_of(pid_t child)
{
    int status = 0;

    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* Other tests rely on these faults of the double. */
static void the_double_hangs_and_crashes(void **state)
{
    struct nvidia_world *world = *state;
    int64_t deadline = clock_now() + 30 * DURATION_SECOND;
    pid_t child;
    int status;

    world_says("gpu\n name A\n");
    assert_int_equal(status_of(look_in_child(world)), 0);
    world_says("gpu\n name A\n call nvmlDeviceGetName crash\n");
    status = status_of(look_in_child(world));
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
    assert_int_equal(unlink("machine.log"), 0);
    world_says("gpu\n name A\n call nvmlDeviceGetName hang\n");
    child = look_in_child(world);
    while (world_logged("nvmlDeviceGetName 0") == 0 && clock_now() < deadline)
        usleep(1000);
    assert_int_equal(waitpid(child, &status, WNOHANG), 0);
    assert_int_equal(kill(child, SIGKILL), 0);
    status_of(child);
    /* The child went no further than the function that hangs. */
    assert_int_equal(world_logged("nvmlDeviceGetName 0"), 1);
    assert_int_equal(world_logged("nvmlDeviceGetUUID 0"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_asleep_and_nvml_is_not_even_loaded, world_enter,
                                        world_leave),
        cmocka_unit_test_setup_teardown(one_asleep_among_three_is_not_touched, world_enter,
                                        world_leave),
        cmocka_unit_test_setup_teardown(a_gpu_that_may_sleep_is_let_go, world_enter, world_leave),
        cmocka_unit_test_setup_teardown(one_that_fell_asleep_after_it_was_listed_is_left_so,
                                        world_enter, world_leave),
        cmocka_unit_test_setup_teardown(an_index_is_given_once, world_enter, world_leave),
        cmocka_unit_test_setup_teardown(what_the_driver_says_may_be_nonsense, world_enter,
                                        world_leave),
        cmocka_unit_test_setup_teardown(without_the_library_there_are_none, world_enter,
                                        world_leave),
        cmocka_unit_test_setup_teardown(without_the_library_the_drivers_gpus_are_a_problem,
                                        world_enter, world_leave),
        cmocka_unit_test_setup_teardown(a_library_of_something_else_is_an_error, world_enter,
                                        world_leave),
        cmocka_unit_test_setup_teardown(without_the_driver_there_are_none, world_enter,
                                        world_leave),
        cmocka_unit_test_setup_teardown(an_updated_driver_wants_a_reboot, world_enter, world_leave),
        cmocka_unit_test_setup_teardown(nvml_says_why_it_does_not_start, world_enter, world_leave),
        cmocka_unit_test_setup_teardown(the_double_hangs_and_crashes, world_enter, world_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
