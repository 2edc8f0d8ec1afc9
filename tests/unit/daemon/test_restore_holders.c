/* SPDX-License-Identifier: Apache-2.0
 *
 * The holders and claims of a daemon before.
 */
#include "support/unit.h"

#include "daemon/restore.h"

#include <unistd.h>

#include "daemon/stream/ended_leases.h"
#include "support/daemons/played_readers.h"
#include "support/daemons/pool_stage.h"
#include "support/daemons/restored_pools.h"
#include "support/daemons/waiting_child.h"

/* ---- Holders ---- */

/* The daemon was away for a moment: running jobs are not affected. */
static void a_living_holder_is_watched(void **state)
{
    struct place *place = *state;
    pid_t child = waiting_child_start();
    const struct job *job;
    struct pool *pool;

    claim(place, "gpus=1 time=1000s", LEASE_HOLD_PROCESS, child);
    write_journal(place);
    pool = restore(place);
    job = job_of_id(pool, 1);
    assert_int_equal(job->state, JOB_HELD);
    assert_int_equal(job->guard->warn_at, STAGE_NOW + 750 * DURATION_SECOND);
    assert_true(job->guard->process.descriptor >= 0);
    assert_true(job->guard->is_unconfirmed);
    assert_false(job->restored);
    assert_int_equal(played_readers_query(pool->readers, READER_DESCRIBE)->request.pids.items[0],
                     child);
    /* Nothing is waited for. */
    pool_stage_go_on(place->after, DURATION_MINUTE);
    assert_int_equal(job->state, JOB_HELD);
    waiting_child_end(child);
}

static void a_dead_holders_lease_ends(void **state)
{
    struct place *place = *state;
    struct wire_message message = {.type = WIRE_NEWS};
    pid_t child = waiting_child_start();
    struct pool *pool;

    claim(place, "gpus=2", LEASE_HOLD_PROCESS, child);
    waiting_child_end(child);
    write_journal(place);
    pool = restore(place);
    assert_int_equal(job_of_id(pool, 1)->state, JOB_LOOKING);
    played_readers_say_nothing_left(pool->readers);
    assert_int_equal(pool->job_count, 0);
    assert_int_equal(job_find_ended(pool, 1)->end, LEASE_END_DIED);
    /* The recorder learns what lease it was, but it counts as granted by the daemon before. */
    ended_leases_fill(pool->ended_leases, 0, &message);
    assert_int_equal(message.ended.count, 1);
    assert_string_equal(message.ended.items[0].lease->command, "train");
    vector_finish(&message.ended);
    assert_int_equal(pool->counts.tally.granted, 0);
}

/* The time for clients to come back is no reason to give up a lease whose processes still run. */
static void a_lease_that_drains_waits_for_its_processes(void **state)
{
    struct place *place = *state;
    pid_t child = waiting_child_start();
    pid_t left = waiting_child_start();
    struct reader_answer answer = {0};
    struct slot_view view;
    struct pool *pool;

    claim(place, "gpus=1", LEASE_HOLD_PROCESS, child);
    waiting_child_end(child);
    write_journal(place);
    pool = restore(place);
    played_readers_add(&answer, left, READER_OURS);
    played_readers_answer(played_readers_query(pool->readers, READER_LEFTOVERS), &answer);
    pool_stage_go_on(place->after, RESTORE_TIMEOUT);
    assert_int_equal(job_of_id(pool, 1)->state, JOB_DRAINING);
    engine_get_slot(pool->engine, 0, &view);
    assert_true(view.taken);
    waiting_child_end(left);
}

