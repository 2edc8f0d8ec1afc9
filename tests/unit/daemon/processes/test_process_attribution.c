/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of the rules by which a process belongs to a lease; test_membership.c has those of
 * containers and reservations.
 */
#include "support/unit.h"

#include "daemon/processes/process_attribution.h"

#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/text/quantity.h"
#include "support/engine/machines.h"

enum { ROOT = 0, ALICE = 1000, BOB = 1001 };

#define SOCKET "/run/berth/berth.sock"

/* Lease 1 is alice's, held by process 10 on slots 0 and 1; leases 2 and 4 are within it, held by 11
 * on slot 1. Lease 3 is bob's reservation on slot 2. */
static struct lease_use known_uses[] = {
    {.slot = 0, .uid = ALICE, .lease = 1, .pid = 10},
    {.slot = 1, .uid = ALICE, .lease = 1, .pid = 10},
    {.slot = 1, .uid = ALICE, .lease = 2, .pid = 11},
    {.slot = 1, .uid = ALICE, .lease = 4, .pid = 11},
    {.slot = 2, .uid = BOB, .lease = 3, .pid = 0},
};

static const struct use_list uses = {.items = known_uses, .count = COUNT(known_uses)};

/* Lease 9 of alice has ended. */
static bool find_ended(void *context, uint64_t lease, uint32_t *ret_uid)
{
    (void)context;
    *ret_uid = ALICE;
    return lease == 9;
}

static bool is_known(void *context, uint64_t lease)
{
    (void)context;
    return lease >= 1 && lease <= 4;
}

static const struct attribution attribution = {
    .uses = &uses,
    .socket = SOCKET,
    .find_ended = find_ended,
    .is_known = is_known,
};

/* The devices of slots 0 to 2, and a report of them with one process on each. */
struct report {
    struct machine known;
    struct machine found;
};

static void report_begin(struct report *report)
{
    *report = (struct report){0};
    machine_add_ids(&report->known, "nvidia0,nvidia1,nvidia2");
    machine_add_ids(&report->found, "nvidia0,nvidia1,nvidia2");
}

static void report_end(struct report *report)
{
    machine_finish(&report->known);
    machine_finish(&report->found);
}

static struct device_process *add_process(struct machine *machine, size_t slot, uint64_t pid,
                                          uint32_t uid)
{
    struct device_process *process = vector_append(&machine->devices.items[slot].processes);

    assert_non_null(process);
    *process = (struct device_process){
        .pid = pid, .uid = optional_number_of(uid), .started = DURATION_HOUR};
    return process;
}

/* Finds the lease of the process, which is alone on the slot. */
static uint64_t lease_on(size_t slot, const struct device_process *like)
{
    struct report report;
    struct device_process *process;
    uint64_t lease;

    report_begin(&report);
    process = add_process(&report.found, slot, like->pid, 0);
    *process = *like;
    process->lease = 4711;
    process_attribution_join(&attribution, &report.known.devices, &report.found.devices);
    lease = report.found.devices.items[slot].processes.items[0].lease;
    report.found.devices.items[slot].processes.count = 0;
    report_end(&report);
    return lease;
}

static void the_holder_and_its_descendants_belong_to_the_lease(void **state)
{
    static const uint32_t of_holder[] = {12, 10, 1};
    static const uint32_t of_inner[] = {11, 10, 1};
    static const uint32_t of_others[] = {100, 1};
    const struct device_process holder = {.pid = 10, .uid = optional_number_of(ALICE)};
    const struct device_process below = {.pid = 13, .ancestors = of_holder, .ancestor_count = 3};
    const struct device_process inner = {.pid = 13, .ancestors = of_inner, .ancestor_count = 3};
    const struct device_process other = {.pid = 13, .ancestors = of_others, .ancestor_count = 2};

    (void)state;
    assert_int_equal(lease_on(0, &holder), 1);
    assert_int_equal(lease_on(2, &holder), 0);
    assert_int_equal(lease_on(0, &below), 1);
    /* The nearest holder decides, by its latest lease on the device. */
    assert_int_equal(lease_on(1, &inner), 4);
    assert_int_equal(lease_on(0, &inner), 1);
    assert_int_equal(lease_on(0, &other), 0);
}

static void a_mark_counts_for_its_own_user_and_pool(void **state)
{
    static const struct {
        uint32_t uid;
        const char *container;
        const char *socket;
        uint64_t lease;
        uint64_t wanted;
    } cases[] = {
        {ALICE, NULL, SOCKET, 1, 1}, {BOB, NULL, SOCKET, 1, 0},          {ROOT, NULL, SOCKET, 1, 0},
        {ROOT, "c", SOCKET, 1, 1},   {ALICE, NULL, "/other.sock", 1, 0}, {ALICE, NULL, NULL, 1, 0},
        {ALICE, NULL, SOCKET, 2, 0}, /* is not on this slot */
        {ALICE, NULL, SOCKET, 9, 9}, /* has ended: the process is left of it */
        {BOB, NULL, SOCKET, 9, 0},   {ALICE, NULL, SOCKET, 8, 0}, /* is unknown */
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct device_process process = {
            .pid = 50,
            .uid = optional_number_of(cases[i].uid),
            .container = (char *)cases[i].container,
            .said_socket = (char *)cases[i].socket,
            .said_lease = cases[i].lease,
        };

        assert_int_equal(lease_on(0, &process), cases[i].wanted);
    }
}

