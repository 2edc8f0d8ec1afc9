/* SPDX-License-Identifier: Apache-2.0
 *
 * How leases end, with real processes. The test plays the readers of /proc.
 */
#include "support/unit.h"

#include "daemon/leases/lease_ending.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "daemon/core/pidfd.h"
#include "support/daemons/held_leases.h"
#include "support/daemons/played_readers.h"
#include "support/daemons/pool_stage.h"
#include "support/daemons/waiting_child.h"
#include "support/failing_allocator.h"

/* ---- Notice and grace ---- */

static void a_client_gets_notice_and_grace(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *job = hold_by_connection(stage, &client);
    uint64_t id = job->by_id.id;
    struct wire_message message;

    pool_stage_journal(stage);
    lease_ending_begin(pool, job, LEASE_END_STOPPED, STAGE_NOW + 10 * DURATION_SECOND);
    assert_message(&client, WIRE_NOTICE, &message);
    assert_int_equal(message.number, job->number);
    assert_int_equal(message.id, id);
    assert_int_equal(message.end, LEASE_END_STOPPED);
    assert_int_equal(message.force_at, STAGE_NOW + 10 * DURATION_SECOND);
    assert_int_equal(message.duration, 10 * DURATION_SECOND);
    wire_message_finish(&message);
    assert_int_equal(job->state, JOB_ENDING);
    assert_contains(pool_stage_journal(stage), "ends: released by request");
    assert_string_equal(pool_stage_log(stage), "ending id=1 reason=\"released by request\"\n");
    /* A supervisor that lives ends its command itself, and has something to say then. */
    pool_stage_go_on(stage, 12 * DURATION_SECOND - 1);
    assert_int_equal(job->state, JOB_ENDING);
    assert_true(played_readers_are_idle(pool->readers));
    pool_stage_go_on(stage, 1);
    assert_int_equal(job->state, JOB_LOOKING);
    played_readers_say_nothing_left(pool->readers);
    assert_null(job_of_id(pool, id));
    assert_false(is_taken(pool, 0));
    pool_stage_hang_up(stage, &client);
}

/* Of two ends, the first reason stays, and the sooner time counts. */
static void the_sooner_end_counts(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *job = hold_by_connection(stage, &client);
    struct wire_message message;

    lease_ending_begin(pool, job, LEASE_END_STOPPED, STAGE_NOW + 10 * DURATION_SECOND);
    assert_sent(&client, WIRE_NOTICE);
    lease_ending_begin(pool, job, LEASE_END_EXPIRED, STAGE_NOW + 20 * DURATION_SECOND);
    assert_message(&client, WIRE_NOTICE, &message);
    assert_int_equal(message.end, LEASE_END_STOPPED);
    assert_int_equal(message.force_at, STAGE_NOW + 10 * DURATION_SECOND);
    wire_message_finish(&message);
    lease_ending_begin(pool, job, LEASE_END_EXPIRED, STAGE_NOW + 5 * DURATION_SECOND);
    assert_message(&client, WIRE_NOTICE, &message);
    assert_int_equal(message.force_at, STAGE_NOW + 5 * DURATION_SECOND);
    wire_message_finish(&message);
    /* A time that is past has nothing left. */
    lease_ending_begin(pool, job, LEASE_END_EXPIRED, STAGE_NOW - 5);
    assert_message(&client, WIRE_NOTICE, &message);
    assert_int_equal(message.duration, 0);
    wire_message_finish(&message);
    pool_stage_hang_up(stage, &client);
}

/* The holder gets its signal after the reader has seen its descendants: once it has ended, they
 * have other parents. */
static void a_process_without_a_client_gets_sigterm(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    struct job *job = hold(stage, child);

    waiting_child_stop(child);
    lease_ending_begin(pool, job, LEASE_END_EXPIRED, STAGE_NOW + 10 * DURATION_SECOND);
    assert_false(waiting_child_has_signal(child, SIGTERM));
    assert_int_equal(job->state, JOB_ENDING);
    answer_search(pool, &child, 1, READER_OURS);
    assert_true(waiting_child_has_signal(child, SIGTERM));
    waiting_child_end(child);
    assert_int_equal(job->state, JOB_ENDING);
}

