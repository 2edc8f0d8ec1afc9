/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/leases/job.h"

#include <string.h>

#include "base/count.h"
#include "daemon/leases/mps_events.h"
#include "daemon/leases/pool_news.h"
#include "daemon/leases/prolog_epilog.h"
#include "support/daemons/pool_stage.h"
#include "support/failing_allocator.h"

static struct holder *make_holder(uint32_t uid, uint64_t parent)
{
    struct holder *holder = job_holder_new(uid, 4711, parent, "train --fast");

    assert_non_null(holder);
    return holder;
}

/* Makes a job that waits, with this id and token. */
static struct job *make_job(struct pool *pool, struct connection *connection, uint64_t id,
                            uint64_t high, uint64_t low)
{
    struct holder *holder = make_holder(STAGE_USER, 0);
    struct job *job = job_new(pool, connection, holder);

    assert_non_null(job);
    job_holder_release(holder);
    job->by_token.id = high;
    job->token_low = low;
    job_add(pool, job, id, 0);
    return job;
}

static size_t waiting(const struct job *job)
{
    return job->holder->quota->waiting;
}

/* ---- Maps ---- */

static void a_job_is_found_by_id_lease_and_token(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct job *job = make_job(pool, NULL, 7, 1, 2);
    const uint64_t token[2] = {1, 2};

    assert_ptr_equal(job_of_id(pool, 7), job);
    assert_ptr_equal(job_of_token(pool, token), job);
    assert_null(job_of_lease(pool, 9));
    assert_int_equal(job->exit_code, NO_EXIT_CODE);
    job_set_lease(pool, job, 9);
    assert_ptr_equal(job_of_lease(pool, 9), job);
    assert_int_equal(pool->lease_count, 1);
    job_unset_lease(pool, job);
    assert_null(job_of_lease(pool, 9));
    assert_int_equal(pool->lease_count, 0);
    job_free(pool, job);
    assert_null(job_of_id(pool, 7));
    assert_null(job_of_token(pool, token));
    assert_int_equal(pool->job_count, 0);
    assert_true(list_is_empty(&pool->jobs));
}

/* The map of tokens has their first halves only. */
static void tokens_with_an_equal_half_differ(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct job *jobs[3];

    for (uint64_t i = 0; i < 3; i++)
        jobs[i] = make_job(pool, NULL, i + 1, 5, i);
    for (uint64_t i = 0; i < 3; i++)
        assert_ptr_equal(job_of_token(pool, (uint64_t[]){5, i}), jobs[i]);
    assert_null(job_of_token(pool, (uint64_t[]){5, 3}));
    assert_null(job_of_token(pool, (uint64_t[]){6, 0}));
    /* A token in the same bucket. */
    make_job(pool, NULL, 4, 5 + pool->by_token.mask + 1, 9);
    assert_null(job_of_token(pool, (uint64_t[]){5 + pool->by_token.mask + 1, 0}));
    job_free(pool, jobs[1]);
    assert_null(job_of_token(pool, (uint64_t[]){5, 1}));
    assert_ptr_equal(job_of_token(pool, (uint64_t[]){5, 0}), jobs[0]);
}

/* A restored job of an older daemon may have no token. No message with a token must find it. */
static void a_job_without_a_token_is_found_by_none(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;

    make_job(pool, NULL, 1, 0, 0);
    assert_null(job_of_token(pool, (uint64_t[]){0, 0}));
}

/* Memory of a freed job is used again, without anything of its past. */
static void a_freed_job_leaves_nothing(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct job *job = make_job(pool, client.connection, 1, 1, 1);
    struct job *next;

    job_set_lease(pool, job, 1);
    assert_non_null(job_lease_watch(pool, job));
    job_keep_container(pool, job, "docker-7");
    job->end = LEASE_END_EXPIRED;
    job->adopted = job->unprepared = true;
    assert_int_equal(client.connection->job_count, 1);
    job_free(pool, job);
    assert_int_equal(client.connection->job_count, 0);
    assert_true(list_is_empty(&client.connection->jobs));
    next = make_job(pool, NULL, 2, 2, 2);
    assert_ptr_equal(next, job);
    assert_null(next->guard);
    assert_null(next->connection);
    assert_int_equal(next->end, 0);
    assert_false(next->adopted || next->unprepared);
    assert_int_equal(next->by_lease.id, 0);
    pool_stage_hang_up(stage, &client);
}

static void there_may_be_very_many_jobs(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;

    for (uint64_t i = 1; i <= 1000; i++)
        make_job(pool, NULL, i, i, i);
    assert_int_equal(pool->job_count, 1000);
    for (uint64_t i = 1; i <= 1000; i++)
        assert_int_equal(job_of_id(pool, i)->by_token.id, i);
    assert_int_equal(pool->job_chunks.count, 16);
}

