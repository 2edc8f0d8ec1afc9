/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/clients/quota.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/count.h"
#include "support/assert_error.h"
#include "support/daemons/clients_stage.h"

enum { SOMEBODY = 1000, ANOTHER = 1001 };

static struct quota *open_user(struct clients *clients, uint32_t uid)
{
    struct quota *user = NULL;

    assert_int_equal(quota_open(clients, uid, &user), 0);
    return user;
}

static void root_and_the_owner_have_no_bounds(void **state)
{
    struct stage *stage = *state;

    assert_null(open_user(&stage->clients, 0));
    assert_null(open_user(&stage->clients, STAGE_OWNER));
    assert_int_equal(quota_check_waiting(NULL, SIZE_MAX / 2, NULL), 0);
    assert_true(quota_keep_unread(NULL, SIZE_MAX / 2));
    assert_true(quota_may_log(NULL));
    quota_wait(NULL, 1);
    quota_wait_over(NULL, 1);
    quota_forget_unread(NULL, 1);
    quota_close(NULL);
}

static void one_that_has_nothing_is_forgotten_once_its_bucket_is_full(void **state)
{
    struct stage *stage = *state;
    struct clients *clients = &stage->clients;
    struct quota *user = open_user(clients, SOMEBODY);

    assert_ptr_equal(open_user(clients, SOMEBODY), user);
    for (int i = 0; i < 250; i++)
        quota_charge_message(user, 0);
    quota_close(user);
    stage_go_to(stage, STAGE_NOW + DURATION_SECOND);
    assert_int_equal(clients->quotas.count, 1);
    quota_close(user);
    /* The user connects again before it is forgotten, and is the same. */
    stage_go_to(stage, STAGE_NOW + 2 * DURATION_SECOND);
    assert_ptr_equal(open_user(clients, SOMEBODY), user);
    quota_close(user);
    stage_go_to(stage, STAGE_NOW + 10 * DURATION_SECOND);
    assert_int_equal(clients->quotas.count, 0);
}

static void connections_are_counted(void **state)
{
    struct stage *stage = *state;
    struct clients *clients = &stage->clients;
    struct berth_error error = BERTH_ERROR_INIT;
    struct connection first = {.clients = clients};
    struct connection second = {.clients = clients};
    struct connection other = {.clients = clients};
    struct connection none = {.clients = clients};

    assert_int_equal(quota_connect(&first, SOMEBODY, false, &error), 0);
    assert_int_equal(quota_connect(&second, SOMEBODY, false, &error), 0);
    assert_fails(quota_connect(&none, SOMEBODY, false, &error), BERTH_ERROR_LIMIT, &error,
                 "too many connections of one user: the maximum is 2");
    assert_null(none.quota);
    assert_int_equal(quota_connect(&other, ANOTHER, false, &error), 0);
    quota_disconnect(&first);
    assert_null(first.quota);
    assert_int_equal(quota_connect(&first, SOMEBODY, false, &error), 0);
    clients->quotas.connections_max = 3;
    stage->rules.bounds.connections = 10;
    assert_fails(quota_connect(&none, ANOTHER, false, &error), BERTH_ERROR_LIMIT, &error,
                 "too many connections: the maximum is 3");
    assert_int_equal(quota_connect(&none, 0, false, &error), 0);
    assert_null(none.quota);
    quota_disconnect(&first);
    quota_disconnect(&second);
    quota_disconnect(&other);
    assert_int_equal(clients->quotas.connections, 0);
}

static void descriptors_are_left_for_the_daemon(void **state)
{
    struct stage *stage = *state;
    static const size_t rows[][2] = {
        {64, 32},       {256, 128},        {512, 256},
        {600, 344},     {1024, 768},       {4096, 3072},
        {20000, 15000}, {1048576, 786432}, {SIZE_MAX, SIZE_MAX - SIZE_MAX / 4}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        quota_share_descriptors(&stage->clients, rows[i][0]);
        assert_int_equal(stage->clients.quotas.connections_max, rows[i][1]);
    }
}

