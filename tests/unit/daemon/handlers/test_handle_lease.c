/* SPDX-License-Identifier: Apache-2.0
 *
 * RELEASE, CANCEL, STOP, EXTEND and WATCH.
 */
#include "support/unit.h"

#include <string.h>
#include <unistd.h>

#include "daemon/handlers/handle.h"
#include "daemon/leases/lease_ending.h"
#include "daemon/stream/ended_leases.h"
#include "support/daemons/played_readers.h"
#include "support/daemons/pool_stage.h"

static struct job *claim(struct pool_stage *stage, const struct stage_client *client,
                         const char *words)
{
    return pool_stage_claim(
        stage, &(struct stage_claim){.words = words, .connection = client->connection});
}

/* A lease that its client, this process, holds by itself. */
static struct job *hold(struct pool_stage *stage, const struct stage_client *client)
{
    return pool_stage_claim(
        stage, &(struct stage_claim){.hold = LEASE_HOLD_PROCESS, .connection = client->connection});
}

/* Sends a message of this type about the id. */
static void send_about(struct pool_stage *stage, const struct stage_client *client,
                       enum wire_type type, uint64_t id)
{
    struct wire_message message = {.type = type, .number = 9, .id = id};

    handle_message(client->connection, &message);
    engine_events_settle(&stage->pool);
}

/* ---- RELEASE ---- */

static void a_holder_gives_its_lease_back(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *job = hold(stage, &client);
    struct wire_message message = {.type = WIRE_RELEASE,
                                   .number = 9,
                                   .id = job->by_id.id,
                                   .exit_code = optional_number_of(255)};

    handle_release(client.connection, &message);
    /* The answer waits for the search, so that the devices are free by then. */
    assert_no_message(&client);
    assert_int_equal(job->state, JOB_LOOKING);
    assert_int_equal(job->guard->asker, getpid());
    played_readers_say_nothing_left(pool->readers);
    assert_message(&client, WIRE_DONE, &message);
    assert_int_equal(message.number, 9);
    assert_int_equal(message.id, 1);
    wire_message_finish(&message);
    assert_int_equal(job_find_ended(pool, 1)->end, LEASE_END_RELEASED);
    assert_int_equal(job_find_ended(pool, 1)->exit_code.value, 255);
    pool_stage_hang_up(stage, &client);
}

/* A lease of a connection is over at once. A message without a number wants no answer. */
static void a_release_may_have_no_answer(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    uint64_t id = claim(stage, &client, NULL)->by_id.id;
    struct wire_message message = {.type = WIRE_RELEASE, .id = id};

    handle_release(client.connection, &message);
    assert_null(job_of_id(pool, id));
    assert_no_message(&client);
    handle_release(client.connection, &message);
    assert_no_message(&client);
    id = claim(stage, &client, NULL)->by_id.id;
    send_about(stage, &client, WIRE_RELEASE, id);
    assert_sent(&client, WIRE_DONE);
    pool_stage_hang_up(stage, &client);
}

static void only_the_holder_releases(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client holder = pool_stage_connect(stage, STAGE_USER);
    struct stage_client same_user = pool_stage_connect(stage, STAGE_USER);
    struct stage_client stranger = pool_stage_connect(stage, STAGE_OTHER);
    struct job *job = claim(stage, &holder, "gpus=4");
    const struct job *waits = claim(stage, &holder, "gpus=4");

    send_about(stage, &stranger, WIRE_RELEASE, 1);
    assert_refused(&stranger, BERTH_ERROR_PERMISSION,
                   "cannot end lease 1: it belongs to another user");
    send_about(stage, &same_user, WIRE_RELEASE, 1);
    assert_refused(&same_user, BERTH_ERROR_PERMISSION,
                   "cannot end lease 1: only its holder can give it back; use 'berth release 1'");
    send_about(stage, &holder, WIRE_RELEASE, waits->by_id.id);
    assert_refused(&holder, BERTH_ERROR_INVALID,
                   "cannot end lease 2: it still waits; use 'berth cancel 2'");
    send_about(stage, &holder, WIRE_RELEASE, 77);
    assert_refused(&holder, BERTH_ERROR_NOT_FOUND,
                   "cannot end lease 77: no claim or lease has this id");
    job->state = JOB_DRAINING;
    send_about(stage, &holder, WIRE_RELEASE, 1);
    assert_refused(&holder, BERTH_ERROR_NOT_FOUND, "cannot end lease 1: it has already ended");
    job->state = JOB_HELD;
    assert_int_equal(pool->job_count, 2);
    pool_stage_hang_up(stage, &holder);
    pool_stage_hang_up(stage, &same_user);
    pool_stage_hang_up(stage, &stranger);
}

