/* SPDX-License-Identifier: Apache-2.0
 *
 * How leases end, with real processes. The test plays the readers of /proc.
 */
#include "support/unit.h"

#include "daemon/leases/lease_ending.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/core/pidfd.h"
#include "daemon/leases/handover.h"
#include "daemon/processes/leftovers.h"
#include "support/daemons/played_probe.h"
#include "support/daemons/played_readers.h"
#include "support/daemons/pool_stage.h"
#include "support/daemons/waiting_child.h"
#include "support/failing_allocator.h"

static int begin_live(void **state)
{
    *state = pool_stage_make(&(struct pool_stage_settings){
        .parts = pool_stage_all, .part_count = POOL_STAGE_ALL, .is_live = true});
    return 0;
}

/* A lease of the test's user that this process holds. */
static struct job *hold(struct pool_stage *stage, pid_t pid)
{
    struct job *job = pool_stage_claim(stage, &(struct stage_claim){
                                                  .hold = LEASE_HOLD_PROCESS,
                                                  .pid = pid,
                                                  .uid = geteuid(),
                                                  .is_root = geteuid() == 0,
                                              });

    assert_true(lease_ending_watch(&stage->pool, job, pidfd_open_process(pid)));
    return job;
}

static struct job *hold_by_connection(struct pool_stage *stage, const struct stage_client *client)
{
    return pool_stage_claim(stage, &(struct stage_claim){.connection = client->connection});
}

/* Answers the oldest search: these processes are left, each with its state. */
static void answer_search(struct pool *pool, const pid_t *left, size_t count,
                          enum reader_state found)
{
    struct reader_answer answer = {0};

    for (size_t i = 0; i < count; i++)
        played_readers_add(&answer, left[i], found)->uid = optional_number_of(STAGE_USER);
    played_readers_answer(played_readers_query(pool->readers, READER_LEFTOVERS), &answer);
}

static struct reader_request *search_of(const struct pool *pool)
{
    return &played_readers_query(pool->readers, READER_LEFTOVERS)->request;
}

static void assert_runs(pid_t child)
{
    assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
}

static bool is_taken(const struct pool *pool, uint32_t slot)
{
    struct slot_view view;

    engine_get_slot(pool->engine, slot, &view);
    return view.taken;
}

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

/* The holder is signalled when the reader has seen what descends from it: later, its children would
 * be nobody's. */
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

/* A process that became another user's program could not be signalled by the lease's user. */
static void a_holder_of_another_user_gets_no_signal(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    const struct stage_claim strange = {
        .hold = LEASE_HOLD_PROCESS, .pid = child, .uid = geteuid() + 100000};
    struct job *job = pool_stage_claim(stage, &strange);
    struct reader_answer nothing = {0};
    uint32_t uid;
    int descriptor = pidfd_open_process(child);

    if (!pidfd_user(descriptor, &uid)) {
        close(descriptor);
        waiting_child_end(child);
        print_message("skipped: this kernel does not tell the user of a pidfd\n");
        skip();
    }
    assert_true(lease_ending_watch(pool, job, descriptor));
    waiting_child_stop(child);
    lease_ending_begin(pool, job, LEASE_END_EXPIRED, STAGE_NOW + 10 * DURATION_SECOND);
    played_readers_answer(played_readers_query(pool->readers, READER_LEFTOVERS), &nothing);
    assert_false(waiting_child_has_signal(child, SIGTERM));
    waiting_child_end(child);
}

/* ---- The end of the holder ---- */

static void a_connections_lease_ends_at_once(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *job = hold_by_connection(stage, &client);
    uint64_t id = job->by_id.id;

    lease_ending_holder_gone(pool, job);
    engine_events_settle(pool);
    assert_null(job_of_id(pool, id));
    assert_true(played_readers_are_idle(pool->readers));
    assert_int_equal(job_find_ended(pool, id)->end, LEASE_END_DIED);
    pool_stage_hang_up(stage, &client);
}

/* A reservation has no holder, but processes may use it. */
static void a_reservation_ends_without_grace(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct job *job = pool_stage_claim(stage, &(struct stage_claim){.hold = LEASE_HOLD_NOTHING});

    lease_ending_begin(pool, job, LEASE_END_STOPPED, STAGE_NOW + 10 * DURATION_SECOND);
    assert_int_equal(job->state, JOB_LOOKING);
    assert_int_equal(search_of(pool)->holder_pid, 0);
    played_readers_say_nothing_left(pool->readers);
    assert_int_equal(pool->job_count, 0);
}

