/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/users.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/count.h"
#include "base/text/quantity.h"
#include "support/assert_error.h"

enum { OWNER = 500, SOMEBODY = 1000, ANOTHER = 1001 };
#define NOW (1000 * DURATION_SECOND)

/* A pool with only users, and a clock that the test sets. */
struct stage {
    struct pool *pool;
    int log;
};

static int begin(void **state)
{
    struct stage *stage = calloc(1, sizeof(*stage));
    struct pool *pool = calloc(1, sizeof(*pool));

    assert_non_null(stage);
    assert_non_null(pool);
    stage->pool = pool;
    stage->log = open("/dev/null", O_WRONLY | O_CLOEXEC);
    pool->owner = OWNER;
    pool->journal.descriptor = -1;
    pool->rules.bounds = (struct bounds){.connections = 2, .messages = 100, .waiting = 3};
    list_init(&pool->connections);
    list_init(&pool->doomed);
    assert_int_equal(loop_init(&pool->loop, NULL), 0);
    pool->loop.now = NOW;
    log_init(&pool->log, &pool->loop, stage->log, NULL);
    assert_int_equal(users_init(pool, NULL), 0);
    users_share(pool, 1000000);
    *state = stage;
    return 0;
}

static int end(void **state)
{
    struct stage *stage = *state;

    users_finish(stage->pool);
    log_finish(&stage->pool->log);
    text_finish(&stage->pool->answer);
    loop_finish(&stage->pool->loop);
    close(stage->log);
    free(stage->pool);
    free(stage);
    return 0;
}

static struct user *open_user(struct pool *pool, uint32_t uid)
{
    struct user *user = NULL;

    assert_int_equal(user_open(pool, uid, &user), 0);
    return user;
}

/* Fires the timers that are due at that time. */
static void go_to(struct pool *pool, int64_t time)
{
    pool->loop.now = time;
    while (!list_is_empty(&pool->loop.timers)) {
        struct timer *timer = container_of(list_first(&pool->loop.timers), struct timer, in_loop);

        if (timer->at > time)
            break;
        timer_set_at(&pool->loop, timer, LOOP_NEVER);
        timer->fire(timer);
    }
}

static void root_and_the_owner_have_no_bounds(void **state)
{
    struct stage *stage = *state;

    assert_null(open_user(stage->pool, 0));
    assert_null(open_user(stage->pool, OWNER));
    assert_int_equal(user_check_waiting(NULL, SIZE_MAX / 2, NULL), 0);
    assert_true(user_keep_unread(NULL, SIZE_MAX / 2));
    assert_true(user_may_log(NULL));
    user_wait(NULL, 1);
    user_wait_over(NULL, 1);
    user_forget_unread(NULL, 1);
    user_close(NULL);
}

static void one_that_has_nothing_is_forgotten_once_its_bucket_is_full(void **state)
{
    struct stage *stage = *state;
    struct pool *pool = stage->pool;
    struct user *user = open_user(pool, SOMEBODY);

    assert_ptr_equal(open_user(pool, SOMEBODY), user);
    for (int i = 0; i < 250; i++)
        user_charge_message(user, 0);
    user_close(user);
    go_to(pool, NOW + DURATION_SECOND);
    assert_int_equal(pool->users.count, 1);
    user_close(user);
    /* The user connects again before it is forgotten, and is the same. */
    go_to(pool, NOW + 2 * DURATION_SECOND);
    assert_ptr_equal(open_user(pool, SOMEBODY), user);
    user_close(user);
    go_to(pool, NOW + 10 * DURATION_SECOND);
    assert_int_equal(pool->users.count, 0);
}

static void connections_are_counted(void **state)
{
    struct stage *stage = *state;
    struct pool *pool = stage->pool;
    struct berth_error error = BERTH_ERROR_INIT;
    struct connection first = {.pool = pool};
    struct connection second = {.pool = pool};
    struct connection other = {.pool = pool};
    struct user *none = NULL;

    assert_int_equal(user_connect(pool, SOMEBODY, &first.user, &error), 0);
    assert_int_equal(user_connect(pool, SOMEBODY, &second.user, &error), 0);
    assert_fails(user_connect(pool, SOMEBODY, &none, &error), BERTH_ERROR_LIMIT, &error,
                 "too many connections of one user: the maximum is 2");
    assert_null(none);
    assert_int_equal(user_connect(pool, ANOTHER, &other.user, &error), 0);
    user_disconnect(&first);
    assert_null(first.user);
    assert_int_equal(user_connect(pool, SOMEBODY, &first.user, &error), 0);
    pool->users.connections_max = 3;
    pool->rules.bounds.connections = 10;
    assert_fails(user_connect(pool, ANOTHER, &none, &error), BERTH_ERROR_LIMIT, &error,
                 "too many connections: the maximum is 3");
    assert_int_equal(user_connect(pool, 0, &none, &error), 0);
    assert_null(none);
    user_disconnect(&first);
    user_disconnect(&second);
    user_disconnect(&other);
    assert_int_equal(pool->users.connections, 0);
}