/* A lease that another user has ended keeps that reason. */
static void a_release_after_a_notice_keeps_the_reason(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *job = claim(stage, &client, NULL);

    lease_ending_begin(pool, job, LEASE_END_EXPIRED, STAGE_NOW + DURATION_SECOND);
    send_about(stage, &client, WIRE_RELEASE, 1);
    assert_int_equal(job_find_ended(pool, 1)->end, LEASE_END_EXPIRED);
    pool_stage_hang_up(stage, &client);
}

/* ---- CANCEL ---- */

static void a_waiting_claim_is_cancelled(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct stage_client other = pool_stage_connect(stage, STAGE_USER);
    uint64_t id;

    claim(stage, &client, "gpus=4");
    id = claim(stage, &client, "gpus=4")->by_id.id;
    /* Another connection of the user may do it. */
    send_about(stage, &other, WIRE_CANCEL, id);
    assert_sent(&other, WIRE_DONE);
    assert_refused(&client, BERTH_ERROR_CANCELLED, "cancelled");
    assert_int_equal(job_find_ended(pool, id)->end, LEASE_END_CANCELLED);
    send_about(stage, &other, WIRE_CANCEL, id);
    assert_refused(&other, BERTH_ERROR_NOT_FOUND, "cannot cancel claim 2: it has already ended");
    send_about(stage, &other, WIRE_CANCEL, 1);
    assert_refused(&other, BERTH_ERROR_INVALID,
                   "cannot cancel claim 1: it is already a lease; use 'berth release 1'");
    pool_stage_hang_up(stage, &client);
    pool_stage_hang_up(stage, &other);
}

/* While its devices are prepared, a claim is still a claim to its client. */
static void a_claim_in_preparation_is_cancelled(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);

    claim(stage, &client, NULL)->unprepared = true;
    send_about(stage, &client, WIRE_CANCEL, 1);
    assert_sent(&client, WIRE_DONE);
    assert_refused(&client, BERTH_ERROR_CANCELLED, "cancelled");
    assert_int_equal(pool->job_count, 0);
    pool_stage_hang_up(stage, &client);
}

/* ---- STOP ---- */

static void a_lease_is_stopped_with_a_notice(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client holder = pool_stage_connect(stage, STAGE_USER);
    struct stage_client other = pool_stage_connect(stage, STAGE_USER);
    struct stage_client owner = pool_stage_connect(stage, STAGE_OWNER);
    struct stage_client stranger = pool_stage_connect(stage, STAGE_OTHER);
    struct job *job = claim(stage, &holder, "gpus=4");
    const struct job *waits = claim(stage, &holder, "gpus=4");

    send_about(stage, &stranger, WIRE_STOP, 1);
    assert_refused(&stranger, BERTH_ERROR_PERMISSION,
                   "cannot end lease 1: it belongs to another user");
    send_about(stage, &other, WIRE_STOP, waits->by_id.id);
    assert_refused(&other, BERTH_ERROR_INVALID,
                   "cannot end lease 2: it still waits; use 'berth cancel 2'");
    send_about(stage, &other, WIRE_STOP, 1);
    assert_sent(&other, WIRE_DONE);
    assert_sent(&holder, WIRE_NOTICE);
    assert_int_equal(job->end, LEASE_END_STOPPED);
    assert_int_equal(job->guard->force_at, STAGE_NOW + pool->rules.grace);
    assert_int_equal(job->guard->asker, getpid());
    /* The pool's owner may stop all leases. */
    send_about(stage, &owner, WIRE_STOP, 1);
    assert_sent(&owner, WIRE_DONE);
    pool_stage_hang_up(stage, &holder);
    pool_stage_hang_up(stage, &other);
    pool_stage_hang_up(stage, &owner);
    pool_stage_hang_up(stage, &stranger);
}