/* Facts that a process cannot choose come before those that it can. */
static void ancestors_come_before_a_mark(void **state)
{
    static const uint32_t ancestors[] = {11};
    const struct device_process process = {
        .pid = 50,
        .uid = optional_number_of(ALICE),
        .said_socket = (char *)SOCKET,
        .said_lease = 1,
        .ancestors = ancestors,
        .ancestor_count = 1,
    };

    (void)state;
    assert_int_equal(lease_on(1, &process), 4);
}

static void a_reservation_has_all_processes_of_its_user(void **state)
{
    const struct device_process bobs = {.pid = 50, .uid = optional_number_of(BOB)};
    const struct device_process alices = {.pid = 50, .uid = optional_number_of(ALICE)};
    const struct device_process unknown = {.pid = 50};

    (void)state;
    assert_int_equal(lease_on(2, &bobs), 3);
    assert_int_equal(lease_on(2, &alices), 0);
    assert_int_equal(lease_on(2, &unknown), 0);
}

/* Another process of the container is found on another device, later in the report. */
static void a_container_is_known_by_its_other_processes(void **state)
{
    struct report report;
    struct device_process *process;

    (void)state;
    report_begin(&report);
    process = add_process(&report.found, 0, 50, ROOT);
    process->container = copy_of("c");
    process = add_process(&report.found, 1, 51, ROOT);
    process->container = copy_of("c");
    process->said_socket = copy_of(SOCKET);
    process->said_lease = 1;
    process_attribution_join(&attribution, &report.known.devices, &report.found.devices);
    assert_int_equal(report.found.devices.items[1].processes.items[0].lease, 1);
    assert_int_equal(report.found.devices.items[0].processes.items[0].lease, 1);
    report_end(&report);
}

static void what_was_known_stays_known(void **state)
{
    static const struct {
        uint64_t before;
        int64_t started; /* later than at the last report */
        uint32_t uid;
        uint64_t wanted;
    } cases[] = {
        {1, 0, ALICE, 1},
        {1, 2 * DURATION_SECOND, ALICE, 1},
        {1, -2 * DURATION_SECOND, ALICE, 1},
        {1, 2 * DURATION_SECOND + 1, ALICE, 0}, /* another process with this number */
        {1, 0, BOB, 0},                         /* has become another user's program */
        {3, 0, ALICE, 0},                       /* goes on, and is not on this slot */
        {7, 0, ALICE, 7},                       /* has ended, and is forgotten */
        {0, 0, ALICE, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct report report;
        struct device_process *process;

        report_begin(&report);
        add_process(&report.known, 0, 50, ALICE)->lease = cases[i].before;
        process = add_process(&report.found, 0, 50, cases[i].uid);
        process->started += cases[i].started;
        process_attribution_join(&attribution, &report.known.devices, &report.found.devices);
        assert_int_equal(process->lease, cases[i].wanted);
        report_end(&report);
    }
}

/* An unknown device is no slot of the pool: its processes belong to nothing. */
static void an_unknown_device_has_no_leases(void **state)
{
    struct report report;
    struct device_process *process;

    (void)state;
    report_begin(&report);
    machine_add_ids(&report.found, "nvidia7");
    process = add_process(&report.found, 3, 10, ALICE);
    process->lease = 4711;
    process_attribution_join(&attribution, &report.known.devices, &report.found.devices);
    assert_int_equal(process->lease, 0);
    report_end(&report);
}

static void leases_that_came_and_went_are_joined_again(void **state)
{
    struct report report;
    struct device_process_list *list;

    (void)state;
    report_begin(&report);
    list = &report.known.devices.items[0].processes;
    add_process(&report.known, 0, 10, ALICE);            /* holds a lease since then */
    add_process(&report.known, 0, 50, ALICE)->lease = 7; /* whose lease has ended since then */
    add_process(&report.known, 0, 51, BOB)->lease = 1;   /* became another user's program */
    process_attribution_join_again(&attribution, &report.known.devices, 0, list);
    assert_int_equal(list->items[0].lease, 1);
    assert_int_equal(list->items[1].lease, 7);
    assert_int_equal(list->items[2].lease, 0);
    report_end(&report);
}

static void a_process_is_below_itself_and_its_ancestors(void **state)
{
    static const uint32_t ancestors[] = {20, 10, 1};
    const struct device_process process = {.pid = 30, .ancestors = ancestors, .ancestor_count = 2};

    (void)state;
    assert_true(process_attribution_is_below(&process, 30));
    assert_true(process_attribution_is_below(&process, 20));
    assert_true(process_attribution_is_below(&process, 10));
    assert_false(process_attribution_is_below(&process, 1));
    assert_false(process_attribution_is_below(&process, 31));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_holder_and_its_descendants_belong_to_the_lease),
        cmocka_unit_test(a_mark_counts_for_its_own_user_and_pool),
        cmocka_unit_test(ancestors_come_before_a_mark),
        cmocka_unit_test(a_reservation_has_all_processes_of_its_user),
        cmocka_unit_test(a_container_is_known_by_its_other_processes),
        cmocka_unit_test(what_was_known_stays_known),
        cmocka_unit_test(an_unknown_device_has_no_leases),
        cmocka_unit_test(leases_that_came_and_went_are_joined_again),
        cmocka_unit_test(a_process_is_below_itself_and_its_ancestors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
