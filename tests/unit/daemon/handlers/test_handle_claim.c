/* SPDX-License-Identifier: Apache-2.0
 *
 * CLAIM and TEST.
 */
#include "support/unit.h"

#include "daemon/handlers/handle_claim.h"

#include <stdlib.h>
#include <unistd.h>

#include "daemon/handlers/handle.h"
#include "support/daemons/claim_messages.h"
#include "support/daemons/pool_stage.h"
#include "support/engine/machines.h"
#include "support/failing_allocator.h"

/* ---- Claims ---- */

static void a_claim_is_granted_at_once(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message = pool_stage_message(stage, "gpus=2");
    const struct job *job;
    const char *records;

    message.command = copy_of("train --fast");
    message.hold = LEASE_HOLD_NOTHING;
    message.request->time = optional_number_of(60 * DURATION_SECOND);
    send_message(stage, &client, &message);
    assert_message(&client, WIRE_GRANTED, &message);
    assert_int_equal(message.number, 1);
    assert_int_equal(message.devices.count, 2);
    wire_message_finish(&message);
    job = job_of_id(pool, 1);
    assert_int_equal(job->state, JOB_HELD);
    assert_int_equal(job->hold, LEASE_HOLD_NOTHING);
    assert_int_equal(job->holder->uid, STAGE_USER);
    assert_int_equal(job->holder->pid, getpid());
    assert_string_equal(job->holder->command, "train --fast");
    assert_int_equal(job->since, STAGE_NOW);
    assert_ptr_equal(job_of_token(pool, (uint64_t[]){1, 1}), job);
    records = pool_stage_journal(stage);
    assert_contains(records, "granted lease 1 request 1: slots 0,1");
    assert_contains(records, "\njob 1 uid 1000 pid ");
    pool_stage_hang_up(stage, &client);
}

static void a_claim_may_wait(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message;

    send_claim(stage, &client, "gpus=4");
    assert_sent(&client, WIRE_GRANTED);
    pool_stage_log(stage);
    for (uint32_t position = 1; position <= 2; position++) {
        send_claim(stage, &client, "gpus=4");
        assert_message(&client, WIRE_WAITING, &message);
        assert_int_equal(message.id, 1 + position);
        assert_int_equal(message.position, position);
        wire_message_finish(&message);
    }
    assert_contains(pool_stage_log(stage), "queued id=2 uid=1000 pid=");
    assert_int_equal(client.connection->quota->waiting, 2);
    assert_int_equal(client.connection->quota->waiting_bytes, 2 * 3 * 1024);
    assert_int_equal(job_of_id(pool, 2)->state, JOB_WAITING);
    pool_stage_hang_up(stage, &client);
}

static void a_claim_that_may_not_wait_is_refused(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message = pool_stage_message(stage, "gpus=4");

    message.request->nonblock = true;
    send_message(stage, &client, &message);
    assert_sent(&client, WIRE_GRANTED);
    assert_int_equal(job_of_id(pool, 1)->holder->wait, 0);
    message = pool_stage_message(stage, "gpus=1");
    message.request->nonblock = true;
    send_message(stage, &client, &message);
    assert_refused(&client, BERTH_ERROR_BUSY, "no free device (--nonblock)");
    assert_int_equal(pool->counts.tally.busy, 1);
    assert_int_equal(pool->job_count, 1);
    assert_int_equal(client.connection->job_count, 1);
    assert_int_equal(engine_pending(pool->engine), 0);
    /* A claim that can never be granted is refused for that reason. */
    message = pool_stage_message(stage, "gpus=5");
    message.request->nonblock = true;
    send_message(stage, &client, &message);
    assert_message(&client, WIRE_REFUSED, &message);
    assert_int_equal(-(int)message.error, BERTH_ERROR_IMPOSSIBLE);
    assert_contains(message.text, "requested 5 devices, but this pool has only 4");
    wire_message_finish(&message);
    assert_int_equal(pool->counts.tally.impossible, 1);
    pool_stage_hang_up(stage, &client);
}

/* A user with too many waiting claims may still be granted one at once. */
static void the_limit_of_waiting_claims_is_for_those_that_wait(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message;

    stage->pool.rules.bounds.waiting = 1;
    send_claim(stage, &client, "gpus=2 time=100s");
    assert_sent(&client, WIRE_GRANTED);
    send_claim(stage, &client, "gpus=4");
    assert_sent(&client, WIRE_WAITING);
    send_claim(stage, &client, "gpus=4");
    assert_message(&client, WIRE_REFUSED, &message);
    assert_int_equal(-(int)message.error, BERTH_ERROR_LIMIT);
    wire_message_finish(&message);
    send_claim(stage, &client, "gpus=1 time=10s"); /* delays no claim */
    assert_sent(&client, WIRE_GRANTED);
    pool_stage_hang_up(stage, &client);
}