/* ---- EXTEND ---- */

/* Sends EXTEND. */
static void extend(const struct stage_client *client, uint64_t id, uint64_t duration)
{
    struct wire_message message = {
        .type = WIRE_EXTEND, .number = 9, .id = id, .duration = duration};

    handle_extend(client->connection, &message);
}

/* The next message is DONE with this time limit, counted from the start of the test. */
#define assert_extended(client, wanted)                                 \
    do {                                                                \
        struct wire_message message_;                                   \
        assert_message((client), WIRE_DONE, &message_);                 \
        assert_int_equal(message_.expires.value, STAGE_NOW + (wanted)); \
        wire_message_finish(&message_);                                 \
    } while (0)

static void a_time_limit_is_extended(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *job = claim(stage, &client, "time=100s");
    struct wire_message message = {.type = WIRE_NEWS};
    struct lease_view view;

    pool_stage_go_on(stage, 50 * DURATION_SECOND);
    extend(&client, 1, 60 * DURATION_SECOND);
    assert_extended(&client, 160 * DURATION_SECOND);
    assert_true(engine_get_lease(pool->engine, job->by_lease.id, &view));
    assert_int_equal(view.expires, STAGE_NOW + 160 * DURATION_SECOND);
    /* The warning moves with it. */
    assert_int_equal(job->guard->warn_at, STAGE_NOW + 120 * DURATION_SECOND);
    assert_contains(pool_stage_journal(stage), "extended lease 1");
    /* So does what followers will learn of it. */
    send_about(stage, &client, WIRE_RELEASE, 1);
    ended_leases_fill(pool->ended_leases, 0, &message);
    assert_int_equal(message.ended.count, 1);
    assert_int_equal(message.ended.items[0].lease->expires.value,
                     STAGE_NOW + 160 * DURATION_SECOND);
    vector_finish(&message.ended);
    pool_stage_hang_up(stage, &client);
}

/* A duration of centuries is cut, not counted round to the past. */
static void an_enormous_extension_is_cut(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);

    claim(stage, &client, "time=100s");
    extend(&client, 1, UINT64_MAX);
    assert_extended(&client, INT64_MAX - 1 - STAGE_NOW);
    extend(&client, 1, UINT64_MAX);
    assert_extended(&client, INT64_MAX - 1 - STAGE_NOW);
    pool_stage_hang_up(stage, &client);
}

static void some_leases_cannot_be_extended(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct stage_client stranger = pool_stage_connect(stage, STAGE_OTHER);
    struct job *job = claim(stage, &client, "time=100s");

    claim(stage, &client, NULL);
    claim(stage, &client, "gpus=4 time=100s");
    extend(&stranger, 1, 1);
    assert_refused(&stranger, BERTH_ERROR_PERMISSION,
                   "cannot extend lease 1: it belongs to another user");
    extend(&client, 2, 1);
    assert_refused(&client, BERTH_ERROR_INVALID, "cannot extend lease 2: it has no time limit");
    extend(&client, 3, 1);
    assert_refused(&client, BERTH_ERROR_INVALID,
                   "cannot extend lease 3: it still waits and has no time limit yet");
    job->end = LEASE_END_STOPPED;
    extend(&client, 1, 1);
    assert_refused(&client, BERTH_ERROR_INVALID, "cannot extend lease 1: it is already ending");
    pool_stage_hang_up(stage, &client);
    pool_stage_hang_up(stage, &stranger);
}

