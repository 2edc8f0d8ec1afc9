/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages that wait for an answer of another pool, a report of the hardware, or the searches of
 * ended leases. The test plays all three.
 */
#include "support/unit.h"

#include "daemon/handlers/deferred_claims.h"

#include <string.h>

#include "daemon/handlers/handle.h"
#include "daemon/leases/handover.h"
#include "support/daemons/played_locks.h"
#include "support/daemons/played_probe.h"
#include "support/daemons/played_readers.h"
#include "support/daemons/pool_stage.h"
#include "support/failing_allocator.h"

#define EARLY_TIME (DURATION_SECOND / 20)

/* Forgets a closed connection as client_events.c does, but keeps its leases. */
static void forget_client(struct pool *pool, struct connection *connection)
{
    list_for_each (link, &connection->watchers)
        watcher_free(container_of(link, struct watcher, in_connection));
    deferred_claims_forget(pool, connection);
    job_detach_all(connection);
}

static int begin(void **state)
{
    struct pool_stage *stage = pool_stage_make(&(struct pool_stage_settings){
        .parts = pool_stage_all, .part_count = POOL_STAGE_ALL, .is_hardware = true});

    stage->closed = forget_client;
    assert_int_equal(
        probe_poll_create(&stage->pool.probe_poll, &(struct probe_poll_settings){0}, NULL), 0);
    *state = stage;
    return 0;
}

static int end(void **state)
{
    struct pool_stage *stage = *state;

    deferred_claims_forget(&stage->pool, NULL);
    probe_poll_destroy(stage->pool.probe_poll);
    return pool_stage_end(state);
}

/* Sends CLAIM, or TEST. Returns its number. */
static uint64_t send_request(struct pool_stage *stage, const struct stage_client *client,
                             enum wire_type type, bool nonblock)
{
    struct wire_message message = pool_stage_message(stage, "gpus=1");
    uint64_t number = message.number;

    message.type = type;
    message.request->nonblock = nonblock;
    stage->pool.clients.packet_length = 500;
    handle_message(client->connection, &message);
    engine_events_settle(&stage->pool);
    wire_message_finish(&message);
    return number;
}

static uint64_t send_claim(struct pool_stage *stage, const struct stage_client *client)
{
    return send_request(stage, client, WIRE_CLAIM, false);
}

#define assert_answer(client, wanted_type, wanted_number)   \
    do {                                                    \
        struct wire_message message_;                       \
        assert_message((client), (wanted_type), &message_); \
        assert_int_equal(message_.number, (wanted_number)); \
        wire_message_finish(&message_);                     \
    } while (0)

/* ---- Locks and reports ---- */

static void a_claim_waits_for_another_pools_answer(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    uint64_t claim;
    uint64_t test;

    pool->device_locks->are_unsettled = pool->device_locks->are_awaited = true;
    claim = send_claim(stage, &client);
    test = send_request(stage, &client, WIRE_TEST, false);
    assert_no_message(&client);
    assert_int_equal(client.connection->quota->waiting, 2);
    assert_int_equal(client.connection->quota->waiting_bytes, 1000);
    deferred_claims_continue(pool);
    assert_no_message(&client);
    pool->device_locks->are_unsettled = pool->device_locks->are_awaited = false;
    deferred_claims_continue(pool);
    assert_answer(&client, WIRE_GRANTED, claim);
    assert_answer(&client, WIRE_DONE, test);
    assert_int_equal(client.connection->quota->waiting, 0);
    pool_stage_hang_up(stage, &client);
}

static void a_claim_waits_for_a_fresh_report(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    uint64_t claim;

    pool->probe_poll->must_wait = pool->probe_poll->is_awaited = true;
    claim = send_claim(stage, &client);
    deferred_claims_continue(pool);
    assert_no_message(&client);
    assert_false(pool->probe_poll->last_anew);
    pool->probe_poll->is_awaited = false;
    deferred_claims_continue(pool);
    assert_answer(&client, WIRE_GRANTED, claim);
    pool_stage_hang_up(stage, &client);
}

