/* SPDX-License-Identifier: Apache-2.0
 *
 * The ends of claims and leases, and tests of requests.
 */
#include "support/unit.h"

#include "daemon/leases/engine_events.h"

#include "daemon/leases/lease_ending.h"
#include "daemon/stream/ended_leases.h"
#include "support/daemons/played_readers.h"
#include "support/daemons/pool_stage.h"
#include "support/daemons/stage_claims.h"
#include "support/engine/machines.h"

/* ---- Ends ---- */

static void a_refused_claim_names_the_reason(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    const struct job *job;
    uint64_t id;

    claim(stage, &client, "gpus=3");
    job = claim(stage, &client, "gpus=4");
    id = job->by_id.id;
    assert_int_equal(engine_cancel(pool->engine, id, NULL), 0);
    engine_events_settle(pool);
    assert_refused(&client, BERTH_ERROR_CANCELLED, "cancelled");
    assert_int_equal(job_find_ended(pool, id)->end, LEASE_END_CANCELLED);
    assert_int_equal(pool->counts.tally.cancelled, 1);
    claim(stage, &client, "gpus=4");
    engine_device_gone(pool->engine, 0);
    engine_events_settle(pool);
    assert_refused(&client, BERTH_ERROR_IMPOSSIBLE, "no device of this pool can serve it any more");
    assert_int_equal(pool->counts.tally.impossible, 1);
    assert_int_equal(pool->job_count, 1);
    pool_stage_hang_up(stage, &client);
}

static void a_claim_waits_as_long_as_it_may(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct cached_request *cached;
    struct request request;
    struct job *job;
    uint64_t id;

    claim(stage, &client, "gpus=4");
    request_init(&request);
    assert_int_equal(
        request_cache_open(pool, &request, &(struct requester){.uid = STAGE_USER}, &cached, NULL),
        0);
    assert_int_equal(
        engine_claim(pool->engine, cached->request, STAGE_NOW + DURATION_SECOND, NULL, &id, NULL),
        CLAIM_WAITS);
    job = claim(stage, &client, "gpus=4");
    job_free(pool, job);
    job = claim(stage, &client, "gpus=4");
    /* The job of the claim with a deadline. */
    id_map_remove(&pool->by_id, &job->by_id);
    job->by_id.id = id;
    id_map_add(&pool->by_id, &job->by_id);
    pool_stage_go_on(stage, DURATION_SECOND);
    assert_refused(&client, BERTH_ERROR_TIMED_OUT, "not granted in time");
    assert_int_equal(pool->counts.tally.timed_out, 1);
    request_cache_release(pool, cached);
    pool_stage_hang_up(stage, &client);
}

static void watchers_learn_of_the_end(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct stage_client other = pool_stage_connect(stage, STAGE_OTHER);
    struct job *job = claim(stage, &client, "gpus=1");
    struct job *second = claim(stage, &client, "gpus=1");
    struct wire_message message;

    watcher_new(other.connection, 5, NULL, NULL)->id = job->by_id.id;
    watcher_new(client.connection, 6, NULL, NULL)->id = job->by_id.id;
    watcher_new(other.connection, 7, NULL, NULL)->id = second->by_id.id;
    job->exit_code = 3;
    pool_stage_journal(stage);
    end_lease(pool, job);
    assert_message(&other, WIRE_ENDED, &message);
    assert_int_equal(message.number, 5);
    assert_int_equal(message.end, LEASE_END_RELEASED);
    assert_int_equal(message.exit_code.value, 3);
    wire_message_finish(&message);
    assert_sent(&client, WIRE_ENDED);
    assert_no_message(&other);
    assert_int_equal(other.connection->watcher_count, 1);
    /* An exit code outlives the daemon. */
    assert_contains(pool_stage_journal(stage), "ended 1 uid 1000 exit 3\n");
    end_lease(pool, second);
    assert_message(&other, WIRE_ENDED, &message);
    assert_false(message.exit_code.known);
    wire_message_finish(&message);
    assert_contains_not(pool_stage_journal(stage), "ended");
    pool_stage_hang_up(stage, &client);
    pool_stage_hang_up(stage, &other);
}

