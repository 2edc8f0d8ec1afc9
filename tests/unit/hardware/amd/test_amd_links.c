/* SPDX-License-Identifier: Apache-2.0
 *
 * The links between AMD's devices, from KFD alone and with sysfs.
 */
#include <inttypes.h>

#include "base/count.h"
#include "support/hardware/amd_machine.h"

#define HOST "/sys/devices/pci0000:00"

/* Checks all links in order: "0-1 xgmi 2, 0-1 node 0". */
static void check_links(const char *wanted)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct findings listed = {0};
    struct findings findings = {0};
    struct text links = {0};
    struct link *link;

    amd_list(&listed);
    if (amd_table.links(&amd_context, &listed.found, &findings, &error) < 0)
        fail_msg("%s", error.message);
    vector_for_each (link, &findings.links)
        text_append_format(&links, "%s%zu-%zu %s %" PRIu32, links.length > 0 ? ", " : "",
                           link->between[0], link->between[1],
                           choice_name(link_kind_names, (int)link->kind), link->lanes);
    assert_string_equal(text_string(&links), wanted);
    text_finish(&links);
    findings_finish(&findings);
    findings_finish(&listed);
}

static void make_two(void)
{
    kfd_cpus(0);
    kfd_cpus(1);
    kfd_gpu(2, "11", "location_id 256");
    kfd_gpu(3, "12", "location_id 512");
}

static void nothing_is_linked_with_nothing(void **state)
{
    (void)state;
    check_links("");
    kfd_gpu(2, "11", "location_id 256");
    check_links("");
}

static void gpus_are_as_near_as_their_cpus(void **state)
{
    (void)state;
    make_two();
    check_links("");
    kfd_link(2, 0, "type 2\nnode_to 0");
    check_links("");
    kfd_link(3, 0, "type 2\nnode_to 1");
    check_links("0-1 sys 0");
    kfd_link(3, 0, "type 2\nnode_to 0");
    check_links("0-1 node 0");
}

static void lanes_are_told_by_how_fast_one_is(void **state)
{
    static const struct {
        const char *bandwidths;
        const char *wanted;
    } cases[] = {
        {"min_bandwidth 50000\nmax_bandwidth 150000", "0-1 xgmi 3"},
        {"min_bandwidth 50000\nmax_bandwidth 50000", "0-1 xgmi 1"},
        {"min_bandwidth 50000\nmax_bandwidth 75000", "0-1 xgmi 0"},
        {"min_bandwidth 0\nmax_bandwidth 50000", "0-1 xgmi 0"},
        {"min_bandwidth 50000\nmax_bandwidth 0", "0-1 xgmi 0"},
        {"min_bandwidth 1\nmax_bandwidth 18446744073709551615", "0-1 xgmi 0"},
        {"", "0-1 xgmi 0"},
    };

    (void)state;
    make_two();
    for (size_t i = 0; i < COUNT(cases); i++) {
        char properties[256];

        snprintf(properties, sizeof(properties), "type 11\nnode_to 2\n%s", cases[i].bandwidths);
        kfd_link(3, 0, properties);
        check_links(cases[i].wanted);
    }
}

static void a_link_is_one_in_both_directions(void **state)
{
    (void)state;
    make_two();
    kfd_link(2, 0, "type 11\nnode_to 3");
    kfd_link(2, 1, "type 11\nnode_to 3");
    kfd_link(3, 0, "type 11\nnode_to 2\nmin_bandwidth 10\nmax_bandwidth 20");
    check_links("0-1 xgmi 2");
}

static void links_that_lead_nowhere_are_none(void **state)
{
    (void)state;
    make_two();
    kfd_link(2, 0, "type 11\nnode_to 2"); /* a link to itself */
    kfd_link(2, 1, "type 11\nnode_to 99");
    kfd_link(2, 2, "type 11\nnode_to 18446744073709551615");
    kfd_link(2, 3, "type 11\nnode_to -1");
    kfd_link(2, 4, "type 11");
    kfd_link(2, 5, "node_to 3");
    kfd_link(2, 6, "type 12\nnode_to 3");
    kfd_link(2, 7, "type 11\nnode_to 0"); /* a link to the CPUs */
    kfd_link(3, 0, "\xff");
    check_links("");
}

static void partitions_are_on_one_board(void **state)
{
    (void)state;
    kfd_gpu(1, "11", "location_id 256\nunique_id 9");
    kfd_gpu(2, "12", "location_id 268435712\nunique_id 9");
    kfd_gpu(3, "13", "location_id 512\nunique_id 10");
    kfd_link(1, 0, "type 11\nnode_to 2\nmin_bandwidth 819200\nmax_bandwidth 819200");
    kfd_link(1, 1, "type 11\nnode_to 3\nmin_bandwidth 10\nmax_bandwidth 20");
    check_links("0-1 xgmi 0, 0-1 psb 0, 0-2 xgmi 2");
}

/* If both GPUs are in sysfs, their PCIe path is computed later, for all vendors together. */
static void sysfs_tells_of_pcie_where_it_can(void **state)
{
    (void)state;
    make_two();
    kfd_link(2, 0, "type 2\nnode_to 0");
    kfd_link(2, 1, "type 11\nnode_to 3");
    kfd_link(3, 0, "type 2\nnode_to 0");
    amd_card(HOST "/0000:01:00.0", "card0", "renderD128");
    check_links("0-1 xgmi 0, 0-1 node 0");
    amd_card(HOST "/0000:02:00.0", "card1", "renderD129");
    check_links("0-1 xgmi 0");
    amd_card(HOST "/0000:09:00.0", "card2", "renderD130"); /* KFD does not list it */
    check_links("0-1 xgmi 0");
}

static void more_devices_than_a_machine_has_are_refused(void **state)
{
    struct device_id id = {.vendor = VENDOR_AMD, .mig = DEVICE_NO_MIG};
    struct finding_list devices = {0};
    struct findings findings = {0};

    (void)state;
    for (id.index = 0; id.index < 1025; id.index++)
        assert_non_null(finding_list_add(&devices, id));
    assert_int_equal(amd_table.links(&amd_context, &devices, &findings, NULL), BERTH_ERROR_LIMIT);
    finding_list_finish(&devices);
    findings_finish(&findings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        AMD_TEST(nothing_is_linked_with_nothing),
        AMD_TEST(gpus_are_as_near_as_their_cpus),
        AMD_TEST(lanes_are_told_by_how_fast_one_is),
        AMD_TEST(a_link_is_one_in_both_directions),
        AMD_TEST(links_that_lead_nowhere_are_none),
        AMD_TEST(partitions_are_on_one_board),
        AMD_TEST(sysfs_tells_of_pcie_where_it_can),
        AMD_TEST(more_devices_than_a_machine_has_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
