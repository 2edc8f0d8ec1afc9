/* SPDX-License-Identifier: Apache-2.0
 *
 * The policy topology in the engine: machines of the vendors, nodes of a cluster, and links that
 * become known later.
 */
#include "support/unit.h"

#include <stdio.h>

#include "base/count.h"
#include "engine/engine_report.h"
#include "engine/placement/placement.h"
#include "engine/policy/policies.h"
#include "support/assert_error.h"
#include "support/engine/engine_steps.h"
#include "support/failing_allocator.h"

static void add_link(struct machine *machine, size_t one, size_t other, enum link_kind kind,
                     uint32_t lanes)
{
    struct link *link = vector_append(&machine->links);

    assert_non_null(link);
    *link = (struct link){.between = {one, other}, .kind = kind, .lanes = lanes};
}

static void add_devices(struct machine *machine, const char *vendor, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        char id[32];

        snprintf(id, sizeof(id), "%s%u", vendor, i);
        machine_add(machine, id_of(id));
    }
}

/* NVLink lanes and PCIe paths of eight GPUs, rows of digits and of kinds: P one switch, H one host
 * bridge, S across NUMA nodes. */
static void make_eight(struct machine *machine, const char *const lanes[8],
                       const char *const paths[8])
{
    add_devices(machine, "nvidia", 8);
    for (size_t one = 0; one < 8; one++) {
        for (size_t other = one + 1; other < 8; other++) {
            char path = paths[one][other];

            if (lanes[one][other] > '0')
                add_link(machine, one, other, LINK_NVLINK, (uint32_t)(lanes[one][other] - '0'));
            add_link(machine, one, other,
                     path == 'P'   ? LINK_PIX
                     : path == 'H' ? LINK_PHB
                                   : LINK_SYS,
                     0);
        }
    }
}

static void make_volta(struct machine *machine)
{
    static const char *const lanes[8] = {"01122000", "10210200", "12020010", "21200001",
                                         "20000112", "02001021", "00101202", "00012120"};
    static const char *const paths[8] = {"XPHHSSSS", "PXHHSSSS", "HHXPSSSS", "HHPXSSSS",
                                         "SSSSXPHH", "SSSSPXHH", "SSSSHHXP", "SSSSHHPX"};

    make_eight(machine, lanes, paths);
}

/* Checks the slots that a request gets, such as "0,3". Releases them unless `keep` is set. */
static void check_given(struct world *world, const char *words, bool keep, const char *wanted)
{
    struct engine_request *request = world_request(world, words);
    struct text given = {0};
    struct lease_view view;
    uint64_t lease = 0;

    assert_int_equal(engine_try(world->engine, request, &lease, NULL), CLAIM_GRANTED);
    view = lease_in(world, lease);
    for (uint32_t i = 0; i < view.slot_count; i++)
        text_append_format(&given, "%s%u", i == 0 ? "" : ",", view.slots[i]);
    assert_string_equal(text_string(&given), wanted);
    text_finish(&given);
    if (!keep)
        released(world, lease);
}

static void pairs_that_leave_good_pairs_are_taken(void **state)
{
    static const char *const wanted[] = {"0,3", "1,2", "4,7", "5,6"};
    struct machine machine = {0};
    struct world world;

    (void)state;
    make_volta(&machine);
    world_init_with(&world, &machine, NULL);
    for (size_t i = 0; i < COUNT(wanted); i++)
        check_given(&world, "gpus=2 policy=topology", true, wanted[i]);
    world_finish(&world);
}

static void what_is_free_counts(void **state)
{
    struct machine machine = {0};
    struct world world;

    (void)state;
    make_volta(&machine);
    world_init_with(&world, &machine, NULL);
    check_given(&world, "gpus=4 policy=topology", false, "0,1,2,3");
    check_given(&world, "gpus=2 policy=topology device=nvidia0,nvidia1,nvidia3", false, "0,3");
    check_given(&world, "gpus=2 policy=topology device=nvidia0,nvidia2,nvidia4,nvidia5", false,
                "4,5");
    check_given(&world, "gpus=2 policy=topology avoid=nvidia0,nvidia1,nvidia4", false, "2,3");
    check_given(&world, "gpus=8 policy=topology", false, "0,1,2,3,4,5,6,7");
    check_given(&world, "gpus=1 policy=topology avoid=nvidia0", false, "1");
    check_given(&world, "gpus=2-3 policy=topology device=nvidia4,nvidia6,nvidia7", false, "4,6,7");
    world_finish(&world);
}

