/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/leases/holder_identity.h"

#include <unistd.h>

#include "base/text/quantity.h"
#include "daemon/core/pidfd.h"
#include "daemon/leases/lease_ending.h"
#include "support/daemons/played_readers.h"
#include "support/daemons/pool_stage.h"
#include "support/daemons/waiting_child.h"

static void a_process_from_before_the_claim_is_the_holder(void **state)
{
    (void)state;
    assert_true(holder_identity_matches(5 * DURATION_SECOND, 6 * DURATION_SECOND, 0));
    assert_true(holder_identity_matches(5 * DURATION_SECOND, 5 * DURATION_SECOND, 0));
    assert_false(holder_identity_matches(5 * DURATION_SECOND + 1, 5 * DURATION_SECOND, 0));
    /* The clock cannot have been negative. */
    assert_false(holder_identity_matches(1, -1, 0));
}

static void the_start_that_a_former_daemon_wrote_decides(void **state)
{
    uint64_t tick = (uint64_t)DURATION_SECOND / (uint64_t)sysconf(_SC_CLK_TCK);

    (void)state;
    assert_true(holder_identity_matches(7 * tick, 0, 7));
    assert_true(holder_identity_matches(7 * tick + tick - 1, 0, 7));
    assert_false(holder_identity_matches(8 * tick, DURATION_MINUTE, 7));
    assert_false(holder_identity_matches(6 * tick, DURATION_MINUTE, 7));
}

/* ---- With a pool ---- */

/* Users who have the test's uid as a subordinate one, so that its children may be theirs. */
#define USER  (geteuid() + 1)
#define OTHER (geteuid() + 2)

static void give_uid(struct pool_stage *stage, uint32_t owner)
{
    struct subordinate_range *range = vector_append(&stage->pool.accounts.ranges);

    assert_non_null(range);
    *range = (struct subordinate_range){.owner = owner, .first = geteuid(), .last = geteuid()};
}

/* A restored lease that this process may hold. */
static struct job *restore(struct pool_stage *stage, uint32_t uid, pid_t pid)
{
    struct job *job = pool_stage_claim(
        stage, &(struct stage_claim){.hold = LEASE_HOLD_PROCESS, .uid = uid, .pid = pid});

    assert_true(lease_ending_watch(&stage->pool, job, pidfd_open_process(pid)));
    job->guard->is_unconfirmed = true;
    give_uid(stage, uid);
    return job;
}

/* Answers the oldest question about these processes: each runs since `started`. */
static void answer(struct pool_stage *stage, const pid_t *pids, size_t count,
                   enum reader_state found, uint64_t started)
{
    struct reader_answer facts = {0};

    for (size_t i = 0; i < count; i++) {
        struct reader_process *process = played_readers_add(&facts, pids[i], found);

        process->started = started;
        process->container = strdup("docker-12");
    }
    played_readers_answer(played_readers_query(stage->pool.readers, READER_DESCRIBE), &facts);
}

static void a_process_of_before_the_claim_is_confirmed(void **state)
{
    struct pool_stage *stage = *state;
    pid_t child = waiting_child_start();
    const struct job *job = restore(stage, USER, child);

    holder_identity_confirm(&stage->pool);
    answer(stage, &child, 1, READER_FOUND, STAGE_LOOP_NOW - 5);
    assert_false(job->guard->is_unconfirmed);
    assert_int_equal(job->holder->began, STAGE_LOOP_NOW - 5);
    assert_null(job->guard->container); /* it was not adopted */
    assert_false(list_is_linked(&stage->pool.identity_timer.in_loop));
    assert_int_equal(job->state, JOB_HELD);
    waiting_child_end(child);
}

/* The number was used again while no daemon ran: its process keeps running, the lease ends. */
static void a_later_process_is_not_the_holder(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();

    restore(stage, USER, child);
    holder_identity_confirm(pool);
    answer(stage, &child, 1, READER_FOUND, STAGE_LOOP_NOW + 5);
    assert_contains(pool_stage_log(stage), "holder id=1 what=gone\n");
    played_readers_say_nothing_left(pool->readers);
    assert_int_equal(pool->job_count, 0);
    assert_int_equal(kill(child, 0), 0);
    waiting_child_end(child);
}