static void descriptors_are_left_for_the_daemon(void **state)
{
    struct stage *stage = *state;
    static const size_t rows[][2] = {
        {64, 32},       {256, 128},        {512, 256},
        {600, 344},     {1024, 768},       {4096, 3072},
        {20000, 15000}, {1048576, 786432}, {SIZE_MAX, SIZE_MAX - SIZE_MAX / 4}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        users_share(stage->pool, rows[i][0]);
        assert_int_equal(stage->pool->users.connections_max, rows[i][1]);
    }
}

static void what_waits_is_counted_in_number_and_in_bytes(void **state)
{
    struct stage *stage = *state;
    struct user *user = open_user(stage->pool, SOMEBODY);
    struct berth_error error = BERTH_ERROR_INIT;

    for (int i = 0; i < 3; i++) {
        assert_int_equal(user_check_waiting(user, 100, &error), 0);
        user_wait(user, 100);
    }
    assert_fails(user_check_waiting(user, 0, &error), BERTH_ERROR_LIMIT, &error,
                 "too many queued claims, pending requests and inner leases of one user: the "
                 "maximum is 3");
    user_wait_over(user, 100);
    assert_int_equal(user_check_waiting(user, 7 * 1024 * 1024, &error), 0);
    assert_fails(user_check_waiting(user, 8 * 1024 * 1024, &error), BERTH_ERROR_LIMIT, &error,
                 "too many bytes of pending requests of one user: the maximum is 8 MiB");
    user_wait_over(user, 100);
    user_wait_over(user, 100);
    assert_int_equal(user->waiting_bytes, 0);
    user_close(user);
}

static void what_is_not_read_is_counted(void **state)
{
    struct stage *stage = *state;
    struct user *user = open_user(stage->pool, SOMEBODY);

    for (int i = 0; i < 4; i++)
        assert_true(user_keep_unread(user, 4 * 1024 * 1024));
    assert_false(user_keep_unread(user, 1));
    user_forget_unread(user, 1024);
    assert_true(user_keep_unread(user, 1));
    user_close(user);
}

static void lines_that_were_left_out_are_told(void **state)
{
    struct stage *stage = *state;
    struct pool *pool = stage->pool;
    struct user *user = open_user(pool, SOMEBODY);
    int written = 0;

    for (int i = 0; i < 500; i++)
        written += user_may_log(user);
    assert_int_equal(written, 50);
    assert_int_equal(user->lines_left_out, 450);
    go_to(pool, NOW + DURATION_SECOND);
    assert_int_equal(user->lines_left_out, 0);
    /* Ten tokens have been refilled. */
    for (int i = 0; i < 500; i++)
        written += user_may_log(user);
    assert_int_equal(written, 60);
    user_close(user);
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

static void connect_pair(struct pool *pool, struct pair *pair)
{
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends),
                     0);
    *pair = (struct pair){.client = ends[1]};
    pair->connection.pool = pool;
    pair->connection.watch = (struct watch){.descriptor = ends[0], .ready = ready};
    list_init(&pair->connection.jobs);
    list_init(&pair->connection.watchers);
    assert_int_equal(user_connect(pool, SOMEBODY, &pair->connection.user, NULL), 0);
    assert_int_equal(loop_add(&pool->loop, &pair->connection.watch, EPOLLIN, NULL), 0);
}

static void disconnect_pair(struct pair *pair)
{
    list_remove(&pair->connection.in_doomed);
    user_disconnect(&pair->connection);
    loop_remove(&pair->connection.pool->loop, &pair->connection.watch);
    text_finish(&pair->connection.out);
    close(pair->connection.watch.descriptor);
    close(pair->client);
}