/* The queue is fair: a claim that need not wait comes after those that do. */
static void no_claim_overtakes_a_deferred_one(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client one = pool_stage_connect(stage, STAGE_USER);
    struct stage_client other = pool_stage_connect(stage, STAGE_OTHER);
    uint64_t first;
    uint64_t second;

    pool->device_locks->are_unsettled = pool->device_locks->are_awaited = true;
    first = send_claim(stage, &one);
    pool->device_locks->are_unsettled = false;
    second = send_claim(stage, &other);
    assert_no_message(&other);
    pool->device_locks->are_awaited = false;
    deferred_claims_continue(pool);
    assert_answer(&one, WIRE_GRANTED, first);
    assert_answer(&other, WIRE_GRANTED, second);
    assert_true(job_of_id(pool, 1)->holder->uid == STAGE_USER);
    pool_stage_hang_up(stage, &one);
    pool_stage_hang_up(stage, &other);
}

/* A claim that does not wait may have a device in handover, once its processes are known. */
static void a_claim_that_does_not_wait_waits_for_the_handover(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    uint64_t claim;

    pool->probe_poll->report_count = 7;
    pool->probe_poll->reports_needed = 8;
    for (uint32_t slot = 0; slot < 4; slot++)
        handover_need(pool, slot, HANDOVER_LOOK);
    /* One that waits needs nothing of this. */
    assert_int_not_equal(send_claim(stage, &client), 0);
    assert_sent(&client, WIRE_WAITING);
    assert_int_equal(engine_cancel(pool->engine, 1, NULL), 0);
    engine_events_settle(pool);
    assert_sent(&client, WIRE_REFUSED);
    claim = send_request(stage, &client, WIRE_CLAIM, true);
    deferred_claims_continue(pool);
    assert_no_message(&client);
    handover_ask(pool, NULL);
    handover_looked(pool);
    deferred_claims_continue(pool);
    assert_answer(&client, WIRE_GRANTED, claim);
    pool_stage_hang_up(stage, &client);
}

/* The report came, but processes are still on the devices: it is answered now. */
static void a_report_ends_the_wait_whatever_it_shows(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);

    pool->probe_poll->reports_needed = 1;
    for (uint32_t slot = 0; slot < 4; slot++)
        handover_need(pool, slot, HANDOVER_LOOK);
    send_request(stage, &client, WIRE_CLAIM, true);
    pool->probe_poll->report_count = 1;
    deferred_claims_continue(pool);
    assert_refused(&client, BERTH_ERROR_BUSY, "no free device (--nonblock)");
    pool_stage_hang_up(stage, &client);
}

/* A claim for a running process needs a report that starts now. */
static void a_claim_for_a_process_needs_a_new_report(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message = pool_stage_message(stage, "gpus=1");

    message.pid = 4711;
    pool->probe_poll->must_wait = true;
    assert_true(deferred_claims_take(client.connection, &message));
    assert_true(pool->probe_poll->last_anew);
    assert_null(message.request);
    pool_stage_hang_up(stage, &client);
}

static void deferred_messages_have_the_users_limit(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct stage_client other = pool_stage_connect(stage, STAGE_OTHER);
    struct wire_message message;

    pool->rules.bounds.waiting = 3;
    pool->device_locks->are_unsettled = pool->device_locks->are_awaited = true;
    for (int i = 0; i < 3; i++)
        send_claim(stage, &client);
    assert_no_message(&client);
    send_claim(stage, &client);
    assert_message(&client, WIRE_REFUSED, &message);
    assert_int_equal(-(int)message.error, BERTH_ERROR_LIMIT);
    wire_message_finish(&message);
    send_claim(stage, &other);
    assert_no_message(&other);
    pool_stage_hang_up(stage, &client);
    pool_stage_hang_up(stage, &other);
}

