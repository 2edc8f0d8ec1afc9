/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine's grants: answers, journal, watched holders.
 */
#include "support/unit.h"

#include "daemon/leases/engine_events.h"

#include <string.h>

#include "support/daemons/played_readers.h"
#include "support/daemons/pool_stage.h"
#include "support/daemons/stage_claims.h"
#include "support/daemons/waiting_child.h"
#include "support/engine/machines.h"
#include "support/failing_allocator.h"

/* ---- Grants ---- */

static void a_claim_that_waited_is_answered(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *first = claim(stage, &client, "gpus=4");
    const struct job *job = claim(stage, &client, "gpus=2 time=60s");
    struct wire_message message;

    pool_stage_go_on(stage, DURATION_SECOND);
    pool_stage_log(stage);
    end_lease(pool, first);
    assert_message(&client, WIRE_GRANTED, &message);
    assert_int_equal(message.number, job->number);
    assert_int_equal(message.id, job->by_id.id);
    assert_int_equal(message.devices.count, 2);
    assert_false(message.more);
    assert_int_equal(message.granted, STAGE_NOW + DURATION_SECOND);
    assert_int_equal(message.expires.value, STAGE_NOW + 61 * DURATION_SECOND);
    assert_string_equal(message.about.socket, STAGE_SOCKET);
    assert_string_equal(message.about.pool, pool->name);
    assert_int_equal(message.vendors, 1U << VENDOR_NVIDIA);
    assert_null(message.mps_root);
    assert_false(message.stay);
    wire_message_finish(&message);
    assert_int_equal(job->state, JOB_HELD);
    assert_contains(pool_stage_log(stage), "granted id=2 uid=1000 pid=");
    /* Devices that went to the claim are the pool's now, for other pools too. */
    assert_true(pool->device_locks->updated > 0);
    assert_int_equal(pool->recorder_process->wanted, 1);
    pool_stage_go_on(stage, 50 * DURATION_SECOND);
    assert_sent(&client, WIRE_WARNING);
    pool_stage_hang_up(stage, &client);
}

static void the_log_names_devices_and_the_account(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct subordinate_range *range = vector_append(&pool->accounts.ranges);
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *job;

    assert_non_null(range);
    *range = (struct subordinate_range){.first = 100000, .last = 165535, .owner = STAGE_USER};
    job = pool_stage_claim(
        stage, &(struct stage_claim){
                   .words = "gpus=2", .uid = 100007, .pid = 4711, .connection = client.connection});
    job->since -= 1500 * DURATION_SECOND / 1000;
    engine_events_granted(pool, job);
    assert_string_equal(pool_stage_log(stage), "granted id=1 uid=100007 account=1000 pid=4711 "
                                               "devices=nvidia0,nvidia1 waited_ms=1500\n");
    pool_stage_hang_up(stage, &client);
}

