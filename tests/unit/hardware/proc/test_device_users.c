/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "hardware/proc/device_users.h"

#include <sys/wait.h>

#include "base/system/clock.h"
#include "support/hardware/process_tree.h"
#include "support/temporary_directory.h"

#define RENDER "/dev/dri/renderD128"
#define CARD   "/dev/dri/card0"
#define OTHER  "/dev/dri/renderD129"

/* Long enough to measure the utilization. */
#define A_WHILE (60 * 1000000)

static struct device_users *make_uses(void)
{
    struct device_users *uses;

    assert_int_equal(device_users_create(&uses, NULL), 0);
    return uses;
}

/* Waits, because the test is about elapsed time. */
static void let_time_pass(int64_t nanoseconds)
{
    int64_t until = clock_now() + nanoseconds;
    struct timespec wait = {.tv_nsec = nanoseconds};

    while (clock_now() < until)
        nanosleep(&wait, NULL);
}

static struct findings scan_once(void)
{
    struct device_users *uses = make_uses();
    struct findings findings = process_tree_scan(uses);

    device_users_destroy(uses);
    return findings;
}

static void assert_process(const struct device *device, size_t place, uint64_t pid,
                           struct optional_number memory)
{
    assert_true(place < device->processes.count);
    assert_int_equal(device->processes.items[place].pid, pid);
    assert_int_equal(device->processes.items[place].memory.known, memory.known);
    if (memory.known)
        assert_int_equal(device->processes.items[place].memory.value, memory.value);
}

static const struct optional_number unknown;

static struct optional_number bytes(uint64_t value)
{
    return optional_number_of(value);
}

static void processes_are_found_by_their_open_files(void **state)
{
    const struct device *device;
    struct findings findings;

    (void)state;
    process_tree_open(1234, 0, "/dev/null", "pos:\t0\n");
    process_tree_open(1234, 1, "socket:[889]", "pos:\t0\n");
    process_tree_open(1234, 5, RENDER,
                      "drm-driver:\ti915\ndrm-pdev:\t0000:00:02.0\ndrm-client-id:\t4\n"
                      "drm-resident-local0:\t2 MiB\n");
    process_tree_open(77, 3, CARD,
                      "drm-driver:\ti915\ndrm-pdev:\t0000:00:02.0\ndrm-client-id:\t5\n"
                      "drm-resident-local0:\t1 KiB\n");
    process_tree_open(88, 3, "/dev/dri/renderD128x", "");
    process_tree_open(88, 4, "/dev/dri/by-path", "");
    process_tree_open(88, 5, "/dev/dri/renderD128 (deleted)", "");
    process_tree_open(88, 6, "/home/dev/dri/renderD128", "");
    process_tree_open(88, 7, "/dev/dri/", "");
    process_tree_open(88, 8, "/dev/dri/card", "");
    findings = scan_once();
    assert_int_equal(findings.found.count, 1);
    device = findings.found.items[0].device;
    assert_string_equal(pci_format(device->pci).text, "0000:00:02.0");
    assert_int_equal(device->nodes.count, 2);
    assert_non_null(process_tree_device(&findings, RENDER));
    assert_non_null(process_tree_device(&findings, CARD));
    assert_int_equal(device->processes.count, 2);
    assert_process(device, 0, 77, bytes(1024));
    assert_process(device, 1, 1234, bytes(2 << 20));
    assert_false(device->load.utilization.known);
    findings_finish(&findings);
}

static void who_computes_on_amd_has_more_open(void **state)
{
    struct findings findings;
    const struct device *device;

    (void)state;
    process_tree_open(10, 3, RENDER, "drm-driver:\tamdgpu\ndrm-client-id:\t1\n");
    process_tree_open(11, 3, "/dev/kfd", "");
    process_tree_open(11, 4, RENDER, "drm-driver:\tamdgpu\ndrm-client-id:\t2\n");
    process_tree_open(12, 3, RENDER, "drm-driver:\tamdgpu\ndrm-client-id:\t3\n");
    process_tree_open(12, 4, "/dev/kfd", "");
    findings = scan_once();
    device = findings.found.items[0].device;
    assert_int_equal(device->processes.count, 3);
    assert_true(device->processes.items[0].draws);
    assert_false(device->processes.items[1].draws);
    assert_false(device->processes.items[2].draws);
    findings_finish(&findings);
}