/* A lease that its holder was not told of is a claim to its client. */
static void a_lease_in_preparation_ends_as_a_claim(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *job = claim(stage, &client, "gpus=1");

    job->unprepared = true;
    job->end = LEASE_END_EXPIRED;
    lease_ending_done(pool, job);
    engine_events_settle(pool);
    assert_refused(&client, BERTH_ERROR_TIMED_OUT, "the time limit");
    job = claim(stage, &client, "gpus=1");
    job->unprepared = true;
    job->end = LEASE_END_CANCELLED;
    job_lease_watch(pool, job)->refusal = copy_of("cannot start MPS: no such file");
    lease_ending_done(pool, job);
    engine_events_settle(pool);
    assert_refused(&client, BERTH_ERROR_IO, "cannot start MPS: no such file");
    assert_int_equal(ended_leases_count(pool->ended_leases), 0);
    assert_int_equal(pool->counts.tally.cancelled, 2);
    pool_stage_hang_up(stage, &client);
}

/* The lease around it ends: the holder of the inner one is told, with its grace. */
static void leases_within_end_with_a_notice(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *outer = claim(stage, &client, "gpus=2");
    const struct job *inner = pool_stage_claim(
        stage, &(struct stage_claim){.connection = client.connection, .parent = outer->by_id.id});
    uint64_t id = inner->by_id.id;
    struct wire_message message;

    assert_int_equal(inner->state, JOB_HELD);
    end_lease(pool, outer);
    assert_message(&client, WIRE_NOTICE, &message);
    assert_int_equal(message.id, id);
    assert_int_equal(message.end, LEASE_END_PARENT);
    assert_int_equal(message.force_at, STAGE_NOW + pool->rules.grace);
    wire_message_finish(&message);
    assert_int_equal(job_find_ended(pool, id)->end, LEASE_END_PARENT);
    pool_stage_hang_up(stage, &client);
}

static void a_time_limit_ends_a_lease(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    const struct job *job = claim(stage, &client, "gpus=1 time=10s");
    struct wire_message message;

    pool_stage_go_on(stage, 10 * DURATION_SECOND - 1);
    assert_int_equal(job->state, JOB_HELD);
    pool_stage_go_on(stage, 1);
    assert_int_equal(job->state, JOB_ENDING);
    assert_message(&client, WIRE_NOTICE, &message);
    assert_int_equal(message.end, LEASE_END_EXPIRED);
    assert_int_equal(message.duration, pool->rules.grace);
    wire_message_finish(&message);
    pool_stage_hang_up(stage, &client);
}

/* An opportunistic lease must make room: notice, grace, and force if no client does it. */
static void a_preempted_lease_gets_notice_and_grace(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct stage_client other = pool_stage_connect(stage, STAGE_OTHER);
    struct job *job = claim(stage, &client, "gpus=4 opportunistic=1");
    uint64_t id = job->by_id.id;
    struct wire_message message;

    claim(stage, &other, "gpus=4");
    engine_events_settle(pool);
    assert_message(&client, WIRE_NOTICE, &message);
    assert_int_equal(message.end, LEASE_END_REVOKED);
    wire_message_finish(&message);
    assert_no_message(&other);
    /* The client enforces it itself, and gets a little more time. */
    pool_stage_go_on(stage, pool->rules.grace);
    assert_ptr_equal(job_of_id(pool, id), job);
    assert_true(played_readers_are_idle(pool->readers));
    job_detach_all(client.connection);
    pool_stage_go_on(stage, 2 * DURATION_SECOND);
    played_readers_say_nothing_left(pool->readers);
    assert_int_equal(job_find_ended(pool, id)->end, LEASE_END_REVOKED);
    assert_sent(&other, WIRE_GRANTED);
    pool_stage_hang_up(stage, &client);
    pool_stage_hang_up(stage, &other);
}

/* ---- Tests of requests ---- */

static struct watcher *test_request(struct pool_stage *stage, const struct stage_client *client,
                                    uint32_t count, int64_t wait)
{
    struct pool *pool = &stage->pool;
    struct cached_request *cached;
    struct watcher *watcher;
    struct request request;

    request_init(&request);
    request.gpus.min = request.gpus.max = count;
    assert_int_equal(
        request_cache_open(pool, &request, &(struct requester){.uid = STAGE_USER}, &cached, NULL),
        0);
    watcher = watcher_new(client->connection, 50 + count, cached, NULL);
    request_cache_release(pool, cached);
    watcher->deadline = wait == 0 ? TIME_NEVER : STAGE_NOW + wait;
    watcher->wait = wait;
    pool->changed = true;
    engine_events_settle(pool);
    return watcher;
}

