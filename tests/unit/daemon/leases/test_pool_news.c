/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/leases/pool_news.h"

#include <string.h>

#include "daemon/stream/ended_leases.h"
#include "support/daemons/pool_stage.h"
#include "support/failing_allocator.h"

static const struct pool_part parts[] = {{pool_news_init, pool_news_finish}};

static int begin(void **state)
{
    *state =
        pool_stage_make(&(struct pool_stage_settings){.parts = parts, .part_count = COUNT(parts)});
    return 0;
}

/* Lets the client follow, as FOLLOW with these kinds does. */
static void follow(struct pool_stage *stage, const struct stage_client *client,
                   const struct stream_follower *what)
{
    struct watcher *watcher = watcher_new(client->connection, 77, NULL, NULL);

    assert_non_null(watcher);
    watcher->follower = *what;
    followers_add(stage->pool.followers, &watcher->follower);
}

static struct stream_follower new_follower(const struct pool *pool, uint32_t kinds)
{
    return (struct stream_follower){
        .knows_epoch = true, .mark = followers_mark(pool->followers), .kinds = kinds};
}

/* Notes a lease that begins and ends. */
static void end_a_lease(struct pool_stage *stage, uint32_t uid)
{
    const struct job *job =
        pool_stage_claim(stage, &(struct stage_claim){.uid = uid, .command = "/bin/train -x"});

    pool_news_lease_changed(&stage->pool, job);
    pool_news_lease_ended(&stage->pool, job, LEASE_END_RELEASED);
}

static void a_follower_is_answered_once(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct stream_follower follower = new_follower(pool, WIRE_NEWS_QUEUE);
    struct wire_message message;

    follow(stage, &client, &follower);
    pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=4"});
    pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=4"});
    followers_notify(pool->followers);
    assert_message(&client, WIRE_NEWS, &message);
    assert_int_equal(message.number, 77);
    assert_int_equal(message.kinds, WIRE_NEWS_QUEUE);
    assert_int_equal(message.epoch, followers_epoch(pool->followers));
    assert_int_equal(message.after, followers_mark(pool->followers));
    assert_int_equal(message.snapshot.pending, 1);
    assert_non_null(message.tally);
    wire_message_finish(&message);
    assert_int_equal(client.connection->notified_at, STAGE_LOOP_NOW);
    assert_int_equal(client.connection->watcher_count, 0);
    followers_notify(pool->followers);
    assert_no_message(&client);
    pool_stage_hang_up(stage, &client);
}

/* Ended leases come to followers of leases, and only those that the follower does not know. */
static void ended_leases_come_with_the_news(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct stream_follower follower = new_follower(pool, WIRE_NEWS_LEASE);
    struct wire_message message;

    end_a_lease(stage, STAGE_USER);
    end_a_lease(stage, STAGE_USER);
    follower.ended = 1;
    follow(stage, &client, &follower);
    followers_notify(pool->followers);
    assert_message(&client, WIRE_NEWS, &message);
    assert_int_equal(message.ended.count, 1);
    assert_int_equal(message.id, 2);
    wire_message_finish(&message);
    /* A follower's knowledge of another daemon means nothing. */
    follower.knows_epoch = false;
    follow(stage, &client, &follower);
    followers_notify(pool->followers);
    assert_message(&client, WIRE_NEWS, &message);
    assert_int_equal(message.ended.count, 2);
    wire_message_finish(&message);
    follower.kinds = WIRE_NEWS_LOAD;
    follow(stage, &client, &follower);
    followers_notify(pool->followers);
    assert_message(&client, WIRE_NEWS, &message);
    assert_int_equal(message.ended.count, 0);
    assert_int_equal(message.id, 2);
    wire_message_finish(&message);
    pool_stage_hang_up(stage, &client);
}

static void other_users_get_no_command_lines(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct stream_follower follower = new_follower(pool, WIRE_NEWS_LEASE);
    struct wire_message message;

    end_a_lease(stage, STAGE_USER);
    end_a_lease(stage, STAGE_OTHER);
    follow(stage, &client, &follower);
    followers_notify(pool->followers);
    assert_message(&client, WIRE_NEWS, &message);
    assert_string_equal(message.ended.items[0].lease->command, "/bin/train -x");
    assert_string_equal(message.ended.items[1].lease->command, "train");
    wire_message_finish(&message);
    pool_stage_hang_up(stage, &client);
}

