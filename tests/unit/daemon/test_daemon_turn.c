/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/daemon_turn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/client_events.h"
#include "daemon/handlers/deferred_claims.h"
#include "daemon/handlers/handle.h"
#include "daemon/handlers/handle_adopt.h"
#include "daemon/journal/journal_records.h"
#include "daemon/leases/prolog_epilog.h"
#include "daemon/stream/ended_leases.h"
#include "support/daemons/played_probe.h"
#include "support/daemons/played_readers.h"
#include "support/daemons/pool_stage.h"
#include "support/engine/machines.h"
#include "support/temporary_directory.h"

static struct pool_stage *make(bool is_own)
{
    struct pool_stage *stage = pool_stage_make(&(struct pool_stage_settings){
        .parts = pool_stage_all, .part_count = POOL_STAGE_ALL, .is_own = is_own});

    stage->closed = client_events_forget;
    stage->pool.handlers = (struct pool_handlers){deferred_claims_continue, handle_adopt_again};
    stage->pool.settings.idle = 3 * DURATION_SECOND;
    daemon_turn_init(&stage->pool);
    return stage;
}

static int begin(void **state)
{
    *state = make(false);
    return 0;
}

static int begin_own(void **state)
{
    *state = make(true);
    return 0;
}

/* Ends a turn, waits so long, and begins the next one: timers that are due fire. */
static void wait_for(struct pool_stage *stage, int64_t duration)
{
    struct pool *pool = &stage->pool;
    int64_t until = pool->loop.now + duration;
    struct timer *timer;

    daemon_turn_end(pool);
    while (!list_is_empty(&pool->loop.timers)) {
        timer = container_of(list_first(&pool->loop.timers), struct timer, in_loop);
        if (timer->at > until || pool->loop.ended)
            break;
        if (timer->at > pool->loop.now)
            pool->loop.now = timer->at;
        daemon_turn_begin(pool);
        loop_set_timer(&pool->loop, timer, LOOP_NEVER);
        timer->fire(timer);
        daemon_turn_end(pool);
    }
    pool->loop.now = until;
}

/* ---- Timers ---- */

/* The engine acts when something is due, and not before. */
static void the_engine_has_a_timer(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *job = pool_stage_claim(
        stage, &(struct stage_claim){.words = "time=2s", .connection = client.connection});

    daemon_turn_end(pool);
    assert_int_equal(pool->engine_timer.at, STAGE_LOOP_NOW + 2 * DURATION_SECOND);
    wait_for(stage, 2 * DURATION_SECOND - 1);
    assert_int_equal(job->state, JOB_HELD);
    wait_for(stage, 1);
    assert_int_equal(job->state, JOB_ENDING);
    assert_sent(&client, WIRE_NOTICE);
    pool_stage_hang_up(stage, &client);
    daemon_turn_end(pool);
    assert_false(list_is_linked(&pool->engine_timer.in_loop));
}

/* Each user gets a share of each turn, so the turns are counted. */
static void turns_are_counted(void **state)
{
    struct pool_stage *stage = *state;
    uint64_t turn = stage->pool.clients.quotas.turn;

    daemon_turn_end(&stage->pool);
    assert_int_equal(stage->pool.clients.quotas.turn, turn);
    daemon_turn_begin(&stage->pool);
    assert_int_equal(stage->pool.clients.quotas.turn, turn + 1);
}

static void tests_have_a_deadline(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message;

    message = pool_stage_message(stage, "gpus=4");
    handle_message(client.connection, &message);
    wire_message_finish(&message);
    assert_sent(&client, WIRE_GRANTED);
    message = pool_stage_message(stage, "gpus=4");
    message.type = WIRE_TEST;
    message.request->wait = optional_number_of(DURATION_SECOND);
    handle_message(client.connection, &message);
    wire_message_finish(&message);
    engine_events_settle(pool);
    wait_for(stage, DURATION_SECOND - 1);
    assert_no_message(&client);
    wait_for(stage, DURATION_SECOND / 10);
    assert_refused(&client, BERTH_ERROR_TIMED_OUT, "not granted within 1s (--wait)");
    pool_stage_hang_up(stage, &client);
}

static void the_probe_is_scheduled(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;

    assert_int_equal(probe_poll_create(&pool->probe_poll, &(struct probe_poll_settings){0}, NULL),
                     0);
    daemon_turn_end(pool);
    assert_int_equal(pool->probe_poll->scheduled, 1);
    probe_poll_destroy(pool->probe_poll);
    pool->probe_poll = NULL;
}

/* ---- Clients ---- */