/* Two hives of four GPUs, connected by XGMI within. */
static void xgmi_keeps_hives_together(void **state)
{
    struct machine machine = {0};
    struct world world;

    (void)state;
    add_devices(&machine, "amd", 8);
    for (size_t one = 0; one < 8; one++) {
        machine.devices.items[one].numa = optional_number_of(one / 4);
        for (size_t other = one + 1; other < 8; other++)
            add_link(&machine, one, other, one / 4 == other / 4 ? LINK_XGMI : LINK_SYS, 0);
    }
    world_init_with(&world, &machine, NULL);
    check_given(&world, "gpus=1 policy=topology", false, "0");
    check_given(&world, "gpus=3 policy=topology", false, "0,1,2");
    check_given(&world, "gpus=5 policy=topology", false, "0,1,2,3,4");
    check_given(&world, "gpus=3 policy=topology device=amd2,amd3,amd4,amd5,amd6,amd7", false,
                "4,5,6");
    world_finish(&world);
}

/* Three GPUs with four, four and three partitions. */
static void gpus_with_few_free_partitions_are_used_up(void **state)
{
    static const char *const gpus[] = {"a", "a", "a", "a", "b", "b", "b", "b", "c", "c", "c"};
    struct machine machine = {0};
    struct world world;

    (void)state;
    add_devices(&machine, "amd", COUNT(gpus));
    for (size_t one = 0; one < COUNT(gpus); one++) {
        machine.devices.items[one].parent = copy_of(gpus[one]);
        machine.devices.items[one].numa = optional_number_of(0);
        for (size_t other = one + 1; other < COUNT(gpus); other++)
            add_link(&machine, one, other, LINK_XGMI, 0);
    }
    world_init_with(&world, &machine, NULL);
    check_given(&world, "gpus=4 policy=topology", false, "0,1,2,3");
    check_given(&world, "gpus=2 policy=topology", true, "8,9");
    check_given(&world, "gpus=1 policy=topology", true, "10");
    check_given(&world, "gpus=1 policy=topology", true, "0");
    check_given(&world, "gpus=3 policy=topology", true, "1,2,3");
    check_given(&world, "gpus=3 policy=topology", true, "4,5,6");
    world_finish(&world);
}

/* Without links and NUMA nodes, the lowest slots are taken. */
static void without_links_the_lowest_are_taken(void **state)
{
    struct machine machine = {0};
    struct world world;

    (void)state;
    add_devices(&machine, "nvidia", 4);
    world_init_with(&world, &machine, NULL);
    check_given(&world, "gpus=2 policy=topology avoid=nvidia1", true, "0,2");
    check_given(&world, "gpus=2 policy=topology avoid=nvidia1", true, "1,3");
    world_finish(&world);
}

static void numa_nodes_count_where_links_are_equal(void **state)
{
    static const unsigned nodes[] = {0, 1, 0, 1};
    struct world world;

    (void)state;
    for (int linked = 0; linked < 2; linked++) {
        struct machine machine = {0};

        add_devices(&machine, "nvidia", 4);
        for (size_t one = 0; one < 4; one++) {
            machine.devices.items[one].numa = optional_number_of(nodes[one]);
            for (size_t other = one + 1; other < 4 && linked == 1; other++)
                add_link(&machine, one, other, LINK_NVLINK, 12);
        }
        world_init_with(&world, &machine, NULL);
        check_given(&world, "gpus=2 policy=topology", true, "0,2");
        check_given(&world, "gpus=2 policy=topology", true, "1,3");
        world_finish(&world);
    }
}

