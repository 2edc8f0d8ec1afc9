/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/amd/kfd.h"

#include <inttypes.h>

#include "base/count.h"
#include "support/failing_allocator.h"
#include "support/hardware/amd_machine.h"

static void properties_are_read_by_name(void **state)
{
    static const char text[] = "cpu_cores_count 0\nsimd_count 416\nsimd_count 7\n"
                               "simd_id_base 2147487744\nunique_id 18446744073709551615\n"
                               "location_id 25344\ndrm_render_minor 128";
    struct kfd_node node = {0};

    (void)state;
    kfd_parse_node(text, strlen(text), &node);
    assert_true(node.cpu_cores_count.known);
    assert_int_equal(node.cpu_cores_count.value, 0);
    assert_int_equal(node.simd_count.value, 416); /* the first of two lines counts */
    assert_true(node.unique_id.value == UINT64_MAX);
    assert_int_equal(node.location_id.value, 25344);
    assert_int_equal(node.drm_render_minor.value, 128); /* also without a newline */
    assert_false(node.gfx_target_version.known);
    assert_false(node.domain.known);
}

static void what_is_no_number_is_unknown(void **state)
{
    static const char *const values[] = {"",
                                         "-1",
                                         "+1",
                                         " 1",
                                         "1 ",
                                         "0x1",
                                         "1e3",
                                         "1.0",
                                         "99999999999999999999",
                                         "1\r",
                                         "\xff",
                                         "one",
                                         "18446744073709551616"};

    (void)state;
    for (size_t i = 0; i < COUNT(values); i++) {
        struct kfd_node node = {0};
        char text[128];

        snprintf(text, sizeof(text), "simd_count %s\nlocation_id 5\n", values[i]);
        kfd_parse_node(text, strlen(text), &node);
        assert_false(node.simd_count.known);
        assert_int_equal(node.simd_count.value, 0);
        assert_int_equal(node.location_id.value, 5);
    }
}

static void zero_bytes_and_lines_without_a_name_are_passed_over(void **state)
{
    static const char text[] = "\0\n\n 5\nsimd_count\nsimd_countx 4\nsimd_count\t4\ndomain 1\0\n"
                               "location_id 6\n";
    struct kfd_node node = {0};

    (void)state;
    kfd_parse_node(text, sizeof(text) - 1, &node);
    assert_false(node.simd_count.known);
    assert_false(node.domain.known);
    assert_int_equal(node.location_id.value, 6);
}

static void nodes_are_in_order_of_their_numbers(void **state)
{
    static const uint32_t wanted[] = {0, 2, 5, 7, 8, 10, 11};
    struct kfd_number_list numbers = {0};
    struct kfd_node node;

    (void)state;
    kfd_cpus(0);
    kfd_gpu(10, "51", "");
    kfd_gpu(2, "52", "");
    kfd_gpu(5, "53", "");
    kfd_gpu(11, "54", "");
    machine_value(KFD_NODES "/007", "properties", "simd_count 1"); /* the kernel writes no leading
                                                                    * zeros */
    machine_value(KFD_NODES "/-1", "properties", "simd_count 1");
    machine_value(KFD_NODES "/x", "properties", "simd_count 1");
    machine_value(KFD_NODES "/4294967296", "properties", "simd_count 1");
    machine_value(KFD_NODES, "7", "a file");
    machine_directory(KFD_NODES "/8");
    assert_int_equal(kfd_list(&machine, &numbers, NULL), 0);
    assert_int_equal(numbers.count, COUNT(wanted));
    for (size_t i = 0; i < numbers.count; i++)
        assert_int_equal(numbers.items[i], wanted[i]);
    vector_finish(&numbers);
    /* A file and an empty directory are not nodes. */
    assert_true(kfd_read_node(&machine, 7, &node) < 0);
    assert_true(kfd_read_node(&machine, 8, &node) < 0);
}

static void a_machine_without_kfd_has_no_nodes(void **state)
{
    struct kfd_number_list numbers = {0};

    (void)state;
    assert_int_equal(kfd_list(&machine, &numbers, NULL), 0);
    assert_int_equal(numbers.count, 0);
}

static void check_packed(const struct kfd_node *node, const char *wanted)
{
    struct text text = {0};
    struct text again = {0};
    struct kfd_node unpacked;

    kfd_pack_node(node, &text);
    assert_string_equal(text_string(&text), wanted);
    assert_true(kfd_unpack_node(text_string(&text), &unpacked));
    assert_int_equal(unpacked.is_stuck, node->is_stuck);
    kfd_pack_node(&unpacked, &again);
    assert_string_equal(text_string(&again), wanted);
    text_finish(&text);
    text_finish(&again);
}

