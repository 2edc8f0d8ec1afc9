/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/client_events.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/handlers/deferred_claims.h"
#include "daemon/leases/recorder_events.h"
#include "support/daemons/played_locks.h"
#include "support/daemons/played_readers.h"
#include "support/daemons/played_recorder.h"
#include "support/daemons/pool_stage.h"

/* A stage whose clients are connected with the pool as the daemon connects them. */
static int begin(void **state)
{
    struct pool_stage *stage = pool_stage_make(
        &(struct pool_stage_settings){.parts = pool_stage_all, .part_count = POOL_STAGE_ALL});
    struct pool *pool = &stage->pool;

    clients_finish(&pool->clients);
    pool->clients = (struct clients){0};
    assert_int_equal(client_events_init(pool, NULL), 0);
    quota_share_descriptors(&pool->clients, 1000000);
    *state = stage;
    return 0;
}

static int end(void **state)
{
    struct pool_stage *stage = *state;

    client_events_close_all(&stage->pool);
    return pool_stage_end(state);
}

/* Sends a message through the client's socket, in a turn in which the user has spent nothing: on a
 * slow machine, the message before may have used up the user's time. */
static void send_packet(const struct stage_client *client, const struct wire_message *message)
{
    struct text packet = {0};

    assert_int_equal(wire_encode(message, &packet, NULL), 0);
    assert_int_equal(send(client->end, packet.bytes, packet.length, MSG_DONTWAIT), packet.length);
    text_finish(&packet);
    clients_begin_turn(client->connection->clients);
    if (client->connection->quota != NULL)
        rate_limit_fill(&client->connection->quota->messages);
    client->connection->watch.ready(&client->connection->watch, EPOLLIN);
}

static void send_claim(struct pool_stage *stage, const struct stage_client *client,
                       const char *words, enum lease_hold hold)
{
    struct wire_message message = pool_stage_message(stage, words);

    message.hold = hold;
    send_packet(client, &message);
    wire_message_finish(&message);
}

static void the_owner_has_no_quota(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client owner = pool_stage_connect(stage, STAGE_OWNER);
    struct stage_client user = pool_stage_connect(stage, STAGE_USER);

    assert_null(owner.connection->quota);
    assert_non_null(user.connection->quota);
    pool_stage_hang_up(stage, &owner);
    pool_stage_hang_up(stage, &user);
}

static void messages_reach_their_handlers(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);

    send_claim(stage, &client, "gpus=4", LEASE_HOLD_CONNECTION);
    assert_sent(&client, WIRE_GRANTED);
    /* Events are settled after each message. */
    send_packet(&client, &(struct wire_message){.type = WIRE_RELEASE, .number = 5, .id = 1});
    assert_sent(&client, WIRE_DONE);
    assert_int_equal(stage->pool.job_count, 0);
    pool_stage_hang_up(stage, &client);
}

/* Nothing is answered that is not written down yet. */
static void answers_wait_for_the_journal(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    int descriptor = pool->journal.descriptor;
    char filler[32 * 1024] = {0};

    pool->journal.descriptor = -1; /* the file cannot grow */
    journal_file_append(&pool->journal, filler, sizeof(filler));
    while (!journal_file_is_behind(&pool->journal))
        journal_file_append(&pool->journal, filler, sizeof(filler));
    send_packet(&client, &(struct wire_message){.type = WIRE_HELLO, .number = 5});
    assert_no_message(&client);
    pool->journal.descriptor = descriptor;
    assert_false(journal_file_is_behind(&pool->journal));
    clients_flush(&pool->clients);
    assert_sent(&client, WIRE_POOL);
    pool_stage_hang_up(stage, &client);
}