static void a_closed_connections_messages_are_dropped(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client one = pool_stage_connect(stage, STAGE_USER);
    struct stage_client other = pool_stage_connect(stage, STAGE_OTHER);

    pool->device_locks->are_unsettled = pool->device_locks->are_awaited = true;
    send_claim(stage, &one);
    send_claim(stage, &other);
    deferred_claims_forget(pool, one.connection);
    assert_int_equal(one.connection->quota->waiting, 0);
    assert_int_equal(other.connection->quota->waiting, 1);
    pool->device_locks->are_awaited = false;
    deferred_claims_continue(pool);
    assert_no_message(&one);
    assert_sent(&other, WIRE_GRANTED);
    pool_stage_hang_up(stage, &one);
    pool_stage_hang_up(stage, &other);
}

/* Without memory a message is handled at once, as if nothing was known to be missing. */
static void without_memory_a_message_does_not_wait(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message = pool_stage_message(stage, "gpus=1");
    bool is_taken;

    pool->device_locks->are_unsettled = true;
    failing_allocator_start(1);
    is_taken = deferred_claims_take(client.connection, &message);
    assert_true(failing_allocator_stop());
    assert_false(is_taken);
    assert_non_null(message.request);
    assert_int_equal(client.connection->quota->waiting, 0);
    wire_message_finish(&message);
    pool_stage_hang_up(stage, &client);
}

/* ---- Searches of ended leases ---- */

/* Begins a search of a lease that this user has left. */
static struct job *begin_search(struct pool_stage *stage, uint32_t uid)
{
    struct pool *pool = &stage->pool;
    struct job *job =
        pool_stage_claim(stage, &(struct stage_claim){.uid = uid, .hold = LEASE_HOLD_NOTHING});

    assert_int_equal(job->state, JOB_HELD);
    job->state = JOB_LOOKING;
    job_lease_watch(pool, job)->look_number = ++pool->look_count;
    list_append(&pool->looks, &job->guard->in_looks);
    return job;
}

/* Ends it: nothing is left. */
static void end_search(struct pool_stage *stage, struct job *job)
{
    struct pool *pool = &stage->pool;

    list_remove(&job->guard->in_looks);
    pool->has_looked = true;
    job->state = JOB_HELD;
    assert_int_equal(engine_vacated(pool->engine, job->by_lease.id, NULL), 0);
    job->end = LEASE_END_DIED;
    engine_events_settle(pool);
    deferred_claims_continue_early(pool);
}

/* `berth run true; berth run --nonblock true` never fails: the second one waits for the search. */
static void a_claim_waits_for_the_users_own_searches(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct stage_client other = pool_stage_connect(stage, STAGE_OTHER);
    struct job *job = begin_search(stage, STAGE_USER);
    uint64_t claim = send_claim(stage, &client);

    assert_no_message(&client);
    assert_int_equal(client.connection->quota->early, 1);
    assert_int_equal(client.connection->quota->waiting, 1);
    /* Another user's claim, which may wait, does not depend on it. */
    send_claim(stage, &other);
    assert_sent(&other, WIRE_GRANTED);
    end_search(stage, job);
    assert_answer(&client, WIRE_GRANTED, claim);
    assert_int_equal(client.connection->quota->early, 0);
    assert_int_equal(client.connection->quota->waiting, 0);
    pool_stage_hang_up(stage, &client);
    pool_stage_hang_up(stage, &other);
}

static void a_claim_that_does_not_wait_waits_for_all_searches(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client other = pool_stage_connect(stage, STAGE_OTHER);
    struct job *job = begin_search(stage, STAGE_USER);
    uint64_t claim = send_request(stage, &other, WIRE_CLAIM, true);

    assert_no_message(&other);
    end_search(stage, job);
    assert_answer(&other, WIRE_GRANTED, claim);
    pool_stage_hang_up(stage, &other);
}

/* A user whose processes make searches slow delays no other user. */
static void a_slow_user_delays_nobody_else(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct stage_client other = pool_stage_connect(stage, STAGE_OTHER);

    pool->readers->slow = STAGE_USER;
    begin_search(stage, STAGE_USER);
    send_request(stage, &other, WIRE_CLAIM, true);
    assert_sent(&other, WIRE_GRANTED);
    send_request(stage, &client, WIRE_CLAIM, true);
    assert_no_message(&client);
    pool_stage_hang_up(stage, &client);
    pool_stage_hang_up(stage, &other);
}

