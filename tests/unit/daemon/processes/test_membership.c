/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the lease of a process in a container. Wrong claims about a lease must gain nothing.
 */
#include "support/unit.h"

#include "daemon/processes/membership.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "support/failing_allocator.h"

enum { ROOT = 0, ALICE = 1000, BOB = 1001, LENT = 100999, NOBODY = -1 };

static struct optional_number number_of(int64_t number)
{
    return number < 0 ? (struct optional_number){0} : optional_number_of((uint64_t)number);
}

static struct device_process process_of(int64_t uid, int64_t owner, const char *container)
{
    return (struct device_process){
        .pid = 7, .uid = number_of(uid), .owner = number_of(owner), .container = (char *)container};
}

/* Alice has leases 1 on slots 0 and 1, and 2 on slot 2; bob has 3 on slot 2, too. */
static struct lease_use two_users[] = {
    {.slot = 0, .uid = ALICE, .lease = 1, .pid = 10},
    {.slot = 1, .uid = ALICE, .lease = 1, .pid = 10},
    {.slot = 2, .uid = ALICE, .lease = 2, .pid = 20},
    {.slot = 2, .uid = BOB, .lease = 3, .pid = 30},
};

static const struct use_list uses = {.items = two_users, .count = COUNT(two_users)};

static void whose_processes_are_trusted(void **state)
{
    static const struct {
        int64_t uid;
        int64_t owner;
        const char *container;
        bool is_his;
        bool is_trusted;
    } cases[] = {
        {ALICE, NOBODY, NULL, true, true},   {ALICE, NOBODY, "c", true, true},
        {LENT, ALICE, NULL, true, true},     {LENT, ALICE, "c", true, true},
        {ROOT, NOBODY, "c", false, true}, /* runs in a container of docker's */
        {BOB, ROOT, "c", false, true},    /* runs as the user that the image names */
        {LENT, ROOT, NULL, false, true},  /* runs in a namespace that root made */
        {ROOT, NOBODY, NULL, false, false},  {BOB, NOBODY, NULL, false, false},
        {BOB, NOBODY, "c", false, false},    {LENT, BOB, "c", false, false},
        {NOBODY, NOBODY, "c", false, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct device_process process =
            process_of(cases[i].uid, cases[i].owner, cases[i].container);

        assert_int_equal(membership_is_of_user(&process, ALICE), cases[i].is_his);
        assert_int_equal(membership_is_trusted(&process, ALICE), cases[i].is_trusted);
        assert_int_equal(membership_may_be(&uses, 0, 1, &process), cases[i].is_trusted);
        assert_false(membership_may_be(&uses, 2, 1, &process));
        assert_false(membership_may_be(&uses, 0, 2, &process));
    }
}

static void all_of_a_container_are_of_one_lease(void **state)
{
    struct container_peer known[] = {{"one", 1}, {"two", 2}, {"two", 3}, {"bobs", 3}, {"roots", 1}};
    const struct peer_list peers = {.items = known, .count = COUNT(known)};
    static const struct {
        int64_t uid;
        int64_t owner;
        const char *container;
        uint32_t slot;
        uint64_t wanted;
    } cases[] = {
        {ALICE, NOBODY, "one", 1, 1},   {LENT, ALICE, "one", 1, 1},
        {ROOT, NOBODY, "one", 1, 1},    {ROOT, NOBODY, "roots", 0, 1},
        {BOB, NOBODY, "one", 1, 0},   /* bob uses the name of alice's group */
        {LENT, BOB, "one", 1, 0},     /* the same in bob's own namespace */
        {ALICE, NOBODY, "one", 2, 0}, /* a lease does not apply to other devices */
        {ALICE, NOBODY, "two", 2, 2},   {BOB, NOBODY, "two", 2, 3},
        {ROOT, NOBODY, "two", 2, 0}, /* ambiguous */
        {ALICE, NOBODY, "other", 1, 0}, {ALICE, NOBODY, NULL, 1, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct device_process process =
            process_of(cases[i].uid, cases[i].owner, cases[i].container);

        assert_int_equal(membership_by_container(&uses, &peers, cases[i].slot, &process),
                         cases[i].wanted);
    }
}

static void an_adopted_container_brings_all_that_is_in_it(void **state)
{
    struct lease_use adopted[] = {
        {.slot = 0, .uid = ALICE, .lease = 1, .pid = 10, .container = (char *)"one"}};
    const struct use_list list = {.items = adopted, .count = 1};
    const struct peer_list none = {0};
    struct device_process his = process_of(ALICE, NOBODY, "one");
    struct device_process bobs = process_of(BOB, NOBODY, "one");
    struct device_process other = process_of(ALICE, NOBODY, "two");

    (void)state;
    assert_int_equal(membership_by_container(&list, &none, 0, &his), 1);
    assert_int_equal(membership_by_container(&list, &none, 1, &his), 0);
    assert_int_equal(membership_by_container(&list, &none, 0, &bobs), 0);
    assert_int_equal(membership_by_container(&list, &none, 0, &other), 0);
}

static void a_users_only_lease_covers_that_users_containers(void **state)
{
    static const struct {
        int64_t uid;
        int64_t owner;
        const char *container;
        uint32_t slot;
        uint64_t wanted;
    } cases[] = {
        {ALICE, NOBODY, "c", 0, 1},
        {LENT, ALICE, "c", 0, 1},
        {LENT, ALICE, NULL, 0, 1},
        {ALICE, NOBODY, NULL, 0, 0}, /* could have been started under the lease */
        {ALICE, NOBODY, "c", 2, 0},  /* two leases */
        {ALICE, NOBODY, "c", 3, 0},  /* no lease */
        {BOB, NOBODY, "c", 0, 0},
        {LENT, BOB, "c", 0, 0},
        {ROOT, NOBODY, "c", 0, 0}, /* may belong to any user of docker */
        {ROOT, ROOT, "c", 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct device_process process =
            process_of(cases[i].uid, cases[i].owner, cases[i].container);

        assert_int_equal(membership_by_only_lease(&uses, cases[i].slot, &process), cases[i].wanted);
    }
}

static void what_is_reserved_is_its_users(void **state)
{
    struct lease_use reserved[] = {{.slot = 0, .uid = ALICE, .lease = 1}};
    const struct use_list list = {.items = reserved, .count = 1};
    struct device_process his = process_of(ALICE, NOBODY, NULL);
    struct device_process lent = process_of(LENT, ALICE, "c");
    struct device_process roots = process_of(ROOT, NOBODY, "c");

    (void)state;
    assert_int_equal(membership_by_reservation(&list, 0, &his), 1);
    assert_int_equal(membership_by_reservation(&list, 0, &lent), 1);
    assert_int_equal(membership_by_reservation(&list, 1, &his), 0);
    assert_int_equal(membership_by_reservation(&list, 0, &roots), 0);
    assert_int_equal(membership_by_reservation(&uses, 0, &his), 0); /* a process holds that lease */
}

/* Makes devices with processes of `count` containers, each with a lease, and one process
 * without. */
static struct device_list devices_of(size_t count)
{
    struct device_list devices = {0};
    struct device *device = vector_append(&devices);
    char container[32];

    assert_non_null(device);
    *device = (struct device){0};
    for (size_t i = 0; i <= count; i++) {
        struct device_process *process = device_process_find_or_add(&device->processes, i + 1);

        assert_non_null(process);
        snprintf(container, sizeof(container), "%zu", i / 2);
        process->container = strdup(container);
        process->lease = i == count ? 0 : 1;
    }
    return devices;
}

static void peers_are_those_that_have_a_lease(void **state)
{
    struct device_list devices = devices_of(4);
    struct peer_list peers = {0};

    (void)state;
    membership_find_peers(&devices, &peers);
    assert_int_equal(peers.count, 2);
    assert_string_equal(peers.items[1].container, "1");
    vector_finish(&peers);
    failing_allocator_start(1);
    membership_find_peers(&devices, &peers);
    assert_true(failing_allocator_stop());
    vector_finish(&peers);
    device_list_finish(&devices);
}

static void peers_have_a_bound(void **state)
{
    struct device_list devices = devices_of(4 * PEERS_MAX);
    struct peer_list peers = {0};

    (void)state;
    membership_find_peers(&devices, &peers);
    assert_int_equal(peers.count, PEERS_MAX);
    vector_finish(&peers);
    device_list_finish(&devices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whose_processes_are_trusted),
        cmocka_unit_test(all_of_a_container_are_of_one_lease),
        cmocka_unit_test(an_adopted_container_brings_all_that_is_in_it),
        cmocka_unit_test(a_users_only_lease_covers_that_users_containers),
        cmocka_unit_test(what_is_reserved_is_its_users),
        cmocka_unit_test(peers_are_those_that_have_a_lease),
        cmocka_unit_test(peers_have_a_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