/* Lets the client follow leases. */
static void follow(struct pool_stage *stage, const struct stage_client *client)
{
    struct pool *pool = &stage->pool;
    struct wire_message message = {
        .type = WIRE_FOLLOW,
        .number = 7,
        .kinds = WIRE_NEWS_LEASE,
        .epoch = followers_epoch(pool->followers),
        .after = followers_mark(pool->followers),
        .id = ended_leases_count(pool->ended_leases),
    };

    handle_message(client->connection, &message);
}

/* A client hangs up, and its lease ends with the turn: followers must not learn of it later. */
static void the_end_of_a_connection_is_news_at_once(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct stage_client other = pool_stage_connect(stage, STAGE_OTHER);

    pool_stage_claim(stage, &(struct stage_claim){.connection = client.connection});
    follow(stage, &other);
    daemon_turn_end(pool);
    assert_no_message(&other);
    close(client.end);
    client.connection->watch.ready(&client.connection->watch, EPOLLIN);
    daemon_turn_end(pool);
    assert_int_equal(pool->job_count, 0);
    assert_sent(&other, WIRE_NEWS);
    client.connection = NULL;
    client.end = -1;
    pool_stage_hang_up(stage, &other);
}

/* A follower that does not read is closed within the turn, and its own lease ends. */
static void news_may_close_a_connection(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);

    pool_stage_claim(stage, &(struct stage_claim){.connection = client.connection});
    follow(stage, &client);
    close(client.end);
    followers_note(pool->followers, WIRE_NEWS_LEASE);
    daemon_turn_end(pool);
    assert_int_equal(pool->job_count, 0);
    assert_int_equal(pool->clients.connection_count, 0);
}

/* A message that waited for a search is handled before the wait. */
static void early_messages_go_on(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *job = pool_stage_claim(stage, &(struct stage_claim){.hold = LEASE_HOLD_NOTHING});
    struct wire_message message = pool_stage_message(stage, "gpus=1");

    job->state = JOB_LOOKING;
    job_lease_watch(pool, job)->look_number = ++pool->look_count;
    list_append(&pool->looks, &job->guard->in_looks);
    handle_message(client.connection, &message);
    daemon_turn_end(pool);
    assert_no_message(&client);
    list_remove(&job->guard->in_looks);
    job->state = JOB_HELD;
    pool->has_looked = true;
    daemon_turn_end(pool);
    assert_sent(&client, WIRE_GRANTED);
    wire_message_finish(&message);
    pool_stage_hang_up(stage, &client);
}

/* ---- The journal ---- */

/* Without space, answers wait, and the write is repeated. */
static void a_failed_write_is_repeated(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    int descriptor = pool->journal.descriptor;
    char filler[32 * 1024] = {0};

    pool->journal.descriptor = -1; /* the file cannot grow */
    do
        journal_file_append(&pool->journal, filler, sizeof(filler));
    while (!journal_file_is_behind(&pool->journal));
    connection_send(client.connection, &(struct wire_message){.type = WIRE_DONE, .number = 1});
    wait_for(stage, DURATION_SECOND);
    assert_no_message(&client);
    assert_true(list_is_linked(&pool->journal_timer.in_loop));
    pool->journal.descriptor = descriptor;
    wait_for(stage, DURATION_SECOND);
    assert_sent(&client, WIRE_DONE);
    assert_false(list_is_linked(&pool->journal_timer.in_loop));
    pool_stage_hang_up(stage, &client);
}

/* Makes the journal so long that a checkpoint is due. */
static void lengthen_journal(struct pool *pool)
{
    char filler[64 * 1024] = {0};

    while (!journal_file_is_long(&pool->journal))
        journal_file_append(&pool->journal, filler, sizeof(filler));
}

static void a_long_journal_is_made_short(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    void *directory;
    char path[512];

    assert_int_equal(temporary_directory_enter(&directory), 0);
    snprintf(path, sizeof(path), "%s/berth.journal", (char *)directory);
    pool->journal_path = copy_of(path);
    lengthen_journal(pool);
    daemon_turn_end(pool);
    assert_in_range(pool->journal.used, 1, 64 * 1024);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(temporary_directory_leave(&directory), 0);
}