/* A user who turns out to be slow while another one waits: that one goes on. */
static void a_user_may_become_slow_meanwhile(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client other = pool_stage_connect(stage, STAGE_OTHER);
    uint64_t claim;

    begin_search(stage, STAGE_USER);
    claim = send_request(stage, &other, WIRE_CLAIM, true);
    deferred_claims_continue_early(pool);
    assert_no_message(&other);
    pool->readers->slow = STAGE_USER;
    pool->readers->events.slowed(pool->readers->events.context);
    deferred_claims_continue_early(pool);
    assert_answer(&other, WIRE_GRANTED, claim);
    pool_stage_hang_up(stage, &other);
}

static void no_message_waits_longer_than_its_time(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    uint64_t first;
    uint64_t second;

    begin_search(stage, STAGE_USER);
    first = send_claim(stage, &client);
    stage->pool.readers->waited += EARLY_TIME / 2;
    pool_stage_go_on(stage, EARLY_TIME / 2);
    second = send_claim(stage, &client);
    stage->pool.readers->waited += EARLY_TIME / 2;
    pool_stage_go_on(stage, EARLY_TIME / 2 - 1);
    assert_no_message(&client);
    pool_stage_go_on(stage, 1);
    assert_answer(&client, WIRE_GRANTED, first);
    assert_no_message(&client);
    stage->pool.readers->waited += EARLY_TIME / 2;
    pool_stage_go_on(stage, EARLY_TIME / 2);
    assert_answer(&client, WIRE_GRANTED, second);
    pool_stage_hang_up(stage, &client);
}

/* On a busy machine the readers get less of a CPU: the message waits until they have worked for its
 * time, but not for ever. */
static void time_without_a_cpu_does_not_count(void **state)
{
    struct pool_stage *stage = *state;
    struct reader_pool *readers = stage->pool.readers;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    uint64_t number;

    begin_search(stage, STAGE_USER);
    readers->waited = 7 * EARLY_TIME;
    number = send_claim(stage, &client);
    readers->waited += EARLY_TIME / 2;
    pool_stage_go_on(stage, 4 * EARLY_TIME);
    assert_no_message(&client);
    readers->waited += EARLY_TIME / 2;
    pool_stage_go_on(stage, EARLY_TIME);
    assert_answer(&client, WIRE_GRANTED, number);
    number = send_claim(stage, &client);
    pool_stage_go_on(stage, DURATION_SECOND - 1);
    assert_no_message(&client);
    pool_stage_go_on(stage, EARLY_TIME);
    assert_answer(&client, WIRE_GRANTED, number);
    pool_stage_hang_up(stage, &client);
}

/* A search that begins later is no reason to wait longer. */
static void later_searches_do_not_count(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *first = begin_search(stage, STAGE_USER);
    uint64_t claim = send_claim(stage, &client);

    begin_search(stage, STAGE_USER);
    end_search(stage, first);
    assert_answer(&client, WIRE_GRANTED, claim);
    pool_stage_hang_up(stage, &client);
}

/* Messages of one connection stay in their order. */
static void no_message_overtakes_one_of_its_connection(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_OTHER);
    struct job *job = begin_search(stage, STAGE_USER);
    struct job *later = begin_search(stage, STAGE_USER);
    uint64_t first = send_request(stage, &client, WIRE_CLAIM, true);
    uint64_t second = send_claim(stage, &client);

    assert_no_message(&client);
    /* By itself, the second one would wait for none of these searches. */
    end_search(stage, later);
    assert_no_message(&client);
    end_search(stage, job);
    assert_answer(&client, WIRE_GRANTED, first);
    assert_answer(&client, WIRE_GRANTED, second);
    pool_stage_hang_up(stage, &client);
}