static size_t count_spares(const struct pool *pool)
{
    const struct id_link *link = pool->spare_jobs == NULL ? NULL : &pool->spare_jobs->by_id;
    size_t count = 0;

    for (; link != NULL; link = link->next)
        count++;
    return count;
}

static void without_memory_there_is_no_job(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct holder *holder = make_holder(STAGE_USER, 0);
    struct job *job;

    for (unsigned long n = 1; n <= 3; n++) {
        failing_allocator_start(n);
        job = job_new(pool, NULL, holder);
        assert_true(failing_allocator_stop());
        assert_null(job);
        assert_int_equal(holder->users, 1);
    }
    assert_int_equal(pool->job_chunks.count, 1);
    assert_int_equal(count_spares(pool), 64);
    failing_allocator_start(2);
    assert_null(job_holder_new(1, 2, 3, "sleep"));
    assert_true(failing_allocator_stop());
    job = job_new(pool, NULL, holder);
    assert_non_null(job);
    failing_allocator_start(1);
    assert_null(job_lease_watch(pool, job));
    job_keep_container(pool, job, "docker-7");
    assert_true(failing_allocator_stop());
    assert_null(job->guard);
    job_free(pool, job);
    assert_int_equal(holder->users, 1);
    job_holder_release(holder);
}

/* ---- Users ---- */

static void a_waiting_job_counts_for_its_user(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct job *one = make_job(pool, NULL, 1, 1, 1);
    const struct job *other = make_job(pool, NULL, 2, 2, 2);

    assert_int_equal(waiting(other), 2);
    job_set_lease(pool, one, 1);
    assert_int_equal(waiting(other), 1);
    job_unset_lease(pool, one);
    assert_int_equal(waiting(other), 2);
    job_free(pool, one);
    assert_int_equal(waiting(other), 1);
}

/* Leases within leases are limited by nothing else, so they count until they end. */
static void a_lease_within_a_lease_counts_until_its_end(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct holder *holder = make_holder(STAGE_USER, 1);
    const struct job *outer = make_job(pool, NULL, 1, 1, 1);
    struct job *inner = job_new(pool, NULL, holder);

    job_holder_release(holder);
    inner->kib = 3;
    job_add(pool, inner, 2, 2);
    assert_int_equal(pool->inner_count, 1);
    assert_int_equal(waiting(outer), 2);
    assert_int_equal(outer->holder->quota->waiting_bytes, 3 * 1024);
    job_free(pool, inner);
    assert_int_equal(pool->inner_count, 0);
    assert_int_equal(waiting(outer), 1);
    assert_int_equal(outer->holder->quota->waiting_bytes, 0);
}

static void a_holder_lives_as_long_as_its_jobs(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct holder *holder = make_holder(STAGE_USER, 0);
    struct job *one = job_new(pool, NULL, holder);
    struct job *other = job_new(pool, NULL, holder);

    assert_int_equal(holder->users, 3);
    assert_int_equal(holder->wait, TIME_NEVER);
    assert_int_equal(holder->quota->references, 1);
    assert_int_equal(holder->account, STAGE_USER);
    job_holder_release(holder);
    job_free(pool, one);
    assert_int_equal(other->holder->users, 1);
    assert_string_equal(other->holder->command, "train --fast");
    job_free(pool, other);
    job_holder_release(NULL);
}

/* A user of a container counts as the user that the container belongs to. */
static void a_container_counts_for_its_owner(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct subordinate_range *range = vector_append(&pool->accounts.ranges);
    struct holder *holder = make_holder(100007, 0);
    struct job *inside;
    const struct job *outside = make_job(pool, NULL, 1, 1, 1);

    assert_non_null(range);
    *range = (struct subordinate_range){.first = 100000, .last = 165535, .owner = STAGE_USER};
    inside = job_new(pool, NULL, holder);
    job_holder_release(holder);
    assert_int_equal(inside->holder->uid, 100007);
    assert_int_equal(inside->holder->account, STAGE_USER);
    assert_ptr_equal(inside->holder->quota, outside->holder->quota);
    job_free(pool, inside);
}

/* ---- Clients ---- */

static void a_client_may_take_over_a_job(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client one = pool_stage_connect(stage, STAGE_USER);
    struct stage_client other = pool_stage_connect(stage, STAGE_USER);
    struct job *job = make_job(pool, one.connection, 1, 1, 1);

    job->restored = true;
    job_attach(job, other.connection, 12);
    assert_ptr_equal(job->connection, other.connection);
    assert_int_equal(job->number, 12);
    assert_false(job->restored);
    assert_int_equal(one.connection->job_count, 0);
    assert_int_equal(other.connection->job_count, 1);
    job_attach(job, other.connection, 13);
    assert_int_equal(other.connection->job_count, 1);
    job_detach_all(other.connection);
    assert_null(job->connection);
    assert_int_equal(other.connection->job_count, 0);
    assert_ptr_equal(job_of_id(pool, 1), job);
    pool_stage_hang_up(stage, &one);
    pool_stage_hang_up(stage, &other);
}