/* berth run hangs up when it becomes the command, and may never have read its notice. */
static void a_client_that_hangs_up_after_its_notice_gets_sigterm(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *job = hold(stage, child);

    lease_ending_client_gone(pool, job);
    assert_true(played_readers_are_idle(pool->readers));
    job_attach(job, client.connection, 1);
    lease_ending_begin(pool, job, LEASE_END_EXPIRED, STAGE_NOW + 10 * DURATION_SECOND);
    assert_true(played_readers_are_idle(pool->readers));
    job_detach_all(client.connection);
    lease_ending_client_gone(pool, job);
    answer_search(pool, &child, 1, READER_OURS);
    assert_int_equal(waiting_child_await(child), SIGTERM);
    pool_stage_hang_up(stage, &client);
}

static void after_the_grace_all_processes_are_killed(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t children[2] = {waiting_child_start(), waiting_child_start()};
    struct job *job = hold(stage, children[0]);

    lease_ending_begin(pool, job, LEASE_END_EXPIRED, STAGE_NOW + 10 * DURATION_SECOND);
    waiting_child_stop(children[0]);
    answer_search(pool, children, 1, READER_OURS);
    pool_stage_go_on(stage, 10 * DURATION_SECOND);
    assert_int_equal(waiting_child_await(children[0]), SIGKILL);
    assert_runs(children[1]);
    /* One that the search after SIGKILL finds is killed as well. */
    answer_search(pool, children, 2, READER_OURS);
    assert_int_equal(waiting_child_await(children[1]), SIGKILL);
}

/* A lease of another user than the test's processes have. */
static struct job *claim_as_other(struct pool_stage *stage, pid_t pid)
{
    return pool_stage_claim(
        stage,
        &(struct stage_claim){.hold = LEASE_HOLD_PROCESS, .pid = pid, .uid = geteuid() + 100000});
}

/* A process that became another user's program could not be signalled by the lease's user. After
 * the grace the lease ends without it. */
static void a_holder_of_another_user_gets_no_signal(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    struct job *job = claim_as_other(stage, child);

    assert_true(lease_ending_watch(pool, job, pidfd_open_process(child)));
    waiting_child_stop(child);
    lease_ending_begin(pool, job, LEASE_END_EXPIRED, STAGE_NOW + 10 * DURATION_SECOND);
    answer_search(pool, NULL, 0, READER_OURS);
    assert_false(waiting_child_has_signal(child, SIGTERM));
    assert_int_equal(job->state, JOB_ENDING);
    pool_stage_go_on(stage, 10 * DURATION_SECOND);
    assert_int_equal(job->state, JOB_LOOKING);
    assert_int_equal(pool->foreign.count, 1);
    played_readers_say_nothing_left(pool->readers);
    assert_int_equal(pool->job_count, 0);
    assert_runs(child);
    waiting_child_end(child);
}

/* So could not one that was the lease's when the reader found it. */
static void a_process_left_of_another_user_gets_no_signal(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t children[2] = {waiting_child_start(), waiting_child_start()};
    struct job *job = claim_as_other(stage, children[0]);

    lease_ending_asked(pool, job, children[1]);
    lease_ending_holder_gone(pool, job);
    waiting_child_stop(children[0]);
    answer_search(pool, children, 2, READER_OURS);
    assert_false(waiting_child_has_signal(children[0], SIGTERM));
    assert_int_equal(pool->foreign.count, 1);
    assert_int_equal(job->state, JOB_DRAINING);
    answer_search(pool, NULL, 0, READER_OURS);
    assert_int_equal(pool->job_count, 0);
    pool_stage_go_on(stage, DURATION_MINUTE);
    assert_runs(children[0]);
    assert_runs(children[1]);
    waiting_child_end(children[0]);
    waiting_child_end(children[1]);
}

/* ---- Leases within leases ---- */