static void a_client_counts_once_for_the_lowest_pid(void **state)
{
    static const char one[] = "drm-driver: xe\ndrm-pdev: 0000:03:00.0\ndrm-client-id: 9\n"
                              "drm-resident-vram0: 100\n";
    static const char more[] = "drm-driver: xe\ndrm-pdev: 0000:03:00.0\ndrm-client-id: 10\n"
                               "drm-resident-vram0: 30\n";
    static const char elsewhere[] = "drm-driver: xe\ndrm-pdev: 0000:04:00.0\ndrm-client-id: 9\n"
                                    "drm-resident-vram0: 7\n";
    const struct device *device;
    struct findings findings;

    (void)state;
    process_tree_open(300, 4, RENDER, one);
    process_tree_open(20, 4, RENDER, one);
    process_tree_open(20, 5, CARD, one);
    process_tree_open(20, 6, RENDER, more);
    process_tree_open(300, 5, OTHER, elsewhere);
    findings = scan_once();
    assert_int_equal(findings.found.count, 2);
    device = process_tree_device(&findings, RENDER);
    assert_int_equal(device->processes.count, 2);
    assert_process(device, 0, 20, bytes(130));
    assert_process(device, 1, 300, unknown);
    device = process_tree_device(&findings, OTHER);
    assert_int_equal(device->processes.count, 1);
    assert_process(device, 0, 300, bytes(7));
    findings_finish(&findings);
}

static void who_has_it_open_uses_it_whatever_the_driver_says(void **state)
{
    const struct device *device;
    struct findings findings;

    (void)state;
    process_tree_open(9, 3, RENDER, "pos:\t0\nflags:\t02\n");
    process_tree_open(8, 3, RENDER, NULL);
    process_tree_open(7, 3, RENDER, "drm-driver: vgem\ndrm-resident-memory: 5\n");
    findings = scan_once();
    assert_int_equal(findings.found.count, 1);
    device = findings.found.items[0].device;
    assert_false(device->pci.known);
    assert_int_equal(device->processes.count, 3);
    assert_process(device, 0, 7, unknown);
    assert_process(device, 1, 8, unknown);
    assert_process(device, 2, 9, unknown);
    findings_finish(&findings);
}

static void files_of_one_device_are_brought_together_by_sysfs(void **state)
{
    struct findings findings;

    (void)state;
    process_tree_file("sys/devices/platform/gpu/uevent", "");
    process_tree_link("sys/class/drm/renderD128/device", "../../../devices/platform/gpu");
    process_tree_link("sys/class/drm/card0/device", "../../../devices/platform/gpu");
    process_tree_open(9, 3, RENDER, "drm-driver: panthor\ndrm-client-id: 1\n");
    process_tree_open(9, 4, CARD, "drm-driver: panthor\ndrm-client-id: 2\n");
    process_tree_open(9, 5, OTHER, "drm-driver: vgem\n");
    findings = scan_once();
    assert_int_equal(findings.found.count, 2);
    assert_ptr_equal(process_tree_device(&findings, RENDER), process_tree_device(&findings, CARD));
    assert_ptr_not_equal(process_tree_device(&findings, RENDER),
                         process_tree_device(&findings, OTHER));
    findings_finish(&findings);
}

/* The partitions of an AMD GPU have their own files and the PCI address of the whole GPU. */
static void partitions_of_one_gpu_are_told_apart(void **state)
{
    struct findings findings;

    (void)state;
    process_tree_file("sys/devices/pci0000:00/0000:03:00.0/uevent", "");
    process_tree_file("sys/devices/platform/amdgpu_xcp_1/uevent", "");
    process_tree_link("sys/class/drm/renderD128/device",
                      "../../../devices/pci0000:00/0000:03:00.0");
    process_tree_link("sys/class/drm/renderD129/device", "../../../devices/platform/amdgpu_xcp_1");
    process_tree_file("dev/dri/renderD128", "");
    process_tree_file("dev/dri/renderD129", "");
    process_tree_open(9, 3, OTHER,
                      "drm-driver: amdgpu\ndrm-pdev: 0000:03:00.0\ndrm-client-id: 2\n");
    findings = scan_once();
    assert_int_equal(findings.found.count, 2);
    assert_int_equal(process_tree_device(&findings, RENDER)->processes.count, 0);
    assert_int_equal(process_tree_device(&findings, OTHER)->processes.count, 1);
    findings_finish(&findings);
}

