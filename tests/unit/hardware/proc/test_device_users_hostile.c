/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "hardware/proc/device_users.h"

#include "support/failing_allocator.h"
#include "support/hardware/process_tree.h"
#include "support/temporary_directory.h"

#define RENDER "/dev/dri/renderD128"
#define CLIENT "drm-driver: xe\ndrm-client-id: 9\ndrm-resident-vram0: 100\ndrm-engine-rcs: 1 ns\n"

static struct findings scan_once(void)
{
    struct device_users *uses;
    struct findings findings;

    assert_int_equal(device_users_create(&uses, NULL), 0);
    findings = process_tree_scan(uses);
    device_users_destroy(uses);
    return findings;
}

static void names_that_are_no_pids_are_passed_over(void **state)
{
    static const char *const names[] = {
        "12x",  "x12", "012",  "0",          "-1",         "+1",
        " 1",   "1 ",  "1\n2", "4294967297", "2147483648", "99999999999999999999999999",
        "self",
    };
    struct findings findings;
    char path[256];

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "proc/%s/fd/3", names[i]);
        process_tree_link(path, RENDER);
    }
    process_tree_open(2147483647, 3, RENDER, CLIENT);
    findings = scan_once();
    assert_int_equal(findings.found.count, 1);
    assert_int_equal(findings.found.items[0].device->processes.count, 1);
    assert_int_equal(findings.found.items[0].device->processes.items[0].pid, 2147483647);
    findings_finish(&findings);
}

static void things_that_are_not_what_they_should_be_are_passed_over(void **state)
{
    struct findings findings;

    (void)state;
    process_tree_file("proc/5", "a file for a process");
    process_tree_file("proc/6/fd", "a file for a directory");
    process_tree_file("proc/7/fd/3", "a file for a link");
    process_tree_link("proc/8/fd", "/nowhere");
    process_tree_link("proc/9/fd/name\nwith\nnewlines", RENDER);
    process_tree_link("proc/10/fd/3", RENDER);
    process_tree_file("proc/10/fdinfo/3/is/a/directory", "");
    process_tree_link("proc/11/fd/3", RENDER);
    process_tree_file("proc/11/fdinfo", "is a file");
    process_tree_link("proc/12/fd/3\n4", "/dev/dri/renderD128\n");
    process_tree_link("proc/13/fd/3", "/dev/dri/renderD99999999999999999999");
    process_tree_link("proc/14/fd/3", "/dev/dri/../dri/renderD128");
    findings = scan_once();
    assert_int_equal(findings.found.count, 1);
    assert_int_equal(findings.found.items[0].device->processes.count, 2);
    assert_int_equal(findings.found.items[0].device->processes.items[0].pid, 10);
    assert_int_equal(findings.found.items[0].device->processes.items[1].pid, 11);
    assert_false(findings.found.items[0].device->processes.items[0].memory.known);
    findings_finish(&findings);
}

static void thousands_of_descriptors_are_one_client(void **state)
{
    enum { MANY = 5000 };
    struct findings findings;

    (void)state;
    process_tree_open(50, 3, RENDER, CLIENT);
    for (int i = 4; i < MANY; i++) {
        char path[64];

        process_tree_open(50, i, RENDER, NULL);
        snprintf(path, sizeof(path), "proc/50/fdinfo/%d", i);
        assert_int_equal(link("proc/50/fdinfo/3", path), 0);
    }
    findings = scan_once();
    assert_int_equal(findings.found.count, 1);
    assert_int_equal(findings.found.items[0].device->processes.count, 1);
    assert_int_equal(findings.found.items[0].device->processes.items[0].memory.value, 100);
    findings_finish(&findings);
}

static void endless_facts_are_cut(void **state)
{
    size_t size = 1 << 20;
    char *bytes = malloc(size);
    struct findings findings;

    (void)state;
    assert_non_null(bytes);
    memset(bytes, 'a', size);
    memcpy(bytes, CLIENT, strlen(CLIENT));
    process_tree_open(50, 3, RENDER, NULL);
    process_tree_write("proc/50/fdinfo/3", bytes, size);
    findings = scan_once();
    assert_int_equal(findings.found.items[0].device->processes.items[0].memory.value, 100);
    findings_finish(&findings);
    free(bytes);
}

static void more_devices_than_there_can_be_are_bounded(void **state)
{
    struct findings findings;

    (void)state;
    for (int i = 0; i < 5000; i++) {
        char target[64];

        snprintf(target, sizeof(target), "/dev/dri/renderD%d", i);
        process_tree_open(50, i, target, NULL);
    }
    findings = scan_once();
    assert_int_equal(findings.found.count, 4096);
    findings_finish(&findings);
}

/* Each allocation fails in turn: the scan fails or is complete. */
static void memory_may_run_out_anywhere(void **state)
{
    struct sysroot root = process_tree_root();
    bool refused = true;

    (void)state;
    process_tree_open(1, 3, RENDER, CLIENT);
    process_tree_open(2, 3, "/dev/dri/card0", CLIENT);
    for (unsigned long n = 1; refused; n++) {
        struct device_users *uses = NULL;
        struct findings findings = {0};
        int code;

        failing_allocator_start(n);
        code = device_users_create(&uses, NULL);
        if (code == 0)
            code = device_users_scan(uses, &root, NULL, &findings, NULL);
        refused = failing_allocator_stop();
        assert_true(code == 0 || (refused && code == BERTH_ERROR_MEMORY));
        if (code == 0)
            assert_int_equal(findings.found.count, 2);
        findings_finish(&findings);
        device_users_destroy(uses);
    }
    sysroot_finish(&root);
}

#define TREE_TEST(function) \
    cmocka_unit_test_setup_teardown(function, temporary_directory_enter, temporary_directory_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(names_that_are_no_pids_are_passed_over),
        TREE_TEST(things_that_are_not_what_they_should_be_are_passed_over),
        TREE_TEST(thousands_of_descriptors_are_one_client),
        TREE_TEST(endless_facts_are_cut),
        TREE_TEST(more_devices_than_there_can_be_are_bounded),
        TREE_TEST(memory_may_run_out_anywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