static void a_test_is_answered_when_devices_are_free(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *job = claim(stage, &client, "gpus=4");

    test_request(stage, &client, 2, 0);
    assert_no_message(&client);
    pool->tests_again = 0;
    end_lease(pool, job);
    assert_sent(&client, WIRE_DONE);
    assert_int_equal(client.connection->watcher_count, 0);
    pool_stage_hang_up(stage, &client);
}

static void a_test_waits_as_long_as_it_may(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);

    claim(stage, &client, "gpus=4");
    stage->pool.test_timer.fire = NULL;
    test_request(stage, &client, 1, 60 * DURATION_SECOND);
    assert_int_equal(stage->pool.test_timer.at, STAGE_LOOP_NOW + 60 * DURATION_SECOND);
    loop_set_timer(&stage->pool.loop, &stage->pool.test_timer, LOOP_NEVER);
    pool_stage_go_on(stage, 60 * DURATION_SECOND);
    stage->pool.changed = true;
    stage->pool.tests_again = 0;
    engine_events_settle(&stage->pool);
    assert_refused(&client, BERTH_ERROR_TIMED_OUT, "not granted within 1m (--wait)");
    pool_stage_hang_up(stage, &client);
}

static void a_test_that_became_impossible_is_refused(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message;

    claim(stage, &client, "gpus=4");
    test_request(stage, &client, 4, 0);
    engine_device_gone(stage->pool.engine, 0);
    stage->pool.tests_again = 0;
    engine_events_settle(&stage->pool);
    assert_message(&client, WIRE_REFUSED, &message);
    assert_int_equal(-(int)message.error, BERTH_ERROR_IMPOSSIBLE);
    wire_message_finish(&message);
    pool_stage_hang_up(stage, &client);
}

/* Very many tests must not delay everything else with each change. */
static void tests_are_not_repeated_before_their_pause(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *job = claim(stage, &client, "gpus=4");

    test_request(stage, &client, 1, 0);
    pool->tests_again = STAGE_LOOP_NOW + 7;
    end_lease(pool, job);
    assert_no_message(&client);
    assert_int_equal(pool->test_timer.at, STAGE_LOOP_NOW + 7);
    loop_set_timer(&pool->loop, &pool->test_timer, LOOP_NEVER);
    pool_stage_go_on(stage, 7);
    pool->changed = true;
    engine_events_settle(pool);
    assert_sent(&client, WIRE_DONE);
    pool_stage_hang_up(stage, &client);
}

/* Claims for processes that wait for other leases are tried again with each change. */
static void adoptions_are_tried_again(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct watcher *watcher = watcher_new(client.connection, 1, NULL, NULL);

    watcher->adopting = calloc(1, sizeof(*watcher->adopting));
    assert_non_null(watcher->adopting);
    *watcher->adopting = pool_stage_message(stage, NULL);
    engine_events_settle(pool);
    assert_int_equal(stage->retried, 0);
    pool->changed = true;
    engine_events_settle(pool);
    assert_int_equal(stage->retried, 1);
    pool->tests_again = 0;
    engine_events_settle(pool);
    assert_int_equal(stage->retried, 1);
    assert_int_equal(client.connection->watcher_count, 1);
    stage->retry_succeeds = true;
    pool->changed = true;
    pool->tests_again = 0;
    engine_events_settle(pool);
    assert_int_equal(stage->retried, 2);
    assert_int_equal(client.connection->watcher_count, 0);
    pool_stage_hang_up(stage, &client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_STAGE(a_refused_claim_names_the_reason),
        ON_STAGE(a_claim_waits_as_long_as_it_may),
        ON_STAGE(watchers_learn_of_the_end),
        ON_STAGE(a_lease_in_preparation_ends_as_a_claim),
        ON_STAGE(leases_within_end_with_a_notice),
        ON_STAGE(a_time_limit_ends_a_lease),
        ON_STAGE(a_preempted_lease_gets_notice_and_grace),
        ON_STAGE(a_test_is_answered_when_devices_are_free),
        ON_STAGE(a_test_waits_as_long_as_it_may),
        ON_STAGE(a_test_that_became_impossible_is_refused),
        ON_STAGE(tests_are_not_repeated_before_their_pause),
        ON_STAGE(adoptions_are_tried_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