/* In a container, any GPU may have the name renderD128. */
static void the_kernel_knows_better_than_the_name(void **state)
{
    struct findings findings;

    (void)state;
    process_tree_file("sys/devices/pci0000:00/0000:03:00.0/uevent", "");
    process_tree_file("sys/devices/pci0000:00/0000:04:00.0/uevent", "");
    process_tree_link("sys/class/drm/renderD128/device",
                      "../../../devices/pci0000:00/0000:03:00.0");
    process_tree_link("sys/class/drm/renderD129/device",
                      "../../../devices/pci0000:00/0000:04:00.0");
    process_tree_file("dev/dri/renderD128", "");
    process_tree_file("dev/dri/renderD129", "");
    process_tree_open(9, 3, RENDER, "drm-driver: xe\ndrm-pdev: 0000:04:00.0\ndrm-client-id: 2\n");
    findings = scan_once();
    assert_int_equal(findings.found.count, 2);
    assert_int_equal(process_tree_device(&findings, RENDER)->processes.count, 0);
    assert_int_equal(process_tree_device(&findings, OTHER)->processes.count, 1);
    assert_int_equal(process_tree_device(&findings, OTHER)->pci.bus, 4);
    findings_finish(&findings);
}

static void a_probe_is_not_listed_as_a_user(void **state)
{
    const struct device *device;
    struct findings findings;

    (void)state;
    process_tree_file("bin/berth-probe", "");
    process_tree_file("home/berth-probe", "");
    process_tree_link("proc/self/exe", "../../bin/berth-probe");
    process_tree_open(40, 3, RENDER, "drm-driver:\txe\ndrm-client-id:\t1\n");
    process_tree_link("proc/40/exe", "../../bin/berth-probe");
    process_tree_open(41, 3, RENDER, "drm-driver:\txe\ndrm-client-id:\t2\n");
    process_tree_link("proc/41/exe", "../../home/berth-probe"); /* it only has the same name */
    process_tree_open(42, 3, RENDER, "drm-driver:\txe\ndrm-client-id:\t3\n");
    findings = scan_once();
    device = process_tree_device(&findings, RENDER);
    assert_non_null(device);
    assert_int_equal(device->processes.count, 2);
    assert_int_equal(device->processes.items[0].pid, 41);
    assert_int_equal(device->processes.items[1].pid, 42);
    findings_finish(&findings);
}

static void utilization_is_known_from_the_second_scan_on(void **state)
{
    struct device_users *uses = make_uses();
    struct figure figure;
    struct findings findings;
    int64_t before;

    (void)state;
    process_tree_open(9, 3, RENDER,
                      "drm-driver: i915\ndrm-client-id: 2\ndrm-engine-render: 100 ns\n"
                      "drm-engine-copy: 5 ns\n");
    findings = process_tree_scan(uses);
    assert_false(findings.found.items[0].device->load.utilization.known);
    findings_finish(&findings);
    findings = process_tree_scan(uses); /* too soon */
    assert_false(findings.found.items[0].device->load.utilization.known);
    findings_finish(&findings);

    let_time_pass(A_WHILE);
    process_tree_say(9, 3,
                     "drm-driver: i915\ndrm-client-id: 2\ndrm-engine-render: 20000100 ns\n"
                     "drm-engine-copy: 5 ns\n");
    before = clock_read(CLOCK_REALTIME);
    findings = process_tree_scan(uses);
    figure = findings.found.items[0].device->load.utilization;
    assert_true(figure.known);
    assert_true(figure.value > 0 && figure.value <= 333);
    assert_true(figure.sampled_at >= before && figure.sampled_at <= clock_read(CLOCK_REALTIME));
    findings_finish(&findings);

    let_time_pass(A_WHILE);
    findings = process_tree_scan(uses);
    figure = findings.found.items[0].device->load.utilization;
    assert_true(figure.known);
    assert_int_equal(figure.value, 0);
    findings_finish(&findings);
    device_users_destroy(uses);
}

