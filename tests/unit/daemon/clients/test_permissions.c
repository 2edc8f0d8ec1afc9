/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/clients/permissions.h"

#include "support/daemons/clients_stage.h"

enum { ALICE = 1000, BOB = 1001, STAFF = 50, STUDENTS = 51 };

static void add_number(struct number_list *list, uint32_t number)
{
    uint32_t *place = vector_append(list);

    assert_non_null(place);
    *place = number;
}

static void add_time_limit(struct stage *stage, bool is_group, uint32_t key, int64_t longest)
{
    struct device_limit *limit = vector_append(&stage->rules.limits);

    assert_non_null(limit);
    *limit = (struct device_limit){
        .key = key, .is_group = is_group, .allowance = {DEVICES_UNLIMITED, longest}};
}

static struct connection client_of(struct stage *stage, uint32_t uid, uint32_t gid)
{
    return (struct connection){
        .clients = &stage->clients, .uid = uid, .account = uid, .gid = gid, .groups_known = true};
}

static void root_and_the_owner_may_do_everything(void **state)
{
    struct stage *stage = *state;
    const uint32_t uids[] = {0, STAGE_OWNER};

    for (size_t i = 0; i < 2; i++) {
        struct connection connection = client_of(stage, uids[i], STAFF);

        assert_true(permissions_is_owner(&connection));
        assert_true(permissions_is_admin(&connection));
        assert_true(permissions_may_decide(&connection, ALICE));
        assert_true(permissions_may_use_high(&connection));
    }
}

static void others_decide_about_their_own(void **state)
{
    struct stage *stage = *state;
    struct connection alice = client_of(stage, ALICE, STAFF);

    assert_false(permissions_is_owner(&alice));
    assert_false(permissions_is_admin(&alice));
    assert_true(permissions_may_decide(&alice, ALICE));
    assert_false(permissions_may_decide(&alice, BOB));
    assert_false(permissions_may_decide(&alice, 0));
    assert_false(permissions_may_use_high(&alice));
}

static void admins_are_named_by_user_or_group(void **state)
{
    struct stage *stage = *state;
    struct connection alice = client_of(stage, ALICE, STUDENTS);
    struct connection bob = client_of(stage, BOB, STAFF);

    add_number(&stage->rules.admins.users, ALICE);
    add_number(&stage->rules.high.groups, STAFF);
    assert_true(permissions_is_admin(&alice));
    assert_false(permissions_is_owner(&alice));
    assert_true(permissions_may_decide(&alice, BOB));
    assert_true(permissions_may_use_high(&alice));
    assert_false(permissions_is_admin(&bob));
    assert_true(permissions_may_use_high(&bob));
    add_number(&stage->rules.admins.groups, STAFF);
    assert_true(permissions_is_admin(&bob));
}

static void the_most_specific_time_limit_applies(void **state)
{
    struct stage *stage = *state;
    struct connection alice = client_of(stage, ALICE, STAFF);
    struct connection owner = client_of(stage, STAGE_OWNER, STUDENTS);

    assert_int_equal(permissions_max_time(&alice), 0);
    stage->rules.longest_time = 10;
    assert_int_equal(permissions_max_time(&alice), 10);
    assert_int_equal(permissions_max_time(&owner), 0);
    stage->rules.each_user.longest_time = 20;
    assert_int_equal(permissions_max_time(&alice), 20);
    add_time_limit(stage, true, STAFF, 30);
    add_time_limit(stage, true, STUDENTS, 40);
    assert_int_equal(permissions_max_time(&alice), 30);
    assert_int_equal(permissions_max_time(&owner), 40);
    add_time_limit(stage, false, ALICE, 5);
    assert_int_equal(permissions_max_time(&alice), 5);
}

/* The kernel reports the groups of the process at the other end. */
static void groups_are_read_from_the_kernel(void **state)
{
    struct stage *stage = *state;
    struct connection connection = client_of(stage, geteuid(), getegid());
    gid_t mine[1024];
    int mine_count = getgroups(1024, mine);
    const uint32_t *groups;
    size_t count;
    int ends[2];

    assert_true(mine_count >= 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    connection.groups_known = false;
    connection.watch.descriptor = ends[0];
    groups = permissions_groups(&connection, &count);
    assert_int_equal(count, 1 + mine_count);
    assert_int_equal(groups[0], getegid());
    for (int i = 0; i < mine_count; i++)
        assert_int_equal(groups[1 + i], mine[i]);
    assert_ptr_equal(permissions_groups(&connection, &count), groups);
    free(connection.groups);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(root_and_the_owner_may_do_everything, stage_begin,
                                        stage_end),
        cmocka_unit_test_setup_teardown(others_decide_about_their_own, stage_begin, stage_end),
        cmocka_unit_test_setup_teardown(admins_are_named_by_user_or_group, stage_begin, stage_end),
        cmocka_unit_test_setup_teardown(the_most_specific_time_limit_applies, stage_begin,
                                        stage_end),
        cmocka_unit_test_setup_teardown(groups_are_read_from_the_kernel, stage_begin, stage_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