static void nearby_cpus_count_where_numa_nodes_are_equal(void **state)
{
    struct machine machine = {0};
    struct world world;

    (void)state;
    add_devices(&machine, "nvidia", 4);
    for (size_t one = 0; one < 4; one++) {
        machine.devices.items[one].cpus = copy_of(one % 2 == 0 ? "0-7" : "8-15");
        for (size_t other = one + 1; other < 4; other++)
            add_link(&machine, one, other, LINK_PIX, 0);
    }
    world_init_with(&world, &machine, NULL);
    check_given(&world, "gpus=2 policy=topology", false, "0,2");
    world_finish(&world);
}

/* Three hosts of two devices, in slots 0 and 1, 2 and 3, 4 and 5. */
static void add_hosts(struct machine *machine)
{
    add_devices(machine, "nvidia", 6);
    for (uint32_t i = 0; i < 6; i++)
        machine->devices.items[i].host = i / 2;
    for (int i = 0; i < 3; i++)
        assert_non_null(vector_append(&machine->hosts));
}

static void the_host_with_the_best_set_is_taken(void **state)
{
    struct machine machine = {0};
    struct world world;

    (void)state;
    add_hosts(&machine);
    add_link(&machine, 2, 3, LINK_SYS, 0);
    add_link(&machine, 4, 5, LINK_NVLINK, 1);
    world_init_with(&world, &machine, NULL);
    check_given(&world, "gpus=2 policy=topology", true, "4,5");
    check_given(&world, "gpus=2 policy=topology", true, "2,3");
    check_given(&world, "gpus=2 policy=topology", true, "0,1");
    world_finish(&world);
}

static void equal_hosts_go_by_slot(void **state)
{
    struct machine machine = {0};
    struct world world;

    (void)state;
    add_hosts(&machine);
    world_init_with(&world, &machine, NULL);
    check_given(&world, "gpus=2 policy=topology avoid=nvidia0", false, "2,3");
    check_given(&world, "gpus=2 policy=topology", true, "0,1");
    check_given(&world, "gpus=2 policy=topology", true, "2,3");
    world_finish(&world);
}

/* A host in use comes before an empty host. */
static void whole_hosts_stay_whole(void **state)
{
    struct machine machine = {0};
    struct world world;

    (void)state;
    add_devices(&machine, "nvidia", 8);
    for (uint32_t i = 0; i < 8; i++)
        machine.devices.items[i].host = i / 4;
    for (size_t one = 0; one < 8; one++) {
        for (size_t other = one + 1; other < 8; other++)
            add_link(&machine, one, other, LINK_NVLINK, 12); /* those between hosts mean nothing */
    }
    assert_non_null(vector_append(&machine.hosts));
    assert_non_null(vector_append(&machine.hosts));
    world_init_with(&world, &machine, NULL);
    check_given(&world, "gpus=2 policy=topology device=nvidia6,nvidia7", true, "6,7");
    check_given(&world, "gpus=2 policy=topology", true, "4,5");
    check_given(&world, "gpus=4 policy=topology", true, "0,1,2,3");
    world_finish(&world);
}

static void vendors_mix_by_one_scale(void **state)
{
    struct machine machine = {0};
    struct world world;

    (void)state;
    add_devices(&machine, "nvidia", 2);
    add_devices(&machine, "amd", 2);
    add_link(&machine, 0, 1, LINK_SYS, 0);
    add_link(&machine, 0, 2, LINK_PIX, 0);
    add_link(&machine, 1, 3, LINK_PIX, 0);
    add_link(&machine, 2, 3, LINK_SYS, 0);
    world_init_with(&world, &machine, NULL);
    check_given(&world, "gpus=2 policy=topology vendor=any", false, "0,2");
    check_given(&world, "gpus=2 policy=topology vendor=amd", false, "2,3");
    world_finish(&world);
}

/* ---- Links that become known later ---- */

static void tell_link(struct world *world, size_t one, size_t other, enum link_kind kind,
                      uint32_t lanes)
{
    struct link link = {.between = {one, other}, .kind = kind, .lanes = lanes};
    struct link_list list = {.items = &link, .count = 1};

    assert_int_equal(engine_set_links(world->engine, &list, NULL), 0);
}