static void what_nobody_has_open_is_idle(void **state)
{
    struct device_users *uses = make_uses();
    struct findings findings;

    (void)state;
    process_tree_file("proc/9/status", "");
    process_tree_file("dev/dri/renderD128", "");
    process_tree_file("dev/dri/renderD129", "");
    process_tree_file("dev/dri/by-path/x", "");
    process_tree_file("sys/devices/pci0000:00/0000:03:00.0/uevent", "");
    process_tree_file("sys/bus/pci/drivers/nvidia/bind", "");
    process_tree_link("sys/class/drm/renderD129/device",
                      "../../../devices/pci0000:00/0000:03:00.0");
    process_tree_link("sys/devices/pci0000:00/0000:03:00.0/driver",
                      "../../../bus/pci/drivers/nvidia");
    findings = process_tree_scan(uses);
    assert_int_equal(findings.found.count, 2);
    assert_false(process_tree_device(&findings, RENDER)->load.utilization.known);
    findings_finish(&findings);
    let_time_pass(A_WHILE);
    findings = process_tree_scan(uses);
    assert_true(process_tree_device(&findings, RENDER)->load.utilization.known);
    assert_int_equal(process_tree_device(&findings, RENDER)->load.utilization.value, 0);
    /* Unknown for NVIDIA, because CUDA does not open this file. */
    assert_false(process_tree_device(&findings, OTHER)->load.utilization.known);
    findings_finish(&findings);
    device_users_destroy(uses);
}

static void a_client_that_cannot_be_told_makes_it_unknown(void **state)
{
    struct device_users *uses = make_uses();
    struct findings findings;

    (void)state;
    process_tree_open(9, 3, RENDER,
                      "drm-driver: i915\ndrm-client-id: 2\ndrm-engine-render: 100 ns\n");
    process_tree_open(9, 4, RENDER, "drm-driver: i915\n");
    findings = process_tree_scan(uses);
    findings_finish(&findings);
    let_time_pass(A_WHILE);
    findings = process_tree_scan(uses);
    assert_false(findings.found.items[0].device->load.utilization.known);
    findings_finish(&findings);
    device_users_destroy(uses);
}

/* Scans as a user who may not look into every process. */
static int scan_as_nobody(void)
{
    struct device_users *uses = make_uses();
    struct findings findings;
    bool known;

    if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
        return 3;
    findings = process_tree_scan(uses);
    if (process_tree_device(&findings, RENDER)->processes.count != 1)
        return 2;
    findings_finish(&findings);
    let_time_pass(A_WHILE);
    findings = process_tree_scan(uses);
    known = findings.found.items[0].device->load.utilization.known;
    findings_finish(&findings);
    device_users_destroy(uses);
    return known ? 1 : 0;
}

static void a_process_that_is_closed_to_us_makes_it_unknown(void **state)
{
    const char *directory = *state;
    int status;
    pid_t child;

    process_tree_open(9, 3, RENDER,
                      "drm-driver: i915\ndrm-client-id: 2\ndrm-engine-render: 100 ns\n");
    process_tree_open(10, 3, RENDER, "");
    assert_int_equal(chmod("proc/10/fd", 0), 0);
    assert_int_equal(chmod(directory, 0755), 0);
    fflush(NULL);
    child = fork();
    if (child == 0)
        _exit(scan_as_nobody());
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(chmod("proc/10/fd", 0700), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_machine_without_processes_is_fine(void **state)
{
    struct findings findings = scan_once();

    (void)state;
    assert_int_equal(findings.found.count, 0);
    findings_finish(&findings);
}

static void the_real_processes_can_be_scanned(void **state)
{
    struct sysroot root = {.prefix = (char *)""};
    struct device_users *uses = make_uses();
    struct findings findings = {0};
    int64_t began = clock_now();

    (void)state;
    assert_int_equal(device_users_scan(uses, &root, NULL, &findings, NULL), 0);
    assert_true(clock_now() - began < INT64_C(10) * 1000000000);
    findings_finish(&findings);
    device_users_destroy(uses);
}

#define TREE_TEST(function) \
    cmocka_unit_test_setup_teardown(function, temporary_directory_enter, temporary_directory_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(processes_are_found_by_their_open_files),
        TREE_TEST(who_computes_on_amd_has_more_open),
        TREE_TEST(a_client_counts_once_for_the_lowest_pid),
        TREE_TEST(who_has_it_open_uses_it_whatever_the_driver_says),
        TREE_TEST(files_of_one_device_are_brought_together_by_sysfs),
        TREE_TEST(partitions_of_one_gpu_are_told_apart),
        TREE_TEST(the_kernel_knows_better_than_the_name),
        TREE_TEST(a_probe_is_not_listed_as_a_user),
        TREE_TEST(utilization_is_known_from_the_second_scan_on),
        TREE_TEST(what_nobody_has_open_is_idle),
        TREE_TEST(a_client_that_cannot_be_told_makes_it_unknown),
        TREE_TEST(a_process_that_is_closed_to_us_makes_it_unknown),
        TREE_TEST(a_machine_without_processes_is_fine),
        cmocka_unit_test(the_real_processes_can_be_scanned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