static void a_user_cannot_pass_the_longest_time(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct stage_client admin = pool_stage_connect(stage, STAGE_OTHER);
    uint32_t *place = vector_append(&stage->pool.rules.admins.users);

    assert_non_null(place);
    *place = STAGE_OTHER;
    stage->pool.rules.longest_time = 120 * DURATION_SECOND;
    claim(stage, &client, "time=100s");
    extend(&client, 1, 21 * DURATION_SECOND);
    assert_refused(&client, BERTH_ERROR_PERMISSION,
                   "cannot extend lease 1: expected at most 2m in total, got 2m1s");
    extend(&client, 1, UINT64_MAX);
    assert_sent(&client, WIRE_REFUSED);
    extend(&client, 1, 20 * DURATION_SECOND);
    assert_extended(&client, 120 * DURATION_SECOND);
    extend(&admin, 1, 60 * DURATION_SECOND);
    assert_extended(&admin, 180 * DURATION_SECOND);
    pool_stage_hang_up(stage, &client);
    pool_stage_hang_up(stage, &admin);
}

/* ---- WATCH ---- */

static void a_watcher_waits_for_the_end(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct stage_client other = pool_stage_connect(stage, STAGE_OTHER);
    struct wire_message message;

    claim(stage, &client, NULL);
    send_about(stage, &other, WIRE_WATCH, 1);
    assert_no_message(&other);
    send_about(stage, &client, WIRE_RELEASE, 1);
    assert_sent(&other, WIRE_ENDED);
    /* Afterwards the answer comes at once. */
    job_remember_ended(pool, &(struct ended_job){.id = 8,
                                                 .uid = STAGE_USER,
                                                 .end = LEASE_END_DIED,
                                                 .exit_code = optional_number_of(7)});
    send_about(stage, &other, WIRE_WATCH, 8);
    assert_message(&other, WIRE_ENDED, &message);
    assert_int_equal(message.end, LEASE_END_DIED);
    assert_int_equal(message.exit_code.value, 7);
    wire_message_finish(&message);
    send_about(stage, &other, WIRE_WATCH, 9);
    assert_refused(&other, BERTH_ERROR_NOT_FOUND,
                   "cannot wait for the end of 9: no claim or lease has this id");
    pool_stage_hang_up(stage, &client);
    pool_stage_hang_up(stage, &other);
}

static void too_many_watchers_are_refused(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message;

    claim(stage, &client, NULL);
    stage->pool.rules.bounds.waiting = 1;
    send_about(stage, &client, WIRE_WATCH, 1);
    assert_no_message(&client);
    send_about(stage, &client, WIRE_WATCH, 1);
    assert_message(&client, WIRE_REFUSED, &message);
    assert_int_equal(-(int)message.error, BERTH_ERROR_LIMIT);
    wire_message_finish(&message);
    pool_stage_hang_up(stage, &client);
}

#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, pool_stage_begin, pool_stage_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_STAGE(a_holder_gives_its_lease_back),
        ON_STAGE(a_release_may_have_no_answer),
        ON_STAGE(only_the_holder_releases),
        ON_STAGE(a_release_after_a_notice_keeps_the_reason),
        ON_STAGE(a_waiting_claim_is_cancelled),
        ON_STAGE(a_claim_in_preparation_is_cancelled),
        ON_STAGE(a_lease_is_stopped_with_a_notice),
        ON_STAGE(a_time_limit_is_extended),
        ON_STAGE(an_enormous_extension_is_cut),
        ON_STAGE(some_leases_cannot_be_extended),
        ON_STAGE(a_user_cannot_pass_the_longest_time),
        ON_STAGE(a_watcher_waits_for_the_end),
        ON_STAGE(too_many_watchers_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