/* A client that hangs up leaves nothing: claims, leases, watchers and deferred messages. */
static void a_client_that_hangs_up_leaves_nothing(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);

    send_claim(stage, &client, "gpus=4", LEASE_HOLD_CONNECTION);
    send_claim(stage, &client, "gpus=4", LEASE_HOLD_CONNECTION);
    send_packet(&client, &(struct wire_message){.type = WIRE_WATCH, .number = 5, .id = 2});
    send_packet(&client,
                &(struct wire_message){.type = WIRE_FOLLOW, .number = 6, .kinds = WIRE_NEWS_HELLO});
    pool->device_locks->are_unsettled = pool->device_locks->are_awaited = true;
    send_claim(stage, &client, "gpus=1", LEASE_HOLD_CONNECTION);
    assert_false(list_is_empty(&pool->deferred_claims));
    pool_stage_hang_up(stage, &client);
    assert_int_equal(pool->job_count, 0);
    assert_true(list_is_empty(&pool->watchers));
    assert_true(list_is_empty(&pool->deferred_claims));
    assert_int_equal(job_find_ended(pool, 1)->end, LEASE_END_DIED);
    assert_int_equal(job_find_ended(pool, 2)->end, LEASE_END_CANCELLED);
    assert_int_equal(pool->clients.connection_count, 0);
}

/* When the daemon ends, leases and claims go on: the next daemon restores them. */
static void the_daemons_end_ends_no_lease(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message;

    send_claim(stage, &client, "gpus=4", LEASE_HOLD_CONNECTION);
    send_claim(stage, &client, "gpus=4", LEASE_HOLD_CONNECTION);
    assert_sent(&client, WIRE_GRANTED);
    assert_sent(&client, WIRE_WAITING);
    pool->device_locks->are_unsettled = pool->device_locks->are_awaited = true;
    send_claim(stage, &client, "gpus=1", LEASE_HOLD_CONNECTION);
    pool_stage_journal(stage);
    client_events_close_all(pool);
    assert_true(list_is_empty(&pool->deferred_claims));
    engine_events_settle(pool);
    assert_int_equal(pool->job_count, 2);
    assert_string_equal(pool_stage_journal(stage), "");
    assert_true(list_is_empty(&pool->clients.connections));
    assert_false(pool_stage_receive(&client, &message));
    close(client.end);
}

/* The recorder's questions and answers are its signs of life. */
static void the_recorder_shows_that_it_lives(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client recorder = {.end = -1};
    struct stage_client user = pool_stage_connect(stage, STAGE_USER);
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends),
                     0);
    recorder.end = ends[1];
    recorder.connection = connection_open_recorder(&pool->clients, ends[0]);
    pool->recorder_connection = recorder.connection;
    send_packet(&user,
                &(struct wire_message){.type = WIRE_FOLLOW, .number = 1, .kinds = WIRE_NEWS_LEASE});
    assert_int_equal(pool->recorder_process->asked, 0);
    send_packet(&recorder, &(struct wire_message){.type = WIRE_HELLO, .number = 1});
    assert_int_equal(pool->recorder_process->asked, 0);
    send_packet(&recorder,
                &(struct wire_message){.type = WIRE_FOLLOW, .number = 2, .kinds = WIRE_NEWS_LEASE});
    assert_int_equal(pool->recorder_process->asked, 1);
    assert_int_equal(pool->recorder_process->answered, 0);
    followers_note(pool->followers, WIRE_NEWS_LEASE);
    followers_notify(pool->followers);
    assert_int_equal(pool->recorder_process->answered, 1);
    pool_stage_hang_up(stage, &recorder);
    assert_null(pool->recorder_connection);
    assert_int_equal(pool->recorder_process->hung_up, 1);
    pool_stage_hang_up(stage, &user);
    assert_int_equal(pool->recorder_process->hung_up, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_owner_has_no_quota, begin, end),
        cmocka_unit_test_setup_teardown(messages_reach_their_handlers, begin, end),
        cmocka_unit_test_setup_teardown(answers_wait_for_the_journal, begin, end),
        cmocka_unit_test_setup_teardown(a_client_that_hangs_up_leaves_nothing, begin, end),
        cmocka_unit_test_setup_teardown(the_daemons_end_ends_no_lease, begin, end),
        cmocka_unit_test_setup_teardown(the_recorder_shows_that_it_lives, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