/* An answer that lacks ended leases would lose them: the follower asks again. */
static void without_memory_a_follower_is_refused(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct stream_follower follower = new_follower(pool, WIRE_NEWS_LEASE);

    end_a_lease(stage, STAGE_OTHER);
    follow(stage, &client, &follower);
    followers_notify(pool->followers);
    assert_sent(&client, WIRE_NEWS); /* the answer has memory from here on */
    for (unsigned long n = 2; n <= 4; n++) {
        follow(stage, &client, &follower);
        failing_allocator_start(n);
        followers_notify(pool->followers);
        assert_true(failing_allocator_stop());
        assert_refused(&client, BERTH_ERROR_MEMORY, "out of memory");
    }
    assert_int_equal(client.connection->watcher_count, 0);
    pool_stage_hang_up(stage, &client);
}

/* A follower that is far behind gets the rest at once, whatever interval it asks for. */
static void the_rest_follows_without_the_interval(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct stream_follower follower = new_follower(pool, WIRE_NEWS_LEASE);
    const struct job *job =
        pool_stage_claim(stage, &(struct stage_claim){.command = "/bin/train -x"});
    struct wire_message message;

    for (int i = 0; i < 2000; i++) {
        pool_news_lease_changed(pool, job);
        pool_news_lease_ended(pool, job, LEASE_END_RELEASED);
    }
    follow(stage, &client, &follower);
    followers_notify(pool->followers);
    assert_message(&client, WIRE_NEWS, &message);
    assert_true(message.more);
    assert_in_range(message.ended.count, 1, 1999);
    assert_int_equal(message.id, message.ended.count);
    assert_int_equal(client.connection->notified_at, 0);
    wire_message_finish(&message);
    pool_stage_hang_up(stage, &client);
}

static void leases_are_counted(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct pool_counts *counts = &pool->counts;
    struct job *job = pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=4"});

    job->since -= 3 * DURATION_SECOND;
    pool_news_lease_changed(pool, job);
    pool_news_lease_changed(pool, job); /* extended: no new one */
    assert_int_equal(counts->tally.granted, 1);
    assert_int_equal(counts->waited.sum, 3 * DURATION_SECOND);
    pool_stage_go_on(stage, 5 * DURATION_SECOND);
    pool_news_lease_ended(pool, job, LEASE_END_RELEASED);
    assert_int_equal(counts->held.sum, 5 * DURATION_SECOND);
    /* A lease of a daemon before was counted there. */
    job->restored = true;
    pool_news_lease_changed(pool, job);
    assert_int_equal(counts->tally.granted, 1);
}

static void an_ended_lease_has_its_facts(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct job *job = pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=2"});
    struct lease_watch *guard = job_lease_watch(pool, job);
    struct wire_message message = {.type = WIRE_NEWS};

    pool_news_lease_changed(pool, job);
    guard->judged_time = 70;
    guard->idle_time = 30;
    job->exit_code = 137;
    pool_news_lease_ended(pool, job, LEASE_END_EXPIRED);
    ended_leases_fill(pool->ended_leases, 0, &message);
    assert_int_equal(message.ended.count, 1);
    assert_int_equal(message.ended.items[0].end, LEASE_END_EXPIRED);
    assert_int_equal(message.ended.items[0].time, STAGE_NOW);
    assert_int_equal(message.ended.items[0].exit_code.value, 137);
    assert_int_equal(message.ended.items[0].lease->judged_time, 70);
    assert_int_equal(message.ended.items[0].lease->idle_time, 30);
    assert_int_equal(message.ended.items[0].lease->devices.count, 2);
    vector_finish(&message.ended);
}

/* A lease whose facts found no memory is lost to followers, but counted among the ended ones. */
static void a_lease_without_facts_is_lost(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct wire_message message = {.type = WIRE_NEWS};

    pool_news_lease_ended(pool, pool_stage_claim(stage, &(struct stage_claim){0}),
                          LEASE_END_RELEASED);
    assert_int_equal(pool->counts.held.sum, 0);
    ended_leases_fill(pool->ended_leases, 0, &message);
    assert_int_equal(message.ended.count, 0);
    assert_int_equal(message.lost, 1);
}

/* A claim that waits is no lease. */
static void a_waiting_claim_is_no_news_of_a_lease(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const struct job *job;

    pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=4"});
    job = pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=4"});
    pool_news_lease_changed(pool, job);
    assert_int_equal(pool->counts.tally.granted, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_follower_is_answered_once, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(ended_leases_come_with_the_news, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(other_users_get_no_command_lines, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(without_memory_a_follower_is_refused, begin,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(the_rest_follows_without_the_interval, begin,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(leases_are_counted, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(an_ended_lease_has_its_facts, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_lease_without_facts_is_lost, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_waiting_claim_is_no_news_of_a_lease, begin,
                                        pool_stage_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