static void what_waits_is_counted_in_number_and_in_bytes(void **state)
{
    struct stage *stage = *state;
    struct quota *user = open_user(&stage->clients, SOMEBODY);
    struct berth_error error = BERTH_ERROR_INIT;

    for (int i = 0; i < 3; i++) {
        assert_int_equal(quota_check_waiting(user, 100, &error), 0);
        quota_wait(user, 100);
    }
    assert_fails(quota_check_waiting(user, 0, &error), BERTH_ERROR_LIMIT, &error,
                 "too many queued claims, pending requests and inner leases of one user: the "
                 "maximum is 3");
    quota_wait_over(user, 100);
    assert_int_equal(quota_check_waiting(user, 7 * 1024 * 1024, &error), 0);
    assert_fails(quota_check_waiting(user, 8 * 1024 * 1024, &error), BERTH_ERROR_LIMIT, &error,
                 "too many bytes of pending requests of one user: the maximum is 8 MiB");
    quota_wait_over(user, 100);
    quota_wait_over(user, 100);
    assert_int_equal(user->waiting_bytes, 0);
    quota_close(user);
}

static void what_is_not_read_is_counted(void **state)
{
    struct stage *stage = *state;
    struct quota *user = open_user(&stage->clients, SOMEBODY);

    for (int i = 0; i < 4; i++)
        assert_true(quota_keep_unread(user, 4 * 1024 * 1024));
    assert_false(quota_keep_unread(user, 1));
    quota_forget_unread(user, 1024);
    assert_true(quota_keep_unread(user, 1));
    quota_close(user);
}

static void lines_that_were_left_out_are_told(void **state)
{
    struct stage *stage = *state;
    struct clients *clients = &stage->clients;
    struct quota *user = open_user(clients, SOMEBODY);
    int written = 0;

    for (int i = 0; i < 500; i++)
        written += quota_may_log(user);
    assert_int_equal(written, 50);
    assert_int_equal(user->lines_left_out, 450);
    stage_go_to(stage, STAGE_NOW + DURATION_SECOND);
    assert_int_equal(user->lines_left_out, 0);
    stage_go_to(stage, STAGE_NOW + 5 * DURATION_SECOND);
    /* Five tokens have been refilled. */
    for (int i = 0; i < 500; i++)
        written += quota_may_log(user);
    assert_int_equal(written, 55);
    /* The summary must not become a flood itself. */
    stage_go_to(stage, STAGE_NOW + 7 * DURATION_SECOND);
    assert_int_equal(user->lines_left_out, 495);
    stage_go_to(stage, STAGE_NOW + 12 * DURATION_SECOND);
    assert_int_equal(user->lines_left_out, 0);
    quota_close(user);
}

/* Leases have a part of their own, which refused claims do not use up. */
static void lines_about_leases_are_bounded(void **state)
{
    struct stage *stage = *state;
    struct quota *user = open_user(&stage->clients, SOMEBODY);
    struct quota *other = open_user(&stage->clients, ANOTHER);
    int written = 0;

    for (int i = 0; i < 100; i++)
        quota_may_log(user);
    for (int i = 0; i < 2000; i++)
        written += quota_may_log_lease(user);
    assert_int_equal(written, 500);
    assert_true(quota_may_log_lease(other));
    assert_true(quota_may_log_lease(NULL));
    quota_close(user);
    quota_close(other);
}

/* A long line, such as that of a lease of a thousand devices, counts as several. */
static void long_lines_count_as_several(void **state)
{
    struct stage *stage = *state;
    struct quota *user = open_user(&stage->clients, SOMEBODY);
    int written = 0;

    for (int i = 0; i < 2000; i++) {
        if (!quota_may_log_lease(user))
            continue;
        quota_charge_line(user, 10 * QUOTA_LINE_BYTES);
        written++;
    }
    assert_int_equal(written, 50);
    quota_charge_line(NULL, 1000000);
    quota_close(user);
}

/* Returns how many lines a user writes who connects every 5 s, 20 times. */
static int count_lines(struct stage *stage, bool (*may_log)(struct quota *user))
{
    int64_t start = stage->loop.now;
    int written = 0;

    for (int i = 0; i < 20; i++) {
        struct quota *user = open_user(&stage->clients, SOMEBODY);

        for (int j = 0; j < 1000; j++)
            written += may_log(user);
        quota_close(user);
        stage_go_to(stage, start + (i + 1) * 5 * DURATION_SECOND);
    }
    return written;
}

/* A user who connects again and again does not begin anew each time. */
static void user_who_connects_again_has_no_more_lines(void **state)
{
    struct stage *stage = *state;

    assert_int_equal(count_lines(stage, quota_may_log), 50 + 19 * 5);
    stage_go_to(stage, STAGE_NOW + 700 * DURATION_SECOND);
    assert_int_equal(stage->clients.quotas.count, 0);
    assert_int_equal(count_lines(stage, quota_may_log_lease), 500 + 19 * 5);
    stage_go_to(stage, STAGE_NOW + 2000 * DURATION_SECOND);
    assert_int_equal(stage->clients.quotas.count, 0);
}