/* A checkpoint that fails is not tried in each turn: it takes long where there is much state. */
static void a_failed_checkpoint_has_a_pause(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    void *directory;
    char path[512];
    size_t used;

    assert_int_equal(temporary_directory_enter(&directory), 0);
    snprintf(path, sizeof(path), "%s/later/berth.journal", (char *)directory);
    pool->journal_path = copy_of(path);
    lengthen_journal(pool);
    used = pool->journal.used;
    daemon_turn_end(pool);
    assert_int_equal(pool->journal.used, used);
    /* There is room now, but the daemon does not try yet. */
    assert_int_equal(mkdir("later", 0700), 0);
    daemon_turn_end(pool);
    assert_int_equal(pool->journal.used, used);
    pool->loop.now += DURATION_SECOND;
    daemon_turn_end(pool);
    assert_true(pool->journal.used < used);
    assert_int_equal(temporary_directory_leave(&directory), 0);
}

/* ---- A user's own daemon ---- */

static void an_idle_daemon_of_a_user_ends(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);

    wait_for(stage, DURATION_MINUTE);
    assert_false(pool->loop.ended);
    /* A client that connects in the turn in which the time is over. */
    pool->idle_timer.fire(&pool->idle_timer);
    assert_false(pool->loop.ended);
    pool_stage_hang_up(stage, &client);
    wait_for(stage, 3 * DURATION_SECOND - 1);
    assert_false(pool->loop.ended);
    wait_for(stage, 1);
    assert_true(pool->loop.ended);
}

/* Unfinished work keeps the daemon, and afterwards the time counts anew. */
static void a_busy_daemon_of_a_user_goes_on(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct kept_epilog epilog = {.slot = 1, .is_due = true, .lease = 7};
    struct job *job;
    char **word;

    wait_for(stage, 2 * DURATION_SECOND);
    job = pool_stage_claim(stage, &(struct stage_claim){0});
    wait_for(stage, DURATION_MINUTE);
    assert_false(pool->loop.ended);
    job_free(pool, job);
    wait_for(stage, 2 * DURATION_SECOND);
    assert_false(pool->loop.ended);
    /* An epilog runs. */
    word = vector_append(&pool->rules.epilog.argv);
    assert_non_null(word);
    *word = copy_of("/bin/true");
    prolog_epilog_restore(pool, &epilog);
    prolog_epilog_restored(pool);
    daemon_turn_end(pool);
    assert_false(list_is_linked(&pool->idle_timer.in_loop));
}

static void the_machines_daemon_stays(void **state)
{
    struct pool_stage *stage = *state;

    wait_for(stage, DURATION_HOUR);
    assert_false(stage->pool.loop.ended);
}

/* ---- Signs of life ---- */

static void the_service_manager_gets_signs_of_life(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    void *directory;
    char path[512];
    char sign[64];

    assert_int_equal(temporary_directory_enter(&directory), 0);
    snprintf(path, sizeof(path), "%s/notify", (char *)directory);
    assert_true(strlen(path) < sizeof(address.sun_path));
    strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
    assert_int_equal(bind(manager, (struct sockaddr *)&address, sizeof(address)), 0);
    setenv("NOTIFY_SOCKET", path, 1);
    setenv("WATCHDOG_USEC", "2000000", 1);
    unsetenv("WATCHDOG_PID");
    daemon_turn_start_watchdog(pool); /* the first sign does not wait for the loop */
    for (int i = 0; i < 3; i++) {
        ssize_t length = recv(manager, sign, sizeof(sign) - 1, MSG_DONTWAIT);

        assert_true(length > 0);
        sign[length] = '\0';
        assert_string_equal(sign, "WATCHDOG=1");
        assert_int_equal(recv(manager, sign, sizeof(sign), MSG_DONTWAIT), -1);
        wait_for(stage, DURATION_SECOND);
    }
    unsetenv("NOTIFY_SOCKET");
    close(manager);
    assert_int_equal(temporary_directory_leave(&directory), 0);
}

static void without_a_service_manager_there_are_none(void **state)
{
    struct pool_stage *stage = *state;

    unsetenv("WATCHDOG_USEC");
    daemon_turn_start_watchdog(&stage->pool);
    assert_false(list_is_linked(&stage->pool.watchdog_timer.in_loop));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_engine_has_a_timer, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(turns_are_counted, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(tests_have_a_deadline, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(the_probe_is_scheduled, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(the_end_of_a_connection_is_news_at_once, begin,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(news_may_close_a_connection, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(early_messages_go_on, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_failed_write_is_repeated, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_long_journal_is_made_short, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_failed_checkpoint_has_a_pause, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(an_idle_daemon_of_a_user_ends, begin_own, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_busy_daemon_of_a_user_goes_on, begin_own, pool_stage_end),
        cmocka_unit_test_setup_teardown(the_machines_daemon_stays, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(the_service_manager_gets_signs_of_life, begin,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(without_a_service_manager_there_are_none, begin,
                                        pool_stage_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