/* A client that dies must not be granted, by its own waiting claim, what it has just left. */
static void a_dead_client_gets_nothing_of_what_it_leaves(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    const struct stage_claim all = {.words = "gpus=4", .connection = client.connection};
    const struct job *holds = pool_stage_claim(stage, &all);
    const struct job *waits = pool_stage_claim(stage, &all);
    uint64_t held = holds->by_id.id;
    uint64_t wanted = waits->by_id.id;
    const struct job *stranger =
        pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=4", .uid = STAGE_OTHER});

    stage->closed = job_lose_client;
    pool_stage_hang_up(stage, &client);
    assert_null(job_of_id(pool, held));
    assert_null(job_of_id(pool, wanted));
    assert_int_not_equal(stranger->by_lease.id, 0);
    assert_int_equal(job_find_ended(pool, held)->end, LEASE_END_DIED);
    assert_int_equal(job_find_ended(pool, wanted)->end, LEASE_END_CANCELLED);
}

static void a_process_keeps_its_lease_without_its_client(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    const struct job *by_process = pool_stage_claim(
        stage, &(struct stage_claim){.hold = LEASE_HOLD_PROCESS, .connection = client.connection});
    const struct job *by_nothing = pool_stage_claim(
        stage, &(struct stage_claim){.hold = LEASE_HOLD_NOTHING, .connection = client.connection});
    struct job *unprepared = pool_stage_claim(
        stage, &(struct stage_claim){.hold = LEASE_HOLD_PROCESS, .connection = client.connection});
    uint64_t id = unprepared->by_id.id;

    unprepared->unprepared = true;
    stage->closed = job_lose_client;
    pool_stage_hang_up(stage, &client);
    assert_int_equal(by_process->state, JOB_HELD);
    assert_null(by_process->connection);
    assert_int_equal(by_nothing->state, JOB_HELD);
    /* The client was not told of this one. */
    assert_null(job_of_id(pool, id));
}

/* ---- Ended jobs ---- */

static void remember(struct pool *pool, uint64_t id, uint32_t uid)
{
    job_remember_ended(pool, &(struct ended_job){.id = id, .uid = uid, .end = LEASE_END_RELEASED});
}

static void ended_jobs_are_remembered(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;

    assert_null(job_find_ended(pool, 0));
    remember(pool, 5, STAGE_USER);
    assert_int_equal(job_find_ended(pool, 5)->uid, STAGE_USER);
    assert_null(job_find_ended(pool, 6));
    /* An unused entry is no ended job. */
    assert_null(job_find_ended(pool, 0));
}

/* A user who ends very many jobs forgets the oldest of them, and none of another user's. */
static void a_flood_replaces_its_own_oldest(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;

    remember(pool, 1, STAGE_OTHER);
    for (uint64_t id = 2; id < 2 + ENDED_KEPT; id++)
        remember(pool, id, STAGE_USER);
    assert_non_null(job_find_ended(pool, 2));
    remember(pool, 5000, STAGE_USER);
    assert_null(job_find_ended(pool, 2));
    assert_non_null(job_find_ended(pool, 3));
    assert_non_null(job_find_ended(pool, 5000));
    assert_non_null(job_find_ended(pool, 1));
}

static int begin(void **state)
{
    *state = pool_stage_make(&(struct pool_stage_settings){0});
    return 0;
}

/* Parts that learn of the ends of leases. */
static int begin_ends(void **state)
{
    static const struct pool_part parts[] = {{pool_news_init, pool_news_finish},
                                             {prolog_epilog_init, prolog_epilog_finish},
                                             {mps_events_init, mps_events_finish}};

    *state =
        pool_stage_make(&(struct pool_stage_settings){.parts = parts, .part_count = COUNT(parts)});
    return 0;
}

#define BARE(test)      cmocka_unit_test_setup_teardown(test, begin, pool_stage_end)
#define WITH_ENDS(test) cmocka_unit_test_setup_teardown(test, begin_ends, pool_stage_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BARE(a_job_is_found_by_id_lease_and_token),
        BARE(tokens_with_an_equal_half_differ),
        BARE(a_job_without_a_token_is_found_by_none),
        BARE(a_freed_job_leaves_nothing),
        BARE(there_may_be_very_many_jobs),
        BARE(without_memory_there_is_no_job),
        BARE(a_waiting_job_counts_for_its_user),
        BARE(a_lease_within_a_lease_counts_until_its_end),
        BARE(a_holder_lives_as_long_as_its_jobs),
        BARE(a_container_counts_for_its_owner),
        BARE(a_client_may_take_over_a_job),
        WITH_ENDS(a_dead_client_gets_nothing_of_what_it_leaves),
        WITH_ENDS(a_process_keeps_its_lease_without_its_client),
        BARE(ended_jobs_are_remembered),
        BARE(a_flood_replaces_its_own_oldest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