static void a_packed_node_has_all_facts(void **state)
{
    struct kfd_node node = {.number = UINT32_MAX,
                            .gpu_id = optional_number_of(0),
                            .unique_id = optional_number_of(UINT64_MAX)};

    (void)state;
    check_packed(&node, "number 4294967295\ngpu_id 0\nis_hidden 0\n"
                        "unique_id 18446744073709551615\n");
    check_packed(&(struct kfd_node){.is_hidden = true}, "number 0\nis_hidden 1\n");
    check_packed(&(struct kfd_node){.number = 3, .is_stuck = true}, "number 3\n");
}

static void gpus_are_told_by_id_else_by_what_they_have(void **state)
{
    struct kfd_node node = {0};

    (void)state;
    assert_false(kfd_is_gpu(&node));
    node.simd_count = optional_number_of(4);
    assert_true(kfd_is_gpu(&node));
    node.gpu_id = optional_number_of(0);
    assert_false(kfd_is_gpu(&node));
    node.gpu_id = optional_number_of(7);
    node.simd_count = (struct optional_number){0};
    assert_true(kfd_is_gpu(&node));
}

static void check_pci(const char *properties, const char *wanted, uint32_t wanted_partition)
{
    struct kfd_node node = {0};
    struct pci_address pci;
    uint32_t partition = 4711;

    kfd_parse_node(properties, strlen(properties), &node);
    pci = kfd_pci(&machine, &node, &partition);
    assert_int_equal(pci.known, wanted != NULL);
    if (wanted != NULL)
        assert_string_equal(pci_format(pci).text, wanted);
    assert_int_equal(partition, wanted_partition);
}

static void partitions_have_their_gpus_address(void **state)
{
    (void)state;
    check_pci("location_id 25344\ndomain 0\ngfx_target_version 90010", "0000:63:00.0", 0);
    check_pci("location_id 1280\ndomain 0\ngfx_target_version 90402", "0000:05:00.0", 0);
    /* For gfx94x, the partition is in place of the function. */
    check_pci("location_id 1287\ndomain 0\ngfx_target_version 90402", "0000:05:00.0", 7);
    check_pci("location_id 1287\ndomain 0\ngfx_target_version 90010", "0000:05:00.7", 0);
    /* In the highest bits, above the address. */
    check_pci("location_id 805307648\ndomain 65536\ngfx_target_version 90500", "10000:05:00.0", 3);
    check_pci("location_id 1281", "0000:05:00.1", 0);
}

static void a_function_that_is_there_is_meant(void **state)
{
    (void)state;
    machine_pci("/sys/devices/pci0000:00/0000:05:00.2", "1002:74a1");
    machine_driver("/sys/devices/pci0000:00/0000:05:00.2", "pci", "amdgpu");
    check_pci("location_id 1282\ndomain 0\ngfx_target_version 90402", "0000:05:00.2", 0);
    check_pci("location_id 1283\ndomain 0\ngfx_target_version 90402", "0000:05:00.0", 3);
}

static void locations_that_are_none_are_unknown(void **state)
{
    (void)state;
    check_pci("location_id 0", NULL, 0);
    check_pci("domain 0", NULL, 0);
    check_pci("location_id 65536", NULL, 0);
    check_pci("location_id 4294968576", NULL, 0);
    check_pci("location_id 18446744073709551615", NULL, 0);
    check_pci("location_id 1280\ndomain 4294967296", NULL, 0);
}

static void only_banks_of_its_own_are_memory(void **state)
{
    struct kfd_memory memory;

    (void)state;
    kfd_read_memory(&machine, 1, true, &memory);
    assert_false(memory.is_listed || memory.total.known || memory.used.known);
    kfd_file(1, "mem_banks/0/properties", "heap_type 0\nsize_in_bytes 100");
    kfd_read_memory(&machine, 1, true, &memory);
    assert_true(memory.is_listed);
    assert_false(memory.total.known);
    kfd_file(1, "mem_banks/1/properties", "heap_type 1\nsize_in_bytes 1000");
    kfd_file(1, "mem_banks/2/properties", "heap_type 2\nsize_in_bytes 500");
    kfd_file(1, "mem_banks/3/properties", "heap_type 4\nsize_in_bytes 7");
    kfd_file(1, "mem_banks/4/properties", "heap_type 1\nsize_in_bytes 18446744073709551615");
    kfd_file(1, "mem_banks/5/properties", "heap_type 1\nsize_in_bytes -8");
    kfd_file(1, "mem_banks/1/used_memory", "300");
    kfd_read_memory(&machine, 1, false, &memory);
    assert_int_equal(memory.total.value, 1500);
    assert_false(memory.used.known);
    kfd_read_memory(&machine, 1, true, &memory);
    assert_int_equal(memory.total.value, 1500);
    assert_int_equal(memory.used.value, 300);
}