/* Lines about processes, whose user may have no connection. */
static void lines_about_any_user_are_bounded(void **state)
{
    struct stage *stage = *state;
    struct clients *clients = &stage->clients;
    int written = 0;

    for (int i = 0; i < 2000; i++) {
        written += quota_may_log_user(clients, SOMEBODY);
        assert_true(quota_may_log_user(clients, 0));
    }
    assert_int_equal(written, 500);
    assert_true(quota_may_log_user(clients, ANOTHER));
    stage_go_to(stage, STAGE_NOW + 700 * DURATION_SECOND);
    stage_go_to(stage, STAGE_NOW + 1400 * DURATION_SECOND);
    assert_int_equal(clients->quotas.count, 0);
}

/* A watched connection, and the client's end. */
struct pair {
    struct connection connection;
    int client;
};

static void ready(struct watch *watch, uint32_t events)
{
    (void)watch;
    (void)events;
}

static void connect_pair(struct clients *clients, struct pair *pair)
{
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends),
                     0);
    *pair = (struct pair){.client = ends[1]};
    pair->connection.clients = clients;
    pair->connection.watch = (struct watch){.descriptor = ends[0], .ready = ready};
    list_init(&pair->connection.jobs);
    list_init(&pair->connection.watchers);
    assert_int_equal(quota_connect(&pair->connection, SOMEBODY, false, NULL), 0);
    assert_int_equal(loop_add(clients->settings.loop, &pair->connection.watch, EPOLLIN, NULL), 0);
}

static void disconnect_pair(struct pair *pair)
{
    list_remove(&pair->connection.in_closing);
    quota_disconnect(&pair->connection);
    loop_remove(pair->connection.clients->settings.loop, &pair->connection.watch);
    text_finish(&pair->connection.out);
    close(pair->connection.watch.descriptor);
    close(pair->client);
}

static void one_that_is_too_fast_waits_for_its_turn(void **state)
{
    struct stage *stage = *state;
    struct clients *clients = &stage->clients;
    struct pair first;
    struct pair second;
    struct quota *user;

    connect_pair(clients, &first);
    connect_pair(clients, &second);
    user = first.connection.quota;
    /* Exactly the limit for one turn. */
    assert_true(quota_may_speak(&first.connection));
    quota_charge_message(user, 40 * 1024);
    assert_false(quota_may_speak(&first.connection));
    assert_true(list_is_linked(&user->in_busy));
    /* No other connection of this user comes before it. */
    clients->quotas.turn++;
    assert_false(quota_may_speak(&second.connection));
    quota_serve(clients);
    assert_false(list_is_linked(&user->in_busy));
    assert_false(list_is_linked(&clients->quotas.resume.in_loop));
    assert_true(quota_may_speak(&first.connection));
    /* Time is charged, too. */
    quota_charge_time(user, DURATION_SECOND);
    clients->quotas.turn++;
    assert_false(quota_may_speak(&first.connection));
    quota_serve(clients);
    assert_true(list_is_linked(&user->in_busy));
    assert_true(clients->quotas.resume.at > STAGE_NOW);
    assert_true(clients->quotas.resume.at <= STAGE_NOW + DURATION_SECOND);
    /* New rules apply at once. */
    quota_apply_bounds(clients);
    quota_serve(clients);
    assert_false(list_is_linked(&user->in_busy));
    disconnect_pair(&first);
    disconnect_pair(&second);
}

/* A waiting client pings every 2.5 s. */
static void a_ping_now_and_then_is_free(void **state)
{
    struct stage *stage = *state;
    struct pair pair;
    struct quota *user;
    int64_t before;

    connect_pair(&stage->clients, &pair);
    user = pair.connection.quota;
    before = user->messages.full_at;
    quota_charge_ping(&pair.connection, 20);
    assert_true(user->messages.full_at > before);
    for (int i = 1; i <= 3; i++) {
        stage->loop.now = STAGE_NOW + i * 2 * DURATION_SECOND;
        stage->clients.quotas.turn++;
        before = user->messages.full_at;
        quota_charge_ping(&pair.connection, 20);
        assert_int_equal(user->messages.full_at, before);
        assert_int_equal(user->spent, 1);
        /* The next one comes too soon, or is too long. */
        quota_charge_ping(&pair.connection, 20);
        assert_true(user->messages.full_at > before);
    }
    stage->loop.now += 2 * DURATION_SECOND;
    before = user->messages.full_at;
    quota_charge_ping(&pair.connection, 4096);
    assert_true(user->messages.full_at > before);
    disconnect_pair(&pair);
}