static void links_that_are_told_later_count(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2,nvidia3");
    check_given(&world, "gpus=2 policy=topology", false, "0,1");
    tell_link(&world, 1, 3, LINK_NVLINK, 2);
    check_given(&world, "gpus=2 policy=topology", false, "1,3");
    tell_link(&world, 0, 2, LINK_NVLINK, 4);
    check_given(&world, "gpus=2 policy=topology", false, "0,2");
    tell_link(&world, 0, 2, LINK_SYS, 0);
    check_given(&world, "gpus=2 policy=topology", false, "1,3");
    assert_int_equal(engine_machine(world.engine)->links.count, 2);
    tell_link(&world, 0, 2, LINK_SYS, 0);
    assert_int_equal(engine_machine(world.engine)->links.count, 2);
    world_finish(&world);
}

static void a_pair_has_a_fabric_link_and_a_path(void **state)
{
    struct link links[] = {
        {.between = {0, 1}, .kind = LINK_PIX},
        {.between = {0, 1}, .kind = LINK_NVLINK, .lanes = 2},
        {.between = {0, 2}, .kind = LINK_SYS},
    };
    struct link_list list = {.items = links, .count = COUNT(links)};
    const struct link_list *known;
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    assert_int_equal(engine_set_links(world.engine, &list, NULL), 0);
    known = &engine_machine(world.engine)->links;
    assert_int_equal(known->count, 3);
    assert_int_equal(known->items[0].kind, LINK_NVLINK);
    assert_int_equal(known->items[1].kind, LINK_PIX);
    tell_link(&world, 0, 1, LINK_PHB, 0);
    assert_int_equal(known->count, 2);
    assert_int_equal(known->items[0].kind, LINK_PHB);
    world_finish(&world);
}

static void links_of_other_slots_are_refused(void **state)
{
    static const size_t pairs[][2] = {{0, 2}, {1, 0}, {1, 1}};
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    for (size_t i = 0; i < COUNT(pairs); i++) {
        struct link link = {.between = {pairs[i][0], pairs[i][1]}, .kind = LINK_SYS};
        struct link_list list = {.items = &link, .count = 1};
        struct berth_error error = BERTH_ERROR_INIT;
        char message[128];

        snprintf(message, sizeof(message),
                 "expected a link between two of 2 devices, got one between %zu and %zu",
                 pairs[i][0], pairs[i][1]);
        assert_fails(engine_set_links(world.engine, &list, &error), BERTH_ERROR_INVALID, &error,
                     message);
    }
    assert_int_equal(engine_machine(world.engine)->links.count, 0);
    world_finish(&world);
}

/* The report's devices are in another order than the slots. */
static void links_of_a_report_reach_the_slots(void **state)
{
    const struct report_handler taker = {0};
    struct machine_report report = {.listed = 0x1f};
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1");
    machine_add_ids(&report.machine, "nvidia2,nvidia1,nvidia0,nvidia3");
    add_link(&report.machine, 0, 2, LINK_NVLINK, 4);
    add_link(&report.machine, 1, 2, LINK_SYS, 0);
    engine_pause(world.engine);
    assert_int_equal(engine_apply_report(world.engine, &report, &taker, NULL), 0);
    engine_resume(world.engine);
    check_given(&world, "gpus=2 policy=topology", false, "0,2");
    world_finish(&world);
}

/* ---- Explanations ---- */

/* Checks the policy's part of a plan's explanation. */
static void check_words(const struct machine *machine, uint32_t count, const char *wanted)
{
    static const char lead[] = "; topology takes the best-connected devices: ";
    struct placement placement;
    struct bitset none;
    struct request request;
    const char *words;

    request_init(&request);
    request.gpus = (struct device_count){.min = count, .max = count};
    assert_int_equal(bitset_init(&none, machine->devices.count), 0);
    assert_int_equal(placement_find(
                         &(struct placement_question){
                             .machine = machine,
                             .request = &request,
                             .policy = &policy_topology,
                             .busy = &none,
                             .must = &none,
                         },
                         &placement, NULL),
                     0);
    assert_true(placement.rated && placement.proven);
    words = strstr(text_string(&placement.why), lead);
    assert_non_null(words);
    assert_string_equal(words + strlen(lead), wanted);
    placement_finish(&placement);
    bitset_finish(&none);
    request_finish(&request);
}