/* The devices of a dead holder must not go to a claim of a dead client. */
static void claims_of_the_dead_are_cancelled_first(void **state)
{
    struct place *place = *state;
    struct stage_client client;
    pid_t child = waiting_child_start();
    struct pool *pool;

    claim(place, "gpus=2", LEASE_HOLD_CONNECTION, child);
    claim(place, "gpus=2", LEASE_HOLD_CONNECTION, child);
    claim(place, "gpus=2", LEASE_HOLD_CONNECTION, getpid());
    waiting_child_end(child);
    write_journal(place);
    pool = restore(place);
    assert_null(job_of_id(pool, 1));
    assert_null(job_of_id(pool, 2));
    assert_int_equal(job_of_id(pool, 3)->state, JOB_HELD);
    client = pool_stage_connect(place->after, STAGE_USER);
    job_attach(job_of_id(pool, 3), client.connection, 1);
    pool_stage_hang_up(place->after, &client);
}

/* Clients have some time to come back; then their claims and leases are given up, claims first. */
static void clients_have_some_time_to_come_back(void **state)
{
    struct place *place = *state;
    struct stage_client client;
    struct pool *pool;

    claim(place, "gpus=1", LEASE_HOLD_CONNECTION, 0);
    claim(place, "gpus=1", LEASE_HOLD_CONNECTION, 0);
    claim(place, "gpus=1", LEASE_HOLD_CONNECTION, 0);
    claim(place, "gpus=2", LEASE_HOLD_CONNECTION, 0);
    write_journal(place);
    pool = restore(place);
    assert_true(job_of_id(pool, 1)->restored && job_of_id(pool, 3)->restored);
    client = pool_stage_connect(place->after, STAGE_USER);
    job_attach(job_of_id(pool, 1), client.connection, 1);
    job_attach(job_of_id(pool, 4), client.connection, 2);
    pool_stage_go_on(place->after, RESTORE_TIMEOUT - 1);
    assert_int_equal(pool->job_count, 4);
    pool_stage_log(place->after);
    pool_stage_go_on(place->after, 1);
    assert_contains(pool_stage_log(place->after), "abandoned id=3\n");
    assert_int_equal(pool->job_count, 2);
    assert_int_equal(job_find_ended(pool, 2)->end, LEASE_END_DIED);
    assert_int_equal(job_find_ended(pool, 3)->end, LEASE_END_CANCELLED);
    assert_int_equal(job_of_id(pool, 1)->state, JOB_HELD);
    assert_int_equal(job_of_id(pool, 4)->state, JOB_WAITING);
    pool_stage_hang_up(place->after, &client);
}

/* A reservation needs no client. */
static void a_reservation_goes_on(void **state)
{
    struct place *place = *state;
    struct pool *pool;

    claim(place, "gpus=1 time=100s", LEASE_HOLD_NOTHING, 0);
    write_journal(place);
    pool = restore(place);
    pool_stage_go_on(place->after, 50 * DURATION_SECOND);
    assert_int_equal(job_of_id(pool, 1)->state, JOB_HELD);
    pool_stage_go_on(place->after, 50 * DURATION_SECOND);
    assert_int_equal(job_of_id(pool, 1)->state, JOB_LOOKING);
}

/* A reservation that is granted after the restart ends if its client does not come back. */
static void a_reservation_that_nobody_was_told_of_is_given_up(void **state)
{
    struct place *place = *state;
    pid_t child = waiting_child_start();
    struct pool *pool;

    claim(place, "gpus=2", LEASE_HOLD_CONNECTION, child);
    claim(place, "gpus=1 time=100s", LEASE_HOLD_NOTHING, getpid());
    waiting_child_end(child);
    write_journal(place);
    pool = restore(place);
    assert_int_equal(job_of_id(pool, 2)->state, JOB_HELD);
    pool_stage_go_on(place->after, RESTORE_TIMEOUT);
    assert_int_equal(pool->job_count, 0);
}