static void a_claim_ends_with_its_wait(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message = pool_stage_message(stage, "gpus=4");

    send_claim(stage, &client, "gpus=4");
    assert_sent(&client, WIRE_GRANTED);
    message.request->wait = optional_number_of(5 * DURATION_SECOND);
    send_message(stage, &client, &message);
    assert_sent(&client, WIRE_WAITING);
    assert_int_equal(job_of_id(&stage->pool, 2)->holder->wait, 5 * DURATION_SECOND);
    pool_stage_go_on(stage, 5 * DURATION_SECOND - 1);
    assert_no_message(&client);
    pool_stage_go_on(stage, 1);
    assert_refused(&client, BERTH_ERROR_TIMED_OUT, "not granted in time");
    pool_stage_hang_up(stage, &client);
}

static void a_wait_beyond_all_time_is_for_ever(void **state)
{
    struct pool_stage *stage = *state;
    struct request request;

    request_init(&request);
    assert_int_equal(handle_claim_deadline(&stage->pool, &request), TIME_NEVER);
    request.wait = optional_number_of(7);
    assert_int_equal(handle_claim_deadline(&stage->pool, &request), STAGE_NOW + 7);
    request.wait = optional_number_of(UINT64_MAX);
    assert_int_equal(handle_claim_deadline(&stage->pool, &request), TIME_NEVER);
    request.wait = optional_number_of((uint64_t)(TIME_NEVER - STAGE_NOW));
    assert_int_equal(handle_claim_deadline(&stage->pool, &request), TIME_NEVER);
    request.wait = optional_number_of((uint64_t)(TIME_NEVER - STAGE_NOW - 1));
    assert_int_equal(handle_claim_deadline(&stage->pool, &request), TIME_NEVER - 1);
}

/* ---- Invalid claims ---- */

static void a_claim_needs_some_fields(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message = pool_stage_message(stage, NULL);

    message.token[0] = message.token[1] = 0;
    send_message(stage, &client, &message);
    assert_refused(&client, BERTH_ERROR_INVALID, "cannot claim: the message has no token");
    message = pool_stage_message(stage, NULL);
    message.resume = true;
    send_message(stage, &client, &message);
    assert_refused(&client, BERTH_ERROR_NOT_FOUND, "cannot resume: no such lease in this pool");
    message = pool_stage_message(stage, NULL);
    message.hold = LEASE_HOLD_NOTHING;
    send_message(stage, &client, &message);
    assert_refused(&client, BERTH_ERROR_INVALID,
                   "cannot claim: a lease without a holder needs a time limit");
    message = (struct wire_message){.type = WIRE_CLAIM, .number = 7, .token = {5, 5}};
    send_message(stage, &client, &message);
    assert_refused(&client, BERTH_ERROR_INVALID, "cannot claim: the message has no request");
    message = (struct wire_message){
        .type = WIRE_CLAIM, .number = 7, .token = {5, 5}, .hold = LEASE_HOLD_NOTHING};
    send_message(stage, &client, &message);
    assert_refused(&client, BERTH_ERROR_INVALID,
                   "cannot claim: a lease without a holder needs a time limit");
    assert_int_equal(stage->pool.counts.tally.refused, 5);
    pool_stage_hang_up(stage, &client);
}

/* A client that expects other devices must not get these. */
static void the_inventory_must_be_the_pools(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message = pool_stage_message(stage, NULL);

    message.about.inventory = copy_of("/run/stage/devices.json");
    send_message(stage, &client, &message);
    assert_sent(&client, WIRE_GRANTED);
    message = pool_stage_message(stage, NULL);
    message.about.inventory = copy_of("/home/me/devices.json");
    send_message(stage, &client, &message);
    assert_refused(&client, BERTH_ERROR_INVALID,
                   "--inventory: expected /run/stage/devices.json, which this pool uses, got "
                   "/home/me/devices.json");
    pool_stage_hang_up(stage, &client);
}

static void a_connection_has_a_limit_of_claims(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_OWNER);

    client.connection->job_count = JOBS_MAX;
    send_claim(stage, &client, NULL);
    assert_refused(&client, BERTH_ERROR_LIMIT,
                   "too many claims on one connection: the maximum is 65536");
    client.connection->job_count = 0;
    pool_stage_hang_up(stage, &client);
}