static void nothing_begins_within_a_lease_that_ends(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *outer = hold_by_connection(stage, &client);
    const struct job *inner =
        pool_stage_claim(stage, &(struct stage_claim){.parent = outer->by_id.id});
    const struct stage_claim within = {.parent = outer->by_id.id, .connection = client.connection};
    const struct stage_claim further_within = {.parent = inner->by_id.id,
                                               .connection = client.connection};
    const struct stage_claim outside = {.words = "gpus=4", .connection = client.connection};
    const struct job *waits[3];
    uint64_t ids[3];

    assert_int_equal(pool_stage_claim(stage, &further_within)->state, JOB_HELD);
    waits[0] = pool_stage_claim(stage, &within);
    waits[1] = pool_stage_claim(stage, &further_within);
    waits[2] = pool_stage_claim(stage, &outside);
    for (size_t i = 0; i < COUNT(waits); i++) {
        assert_int_equal(waits[i]->state, JOB_WAITING);
        ids[i] = waits[i]->by_id.id;
    }
    lease_ending_begin(pool, outer, LEASE_END_STOPPED, STAGE_NOW + 10 * DURATION_SECOND);
    engine_events_settle(pool);
    assert_null(job_of_id(pool, ids[0]));
    assert_null(job_of_id(pool, ids[1]));
    assert_non_null(job_of_id(pool, ids[2]));
    pool_stage_hang_up(stage, &client);
}

/* ---- RELEASE ---- */

static void a_release_is_answered_after_the_search(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *job = hold(stage, child);
    struct wire_message message;

    job_attach(job, client.connection, 1);
    assert_false(lease_ending_answer_later(pool, job, 9));
    lease_ending_holder_gone(pool, job);
    assert_true(lease_ending_answer_later(pool, job, 9));
    assert_no_message(&client);
    played_readers_say_nothing_left(pool->readers);
    assert_message(&client, WIRE_DONE, &message);
    assert_int_equal(message.number, 9);
    wire_message_finish(&message);
    assert_no_message(&client);
    assert_int_equal(pool->job_count, 0);
    waiting_child_end(child);
    pool_stage_hang_up(stage, &client);
}

/* A client is not kept waiting by a slow search. */
static void a_release_is_answered_in_time(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *job = hold(stage, child);

    job_attach(job, client.connection, 1);
    lease_ending_holder_gone(pool, job);
    assert_true(lease_ending_answer_later(pool, job, 9));
    pool_stage_go_on(stage, LEASE_ENDING_ANSWER - 1);
    assert_no_message(&client);
    pool_stage_go_on(stage, 1);
    assert_sent(&client, WIRE_DONE);
    played_readers_say_nothing_left(pool->readers);
    assert_no_message(&client);
    waiting_child_end(child);
    pool_stage_hang_up(stage, &client);
}

/* The journal knows before the client does that the lease is over. */
static void a_told_end_is_in_the_journal(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *job = hold(stage, child);

    job_attach(job, client.connection, 1);
    pool_stage_journal(stage);
    lease_ending_holder_gone(pool, job);
    assert_contains(pool_stage_journal(stage), ", draining");
    waiting_child_end(child);
    pool_stage_hang_up(stage, &client);
}

/* The process that asks for the end gets its answer, and a moment to end. */
static void the_asker_is_spared_for_a_while(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    pid_t asker = waiting_child_start();
    struct job *job = hold(stage, child);

    waiting_child_end(child);
    lease_ending_asked(pool, job, asker);
    lease_ending_holder_gone(pool, job);
    answer_search(pool, &asker, 1, READER_OURS);
    assert_int_equal(pool->job_count, 0);
    assert_runs(asker);
    pool_stage_go_on(stage, pool->rules.grace + 2 * DURATION_SECOND);
    assert_int_equal(waiting_child_await(asker), SIGKILL);
}

/* ---- Holders of a daemon before ---- */

/* A process with the holder's number may be another one: no signal before that is known. */
static void an_unconfirmed_holder_gets_no_signal(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    struct job *job = hold(stage, child);

    waiting_child_stop(child);
    job->guard->is_unconfirmed = true;
    lease_ending_begin(pool, job, LEASE_END_EXPIRED, STAGE_NOW + 10 * DURATION_SECOND);
    answer_search(pool, NULL, 0, READER_OURS);
    assert_false(waiting_child_has_signal(child, SIGTERM));
    lease_ending_begin(pool, job, LEASE_END_EXPIRED, STAGE_NOW + 9 * DURATION_SECOND);
    assert_false(waiting_child_has_signal(child, SIGTERM));
    lease_ending_confirm(pool, job, true);
    assert_true(waiting_child_has_signal(child, SIGTERM));
    waiting_child_end(child);
}

static void a_confirmed_holder_waits_for_the_search(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    struct job *job = hold(stage, child);

    waiting_child_stop(child);
    job->guard->is_unconfirmed = true;
    lease_ending_begin(pool, job, LEASE_END_EXPIRED, STAGE_NOW + 10 * DURATION_SECOND);
    lease_ending_confirm(pool, job, true);
    assert_false(waiting_child_has_signal(child, SIGTERM));
    answer_search(pool, NULL, 0, READER_OURS);
    assert_true(waiting_child_has_signal(child, SIGTERM));
    waiting_child_end(child);
}

