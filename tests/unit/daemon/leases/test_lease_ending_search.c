/* SPDX-License-Identifier: Apache-2.0
 *
 * The search for the processes of a lease whose holder has ended.
 */
#include "support/unit.h"

#include "daemon/leases/lease_ending.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/leases/handover.h"
#include "support/daemons/held_leases.h"
#include "support/daemons/played_readers.h"
#include "support/daemons/pool_stage.h"
#include "support/daemons/waiting_child.h"

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
    lease_ending_holder_gone(pool, job);
    request = search_of(pool);
    assert_int_equal(request->uid, geteuid());
    assert_string_equal(request->socket, STAGE_SOCKET);
    assert_int_equal(request->holder_pid, child);
    assert_int_equal(request->since, STAGE_LOOP_NOW);
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

/* Processes with the lease in their environment are younger than the grant, whenever the claim was
 * made and the lease ends. */
static void older_processes_than_the_grant_do_not_matter(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    struct job *job;
    struct job *other;

    pool_stage_go_on(stage, DURATION_SECOND);
    job = hold(stage, child);
    other = hold(stage, child);
    lease_ending_holder_gone(pool, job);
    assert_int_equal(search_of(pool)->since, STAGE_LOOP_NOW + DURATION_SECOND);
    played_readers_say_nothing_left(pool->readers);
    pool_stage_go_on(stage, DURATION_MINUTE);
    lease_ending_holder_gone(pool, other);
    assert_int_equal(search_of(pool)->since, STAGE_LOOP_NOW + DURATION_SECOND);
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

/* Another process may have its number when the reader looks. */
static void an_adopted_process_that_has_ended_is_no_root(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    struct job *job = hold(stage, child);

    job->adopted = true;
    lease_ending_begin(pool, job, LEASE_END_EXPIRED, STAGE_NOW + 10 * DURATION_SECOND);
    assert_int_equal(search_of(pool)->root_pid, child);
    lease_ending_holder_gone(pool, job);
    waiting_child_stop(child);
    answer_search(pool, &child, 1, READER_OURS);
    assert_int_equal(search_of(pool)->root_pid, 0);
    played_readers_say_nothing_left(pool->readers);
    assert_int_equal(pool->job_count, 0);
    assert_false(waiting_child_has_signal(child, SIGTERM));
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

/* ---- Processes that may be of the lease ---- */

/* Answers all searches of the next time in this way. */
static void answer_searches(struct pool_stage *stage, pid_t left, enum reader_state found,
                            int64_t duration)
{
    for (int64_t step = DURATION_SECOND / 200; duration > 0; duration -= step) {
        if (played_readers_find(stage->pool.readers, READER_LEFTOVERS) != NULL)
            answer_search(&stage->pool, &left, 1, found);
        pool_stage_go_on(stage, step);
    }
}

/* Any process of the user may stay inside exec. If it is on a device, the driver lists it. */
static void a_process_inside_exec_keeps_no_device(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    struct job *job = hold(stage, getpid());

    lease_ending_holder_gone(pool, job);
    answer_searches(stage, child, READER_LATER, DURATION_SECOND / 25);
    assert_int_equal(job->state, JOB_LOOKING);
    answer_searches(stage, child, READER_LATER, DURATION_SECOND / 25);
    assert_int_equal(pool->job_count, 0);
    assert_false(is_taken(pool, 0));
    /* It is the lease's, in the end. */
    waiting_child_stop(child);
    answer_searches(stage, child, READER_OURS, DURATION_SECOND / 25);
    assert_true(waiting_child_has_signal(child, SIGTERM));
    pool_stage_go_on(stage, pool->rules.grace);
    assert_int_equal(waiting_child_await(child), SIGKILL);
    assert_false(list_is_empty(&pool->late_leases));
    played_readers_say_nothing_left(pool->readers);
}

/* Nor does one keep it that is still inside exec when the lease's processes have ended. */
static void a_process_inside_exec_is_not_watched_for_ever(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    struct job *job = hold(stage, getpid());

    lease_ending_holder_gone(pool, job);
    answer_searches(stage, child, READER_LATER, 6 * DURATION_SECOND);
    assert_int_equal(pool->job_count, 0);
    if (!played_readers_are_idle(pool->readers))
        played_readers_say_nothing_left(pool->readers);
    assert_true(list_is_empty(&pool->late_leases));
    assert_runs(child);
    waiting_child_end(child);
}

/* The last of several leases' processes are watched: descriptors are everybody's. */
static void only_a_few_leases_of_a_user_are_watched_on(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    size_t count = 0;

    for (int i = 0; i < 12; i++) {
        struct job *job = hold(stage, getpid());
        uint64_t id = job->by_id.id;

        lease_ending_holder_gone(pool, job);
        for (int turn = 0; turn < 40 && job_of_id(pool, id) != NULL; turn++) {
            while (played_readers_find(pool->readers, READER_LEFTOVERS) != NULL)
                answer_search(pool, &child, 1, READER_LATER);
            pool_stage_go_on(stage, DURATION_SECOND / 200);
        }
        assert_null(job_of_id(pool, id));
    }
    list_for_each (link, &pool->late_leases)
        count++;
    assert_int_equal(count, 8);
    waiting_child_end(child);
}

/* A container has a process without the lease's mark for seconds, and then uses the devices. */
static void a_container_that_is_starting_keeps_the_devices(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    struct job *job = hold(stage, getpid());

    lease_ending_holder_gone(pool, job);
    answer_searches(stage, child, READER_CONTAINER, DURATION_SECOND / 10);
    assert_int_equal(job->state, JOB_DRAINING);
    /* It becomes its program. */
    answer_searches(stage, child, READER_LATER, DURATION_SECOND / 10);
    assert_int_equal(job->state, JOB_DRAINING);
    waiting_child_stop(child);
    answer_searches(stage, child, READER_OURS, DURATION_SECOND / 100);
    assert_true(waiting_child_has_signal(child, SIGTERM));
    assert_int_equal(job->state, JOB_DRAINING);
    waiting_child_end(child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_STAGE(a_connections_lease_ends_at_once),
        ON_STAGE(a_reservation_ends_without_grace),
        ON_STAGE(the_search_names_the_lease),
        ON_STAGE(older_processes_than_the_grant_do_not_matter),
        ON_STAGE(an_adopted_process_is_a_root_of_the_search),
        ON_STAGE(an_adopted_process_that_has_ended_is_no_root),
        ON_STAGE(processes_that_are_left_keep_the_devices),
        ON_STAGE(a_process_that_ignores_sigterm_is_killed),
        ON_STAGE(the_devices_are_looked_at_meanwhile),
        LIVE(a_holder_may_outlive_its_processes),
        LIVE(the_last_process_frees_the_devices),
        LIVE(a_holders_exit_code_is_the_leases),
        LIVE(a_reaped_holder_has_no_exit_code_by_number),
        ON_STAGE(a_process_inside_exec_keeps_no_device),
        ON_STAGE(a_process_inside_exec_is_not_watched_for_ever),
        ON_STAGE(only_a_few_leases_of_a_user_are_watched_on),
        ON_STAGE(a_container_that_is_starting_keeps_the_devices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