static void the_search_names_the_lease(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct subordinate_range *range = vector_append(&pool->accounts.ranges);
    pid_t child = waiting_child_start();
    struct job *job = hold(stage, child);
    const struct job *inner =
        pool_stage_claim(stage, &(struct stage_claim){.parent = job->by_id.id});
    const struct job *innermost =
        pool_stage_claim(stage, &(struct stage_claim){.parent = inner->by_id.id});
    const struct reader_request *request;
    const struct job *other;

    assert_non_null(range);
    *range = (struct subordinate_range){.first = 100000, .last = 165535, .owner = geteuid()};
    range = vector_append(&pool->accounts.ranges);
    assert_non_null(range);
    *range =
        (struct subordinate_range){.first = 200000, .last = 265535, .owner = geteuid() + 100000};
    other = pool_stage_claim(stage, &(struct stage_claim){0});
    pool_stage_claim(stage, &(struct stage_claim){.parent = other->by_id.id});
    job->holder->began = 777;
    lease_ending_holder_gone(pool, job);
    request = search_of(pool);
    assert_int_equal(request->uid, geteuid());
    assert_string_equal(request->socket, STAGE_SOCKET);
    assert_int_equal(request->holder_pid, child);
    assert_int_equal(request->since, 777);
    assert_int_equal(request->root_pid, 0);
    assert_int_equal(request->leases.count, 3);
    assert_int_equal(request->leases.items[0].id, job->by_id.id);
    assert_int_equal(request->leases.items[1].id, inner->by_id.id);
    assert_int_equal(request->leases.items[2].id, innermost->by_id.id);
    assert_int_equal(request->ranges.count, 1);
    assert_int_equal(request->ranges.items[0].first, 100000);
    assert_int_equal(request->ranges.items[0].count, 65536);
    assert_false(request->containers_matter);
    waiting_child_end(child);
}

/* The holder's start is learned a moment after the grant. Nothing of a lease that ends before is
 * older than its claim, but for a client that was there before. */
static void a_short_lease_leaves_nothing_that_is_old(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    struct job *job = hold(stage, child);
    struct job *other = hold(stage, child);

    lease_ending_holder_gone(pool, job);
    assert_int_equal(search_of(pool)->since, STAGE_LOOP_NOW - DURATION_SECOND);
    played_readers_say_nothing_left(pool->readers);
    pool_stage_go_on(stage, DURATION_SECOND);
    lease_ending_holder_gone(pool, other);
    assert_int_equal(search_of(pool)->since, 0);
    waiting_child_end(child);
}

/* An adopted process carries no lease: its number is what is known, while it lives. */
static void an_adopted_process_is_a_root_of_the_search(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    struct job *job = hold(stage, child);

    job->adopted = true;
    lease_ending_begin(pool, job, LEASE_END_EXPIRED, STAGE_NOW + 10 * DURATION_SECOND);
    assert_int_equal(search_of(pool)->root_pid, child);
    assert_int_equal(search_of(pool)->since, 0);
    played_readers_say_nothing_left(pool->readers);
    assert_int_equal(waiting_child_await(child), SIGTERM);
    /* Once it has ended its number means nothing. */
    child = waiting_child_start();
    job = hold(stage, child);
    job->adopted = true;
    lease_ending_holder_gone(pool, job);
    assert_int_equal(search_of(pool)->root_pid, 0);
    waiting_child_end(child);
}

static void processes_that_are_left_keep_the_devices(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    pid_t left = waiting_child_start();
    struct job *job = hold(stage, child);

    pool_stage_journal(stage);
    waiting_child_end(child);
    waiting_child_stop(left);
    lease_ending_holder_gone(pool, job);
    /* A later daemon need not know of the search, but of its result. */
    assert_contains_not(pool_stage_journal(stage), "job");
    assert_false(pool->has_looked);
    answer_search(pool, &left, 1, READER_OURS);
    assert_int_equal(job->state, JOB_DRAINING);
    assert_true(pool->has_looked);
    assert_true(list_is_empty(&pool->looks));
    assert_true(is_taken(pool, 0));
    assert_contains(pool_stage_journal(stage), ", draining");
    assert_contains(pool_stage_log(stage), "draining id=1\n");
    /* SIGCONT lets a stopped process get SIGTERM. */
    assert_int_equal(waiting_child_await(left), SIGTERM);
    /* The holder's end is known: it does nothing more. */
    lease_ending_holder_gone(pool, job);
    assert_int_equal(job->state, JOB_DRAINING);
}

static void a_process_that_ignores_sigterm_is_killed(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    pid_t stubborn;

    signal(SIGTERM, SIG_IGN);
    stubborn = waiting_child_start();
    signal(SIGTERM, SIG_DFL);
    lease_ending_holder_gone(pool, hold(stage, child));
    answer_search(pool, &stubborn, 1, READER_OURS);
    pool_stage_go_on(stage, pool->rules.grace - 1);
    assert_runs(stubborn);
    pool_stage_go_on(stage, 1);
    assert_int_equal(waiting_child_await(stubborn), SIGKILL);
    waiting_child_end(child);
}

/* The driver is asked beside the reader, not after it: the devices are blocked from here on. */
static void the_devices_are_looked_at_meanwhile(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    struct job *job = hold(stage, child);

    assert_int_equal(probe_poll_create(&pool->probe_poll, &(struct probe_poll_settings){0}, NULL),
                     0);
    lease_ending_holder_gone(pool, job);
    assert_true(handover_is_unasked(pool));
    handover_ask(pool, NULL);
    handover_looked(pool);
    assert_true(is_taken(pool, 0));
    played_readers_say_nothing_left(pool->readers);
    /* That report was late enough. */
    assert_false(is_taken(pool, 0));
    assert_false(handover_is_pending(pool));
    probe_poll_destroy(pool->probe_poll);
    pool->probe_poll = NULL;
    waiting_child_end(child);
}