/* The search is over, but the message that waited for it has not been handled yet. */
static void a_message_comes_after_one_that_is_due(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *job = begin_search(stage, STAGE_USER);
    uint64_t first = send_claim(stage, &client);
    uint64_t second;

    list_remove(&job->guard->in_looks);
    pool->has_looked = true;
    second = send_claim(stage, &client);
    assert_no_message(&client);
    deferred_claims_continue_early(pool);
    assert_answer(&client, WIRE_GRANTED, first);
    assert_answer(&client, WIRE_GRANTED, second);
    pool_stage_hang_up(stage, &client);
}

/* Many messages of one user: those beyond the limit are handled at once. */
static void only_so_many_of_a_user_wait(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message = {.type = WIRE_LOOK};

    begin_search(stage, STAGE_USER);
    for (int i = 0; i < 64; i++)
        assert_true(deferred_claims_take_early(client.connection, &message));
    assert_false(deferred_claims_take_early(client.connection, &message));
    assert_int_equal(client.connection->quota->early, 64);
    deferred_claims_forget(pool, client.connection);
    assert_int_equal(client.connection->quota->early, 0);
    assert_true(deferred_claims_take_early(client.connection, &message));
    pool->rules.bounds.waiting = 1;
    assert_false(deferred_claims_take_early(client.connection, &message));
    pool_stage_hang_up(stage, &client);
}

/* Nothing is checked again before a search has ended. */
static void nothing_goes_on_without_a_reason(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *job = begin_search(stage, STAGE_USER);

    send_claim(stage, &client);
    list_remove(&job->guard->in_looks);
    deferred_claims_continue_early(pool);
    assert_no_message(&client);
    pool->has_looked = true;
    deferred_claims_continue_early(pool);
    assert_sent(&client, WIRE_GRANTED);
    assert_false(pool->has_looked || pool->is_resuming);
    pool_stage_hang_up(stage, &client);
}

/* A message of an early connection that must also wait for a report waits for both. */
static void an_early_claim_may_be_deferred_afterwards(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *job = begin_search(stage, STAGE_USER);
    uint64_t claim = send_claim(stage, &client);

    pool->probe_poll->must_wait = pool->probe_poll->is_awaited = true;
    pool->clients.packet_length = 9; /* of another message */
    end_search(stage, job);
    assert_no_message(&client);
    assert_int_equal(client.connection->quota->waiting_bytes, 500);
    pool->probe_poll->is_awaited = false;
    deferred_claims_continue(pool);
    assert_answer(&client, WIRE_GRANTED, claim);
    pool_stage_hang_up(stage, &client);
}

#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_STAGE(a_claim_waits_for_another_pools_answer),
        ON_STAGE(a_claim_waits_for_a_fresh_report),
        ON_STAGE(no_claim_overtakes_a_deferred_one),
        ON_STAGE(a_claim_that_does_not_wait_waits_for_the_handover),
        ON_STAGE(a_report_ends_the_wait_whatever_it_shows),
        ON_STAGE(a_claim_for_a_process_needs_a_new_report),
        ON_STAGE(deferred_messages_have_the_users_limit),
        ON_STAGE(a_closed_connections_messages_are_dropped),
        ON_STAGE(without_memory_a_message_does_not_wait),
        ON_STAGE(a_claim_waits_for_the_users_own_searches),
        ON_STAGE(a_claim_that_does_not_wait_waits_for_all_searches),
        ON_STAGE(a_slow_user_delays_nobody_else),
        ON_STAGE(a_user_may_become_slow_meanwhile),
        ON_STAGE(no_message_waits_longer_than_its_time),
        ON_STAGE(time_without_a_cpu_does_not_count),
        ON_STAGE(later_searches_do_not_count),
        ON_STAGE(no_message_overtakes_one_of_its_connection),
        ON_STAGE(a_message_comes_after_one_that_is_due),
        ON_STAGE(only_so_many_of_a_user_wait),
        ON_STAGE(nothing_goes_on_without_a_reason),
        ON_STAGE(an_early_claim_may_be_deferred_afterwards),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