static void words_say_how_devices_are_connected(void **state)
{
    struct machine machine = {0};

    (void)state;
    add_devices(&machine, "nvidia", 3);
    check_words(&machine, 2, "the lowest slots, because no links are known");
    add_link(&machine, 0, 1, LINK_PXB, 7); /* a path's number of lanes is ignored */
    check_words(&machine, 2, "connected through several PCIe switches; best of 3 free devices");
    check_words(&machine, 3,
                "of 3 pairs 1 connected through several PCIe switches, 2 in an unknown way");
    add_link(&machine, 1, 2, LINK_NVLINK, 0);
    add_link(&machine, 0, 2, LINK_NVLINK, 3);
    check_words(&machine, 2, "connected by 3 NVLink lanes; best of 3 free devices");
    check_words(&machine, 3, "of 3 pairs 2 connected by NVLink, 1 through several PCIe switches");
    check_words(&machine, 1, "the first, because one device needs no links");
    add_link(&machine, 0, 1, LINK_NVLINK, UINT32_MAX);
    check_words(&machine, 2, "connected by 4294967295 NVLink lanes; best of 3 free devices");
    check_words(&machine, 3, "every pair connected by NVLink");
    machine_finish(&machine);
}

/* ---- Out of memory ---- */

static int prepare(void *context)
{
    const struct policy_environment around = {.machine = context};
    void *tables = NULL;
    int code = policy_topology.prepare(&policy_topology, &around, &tables);

    if (code == 0)
        policy_topology.forget(tables);
    return code;
}

static void tables_need_memory(void **state)
{
    struct machine machine = {0};

    (void)state;
    make_volta(&machine);
    machine.devices.items[7].id = id_of("amd0");
    assert_true(failing_allocator_try_all(prepare, &machine) > 5);
    machine_finish(&machine);
    policy_topology.forget(NULL);
}

static int tell_some(void *context)
{
    struct link links[] = {
        {.between = {0, 1}, .kind = LINK_SYS},
        {.between = {0, 2}, .kind = LINK_NVLINK, .lanes = UINT32_MAX},
    };
    struct link_list list = {.items = links, .count = COUNT(links)};

    return engine_set_links(context, &list, NULL);
}

/* Requests that could not be compiled again for lack of memory are compiled later. */
static void links_need_memory(void **state)
{
    struct world world;

    (void)state;
    world_init(&world, "nvidia0,nvidia1,nvidia2");
    assert_true(failing_allocator_try_all(tell_some, world.engine) > 0);
    check_given(&world, "gpus=2 policy=topology", false, "0,2");
    world_finish(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_that_leave_good_pairs_are_taken),
        cmocka_unit_test(what_is_free_counts),
        cmocka_unit_test(xgmi_keeps_hives_together),
        cmocka_unit_test(gpus_with_few_free_partitions_are_used_up),
        cmocka_unit_test(without_links_the_lowest_are_taken),
        cmocka_unit_test(numa_nodes_count_where_links_are_equal),
        cmocka_unit_test(nearby_cpus_count_where_numa_nodes_are_equal),
        cmocka_unit_test(the_host_with_the_best_set_is_taken),
        cmocka_unit_test(equal_hosts_go_by_slot),
        cmocka_unit_test(whole_hosts_stay_whole),
        cmocka_unit_test(vendors_mix_by_one_scale),
        cmocka_unit_test(links_that_are_told_later_count),
        cmocka_unit_test(a_pair_has_a_fabric_link_and_a_path),
        cmocka_unit_test(links_of_other_slots_are_refused),
        cmocka_unit_test(links_of_a_report_reach_the_slots),
        cmocka_unit_test(words_say_how_devices_are_connected),
        cmocka_unit_test(tables_need_memory),
        cmocka_unit_test(links_need_memory),
    };

    return cmocka_run_group_tests_name("policy_topology", tests, NULL, NULL);
}
