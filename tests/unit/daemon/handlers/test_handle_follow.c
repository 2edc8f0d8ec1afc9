/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/handlers/handle.h"
#include "daemon/leases/pool_news.h"
#include "support/daemons/pool_stage.h"

static int begin(void **state)
{
    static const struct pool_part parts[] = {{pool_news_init, pool_news_finish}};

    *state =
        pool_stage_make(&(struct pool_stage_settings){.parts = parts, .part_count = COUNT(parts)});
    return 0;
}

static void follow(const struct stage_client *client, struct wire_message message)
{
    message.type = WIRE_FOLLOW;
    handle_follow(client->connection, &message);
}

static const struct stream_follower *follower_of(const struct stage_client *client)
{
    return &container_of(list_first(&client->connection->watchers), struct watcher, in_connection)
                ->follower;
}

static void a_client_follows_what_it_asks_for(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    const struct stream_follower *follower;

    client.connection->notified_at = 77;
    follow(&client, (struct wire_message){.number = 5,
                                          .kinds = WIRE_NEWS_QUEUE | WIRE_NEWS_LEASE,
                                          .epoch = followers_epoch(pool->followers),
                                          .after = 12,
                                          .id = 34,
                                          .duration = 56});
    assert_no_message(&client);
    follower = follower_of(&client);
    assert_true(follower->knows_epoch);
    assert_int_equal(follower->mark, 12);
    assert_int_equal(follower->ended, 34);
    assert_int_equal(follower->interval, 56);
    assert_int_equal(follower->kinds, WIRE_NEWS_QUEUE | WIRE_NEWS_LEASE);
    assert_int_equal(follower->notified_at, 77);
    assert_false(follower->is_recorder);
    pool_stage_hang_up(stage, &client);
}

/* Marks of a daemon before mean nothing to this one. */
static void another_epoch_is_not_known(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);

    follow(&client, (struct wire_message){.kinds = WIRE_NEWS_LOAD, .epoch = 1});
    assert_false(follower_of(&client)->knows_epoch);
    pool_stage_hang_up(stage, &client);
}

static void a_connection_follows_once(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);

    watcher_new(client.connection, 3, NULL, NULL); /* another request */
    for (uint64_t i = 0; i < 3; i++)
        follow(&client, (struct wire_message){.number = 10 + i,
                                              .kinds = WIRE_NEWS_LOAD,
                                              .epoch = followers_epoch(pool->followers),
                                              .after = followers_mark(pool->followers)});
    assert_int_equal(client.connection->watcher_count, 2);
    followers_note(pool->followers, WIRE_NEWS_LOAD);
    followers_notify(pool->followers);
    assert_sent(&client, WIRE_NEWS);
    assert_no_message(&client);
    pool_stage_hang_up(stage, &client);
}

/* An interval of centuries must not overflow the loop's time. */
static void a_very_long_interval_is_cut(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);

    client.connection->notified_at = STAGE_LOOP_NOW;
    follow(&client, (struct wire_message){.kinds = WIRE_NEWS_LOAD, .duration = UINT64_MAX});
    assert_true(follower_of(&client)->interval > 0);
    followers_note(pool->followers, WIRE_NEWS_LOAD);
    followers_notify(pool->followers);
    assert_no_message(&client);
    pool_stage_hang_up(stage, &client);
}

static void unknown_kinds_and_too_many_requests_are_refused(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message;

    follow(&client, (struct wire_message){.kinds = WIRE_NEWS_ALL + 1});
    assert_refused(
        &client, BERTH_ERROR_INVALID,
        "unknown kind of notification in the set 16; the client may be newer than the daemon");
    stage->pool.rules.bounds.waiting = 1;
    watcher_new(client.connection, 3, NULL, NULL);
    follow(&client, (struct wire_message){.kinds = WIRE_NEWS_LOAD});
    assert_message(&client, WIRE_REFUSED, &message);
    assert_int_equal(-(int)message.error, BERTH_ERROR_LIMIT);
    wire_message_finish(&message);
    pool_stage_hang_up(stage, &client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_client_follows_what_it_asks_for, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(another_epoch_is_not_known, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_connection_follows_once, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_very_long_interval_is_cut, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(unknown_kinds_and_too_many_requests_are_refused, begin,
                                        pool_stage_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