/* The lease was ending: its grace goes on, and its processes are looked for. */
static void an_ending_lease_goes_on_ending(void **state)
{
    struct place *place = *state;
    pid_t child = waiting_child_start();
    struct reader_answer nothing = {0};
    struct reader_answer left = {0};
    struct job *job = claim(place, "gpus=1", LEASE_HOLD_PROCESS, child);
    struct pool *pool;

    job->state = JOB_ENDING;
    job->end = LEASE_END_STOPPED;
    job_lease_watch(&place->before->pool, job)->force_at = STAGE_NOW + 4 * DURATION_SECOND;
    write_journal(place);
    pool = restore(place);
    job = job_of_id(pool, 1);
    assert_int_equal(job->state, JOB_ENDING);
    assert_int_equal(job->guard->force_at, STAGE_NOW + 4 * DURATION_SECOND);
    played_readers_answer(played_readers_query(pool->readers, READER_LEFTOVERS), &nothing);
    assert_true(list_is_linked(&job->guard->force.in_loop));
    /* It gets its signal once it is confirmed. */
    waiting_child_stop(child);
    assert_false(waiting_child_has_signal(child, SIGTERM));
    /* After the grace, all that is left is killed. */
    pool_stage_go_on(place->after, 4 * DURATION_SECOND);
    played_readers_add(&left, child, READER_OURS);
    played_readers_answer(played_readers_query(pool->readers, READER_LEFTOVERS), &left);
    assert_int_equal(waiting_child_await(child), SIGKILL);
}

static void a_draining_lease_is_looked_at_again(void **state)
{
    struct place *place = *state;
    struct job *job = claim(place, "gpus=1", LEASE_HOLD_PROCESS, getpid());
    struct pool *pool;

    job->state = JOB_DRAINING;
    job->end = LEASE_END_DIED;
    write_journal(place);
    pool = restore(place);
    assert_int_equal(job_of_id(pool, 1)->state, JOB_LOOKING);
    played_readers_say_nothing_left(pool->readers);
    assert_int_equal(pool->job_count, 0);
}

/* A process that ignores SIGTERM is killed also where its lease drained before the restart. */
static void a_draining_lease_has_its_grace_again(void **state)
{
    struct place *place = *state;
    struct job *job = claim(place, "gpus=1", LEASE_HOLD_PROCESS, getpid());
    struct reader_answer left = {0};
    struct pool *pool;
    pid_t stubborn;

    signal(SIGTERM, SIG_IGN);
    stubborn = waiting_child_start();
    signal(SIGTERM, SIG_DFL);
    job->state = JOB_DRAINING;
    job->end = LEASE_END_STOPPED;
    job_lease_watch(&place->before->pool, job)->force_at = STAGE_NOW - DURATION_SECOND;
    write_journal(place);
    pool = restore(place);
    played_readers_add(&left, stubborn, READER_OURS);
    played_readers_answer(played_readers_query(pool->readers, READER_LEFTOVERS), &left);
    assert_int_equal(job_of_id(pool, 1)->state, JOB_DRAINING);
    pool_stage_go_on(place->after, pool->rules.grace);
    assert_int_equal(waiting_child_await(stubborn), SIGKILL);
}

/* The client was not told of this grant: it comes back for it, and the prolog runs again. */
static void a_lease_in_preparation_waits_for_its_client(void **state)
{
    struct place *place = *state;
    struct job *job = claim(place, "gpus=1", LEASE_HOLD_PROCESS, getpid());
    struct pool *pool;

    job->unprepared = true;
    write_journal(place);
    pool = restore(place);
    job = job_of_id(pool, 1);
    /* There is no prolog any more, so it is prepared. */
    assert_false(job->unprepared);
    assert_true(job->restored);
    pool_stage_go_on(place->after, RESTORE_TIMEOUT);
    assert_int_equal(pool->job_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        AT_PLACE(a_living_holder_is_watched),
        AT_PLACE(a_dead_holders_lease_ends),
        AT_PLACE(a_lease_that_drains_waits_for_its_processes),
        AT_PLACE(claims_of_the_dead_are_cancelled_first),
        AT_PLACE(clients_have_some_time_to_come_back),
        AT_PLACE(a_reservation_goes_on),
        AT_PLACE(a_reservation_that_nobody_was_told_of_is_given_up),
        AT_PLACE(an_ending_lease_goes_on_ending),
        AT_PLACE(a_draining_lease_is_looked_at_again),
        AT_PLACE(a_draining_lease_has_its_grace_again),
        AT_PLACE(a_lease_in_preparation_waits_for_its_client),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