static void another_process_with_the_number_is_left_alone(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    struct job *job = hold(stage, child);

    job->guard->is_unconfirmed = true;
    lease_ending_begin(pool, job, LEASE_END_EXPIRED, STAGE_NOW + 10 * DURATION_SECOND);
    lease_ending_confirm(pool, job, false);
    assert_int_equal(job->state, JOB_LOOKING);
    assert_int_equal(job->guard->process.descriptor, -1);
    played_readers_say_nothing_left(pool->readers);
    assert_int_equal(pool->job_count, 0);
    assert_runs(child);
    waiting_child_end(child);
}

/* ---- Preparation and limits ---- */

/* Its holder was never told that the lease began. */
static void a_lease_in_preparation_ends_at_once(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    struct job *job = hold(stage, child);

    job->unprepared = true;
    lease_ending_begin(pool, job, LEASE_END_STOPPED, STAGE_NOW + 10 * DURATION_SECOND);
    engine_events_settle(pool);
    assert_int_equal(pool->job_count, 0);
    assert_runs(child);
    waiting_child_end(child);
}

static void an_ended_lease_does_not_end_again(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    struct job *job = hold(stage, child);

    lease_ending_holder_gone(pool, job);
    lease_ending_begin(pool, job, LEASE_END_EXPIRED, STAGE_NOW + 10 * DURATION_SECOND);
    assert_int_equal(job->state, JOB_LOOKING);
    assert_int_equal(job->end, LEASE_END_DIED);
    lease_ending_holder_gone(pool, job);
    assert_int_equal(pool->look_count, 1);
    answer_search(pool, NULL, 0, READER_GONE);
    assert_int_equal(pool->job_count, 0);
    waiting_child_end(child);
}

static void without_memory_a_holder_is_not_watched(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct job *job = pool_stage_claim(stage, &(struct stage_claim){0});
    int descriptor = pidfd_open_process(getpid());
    bool is_watched;

    assert_false(lease_ending_watch(pool, job, -1));
    failing_allocator_start(1);
    is_watched = lease_ending_watch(pool, job, descriptor);
    assert_true(failing_allocator_stop());
    assert_false(is_watched);
    assert_int_equal(fcntl(descriptor, F_GETFD), -1);
}

/* Without memory for a search, the lease ends all the same: a device must not be lost for ever. */
static void without_memory_a_lease_ends_without_a_search(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    struct job *job = hold(stage, child);

    assert_int_equal(journal_file_reserve(&pool->journal, 4096, NULL), 0);
    engine_events_settle(pool);
    failing_allocator_start(1);
    lease_ending_holder_gone(pool, job);
    assert_true(failing_allocator_stop());
    assert_int_not_equal(job->state, JOB_LOOKING);
    assert_false(is_taken(pool, 0));
    waiting_child_end(child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_STAGE(a_client_gets_notice_and_grace),
        ON_STAGE(the_sooner_end_counts),
        ON_STAGE(a_process_without_a_client_gets_sigterm),
        ON_STAGE(a_client_that_hangs_up_after_its_notice_gets_sigterm),
        ON_STAGE(after_the_grace_all_processes_are_killed),
        ON_STAGE(a_holder_of_another_user_gets_no_signal),
        ON_STAGE(a_process_left_of_another_user_gets_no_signal),
        ON_STAGE(nothing_begins_within_a_lease_that_ends),
        ON_STAGE(a_release_is_answered_after_the_search),
        ON_STAGE(a_release_is_answered_in_time),
        ON_STAGE(a_told_end_is_in_the_journal),
        ON_STAGE(the_asker_is_spared_for_a_while),
        ON_STAGE(an_unconfirmed_holder_gets_no_signal),
        ON_STAGE(a_confirmed_holder_waits_for_the_search),
        ON_STAGE(another_process_with_the_number_is_left_alone),
        ON_STAGE(a_lease_in_preparation_ends_at_once),
        ON_STAGE(an_ended_lease_does_not_end_again),
        ON_STAGE(without_memory_a_holder_is_not_watched),
        ON_STAGE(without_memory_a_lease_ends_without_a_search),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