/* A user who claims very often does not fill the log. */
static void a_flood_of_grants_is_not_logged(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    size_t lines = 0;

    for (int i = 0; i < 1000; i++) {
        struct job *job = claim(stage, &client, NULL);

        engine_events_granted(pool, job);
        end_lease(pool, job);
        assert_sent(&client, WIRE_GRANTED);
    }
    for (const char *at = pool_stage_log(stage); (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    assert_in_range(lines, 2, 1000);
    pool_stage_hang_up(stage, &client);
}

/* The client hung up while its claim waited, and the grant came before the cancellation. */
static void a_grant_that_nobody_awaits_ends_at_once(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *first = claim(stage, &client, "gpus=4");
    const struct job *job = claim(stage, &client, "gpus=4");
    const struct job *next = pool_stage_claim(
        stage, &(struct stage_claim){.words = "gpus=4", .connection = client.connection});
    uint64_t id = job->by_id.id;

    job_attach((struct job *)job, client.connection, 1);
    job_detach_all(client.connection);
    job_attach((struct job *)next, client.connection, 7);
    end_lease(pool, first);
    assert_null(job_of_id(pool, id));
    assert_int_equal(job_find_ended(pool, id)->end, LEASE_END_DIED);
    assert_int_not_equal(next->by_lease.id, 0);
    pool_stage_hang_up(stage, &client);
}

/* The client of a restored claim may come back. */
static void a_grant_of_a_restored_claim_stays(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *first = claim(stage, &client, "gpus=4");
    struct job *job = pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=4"});

    job->restored = true;
    end_lease(pool, first);
    assert_int_equal(job->state, JOB_HELD);
    pool_stage_hang_up(stage, &client);
}

/* A restored claim without a job: the journal ends before it, so no client knows it. */
static void a_grant_without_a_job_is_given_back(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *first = claim(stage, &client, "gpus=4");
    struct job *stray = claim(stage, &client, "gpus=4");
    const struct job *next = claim(stage, &client, "gpus=4");

    job_free(pool, stray);
    end_lease(pool, first);
    assert_int_equal(next->state, JOB_HELD);
    pool_stage_hang_up(stage, &client);
}

static int begin_many(void **state)
{
    struct text ids = {0};

    for (int i = 0; i < 80; i++)
        text_append_format(&ids, "%snvidia%d", i == 0 ? "" : ",", i);
    *state = pool_stage_make(&(struct pool_stage_settings){
        .devices = text_string(&ids), .parts = pool_stage_all, .part_count = POOL_STAGE_ALL});
    text_finish(&ids);
    return 0;
}

/* A grant has as many devices as fit into a message, and the rest in the next one. */
static void a_large_grant_comes_in_parts(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    static const size_t counts[] = {WIRE_GRANT_DEVICES, WIRE_GRANT_DEVICES, 16};

    engine_events_granted(&stage->pool, claim(stage, &client, "gpus=80"));
    for (size_t i = 0; i < COUNT(counts); i++) {
        struct wire_message message;

        assert_message(&client, WIRE_GRANTED, &message);
        assert_int_equal(message.devices.count, counts[i]);
        assert_int_equal(message.devices.items[0].id.index, i * WIRE_GRANT_DEVICES);
        assert_int_equal(message.more, i + 1 < COUNT(counts));
        assert_false(message.expires.known);
        wire_message_finish(&message);
    }
    assert_no_message(&client);
    pool_stage_hang_up(stage, &client);
}

/* Devices with long facts: a message has room for fewer. */
static void long_facts_take_more_parts(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    const struct device_list *devices = &engine_machine(stage->pool.engine)->devices;
    char cpus[WIRE_TEXT_MAX];
    size_t parts = 0;
    size_t count = 0;

    memset(cpus, '1', sizeof(cpus));
    cpus[sizeof(cpus) - 1] = '\0';
    for (size_t i = 0; i < devices->count; i++)
        devices->items[i].cpus = copy_of(cpus);
    engine_events_granted(&stage->pool, claim(stage, &client, "gpus=80"));
    assert_false(client.connection->closing);
    for (bool more = true; more; parts++) {
        struct wire_message message;

        assert_message(&client, WIRE_GRANTED, &message);
        count += message.devices.count;
        connection_flush(client.connection); /* the socket has room again */
        more = message.more;
        wire_message_finish(&message);
    }
    assert_int_equal(count, 80);
    assert_int_equal(parts, 6);
    pool_stage_hang_up(stage, &client);
}

/* No client knows the id of a reservation whose claimer hung up before the answer. */
static void a_reservation_that_nobody_knows_ends(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *job = pool_stage_claim(stage, &(struct stage_claim){
                                                  .words = "time=60s",
                                                  .hold = LEASE_HOLD_NOTHING,
                                                  .connection = client.connection,
                                              });
    uint64_t id;

    client.connection->closing = true;
    engine_events_granted(pool, job);
    assert_int_equal(job->state, JOB_LOOKING);
    /* Other leases end with the connection or the process. */
    job = claim(stage, &client, NULL);
    id = job->by_id.id;
    engine_events_granted(pool, job);
    engine_events_settle(pool);
    assert_ptr_equal(job_of_id(pool, id), job);
    client.connection->closing = false;
    pool_stage_hang_up(stage, &client);
}

/* ---- Holders ---- */

static struct job *claim_for(struct pool_stage *stage, pid_t pid)
{
    struct job *job =
        pool_stage_claim(stage, &(struct stage_claim){.hold = LEASE_HOLD_PROCESS, .pid = pid});

    job->restored = true;
    return job;
}

static void the_holder_of_a_lease_is_watched(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    struct job *job = claim_for(stage, child);

    engine_events_granted(pool, job);
    assert_int_equal(job->state, JOB_HELD);
    assert_true(job->guard->process.descriptor >= 0);
    assert_true(pool->clients.is_deferring);
    assert_true(played_readers_are_idle(pool->readers)); /* a grant asks nothing */
    waiting_child_end(child);
}

/* The process ended before it was granted its lease: its claim is refused, and nothing is left. */
static void a_holder_that_is_gone_gets_no_lease(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    pid_t child = waiting_child_start();
    struct job *job = claim_for(stage, child);
    struct wire_message message;
    struct slot_view view;

    job_attach(job, client.connection, 5);
    job->adopted = true; /* the client is another process */
    waiting_child_end(child);
    engine_events_granted(pool, job);
    engine_events_settle(pool);
    assert_message(&client, WIRE_REFUSED, &message);
    assert_contains(message.text, "cannot watch process ");
    wire_message_finish(&message);
    assert_int_equal(pool->job_count, 0);
    assert_true(played_readers_are_idle(pool->readers));
    engine_get_slot(pool->engine, 0, &view);
    assert_false(view.taken);
    pool_stage_hang_up(stage, &client);
}

/* ---- Memory ---- */

/* An event that cannot be noted is in the journal: the next daemon processes it. */
static void an_event_that_is_lost_ends_the_daemon(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    const struct job *first = claim(stage, &client, "gpus=4");
    const struct engine_event event = {.type = EVENT_EXPIRED, .lease = first->by_lease.id};

    vector_finish(&pool->pending_events);
    journal_file_reserve(&pool->journal, 4096, NULL);
    pool_stage_journal(stage);
    failing_allocator_start(1);
    engine_events_receive(pool, &event);
    assert_true(failing_allocator_stop());
    assert_true(pool->lost && pool->loop.ended);
    assert_string_equal(pool_stage_journal(stage), "expired lease 1\n");
    pool_stage_hang_up(stage, &client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_STAGE(a_claim_that_waited_is_answered),
        ON_STAGE(the_log_names_devices_and_the_account),
        ON_STAGE(a_flood_of_grants_is_not_logged),
        ON_STAGE(a_grant_that_nobody_awaits_ends_at_once),
        ON_STAGE(a_grant_of_a_restored_claim_stays),
        ON_STAGE(a_grant_without_a_job_is_given_back),
        cmocka_unit_test_setup_teardown(a_large_grant_comes_in_parts, begin_many, pool_stage_end),
        cmocka_unit_test_setup_teardown(long_facts_take_more_parts, begin_many, pool_stage_end),
        ON_STAGE(a_reservation_that_nobody_knows_ends),
        ON_STAGE(the_holder_of_a_lease_is_watched),
        ON_STAGE(a_holder_that_is_gone_gets_no_lease),
        ON_STAGE(an_event_that_is_lost_ends_the_daemon),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