/* ---- Rules ---- */

static void only_some_users_have_high_priority(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct stage_client owner = pool_stage_connect(stage, STAGE_OWNER);
    uint32_t *place;

    send_claim(stage, &client, "priority=high");
    assert_refused(&client, BERTH_ERROR_PERMISSION,
                   "--priority high: the configuration does not allow this for you");
    send_claim(stage, &owner, "priority=high");
    assert_sent(&owner, WIRE_GRANTED);
    place = vector_append(&stage->pool.rules.high.users);
    assert_non_null(place);
    *place = STAGE_USER;
    send_claim(stage, &client, "priority=high");
    assert_sent(&client, WIRE_GRANTED);
    pool_stage_hang_up(stage, &client);
    pool_stage_hang_up(stage, &owner);
}

static void time_limits_are_checked(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message;

    pool->rules.longest_time = 60 * DURATION_SECOND;
    send_claim(stage, &client, NULL);
    assert_refused(&client, BERTH_ERROR_INVALID, "--time: expected at most 1m, got none");
    send_claim(stage, &client, "time=61s");
    assert_refused(&client, BERTH_ERROR_INVALID, "--time: expected at most 1m, got 1m1s");
    send_claim(stage, &client, "time=60s");
    assert_sent(&client, WIRE_GRANTED);
    /* A claim without a limit gets the default. */
    pool->rules.default_time = 30 * DURATION_SECOND;
    send_claim(stage, &client, NULL);
    assert_message(&client, WIRE_GRANTED, &message);
    assert_int_equal(message.expires.value, STAGE_NOW + 30 * DURATION_SECOND);
    wire_message_finish(&message);
    send_claim(stage, &client, "time=40s");
    assert_message(&client, WIRE_GRANTED, &message);
    assert_int_equal(message.expires.value, STAGE_NOW + 40 * DURATION_SECOND);
    wire_message_finish(&message);
    pool_stage_hang_up(stage, &client);
}

/* The limit for each user holds from the first claim on, and a container counts as its owner. */
static void limits_of_devices_hold_for_containers_too(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct subordinate_range *range = vector_append(&pool->accounts.ranges);
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct stage_client inside;

    assert_non_null(range);
    *range = (struct subordinate_range){.first = 100000, .last = 165535, .owner = STAGE_USER};
    inside = pool_stage_connect(stage, 100007);
    pool->rules.each_user.devices = 2000000;
    send_claim(stage, &client, "gpus=2");
    assert_sent(&client, WIRE_GRANTED);
    send_claim(stage, &inside, "gpus=1");
    assert_sent(&inside, WIRE_WAITING);
    pool_stage_hang_up(stage, &client);
    pool_stage_hang_up(stage, &inside);
}

/* An inherited mask narrows the request: CUDA_VISIBLE_DEVICES=1. */
static void an_inherited_mask_is_obeyed(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message = pool_stage_message(stage, "gpus=1");
    char **mask = vector_append(&message.masks);

    assert_non_null(mask);
    *mask = copy_of("CUDA_VISIBLE_DEVICES=2");
    send_message(stage, &client, &message);
    assert_message(&client, WIRE_GRANTED, &message);
    assert_int_equal(message.devices.items[0].id.index, 2);
    wire_message_finish(&message);
    message = pool_stage_message(stage, "gpus=2");
    mask = vector_append(&message.masks);
    assert_non_null(mask);
    *mask = copy_of("CUDA_VISIBLE_DEVICES=2");
    send_message(stage, &client, &message);
    assert_sent(&client, WIRE_REFUSED);
    pool_stage_hang_up(stage, &client);
}

/* ---- The journal and memory ---- */

/* Nothing is granted that could not be written down. */
static void without_a_journal_nothing_is_granted(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message;
    int descriptor = pool->journal.descriptor;

    /* The file cannot grow. */
    pool->journal.descriptor = -1;
    send_claim(stage, &client, NULL);
    assert_message(&client, WIRE_REFUSED, &message);
    assert_int_equal(-(int)message.error, BERTH_ERROR_IO);
    assert_contains(message.text, "cannot write the pool's journal");
    wire_message_finish(&message);
    assert_int_equal(pool->job_count, 0);
    send_test(stage, &client, NULL, false, 0);
    assert_sent(&client, WIRE_REFUSED);
    pool->journal.descriptor = descriptor;
    send_claim(stage, &client, NULL);
    assert_sent(&client, WIRE_GRANTED);
    pool_stage_hang_up(stage, &client);
}