static void one_that_is_too_fast_waits_for_its_turn(void **state)
{
    struct stage *stage = *state;
    struct pool *pool = stage->pool;
    struct pair first;
    struct pair second;
    struct user *user;

    connect_pair(pool, &first);
    connect_pair(pool, &second);
    user = first.connection.user;
    /* Exactly the limit for one turn. */
    assert_true(user_may_speak(&first.connection));
    user_charge_message(user, 40 * 1024);
    assert_false(user_may_speak(&first.connection));
    assert_true(list_is_linked(&user->in_busy));
    /* No other connection of this user comes before it. */
    pool->users.turn++;
    assert_false(user_may_speak(&second.connection));
    users_serve(pool);
    assert_false(list_is_linked(&user->in_busy));
    assert_false(list_is_linked(&pool->users.resume.in_loop));
    assert_true(user_may_speak(&first.connection));
    /* Time is charged, too. */
    user_charge_time(user, DURATION_SECOND);
    pool->users.turn++;
    assert_false(user_may_speak(&first.connection));
    users_serve(pool);
    assert_true(list_is_linked(&user->in_busy));
    assert_true(pool->users.resume.at > NOW);
    assert_true(pool->users.resume.at <= NOW + DURATION_SECOND);
    /* New rules apply at once. */
    users_apply_rules(pool);
    users_serve(pool);
    assert_false(list_is_linked(&user->in_busy));
    disconnect_pair(&first);
    disconnect_pair(&second);
}

static void one_that_waits_for_its_turn_may_go(void **state)
{
    struct stage *stage = *state;
    struct pool *pool = stage->pool;
    struct pair pair;

    connect_pair(pool, &pair);
    user_charge_message(pair.connection.user, 200 * 1024);
    assert_false(user_may_speak(&pair.connection));
    disconnect_pair(&pair);
    assert_true(list_is_empty(&pool->users.busy));
    users_serve(pool);
}

static void one_that_says_nothing_is_closed(void **state)
{
    struct stage *stage = *state;
    struct pool *pool = stage->pool;
    struct pair silent;
    struct pair talking;

    connect_pair(pool, &silent);
    users_await(&silent.connection);
    pool->loop.now = NOW + DURATION_SECOND;
    connect_pair(pool, &talking);
    users_await(&talking.connection);
    users_heard(&talking.connection);
    go_to(pool, NOW + 29 * DURATION_SECOND);
    assert_false(silent.connection.closing);
    go_to(pool, NOW + 30 * DURATION_SECOND);
    assert_true(silent.connection.closing);
    go_to(pool, NOW + 60 * DURATION_SECOND);
    assert_false(talking.connection.closing);
    disconnect_pair(&silent);
    disconnect_pair(&talking);
}

static void one_that_was_not_heard_yet_is_not_silent(void **state)
{
    struct stage *stage = *state;
    struct pool *pool = stage->pool;
    struct pair pair;

    connect_pair(pool, &pair);
    users_await(&pair.connection);
    user_charge_message(pair.connection.user, 200 * 1024);
    assert_false(user_may_speak(&pair.connection));
    go_to(pool, NOW + 31 * DURATION_SECOND);
    assert_false(pair.connection.closing);
    disconnect_pair(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(root_and_the_owner_have_no_bounds, begin, end),
        cmocka_unit_test_setup_teardown(one_that_has_nothing_is_forgotten_once_its_bucket_is_full,
                                        begin, end),
        cmocka_unit_test_setup_teardown(connections_are_counted, begin, end),
        cmocka_unit_test_setup_teardown(descriptors_are_left_for_the_daemon, begin, end),
        cmocka_unit_test_setup_teardown(what_waits_is_counted_in_number_and_in_bytes, begin, end),
        cmocka_unit_test_setup_teardown(what_is_not_read_is_counted, begin, end),
        cmocka_unit_test_setup_teardown(lines_that_were_left_out_are_told, begin, end),
        cmocka_unit_test_setup_teardown(one_that_is_too_fast_waits_for_its_turn, begin, end),
        cmocka_unit_test_setup_teardown(one_that_waits_for_its_turn_may_go, begin, end),
        cmocka_unit_test_setup_teardown(one_that_says_nothing_is_closed, begin, end),
        cmocka_unit_test_setup_teardown(one_that_was_not_heard_yet_is_not_silent, begin, end),
    };

    return cmocka_run_group_tests_name("users", tests, NULL, NULL);
}