/* One question for each user, so that one user's processes delay no other user's. */
static void each_user_has_one_question(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    const pid_t both[] = {child, child};
    const struct reader_query *query;

    restore(stage, USER, child);
    restore(stage, OTHER, child);
    restore(stage, USER, child);
    restore(stage, USER, child)->guard->is_unconfirmed = false;
    holder_identity_confirm(pool);
    holder_identity_confirm(pool); /* asks no question again */
    assert_int_equal(pool->readers->asked, 2);
    query = played_readers_query(pool->readers, READER_DESCRIBE);
    assert_int_equal(query->uid, USER);
    assert_int_equal(query->request.pids.count, 2);
    assert_true(query->request.identity_only);
    answer(stage, both, 2, READER_FOUND, 5);
    query = played_readers_query(pool->readers, READER_DESCRIBE);
    assert_int_equal(query->uid, OTHER);
    assert_int_equal(query->request.pids.count, 1);
    answer(stage, both, 1, READER_FOUND, 5);
    list_for_each (link, &pool->jobs)
        assert_false(container_of(link, struct job, in_pool)->guard->is_unconfirmed);
    waiting_child_end(child);
}

static void answer_stalled(struct pool_stage *stage, pid_t pid, struct optional_number uid)
{
    struct reader_answer facts = {0};

    played_readers_add(&facts, pid, READER_STALLED)->uid = uid;
    played_readers_answer(played_readers_query(stage->pool.readers, READER_DESCRIBE), &facts);
}

/* No more will be known of it than its user, and its lease must have an end. */
static void a_process_that_stalls_is_the_holder_by_its_user(void **state)
{
    struct pool_stage *stage = *state;
    pid_t child = waiting_child_start();
    const struct job *job = restore(stage, USER, child);

    holder_identity_confirm(&stage->pool);
    answer_stalled(stage, child, optional_number_of(geteuid()));
    assert_false(job->guard->is_unconfirmed);
    assert_int_equal(job->holder->began, 0);
    assert_int_equal(job->state, JOB_HELD);
    waiting_child_end(child);
}

static void a_process_of_another_user_that_stalls_is_not(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();

    restore(stage, USER, child);
    restore(stage, USER, child);
    holder_identity_confirm(pool);
    played_readers_query(pool->readers, READER_DESCRIBE)->request.pids.count = 1;
    answer_stalled(stage, child, optional_number_of(OTHER));
    assert_contains(pool_stage_log(stage), "holder id=1 what=gone\n");
    played_readers_say_nothing_left(pool->readers);
    assert_int_equal(pool->job_count, 1);
    assert_int_equal(kill(child, 0), 0);
    waiting_child_end(child);
}

/* Returns a child that is not root's. */
static pid_t start_stranger(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    assert_true(pid > 0);
    return pid;
}

static void no_reader_touches_another_users_process(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = start_stranger();
    uint32_t uid = 0;
    int descriptor = pidfd_open_process(child);

    for (int i = 0; i < 10000 && uid == 0; i++) {
        assert_true(pidfd_find_user(descriptor, child, &uid));
        usleep(100);
    }
    close(descriptor);
    restore(stage, USER, child);
    vector_finish(&pool->accounts.ranges);
    holder_identity_confirm(pool);
    assert_null(played_readers_find(pool->readers, READER_DESCRIBE));
    assert_contains(pool_stage_log(stage), "holder id=1 what=gone\n");
    played_readers_say_nothing_left(pool->readers);
    assert_int_equal(pool->job_count, 0);
    assert_int_equal(kill(child, 0), 0);
    waiting_child_end(child);
}

/* As for a user with very many stalled processes. */
static void readers_that_never_answer_leave_it_to_the_user(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    const struct job *job = restore(stage, USER, child);

    holder_identity_confirm(pool);
    for (int i = 0; i < 5; i++) {
        assert_true(job->guard->is_unconfirmed);
        played_readers_answer(played_readers_query(pool->readers, READER_DESCRIBE), NULL);
        pool_stage_go_on(stage, DURATION_SECOND);
    }
    assert_false(job->guard->is_unconfirmed);
    assert_true(played_readers_are_idle(pool->readers));
    waiting_child_end(child);
}

/* Facts of a process that has ended since may be another process's. */
static void facts_of_an_ended_process_mean_nothing(void **state)
{
    struct pool_stage *stage = *state;
    pid_t child = waiting_child_start();
    const struct job *job = restore(stage, USER, child);

    holder_identity_confirm(&stage->pool);
    waiting_child_end(child);
    answer(stage, &child, 1, READER_GONE, 0);
    assert_true(job->guard->is_unconfirmed);
    assert_int_equal(job->state, JOB_HELD);
}

