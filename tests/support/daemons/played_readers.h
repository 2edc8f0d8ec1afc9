/* SPDX-License-Identifier: Apache-2.0
 *
 * Lets a test play the readers of /proc: these functions take the place of
 * src/daemon/processes/reader_pool.c in the test program that includes this header, so that nothing
 * is started. The test takes the questions and answers them.
 */
#ifndef TESTS_PLAYED_READERS_H
#define TESTS_PLAYED_READERS_H

#include "support/unit.h"

#include <stdlib.h>

#include "base/list.h"
#include "daemon/core/pidfd.h"
#include "daemon/processes/reader_pool.h"
#include "reader/reader.h"

struct reader_query {
    struct list_link in_pool;
    uint32_t uid;
    struct reader_request request;
    void (*answered)(void *context, struct reader_answer *answer);
    void *context;
};

struct reader_pool {
    struct reader_pool_events events;
    struct list queries;            /* without an answer, oldest first */
    int asked;                      /* queries so far */
    uint32_t slow;                  /* this user's requests are slow; 0: nobody's */
    bool has_no_memory;             /* reader_pool_ask() fails */
    int64_t waited;                 /* for requests so far */
    struct stalled_process stalled; /* pid 0: none */
};

int reader_pool_create(struct loop *loop, const struct reader_pool_events *events,
                       struct reader_pool **ret_pool, struct berth_error *error)
{
    struct reader_pool *pool = calloc(1, sizeof(*pool));

    (void)loop;
    (void)error;
    if (pool == NULL)
        return BERTH_ERROR_MEMORY;
    pool->events = *events;
    list_init(&pool->queries);
    *ret_pool = pool;
    return 0;
}

static void played_readers_forget(struct reader_query *query)
{
    list_remove(&query->in_pool);
    reader_request_finish(&query->request);
    free(query);
}

/* Answers the query, which it frees; NULL: the readers cannot say. Finishes the answer. */
static inline void played_readers_answer(struct reader_query *query, struct reader_answer *answer)
{
    void (*answered)(void *context, struct reader_answer *answer) = query->answered;
    void *context = query->context;

    played_readers_forget(query);
    answered(context, answer);
    if (answer != NULL)
        reader_answer_finish(answer);
}

void reader_pool_destroy(struct reader_pool *pool)
{
    while (pool != NULL && !list_is_empty(&pool->queries))
        played_readers_answer(
            container_of(list_first(&pool->queries), struct reader_query, in_pool), NULL);
    free(pool);
}

struct reader_query *reader_pool_ask(struct reader_pool *pool, uint32_t uid,
                                     struct reader_request *request,
                                     void (*answered)(void *context, struct reader_answer *answer),
                                     void *context)
{
    struct reader_query *query = pool->has_no_memory ? NULL : calloc(1, sizeof(*query));

    if (query == NULL) {
        reader_request_finish(request);
        return NULL;
    }
    query->uid = uid;
    query->request = *request;
    *request = (struct reader_request){0};
    query->answered = answered;
    query->context = context;
    list_append(&pool->queries, &query->in_pool);
    pool->asked++;
    return query;
}

void reader_pool_cancel(struct reader_query *query)
{
    if (query != NULL)
        played_readers_forget(query);
}

void reader_pool_each_stalled(const struct reader_pool *pool,
                              void (*call)(void *context, const struct stalled_process *process),
                              void *context)
{
    if (pool->stalled.pid != 0)
        call(context, &pool->stalled);
}

bool reader_pool_is_slow(const struct reader_pool *pool, uint32_t uid)
{
    return pool->slow != 0 && pool->slow == uid;
}

int64_t reader_pool_waited(const struct reader_pool *pool)
{
    return pool->waited;
}

/* ---- For the test ---- */

/* Returns the oldest query of this kind without an answer; NULL: there is none. */
static inline struct reader_query *played_readers_find(const struct reader_pool *pool,
                                                       enum reader_question question)
{
    list_for_each (link, &pool->queries) {
        struct reader_query *query = container_of(link, struct reader_query, in_pool);

        if (query->request.question == question)
            return query;
    }
    return NULL;
}

/* Returns the oldest query of this kind without an answer. The test fails if there is none. */
static inline struct reader_query *played_readers_query(const struct reader_pool *pool,
                                                        enum reader_question question)
{
    struct reader_query *query = played_readers_find(pool, question);

    if (query == NULL)
        fail_msg("no reader was asked question %d", question);
    return query;
}

/* Returns whether no query waits for an answer. */
static inline bool played_readers_are_idle(const struct reader_pool *pool)
{
    return list_is_empty(&pool->queries);
}

/* Adds a process to an answer, with a pidfd if it runs. Returns it, to add facts. */
static inline struct reader_process *played_readers_add(struct reader_answer *answer, pid_t pid,
                                                        enum reader_state state)
{
    struct reader_process *process = vector_append(&answer->processes);

    assert_non_null(process);
    *process = (struct reader_process){
        .pid = (uint32_t)pid,
        .state = state,
        .descriptor = state == READER_GONE ? -1 : pidfd_open_process(pid),
    };
    process->has_descriptor = process->descriptor >= 0;
    return process;
}

/* Answers all queries for what is left of leases, at least one: nothing. */
static inline void played_readers_say_nothing_left(const struct reader_pool *pool)
{
    struct reader_query *query = played_readers_query(pool, READER_LEFTOVERS);

    while (query != NULL) {
        struct reader_answer answer = {0};

        played_readers_answer(query, &answer);
        query = played_readers_find(pool, READER_LEFTOVERS);
    }
}

#endif