static void one_that_waits_for_its_turn_may_go(void **state)
{
    struct stage *stage = *state;
    struct clients *clients = &stage->clients;
    struct pair pair;

    connect_pair(clients, &pair);
    quota_charge_message(pair.connection.quota, 200 * 1024);
    assert_false(quota_may_speak(&pair.connection));
    disconnect_pair(&pair);
    assert_true(list_is_empty(&clients->quotas.busy));
    quota_serve(clients);
}

static void one_that_says_nothing_is_closed(void **state)
{
    struct stage *stage = *state;
    struct clients *clients = &stage->clients;
    struct pair silent;
    struct pair talking;

    connect_pair(clients, &silent);
    quota_await_message(&silent.connection);
    stage->loop.now = STAGE_NOW + DURATION_SECOND;
    connect_pair(clients, &talking);
    quota_await_message(&talking.connection);
    quota_heard(&talking.connection);
    stage_go_to(stage, STAGE_NOW + 29 * DURATION_SECOND);
    assert_false(silent.connection.closing);
    stage_go_to(stage, STAGE_NOW + 30 * DURATION_SECOND);
    assert_true(silent.connection.closing);
    stage_go_to(stage, STAGE_NOW + 60 * DURATION_SECOND);
    assert_false(talking.connection.closing);
    disconnect_pair(&silent);
    disconnect_pair(&talking);
}

static void one_that_was_not_heard_yet_is_not_silent(void **state)
{
    struct stage *stage = *state;
    struct clients *clients = &stage->clients;
    struct pair pair;

    connect_pair(clients, &pair);
    quota_await_message(&pair.connection);
    quota_charge_message(pair.connection.quota, 200 * 1024);
    assert_false(quota_may_speak(&pair.connection));
    stage_go_to(stage, STAGE_NOW + 31 * DURATION_SECOND);
    assert_false(pair.connection.closing);
    disconnect_pair(&pair);
}

/* The daemon was stopped when the first message arrived. */
static void an_unread_message_is_no_silence(void **state)
{
    struct stage *stage = *state;
    struct clients *clients = &stage->clients;
    struct pair pair;

    connect_pair(clients, &pair);
    quota_await_message(&pair.connection);
    stage_send(pair.client, WIRE_HELLO, 1);
    stage_go_to(stage, STAGE_NOW + 31 * DURATION_SECOND);
    assert_false(pair.connection.closing);
    disconnect_pair(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(root_and_the_owner_have_no_bounds, stage_begin, stage_end),
        cmocka_unit_test_setup_teardown(one_that_has_nothing_is_forgotten_once_its_bucket_is_full,
                                        stage_begin, stage_end),
        cmocka_unit_test_setup_teardown(connections_are_counted, stage_begin, stage_end),
        cmocka_unit_test_setup_teardown(descriptors_are_left_for_the_daemon, stage_begin,
                                        stage_end),
        cmocka_unit_test_setup_teardown(what_waits_is_counted_in_number_and_in_bytes, stage_begin,
                                        stage_end),
        cmocka_unit_test_setup_teardown(what_is_not_read_is_counted, stage_begin, stage_end),
        cmocka_unit_test_setup_teardown(lines_that_were_left_out_are_told, stage_begin, stage_end),
        cmocka_unit_test_setup_teardown(lines_about_leases_are_bounded, stage_begin, stage_end),
        cmocka_unit_test_setup_teardown(long_lines_count_as_several, stage_begin, stage_end),
        cmocka_unit_test_setup_teardown(user_who_connects_again_has_no_more_lines, stage_begin,
                                        stage_end),
        cmocka_unit_test_setup_teardown(lines_about_any_user_are_bounded, stage_begin, stage_end),
        cmocka_unit_test_setup_teardown(one_that_is_too_fast_waits_for_its_turn, stage_begin,
                                        stage_end),
        cmocka_unit_test_setup_teardown(a_ping_now_and_then_is_free, stage_begin, stage_end),
        cmocka_unit_test_setup_teardown(one_that_waits_for_its_turn_may_go, stage_begin, stage_end),
        cmocka_unit_test_setup_teardown(an_unread_message_is_no_silence, stage_begin, stage_end),
        cmocka_unit_test_setup_teardown(one_that_says_nothing_is_closed, stage_begin, stage_end),
        cmocka_unit_test_setup_teardown(one_that_was_not_heard_yet_is_not_silent, stage_begin,
                                        stage_end),
    };

    return cmocka_run_group_tests_name("users", tests, NULL, NULL);
}