static bool asks(struct pool_stage *stage)
{
    return !played_readers_are_idle(stage->pool.readers);
}

/* When the last process has ended, a further search shows whether it started others. */
static void the_last_process_frees_the_devices(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    pid_t left = waiting_child_start();
    struct job *job = hold(stage, child);

    waiting_child_end(child);
    pool_stage_run(stage, asks);
    assert_int_equal(job->state, JOB_LOOKING);
    answer_search(pool, &left, 1, READER_OURS);
    assert_int_equal(job->state, JOB_DRAINING);
    pool_stage_run(stage, asks);
    assert_int_equal(job->state, JOB_DRAINING);
    assert_int_equal(waiting_child_await(left), SIGTERM);
    answer_search(pool, NULL, 0, READER_OURS);
    assert_int_equal(pool->job_count, 0);
    assert_false(is_taken(pool, 0));
}

static bool has_no_leftovers(struct pool_stage *stage)
{
    const struct job *job = job_of_id(&stage->pool, 1);

    if (asks(stage))
        answer_search(&stage->pool, NULL, 0, READER_OURS);
    return job->guard->leftovers == NULL;
}

/* While the holder takes its time, what it had started may end: a later search begins anew. */
static void a_holder_may_outlive_its_processes(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    pid_t other = waiting_child_start();
    struct job *job = hold(stage, child);

    waiting_child_stop(child);
    lease_ending_begin(pool, job, LEASE_END_EXPIRED,
                       pool_clock_now(&pool->clock) + DURATION_MINUTE);
    answer_search(pool, &other, 1, READER_OURS);
    assert_int_equal(waiting_child_await(other), SIGTERM);
    pool_stage_run(stage, has_no_leftovers);
    assert_int_equal(job->state, JOB_ENDING);
    lease_ending_force(pool, job);
    assert_true(asks(stage));
    answer_search(pool, NULL, 0, READER_OURS);
    assert_int_equal(waiting_child_await(child), SIGKILL);
}

/* The loop sees the end of a holder before anything else of the turn. */
static void a_holders_exit_code_is_the_leases(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = fork();
    struct reader_answer answer = {.exit_code = optional_number_of(3)};
    struct job *job;
    uint64_t id;

    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        raise(SIGSTOP);
        _exit(3);
    }
    assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
    job = hold(stage, child);
    id = job->by_id.id;
    assert_true(job->guard->process.first);
    kill(child, SIGCONT);
    pool_stage_run(stage, asks);
    assert_true(search_of(pool)->wants_exit_code || job->exit_code == 3);
    played_readers_answer(played_readers_query(pool->readers, READER_LEFTOVERS), &answer);
    assert_int_equal(job_find_ended(pool, id)->exit_code.value, 3);
    assert_int_equal(job_find_ended(pool, id)->end, LEASE_END_DIED);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* A code that the reader saw of a number that was used again is not the holder's. */
static void a_reaped_holder_has_no_exit_code_by_number(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    struct job *job = hold(stage, child);
    struct reader_answer answer = {.exit_code = optional_number_of(3)};
    uint64_t id = job->by_id.id;

    waiting_child_end(child);
    pool_stage_run(stage, asks);
    played_readers_answer(played_readers_query(pool->readers, READER_LEFTOVERS), &answer);
    assert_true(!job_find_ended(pool, id)->exit_code.known ||
                job_find_ended(pool, id)->exit_code.value == 128 + SIGKILL);
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
    played_readers_say_nothing_left(pool->readers);
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

#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, pool_stage_begin, pool_stage_end)
#define LIVE(test)     cmocka_unit_test_setup_teardown(test, begin_live, pool_stage_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_STAGE(a_client_gets_notice_and_grace),
        ON_STAGE(the_sooner_end_counts),
        ON_STAGE(a_process_without_a_client_gets_sigterm),
        ON_STAGE(a_client_that_hangs_up_after_its_notice_gets_sigterm),
        ON_STAGE(after_the_grace_all_processes_are_killed),
        ON_STAGE(a_holder_of_another_user_gets_no_signal),
        ON_STAGE(a_connections_lease_ends_at_once),
        ON_STAGE(a_reservation_ends_without_grace),
        ON_STAGE(the_search_names_the_lease),
        ON_STAGE(a_short_lease_leaves_nothing_that_is_old),
        ON_STAGE(an_adopted_process_is_a_root_of_the_search),
        ON_STAGE(processes_that_are_left_keep_the_devices),
        ON_STAGE(a_process_that_ignores_sigterm_is_killed),
        ON_STAGE(the_devices_are_looked_at_meanwhile),
        LIVE(a_holder_may_outlive_its_processes),
        LIVE(the_last_process_frees_the_devices),
        LIVE(a_holders_exit_code_is_the_leases),
        LIVE(a_reaped_holder_has_no_exit_code_by_number),
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
