/* SPDX-License-Identifier: Apache-2.0
 *
 * Which devices AMD's table lists, how they are numbered, and the facts that need no driver.
 */
#include "hardware/amd/amd.h"

#include <sys/stat.h>

#include "base/count.h"
#include "support/failing_allocator.h"
#include "support/hardware/amd_machine.h"

#define HOST "/sys/devices/pci0000:00"

/* Checks the ids and addresses of the listed devices: "amd0 0000:03:00.0, amd1 -". */
static void check_list(const char *wanted)
{
    struct findings findings = {0};
    struct text list = {0};
    struct device_finding *found;

    amd_list(&findings);
    vector_for_each (found, &findings.found)
        text_append_format(&list, "%s%s %s", list.length > 0 ? ", " : "",
                           device_id_format(found->device->id).text,
                           found->device->pci.known ? pci_format(found->device->pci).text : "-");
    assert_string_equal(text_string(&list), wanted);
    text_finish(&list);
    findings_finish(&findings);
}

static void keys_say_all_that_they_are_made_of(void **state)
{
    struct amd_key keys[] = {
        {.has_node = true,
         .node = UINT32_MAX,
         .gpu_id = {.known = true, .value = UINT64_MAX},
         .pci = {.known = true, .domain = UINT32_MAX, .bus = 255, .device = 31, .function = 7},
         .parent = "0123456789abcdef"},
        {.has_node = true, .node = 0},
        {.pci = {.known = true, .bus = 3}, .parent = "ffffffff:ff:1f.7"},
        {.has_node = false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(keys); i++) {
        struct amd_key key;

        assert_int_equal(amd_key_parse(amd_key_format(&keys[i]).text, &key, NULL), 0);
        assert_string_equal(amd_key_format(&key).text, amd_key_format(&keys[i]).text);
        assert_int_equal(key.has_node, keys[i].has_node);
        assert_int_equal(key.node, keys[i].node);
        assert_true(key.gpu_id.known == keys[i].gpu_id.known);
        assert_true(key.gpu_id.value == keys[i].gpu_id.value);
        assert_int_equal(key.pci.known, keys[i].pci.known);
        assert_string_equal(key.parent, keys[i].parent);
    }
}

static void keys_of_others_are_refused(void **state)
{
    static const char *const keys[] = {
        "",
        "1",
        "1 2 -",
        "1 2 - - -",
        "x - - -",
        "- x - -",
        "- - x -",
        "4294967296 - - -",
        "- - - 0123456789012345678901234",
        "- - - -                                                                               ",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(keys); i++) {
        struct amd_key key;

        assert_int_equal(amd_key_parse(keys[i], &key, NULL), BERTH_ERROR_INVALID);
    }
    assert_int_equal(amd_key_parse(NULL, NULL, NULL), BERTH_ERROR_INVALID);
}

static void a_machine_without_amd_has_no_devices(void **state)
{
    (void)state;
    check_list("");
    machine_directory("/sys/class/drm");
    machine_directory(KFD_NODES);
    check_list("");
}

/* Node numbers have gaps and CPUs between them; addresses are in another order. */
static void devices_are_counted_in_kfds_order(void **state)
{
    (void)state;
    kfd_cpus(0);
    kfd_gpu(2, "11", "location_id 33536\ndomain 0");
    kfd_gpu(10, "12", "location_id 768\ndomain 0");
    kfd_cpus(4);
    kfd_gpu(7, "13", "location_id 512\ndomain 65537");
    check_list("amd0 0000:83:00.0, amd1 10001:02:00.0, amd2 0000:03:00.0");
}

static void devices_that_kfd_does_not_know_come_last(void **state)
{
    (void)state;
    amd_card(HOST "/0000:03:00.0", "card0", "renderD128");
    amd_card(HOST "/0000:01:00.0", "card1", "renderD129");
    amd_card(HOST "/0000:09:00.0", "card2", "renderD130");
    amd_card(HOST "/0000:0a:00.0", "card3", "renderD131");
    kfd_cpus(0);
    kfd_gpu(1, "11", "location_id 2304\ndrm_render_minor 130");
    kfd_gpu(2, "12",
            "drm_render_minor 131"); /* listed only once, although its address is unknown */
    check_list("amd0 0000:09:00.0, amd1 -, amd2 0000:01:00.0, amd3 0000:03:00.0");
}

static void all_classes_of_display_controllers_count(void **state)
{
    static const char *const classes[] = {"0x030000", "0x030200", "0x038000", "0x120000"};

    (void)state;
    for (size_t i = 0; i < COUNT(classes); i++) {
        char device[64], card[16], render[16];

        snprintf(device, sizeof(device), HOST "/0000:0%zu:00.0", i + 1);
        snprintf(card, sizeof(card), "card%zu", i);
        snprintf(render, sizeof(render), "renderD%zu", 128 + i);
        amd_card(device, card, render);
        machine_value(device, "class", classes[i]);
    }
    check_list("amd0 0000:01:00.0, amd1 0000:02:00.0, amd2 0000:03:00.0, amd3 0000:04:00.0");
}

/* A GPU's node without readable properties is counted, so that the other numbers stay. */
static void a_node_that_makes_no_sense_is_sick(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct findings listed = {0};
    struct findings read = {0};

    (void)state;
    kfd_cpus(0);
    kfd_file(1, "gpu_id", "11");
    kfd_file(1, "properties", "\xff\xfe\n\n  simd_count -4");
    kfd_gpu(2, "12", "location_id 768");
    check_list("amd0 -, amd1 0000:03:00.0");
    amd_list(&listed);
    assert_int_equal(amd_table.read(&amd_context, &listed.found.items[0], &read, &error),
                     BERTH_ERROR_INVALID);
    assert_string_equal(error.message, "KFD node 1: expected properties, got none");
    findings_finish(&read);
    assert_int_equal(amd_table.read(&amd_context, &listed.found.items[1], &read, &error), 0);
    findings_finish(&read);
    /* KFD has renumbered its nodes. */
    kfd_file(2, "gpu_id", "13");
    assert_int_equal(amd_table.read(&amd_context, &listed.found.items[1], &read, &error),
                     BERTH_ERROR_NOT_FOUND);
    findings_finish(&read);
    findings_finish(&listed);
}

/* The other nodes keep their numbers and are read. A card that could be this node is not listed a
 * second time. */
static void a_node_that_does_not_answer_is_counted(void **state)
{
    struct findings findings = {0};

    (void)state;
    amd_card(HOST "/0000:02:00.0", "card0", "renderD128");
    kfd_cpus(0);
    kfd_gpu(1, "11", "location_id 256");
    kfd_gpu(2, "12", "location_id 512");
    kfd_gpu(3, "13", "location_id 768");
    amd_stuck_node = 2;
    check_list("amd0 0000:01:00.0, amd1 -, amd2 0000:03:00.0");
    assert_string_equal(pci_format(amd_look(2, &findings)->pci).text, "0000:03:00.0");
    findings_finish(&findings);
    amd_stuck_node = 0;
    check_list("amd0 0000:01:00.0, amd1 0000:02:00.0, amd2 0000:03:00.0");
}

/* The names of directories are enough: a pipe in place of a file would block this test. */
static void listing_candidates_reads_no_file(void **state)
{
    struct findings findings = {0};

    (void)state;
    machine_pipe(KFD_NODES "/2/properties");
    machine_pipe(KFD_NODES "/2/gpu_id");
    machine_pipe(KFD_NODES "/10/properties");
    assert_int_equal(amd_table.list_candidates(&amd_context, &findings, NULL), 0);
    assert_int_equal(findings.found.count, 2);
    assert_string_equal(findings.found.items[0].key, "number 2\n");
    assert_string_equal(findings.found.items[1].key, "number 10\n");
    findings_finish(&findings);
}

static void candidates_may_be_in_any_order(void **state)
{
    struct device_id id = {.vendor = VENDOR_AMD, .mig = DEVICE_NO_MIG};
    struct finding_list candidates = {0};
    struct findings findings = {0};

    (void)state;
    finding_list_add(&candidates, id)->key =
        strdup("number 7\ngpu_id 13\nis_hidden 0\nlocation_id 512\n");
    finding_list_add(&candidates, id)->key = strdup("number 4\ngpu_id 0\nis_hidden 0\n");
    finding_list_add(&candidates, id)->key =
        strdup("number 2\ngpu_id 11\nis_hidden 0\nlocation_id 768\n");
    assert_int_equal(amd_table.list(&amd_context, &candidates, &findings, NULL), 0);
    assert_int_equal(findings.found.count, 2);
    assert_string_equal(findings.found.items[0].key, "2 11 0000:03:00.0 -");
    assert_string_equal(findings.found.items[1].key, "7 13 0000:02:00.0 -");
    findings_finish(&findings);
    finding_list_finish(&candidates);
}

static void candidates_of_others_are_refused(void **state)
{
    static const char *const keys[] = {"", "number", "number x\n", "number 4294967296\n",
                                       "gpu_id 3\n"};
    struct device_id id = {.vendor = VENDOR_AMD, .mig = DEVICE_NO_MIG};
    struct finding_list candidates = {0};
    struct findings findings = {0};

    (void)state;
    assert_non_null(finding_list_add(&candidates, id));
    for (size_t i = 0; i < COUNT(keys); i++) {
        free(candidates.items[0].key);
        candidates.items[0].key = strdup(keys[i]);
        assert_int_equal(amd_table.list(&amd_context, &candidates, &findings, NULL),
                         BERTH_ERROR_INVALID);
        assert_int_equal(
            amd_table.read_candidate(&amd_context, &candidates.items[0], &findings, NULL),
            BERTH_ERROR_INVALID);
        assert_int_equal(findings.found.count, 0);
    }
    finding_list_finish(&candidates);
}

/* A node that disappears between the two steps is left out. */
static void a_candidate_that_is_gone_is_left_out(void **state)
{
    struct device_id id = {.vendor = VENDOR_AMD, .mig = DEVICE_NO_MIG};
    struct finding_list candidates = {0};
    struct findings findings = {0};

    (void)state;
    finding_list_add(&candidates, id)->key = strdup("number 5\n");
    assert_int_equal(amd_table.read_candidate(&amd_context, &candidates.items[0], &findings, NULL),
                     0);
    assert_int_equal(findings.found.count, 0);
    finding_list_finish(&candidates);
}

static void check_parent(size_t place, const char *parent, const char *uuid)
{
    struct findings listed = {0};
    struct findings findings = {0};
    struct device *device = amd_look(place, &findings);

    amd_list(&listed);
    if (parent == NULL) {
        assert_null(device->parent);
        assert_null(listed.found.items[place].device->parent);
    } else {
        assert_string_equal(device->parent, parent);
        assert_string_equal(listed.found.items[place].device->parent, parent);
    }
    if (uuid == NULL)
        assert_null(device->uuid);
    else
        assert_string_equal(device->uuid, uuid);
    findings_finish(&findings);
    findings_finish(&listed);
}

static void partitions_share_a_parent(void **state)
{
    (void)state;
    kfd_gpu(1, "11", "location_id 1280\ngfx_target_version 90402\nunique_id 255");
    kfd_gpu(2, "12", "location_id 1281\ngfx_target_version 90402\nunique_id 255");
    kfd_gpu(3, "13", "location_id 1536\ngfx_target_version 90402\nunique_id 254");
    kfd_gpu(4, "14", "location_id 1792\ngfx_target_version 90402\nunique_id 0");
    kfd_gpu(5, "15", "location_id 2048\ngfx_target_version 90402\nunique_id 0");
    check_list("amd0 0000:05:00.0, amd1 0000:05:00.0, amd2 0000:06:00.0, amd3 0000:07:00.0, "
               "amd4 0000:08:00.0");
    check_parent(0, "00000000000000ff", NULL);
    check_parent(1, "00000000000000ff", NULL);
    check_parent(2, NULL, "GPU-00000000000000fe");
    check_parent(3, NULL, NULL); /* 0 is not an id */
    check_parent(4, NULL, NULL);
}

static void partitions_with_ids_of_their_own_share_their_address(void **state)
{
    (void)state;
    kfd_gpu(1, "11", "location_id 1280\nunique_id 1");
    kfd_gpu(2, "12", "location_id 268436736\nunique_id 2");
    kfd_gpu(3, "13", "location_id 1536\nunique_id 3");
    check_list("amd0 0000:05:00.0, amd1 0000:05:00.0, amd2 0000:06:00.0");
    check_parent(0, "0000:05:00.0", "GPU-0000000000000001");
    check_parent(1, "0000:05:00.0", "GPU-0000000000000002");
    check_parent(2, NULL, "GPU-0000000000000003");
}

static void check_kind(const char *wanted)
{
    struct findings findings = {0};
    struct device *device = amd_look(0, &findings);
    const char *kind = choice_name(device_kind_names, (int)device->kind);

    assert_string_equal(kind == NULL ? "unknown" : kind, wanted);
    findings_finish(&findings);
}

static void integrated_and_discrete_are_told_apart(void **state)
{
    (void)state;
    /* One node for the CPUs and the GPU. */
    kfd_file(0, "gpu_id", "11");
    kfd_file(0, "properties", "cpu_cores_count 8\nsimd_count 12\nlocation_id 1280");
    check_kind("integrated");
    /* Separate nodes. */
    kfd_file(0, "properties", "cpu_cores_count 0\nsimd_count 12\nlocation_id 1280");
    check_kind("unknown");
    kfd_file(0, "mem_banks/0/properties", "heap_type 0\nsize_in_bytes 1000");
    check_kind("integrated");
    kfd_file(0, "mem_banks/0/properties", "heap_type 1\nsize_in_bytes 1000");
    check_kind("discrete");
    /* Reserved memory, and the sensor that only an APU has. */
    amd_card(HOST "/0000:05:00.0", "card0", "renderD128");
    check_kind("discrete");
    machine_value(HOST "/0000:05:00.0/hwmon/hwmon3", "name", "amdgpu");
    machine_value(HOST "/0000:05:00.0/hwmon/hwmon3", "in1_label", "vddnb");
    check_kind("integrated");
}

static void check_name(const char *wanted)
{
    struct findings findings = {0};
    struct device *device = amd_look(0, &findings);

    if (wanted == NULL)
        assert_null(device->name);
    else
        assert_string_equal(device->name, wanted);
    findings_finish(&findings);
}

static void names_are_what_people_say(void **state)
{
    (void)state;
    kfd_gpu(0, "11", "location_id 768");
    check_name(NULL);
    kfd_gpu(0, "11", "location_id 768\ndevice_id 29857");
    check_name("AMD Device 74a1");
    kfd_gpu(0, "11", "location_id 768\ndevice_id 29857\ngfx_target_version 90402");
    check_name("AMD gfx942");
    kfd_gpu(0, "11", "location_id 768\ndevice_id 29857\ngfx_target_version 90010");
    check_name("AMD gfx90a");
    kfd_gpu(0, "11", "location_id 768\ndevice_id 29857\ngfx_target_version 110003");
    check_name("AMD gfx1103");
    kfd_gpu(0, "11", "location_id 768\ndevice_id 29772\ngfx_target_version 110000");
    check_name("AMD Radeon RX 7900 XT/7900 XTX");
    amd_card(HOST "/0000:03:00.0", "card0", "renderD128");
    check_name("AMD Radeon RX 7900 XT/7900 XTX");
    machine_value(HOST "/0000:03:00.0", "product_name", "");
    check_name("AMD Radeon RX 7900 XT/7900 XTX");
    machine_value(HOST "/0000:03:00.0", "product_name", "AMD Radeon PRO W7900");
    check_name("AMD Radeon PRO W7900");
    machine_value(HOST "/0000:03:00.0", "product_name", "\x1b[2J\xff");
    check_name("\xef\xbf\xbd[2J\xef\xbf\xbd");
}

static void check_capability(const char *version, const char *wanted)
{
    struct findings findings = {0};
    char more[128];
    struct device *device;

    snprintf(more, sizeof(more), "location_id 768\ngfx_target_version %s", version);
    kfd_gpu(0, "11", more);
    device = amd_look(0, &findings);
    assert_int_equal(device->cap.known, wanted != NULL);
    if (wanted != NULL)
        assert_string_equal(capability_format(device->cap).text, wanted);
    findings_finish(&findings);
}

static void capability_is_the_chips_version(void **state)
{
    (void)state;
    check_capability("90402", "9.4");
    check_capability("90010", "9.0");
    check_capability("110001", "11.0");
    check_capability("120001", "12.0");
    check_capability("9999999", "999.99");
    check_capability("0", NULL);
    check_capability("10000000", NULL);
    check_capability("-1", NULL);
}

/* The device files come from sysfs, whatever their numbers are. */
static void device_files_are_found_by_sysfs(void **state)
{
    struct findings findings = {0};
    struct device *device;

    (void)state;
    machine_file("/dev/kfd", "");
    machine_file("/dev/dri/card0", "");
    machine_file("/dev/dri/card5", "");
    machine_file("/dev/dri/renderD128", "");
    machine_file("/dev/dri/renderD140", "");
    machine_file("/dev/dri/renderD141", "");
    amd_card(HOST "/0000:03:00.0", "card5", "renderD140");
    machine_drm_node("/sys/devices/platform/amdgpu_xcp_0", "renderD141");
    kfd_gpu(0, "11", "location_id 768\nunique_id 9\ndrm_render_minor 140");
    kfd_gpu(1, "12", "location_id 268436224\nunique_id 9\ndrm_render_minor 141");
    check_list("amd0 0000:03:00.0, amd1 0000:03:00.0");
    device = amd_look(0, &findings);
    assert_int_equal(device->nodes.count, 3);
    assert_string_equal(device->nodes.items[0], "/dev/kfd");
    assert_string_equal(device->nodes.items[1], "/dev/dri/renderD140");
    assert_string_equal(device->nodes.items[2], "/dev/dri/card5");
    findings_finish(&findings);
    device = amd_look(1, &findings);
    assert_int_equal(device->nodes.count, 2);
    assert_string_equal(device->nodes.items[0], "/dev/kfd");
    assert_string_equal(device->nodes.items[1], "/dev/dri/renderD141");
    assert_string_equal(findings.found.items[0].path, HOST "/0000:03:00.0");
    findings_finish(&findings);
}

/* Such devices are not counted, as in AMD's runtime. The names of the other device files do not
 * change. */
static void devices_without_a_device_file_here_are_left_out(void **state)
{
    struct findings findings = {0};

    (void)state;
    machine.recorded = false;
    amd_card(HOST "/0000:01:00.0", "card0", "renderD128");
    amd_card(HOST "/0000:03:00.0", "card1", "renderD129");
    amd_card(HOST "/0000:09:00.0", "card2", "renderD130");
    machine_file("/dev/dri/renderD129", "");
    kfd_gpu(1, "11", "location_id 256\ndrm_render_minor 128");
    kfd_gpu(2, "12", "location_id 768\ndrm_render_minor 129");
    check_list("amd0 0000:03:00.0");
    amd_list(&findings);
    assert_int_equal(findings.problems.count, 1);
    assert_string_equal(findings.problems.items[0].backend, "amd");
    assert_string_equal(findings.problems.items[0].message,
                        "left out, because their device files are missing here: 0000:01:00.0 "
                        "(/dev/dri/renderD128), 0000:09:00.0 (/dev/dri/renderD130)");
    findings_finish(&findings);
}

static void nodes_without_permission_are_left_out(void **state)
{
    struct findings findings = {0};

    (void)state;
    if (geteuid() == 0) {
        print_message("skip: root may read everything\n");
        skip();
    }
    for (unsigned node = 1; node <= 12; node++)
        kfd_gpu(node, "11", "location_id 768");
    for (unsigned node = 2; node <= 12; node++) {
        char path[128];

        snprintf(path, sizeof(path), KFD_NODES "/%u/gpu_id", node);
        assert_int_equal(chmod(path + 1, 0), 0);
        snprintf(path, sizeof(path), KFD_NODES "/%u/properties", node);
        assert_int_equal(chmod(path + 1, 0), 0);
    }
    check_list("amd0 0000:03:00.0");
    amd_list(&findings);
    assert_int_equal(findings.problems.count, 1);
    assert_non_null(strstr(findings.problems.items[0].message, "KFD node 2, KFD node 3"));
    assert_non_null(strstr(findings.problems.items[0].message, "KFD node 9 and 3 more"));
    findings_finish(&findings);
}

static void places_are_known_by_pci_else_by_kfd(void **state)
{
    struct findings findings = {0};
    struct device *device;

    (void)state;
    kfd_cpus(0);
    kfd_cpus(1);
    kfd_gpu(2, "11", "location_id 768");
    kfd_link(2, 0, "type 2\nnode_to 1");
    machine_value("/sys/devices/system/node/node1", "cpulist", "8-15");
    machine_value("/sys/devices/system/node/node0", "cpulist", "0-7");
    device = amd_look(0, &findings);
    assert_int_equal(device->numa.value, 1);
    assert_string_equal(device->cpus, "8-15");
    findings_finish(&findings);
    amd_card(HOST "/0000:03:00.0", "card0", "renderD128");
    machine_value(HOST "/0000:03:00.0", "numa_node", "-1");
    device = amd_look(0, &findings);
    assert_int_equal(device->numa.value, 1);
    findings_finish(&findings);
    machine_value(HOST "/0000:03:00.0", "numa_node", "0");
    machine_value(HOST "/0000:03:00.0", "local_cpulist", "0-3");
    device = amd_look(0, &findings);
    assert_int_equal(device->numa.value, 0);
    assert_string_equal(device->cpus, "0-3");
    findings_finish(&findings);
}

/* Each allocation fails in turn: this is an error, or the fact is unknown. */
static void failed_allocations_leave_nothing_behind(void **state)
{
    bool is_refused = true;

    (void)state;
    amd_card(HOST "/0000:03:00.0", "card0", "renderD128");
    amd_card(HOST "/0000:09:00.0", "card1", "renderD129");
    kfd_cpus(0);
    kfd_gpu(1, "11", "location_id 768\nunique_id 9\ndrm_render_minor 128");
    kfd_link(1, 0, "type 2\nnode_to 0");
    kfd_gpu(2, "12", "location_id 268436224\nunique_id 9");
    kfd_link(2, 0, "type 11\nnode_to 1");
    for (unsigned long n = 1; is_refused; n++) {
        struct findings listed = {0};
        struct findings findings = {0};
        int code;

        failing_allocator_start(n);
        code = amd_try_list(&listed, NULL);
        for (size_t i = 0; i < listed.found.count && code == 0; i++)
            code = amd_table.read(&amd_context, &listed.found.items[i], &findings, NULL);
        if (code == 0)
            code = amd_table.links(&amd_context, &listed.found, &findings, NULL);
        is_refused = failing_allocator_stop();
        assert_true(code == 0 || (is_refused && code == BERTH_ERROR_MEMORY));
        assert_true(is_refused || listed.found.count == 3);
        findings_finish(&listed);
        findings_finish(&findings);
        pci_names_finish();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_say_all_that_they_are_made_of),
        cmocka_unit_test(keys_of_others_are_refused),
        AMD_TEST(a_machine_without_amd_has_no_devices),
        AMD_TEST(devices_are_counted_in_kfds_order),
        AMD_TEST(devices_that_kfd_does_not_know_come_last),
        AMD_TEST(all_classes_of_display_controllers_count),
        AMD_TEST(a_node_that_makes_no_sense_is_sick),
        AMD_TEST(a_node_that_does_not_answer_is_counted),
        AMD_TEST(listing_candidates_reads_no_file),
        AMD_TEST(candidates_may_be_in_any_order),
        AMD_TEST(candidates_of_others_are_refused),
        AMD_TEST(a_candidate_that_is_gone_is_left_out),
        AMD_TEST(partitions_share_a_parent),
        AMD_TEST(partitions_with_ids_of_their_own_share_their_address),
        AMD_TEST(integrated_and_discrete_are_told_apart),
        AMD_TEST(names_are_what_people_say),
        AMD_TEST(capability_is_the_chips_version),
        AMD_TEST(device_files_are_found_by_sysfs),
        AMD_TEST(devices_without_a_device_file_here_are_left_out),
        AMD_TEST(nodes_without_permission_are_left_out),
        AMD_TEST(places_are_known_by_pci_else_by_kfd),
        AMD_TEST(failed_allocations_leave_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