/* Each lack of memory refuses the claim, or grants it whole. */
static void without_memory_a_claim_is_refused(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    bool was_refused = true;

    pool->journaling = false;
    for (unsigned long n = 1; was_refused; n++) {
        struct stage_client client = pool_stage_connect(stage, STAGE_USER);
        struct wire_message message = pool_stage_message(stage, "gpus=4");
        int granted = 0;

        /* The connection has memory for its answers. */
        send_claim(stage, &client, "gpus=9");
        assert_sent(&client, WIRE_REFUSED);
        request_cache_drop_unused(pool);
        failing_allocator_start(n);
        handle_claim_now(client.connection, &message);
        was_refused = failing_allocator_stop();
        wire_message_finish(&message);
        engine_events_settle(pool);
        while (pool_stage_receive(&client, &message)) {
            granted += message.type == WIRE_GRANTED;
            if (message.type == WIRE_REFUSED)
                assert_int_equal(-(int)message.error, BERTH_ERROR_MEMORY);
            wire_message_finish(&message);
        }
        assert_in_range(pool->job_count, (size_t)granted, 1);
        job_lose_client(pool, client.connection);
        engine_events_settle(pool);
        assert_int_equal(pool->job_count, 0);
        request_cache_drop_unused(pool);
        assert_int_equal(pool->request_count, 0);
        pool_stage_hang_up(stage, &client);
    }
}

/* ---- Tests of requests ---- */

static void a_test_grants_nothing(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);

    send_test(stage, &client, "gpus=4", false, 0);
    assert_sent(&client, WIRE_DONE);
    assert_int_equal(pool->job_count, 0);
    send_claim(stage, &client, "gpus=4");
    assert_sent(&client, WIRE_GRANTED);
    send_test(stage, &client, "gpus=4", true, 0);
    assert_refused(&client, BERTH_ERROR_BUSY, "no free device (--nonblock)");
    send_test(stage, &client, "gpus=9", false, 0);
    assert_sent(&client, WIRE_REFUSED);
    /* Tests are not claims, and are not counted as such. */
    assert_int_equal(pool->counts.tally.busy + pool->counts.tally.impossible, 0);
    pool_stage_hang_up(stage, &client);
}

static void a_test_waits_for_its_answer(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    const struct watcher *watcher;

    send_claim(stage, &client, "gpus=4");
    assert_sent(&client, WIRE_GRANTED);
    send_test(stage, &client, "gpus=1", false, 7 * DURATION_SECOND);
    assert_no_message(&client);
    watcher = container_of(list_first(&pool->watchers), struct watcher, in_pool);
    assert_int_equal(watcher->deadline, STAGE_NOW + 7 * DURATION_SECOND);
    assert_int_equal(watcher->wait, 7 * DURATION_SECOND);
    assert_int_equal(pool->test_timer.at, STAGE_LOOP_NOW + 7 * DURATION_SECOND);
    assert_int_equal(client.connection->quota->waiting, 1);
    pool->rules.bounds.waiting = 1;
    send_test(stage, &client, "gpus=1", false, 0);
    assert_sent(&client, WIRE_REFUSED);
    loop_set_timer(&pool->loop, &pool->test_timer, LOOP_NEVER);
    pool_stage_hang_up(stage, &client);
    assert_true(list_is_empty(&pool->watchers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_STAGE(a_claim_is_granted_at_once),
        ON_STAGE(a_claim_may_wait),
        ON_STAGE(a_claim_that_may_not_wait_is_refused),
        ON_STAGE(the_limit_of_waiting_claims_is_for_those_that_wait),
        ON_STAGE(a_claim_ends_with_its_wait),
        ON_STAGE(a_wait_beyond_all_time_is_for_ever),
        ON_STAGE(a_claim_needs_some_fields),
        ON_STAGE(the_inventory_must_be_the_pools),
        ON_STAGE(a_connection_has_a_limit_of_claims),
        ON_STAGE(only_some_users_have_high_priority),
        ON_STAGE(time_limits_are_checked),
        ON_STAGE(limits_of_devices_hold_for_containers_too),
        ON_STAGE(an_inherited_mask_is_obeyed),
        ON_STAGE(without_a_journal_nothing_is_granted),
        ON_STAGE(without_memory_a_claim_is_refused),
        ON_STAGE(a_test_grants_nothing),
        ON_STAGE(a_test_waits_for_its_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