/* The lease ended while its holder was asked about. */
static void an_answer_may_come_too_late(void **state)
{
    struct pool_stage *stage = *state;
    pid_t child = waiting_child_start();

    job_free(&stage->pool, restore(stage, USER, child));
    restore(stage, USER, child);
    holder_identity_confirm(&stage->pool);
    job_free(&stage->pool, job_of_id(&stage->pool, 2));
    answer(stage, &child, 1, READER_FOUND, 5);
    assert_int_equal(stage->pool.job_count, 0);
    /* So may the message that there is none. */
    restore(stage, USER, child);
    restore(stage, OTHER, child);
    holder_identity_confirm(&stage->pool);
    job_free(&stage->pool, job_of_id(&stage->pool, 3));
    played_readers_answer(played_readers_query(stage->pool.readers, READER_DESCRIBE), NULL);
    waiting_child_end(child);
}

static void an_adopted_process_may_have_a_container(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    struct job *job = restore(stage, USER, child);
    struct reader_answer facts = {0};
    struct reader_process *found;

    job->adopted = true;
    holder_identity_confirm(pool);
    assert_false(played_readers_query(pool->readers, READER_DESCRIBE)->request.identity_only);
    found = played_readers_add(&facts, child, READER_FOUND);
    found->started = 5;
    found->container = strdup("docker-12");
    played_readers_answer(played_readers_query(pool->readers, READER_DESCRIBE), &facts);
    assert_string_equal(job->guard->container, "docker-12");
    waiting_child_end(child);
}

/* A new lease's holder needs no confirmation, but its start shows what may be left of it. */
/* Without readers nothing is known: the lease goes on as it is, and they are asked again later. */
static void readers_that_cannot_say_are_asked_again(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    const struct job *job = restore(stage, USER, child);
    const struct job *other = restore(stage, OTHER, child);

    holder_identity_confirm(pool);
    played_readers_answer(played_readers_query(pool->readers, READER_DESCRIBE), NULL);
    assert_true(job->guard->is_unconfirmed);
    played_readers_answer(played_readers_query(pool->readers, READER_DESCRIBE), NULL);
    assert_true(other->guard->is_unconfirmed);
    pool_stage_go_on(stage, DURATION_SECOND - 1);
    assert_true(played_readers_are_idle(pool->readers));
    pool_stage_go_on(stage, 1);
    answer(stage, &child, 1, READER_FOUND, 5);
    assert_false(job->guard->is_unconfirmed);
    answer(stage, &child, 1, READER_FOUND, 5);
    assert_false(other->guard->is_unconfirmed);
    pool_stage_go_on(stage, DURATION_MINUTE);
    assert_true(played_readers_are_idle(pool->readers));
    waiting_child_end(child);
}

/* The daemon ends while a question is out. */
static void a_question_may_outlive_the_jobs(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();

    restore(stage, USER, child);
    holder_identity_confirm(pool);
    pool_finish(pool);
    assert_false(list_is_linked(&pool->identity_timer.in_loop));
    assert_int_equal(pool_init(pool, NULL), 0);
    waiting_child_end(child);
}

/* So it is without memory for the question. */
static void a_question_without_memory_is_asked_again(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    pid_t child = waiting_child_start();
    const struct job *job = restore(stage, USER, child);

    pool->readers->has_no_memory = true;
    holder_identity_confirm(pool);
    assert_true(played_readers_are_idle(pool->readers));
    pool->readers->has_no_memory = false;
    pool_stage_go_on(stage, DURATION_SECOND);
    answer(stage, &child, 1, READER_FOUND, 5);
    assert_false(job->guard->is_unconfirmed);
    waiting_child_end(child);
}

#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, pool_stage_begin, pool_stage_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_from_before_the_claim_is_the_holder),
        cmocka_unit_test(the_start_that_a_former_daemon_wrote_decides),
        ON_STAGE(a_process_of_before_the_claim_is_confirmed),
        ON_STAGE(a_later_process_is_not_the_holder),
        ON_STAGE(each_user_has_one_question),
        ON_STAGE(a_process_that_stalls_is_the_holder_by_its_user),
        ON_STAGE(a_process_of_another_user_that_stalls_is_not),
        ON_STAGE(no_reader_touches_another_users_process),
        ON_STAGE(readers_that_never_answer_leave_it_to_the_user),
        ON_STAGE(facts_of_an_ended_process_mean_nothing),
        ON_STAGE(an_answer_may_come_too_late),
        ON_STAGE(an_adopted_process_may_have_a_container),
        ON_STAGE(readers_that_cannot_say_are_asked_again),
        ON_STAGE(a_question_may_outlive_the_jobs),
        ON_STAGE(a_question_without_memory_is_asked_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
