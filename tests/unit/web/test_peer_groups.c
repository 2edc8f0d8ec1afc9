/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups of connections, and the group that gives one up.
 */
#include "support/unit.h"

#include "web/peer_groups.h"

static struct peer user(uint32_t uid)
{
    return (struct peer){.kind = PEER_USER, .uid = uid};
}

static struct peer host(const char *address)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct peer peer = {.kind = PEER_HOST};

    assert_int_equal(listen_address_parse(address, &peer.address, &error), 0);
    return peer;
}

static void join(struct peer_groups *groups, struct peer peer, struct peer_member *members,
                 size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_true(peer_groups_join(groups, &peer, &members[i]));
}

static void leave(struct peer_member *members, size_t count)
{
    for (size_t i = 0; i < count; i++)
        peer_groups_leave(&members[i]);
}

static void equal_peers(void **state)
{
    const struct peer alice = user(1);
    const struct peer bob = user(2);
    const struct peer near = host("192.0.2.1:80");
    const struct peer same = host("192.0.2.1:81");
    const struct peer far = host("192.0.2.2:80");
    const struct peer nobody = {.kind = PEER_LOCAL};

    (void)state;
    assert_true(peer_groups_same(&alice, &alice));
    assert_false(peer_groups_same(&alice, &bob));
    assert_true(peer_groups_same(&near, &same));
    assert_false(peer_groups_same(&near, &far));
    assert_true(peer_groups_same(&nobody, &nobody));
    assert_false(peer_groups_same(&nobody, &alice));
    assert_false(peer_groups_same(&near, &alice));
}

/* The address of a local user does not matter. */
static void one_user_with_many_addresses(void **state)
{
    struct peer here = host("127.0.0.1:1");
    struct peer there = host("127.7.7.7:2");

    (void)state;
    here.kind = there.kind = PEER_USER;
    here.uid = there.uid = 7;
    assert_true(peer_groups_same(&here, &there));
}

static void the_largest_group_gives_way(void **state)
{
    struct peer_groups groups;
    struct peer_member mine[5] = {0};
    struct peer_member theirs[3] = {0};
    const struct peer one = user(1);
    const struct peer two = user(2);
    const struct peer three = host("192.0.2.1:80");

    (void)state;
    peer_groups_init(&groups);
    assert_null(peer_groups_largest(&groups, &one));
    join(&groups, one, mine, 5);
    /* A user never takes from himself. */
    assert_null(peer_groups_largest(&groups, &one));
    assert_ptr_equal(peer_groups_largest(&groups, &two), mine[0].group);
    assert_ptr_equal(peer_groups_largest(&groups, &three), mine[0].group);
    join(&groups, two, theirs, 3);
    assert_int_equal(mine[0].group->count, 5);
    assert_ptr_equal(peer_groups_largest(&groups, &two), mine[0].group);
    /* 4 and 4 would only change places. */
    peer_groups_leave(&mine[4]);
    assert_null(peer_groups_largest(&groups, &two));
    assert_ptr_equal(peer_groups_largest(&groups, &three), mine[0].group);
    leave(mine, 4);
    assert_null(peer_groups_largest(&groups, &two));
    assert_ptr_equal(peer_groups_largest(&groups, &one), theirs[0].group);
    leave(theirs, 3);
    assert_true(list_is_empty(&groups.list));
}

/* With one connection each, nobody gives one up. */
static void equal_groups(void **state)
{
    struct peer_groups groups;
    struct peer_member members[3] = {0};
    const struct peer other = user(9);

    (void)state;
    peer_groups_init(&groups);
    for (uint32_t i = 0; i < 3; i++)
        join(&groups, user(i), &members[i], 1);
    assert_null(peer_groups_largest(&groups, &other));
    leave(members, 3);
    /* A member that never joined. */
    peer_groups_leave(&members[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_peers),
        cmocka_unit_test(one_user_with_many_addresses),
        cmocka_unit_test(the_largest_group_gives_way),
        cmocka_unit_test(equal_groups),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