static void links_are_read(void **state)
{
    struct kfd_link_list links = {0};

    (void)state;
    assert_int_equal(kfd_read_links(&machine, 1, 100, &links), 0);
    assert_int_equal(links.count, 0);
    kfd_link(1, 0,
             "type 2\nnode_from 1\nnode_to 0\nweight 20\nmin_bandwidth 312\n"
             "max_bandwidth 32000");
    kfd_link(1, 10, "type 11\nnode_to 4294967299");
    kfd_link(1, 2, "\xff\xfe");
    kfd_file(1, "io_links/x/properties", "type 11\nnode_to 1");
    machine_directory(KFD_NODES "/1/io_links/3");
    assert_int_equal(kfd_read_links(&machine, 1, 100, &links), 0);
    assert_int_equal(links.count, 3);
    assert_int_equal(links.items[0].type.value, KFD_LINK_PCIE);
    assert_int_equal(links.items[0].min_bandwidth.value, 312);
    assert_int_equal(links.items[0].max_bandwidth.value, 32000);
    assert_false(links.items[1].type.known || links.items[1].node_to.known);
    assert_int_equal(links.items[2].type.value, KFD_LINK_XGMI);
    assert_true(links.items[2].node_to.value == UINT64_C(4294967299));
    links.count = 0;
    assert_int_equal(kfd_read_links(&machine, 1, 1, &links), 0);
    assert_int_equal(links.count, 1);
    vector_finish(&links);
}

static void check_numa(uint32_t number, bool is_known, uint64_t wanted)
{
    struct optional_number numa;
    struct kfd_node node;

    assert_int_equal(kfd_read_node(&machine, number, &node), 0);
    numa = kfd_numa(&machine, &node);
    assert_int_equal(numa.known, is_known);
    if (is_known)
        assert_int_equal(numa.value, wanted);
}

static void a_gpu_is_where_its_cpus_are(void **state)
{
    (void)state;
    kfd_cpus(0);
    kfd_cpus(1);
    kfd_gpu(2, "1", "");
    kfd_link(2, 0, "type 2\nnode_from 2\nnode_to 1");
    kfd_gpu(3, "2", "");
    kfd_link(3, 0, "type 11\nnode_from 3\nnode_to 2");
    kfd_link(3, 1, "type 2\nnode_from 3\nnode_to 0");
    kfd_gpu(4, "3", "");
    kfd_link(4, 0, "type 2\nnode_to 4"); /* a link to itself */
    kfd_link(4, 1, "type 2\nnode_to 99");
    kfd_link(4, 2, "type 2\nnode_to 18446744073709551615");
    kfd_file(5, "properties", "cpu_cores_count 8\nsimd_count 12"); /* an APU */
    check_numa(2, true, 1);
    check_numa(3, true, 0);
    check_numa(4, false, 0);
    check_numa(5, true, 2);
    /* NUMA nodes without CPUs have no KFD node. */
    machine_value("/sys/devices/system/node", "has_cpu", "0,8");
    check_numa(2, true, 8);
    check_numa(3, true, 0);
    check_numa(5, false, 0);
}

static void a_file_that_fills_the_page_ends_with_its_last_whole_line(void **state)
{
    char content[SYSROOT_VALUE_SIZE + 64];
    struct kfd_node node;
    int length;

    (void)state;
    length = snprintf(content, sizeof(content), "simd_count 4\n");
    memset(content + length, 'x', sizeof(content) - (size_t)length);
    content[SYSROOT_VALUE_SIZE - 20] = '\n';
    /* The number continues beyond the maximum size. */
    memcpy(content + SYSROOT_VALUE_SIZE - 19, "location_id 1280123456789", 25);
    machine_bytes(KFD_NODES "/3/properties", content, sizeof(content));
    assert_int_equal(kfd_read_node(&machine, 3, &node), 0);
    assert_int_equal(node.simd_count.value, 4);
    assert_false(node.location_id.known);
}

static int list_once(void *context)
{
    struct kfd_number_list numbers = {0};
    int code = kfd_list(&machine, &numbers, NULL);

    (void)context;
    vector_finish(&numbers);
    return code;
}

static void failed_allocations_are_said(void **state)
{
    (void)state;
    kfd_cpus(0);
    kfd_gpu(1, "1", "");
    assert_true(failing_allocator_try_all(list_once, NULL) >= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(properties_are_read_by_name),
        cmocka_unit_test(what_is_no_number_is_unknown),
        cmocka_unit_test(zero_bytes_and_lines_without_a_name_are_passed_over),
        AMD_TEST(nodes_are_in_order_of_their_numbers),
        AMD_TEST(a_machine_without_kfd_has_no_nodes),
        cmocka_unit_test(a_packed_node_has_all_facts),
        cmocka_unit_test(gpus_are_told_by_id_else_by_what_they_have),
        AMD_TEST(partitions_have_their_gpus_address),
        AMD_TEST(a_function_that_is_there_is_meant),
        AMD_TEST(locations_that_are_none_are_unknown),
        AMD_TEST(only_banks_of_its_own_are_memory),
        AMD_TEST(links_are_read),
        AMD_TEST(a_gpu_is_where_its_cpus_are),
        AMD_TEST(a_file_that_fills_the_page_ends_with_its_last_whole_line),
        AMD_TEST(failed_allocations_are_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
