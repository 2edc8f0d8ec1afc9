/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/processes/reader_pool.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/id_map.h"
#include "base/list.h"
#include "daemon/processes/reader_pool_internal.h"
#include "daemon/processes/reader_slot.h"

/* ---- Users ---- */

static struct reader_user *find_user(struct reader_pool *pool, uint32_t uid)
{
    struct id_link *link = id_map_find(&pool->by_uid, uid);
    struct reader_user *user;

    if (link != NULL)
        return container_of(link, struct reader_user, by_uid);
    user = calloc(1, sizeof(*user));
    if (user == NULL)
        return NULL;
    user->by_uid.id = uid;
    list_init(&user->queries);
    id_map_add(&pool->by_uid, &user->by_uid);
    list_append(&pool->users, &user->in_pool);
    return user;
}

/* Frees the user if it has no queries and no penalty. */
static void release_user(struct reader_pool *pool, struct reader_user *user)
{
    if (user->query_count > 0 || user->penalty_until > loop_now(pool->loop))
        return;
    id_map_remove(&pool->by_uid, &user->by_uid);
    list_remove(&user->in_pool);
    free(user);
}

bool reader_pool_is_penalized(const struct reader_pool *pool, const struct reader_user *user)
{
    return user->penalty_until > loop_now(pool->loop);
}

void reader_pool_penalize(struct reader_pool *pool, struct reader_user *user)
{
    user->penalty_until = loop_now(pool->loop) + READER_POOL_PENALTY;
    pool->events.slowed(pool->events.context);
}

/* ---- Queries ---- */

static void free_query(struct reader_query *query)
{
    query->user->query_count--;
    list_remove(&query->in_user);
    reader_request_finish(&query->request);
    free(query);
}

/* Takes the query from its reader, which becomes free. */
static void detach_query(struct reader_query *query)
{
    if (query->slot == NULL)
        return;
    query->pool->waited += reader_slot_waited(query->slot);
    query->slot->query = NULL;
    query->slot = NULL;
    query->user->is_out = false;
}

void reader_pool_answer(struct reader_query *query, struct reader_answer *answer)
{
    struct reader_pool *pool = query->pool;
    struct reader_user *user = query->user;
    void (*answered)(void *, struct reader_answer *) = query->answered;
    void *context = query->context;

    detach_query(query);
    free_query(query);
    release_user(pool, user);
    if (answered != NULL)
        answered(context, answer);
}

struct reader_query *reader_pool_ask(struct reader_pool *pool, uint32_t uid,
                                     struct reader_request *request,
                                     void (*answered)(void *context, struct reader_answer *answer),
                                     void *context)
{
    struct reader_user *user = find_user(pool, uid);
    struct reader_query *query = user == NULL ? NULL : calloc(1, sizeof(*query));

    if (query == NULL) {
        reader_request_finish(request);
        if (user != NULL)
            release_user(pool, user);
        return NULL;
    }
    *query = (struct reader_query){
        .pool = pool,
        .user = user,
        .request = *request,
        .answered = answered,
        .context = context,
        .stall_factor = 1,
    };
    *request = (struct reader_request){0};
    user->query_count++;
    list_append(&user->queries, &query->in_user);
    reader_pool_serve(pool);
    return query;
}

void reader_pool_cancel(struct reader_query *query)
{
    struct reader_pool *pool;
    struct reader_user *user;

    if (query == NULL)
        return;
    if (query->slot != NULL) {
        /* The reader's answer arrives later and is dropped. */
        query->answered = NULL;
        return;
    }
    pool = query->pool;
    user = query->user;
    free_query(query);
    release_user(pool, user);
}

void reader_pool_put_back(struct reader_slot *slot)
{
    struct reader_query *query = slot->query;
    struct list *queries = query == NULL ? NULL : &query->user->queries;

    if (query == NULL)
        return;
    detach_query(query);
    list_insert_before(queries->ends.next, &query->in_user);
    if (query->answered == NULL)
        reader_pool_cancel(query);
}

/* ---- Stalled processes ---- */

static void stalled_process_ended(void *context)
{
    reader_pool_serve(context);
}

void reader_pool_each_stalled(const struct reader_pool *pool,
                              void (*call)(void *context, const struct stalled_process *process),
                              void *context)
{
    stalled_processes_each(&pool->stalled, call, context);
}

bool reader_pool_is_slow(const struct reader_pool *pool, uint32_t uid)
{
    struct id_link *link = id_map_find(&pool->by_uid, uid);

    return link != NULL &&
           container_of(link, struct reader_user, by_uid)->penalty_until > loop_now(pool->loop);
}

int64_t reader_pool_waited(const struct reader_pool *pool)
{
    int64_t waited = pool->waited;

    for (size_t i = 0; i < READER_POOL_READERS; i++) {
        if (pool->slots[i].query != NULL)
            waited += reader_slot_waited(&pool->slots[i]);
    }
    return waited;
}

/* ---- Turns ---- */

static size_t count_free_readers(struct reader_pool *pool, struct reader_slot **ret_first)
{
    size_t count = 0;

    for (size_t i = 0; i < READER_POOL_READERS; i++) {
        if (!pool->slots[i].is_open || pool->slots[i].query != NULL)
            continue;
        if (count++ == 0)
            *ret_first = &pool->slots[i];
    }
    return count;
}

/* Returns whether there is no reader and none will start soon. */
static bool is_hopeless(const struct reader_pool *pool)
{
    for (size_t i = 0; i < READER_POOL_READERS; i++) {
        if (pool->slots[i].is_open || pool->slots[i].failures < READER_POOL_FAILURES_MAX)
            return false;
    }
    return true;
}

/* Returns whether the user's next query must be answered by NULL instead of being sent. */
static bool is_refused(const struct reader_pool *pool, const struct reader_user *user)
{
    const struct reader_query *query =
        container_of(list_first(&user->queries), struct reader_query, in_user);

    return stalled_processes_count(&pool->stalled, (uint32_t)user->by_uid.id) >=
               READER_POOL_STALLED_MAX ||
           query->losses >= READER_POOL_FAILURES_MAX || is_hopeless(pool);
}

/* Returns the next user whose query may be sent now; NULL: none. */
static struct reader_user *find_next_user(struct reader_pool *pool, size_t free_count)
{
    list_for_each (link, &pool->users) {
        struct reader_user *user = container_of(link, struct reader_user, in_pool);

        if (list_is_empty(&user->queries) || user->is_out) {
            release_user(pool, user);
            continue;
        }
        if (is_refused(pool, user)) {
            loop_set_timer(pool->loop, &pool->hopeless, loop_now(pool->loop));
            continue;
        }
        if (free_count > (reader_pool_is_penalized(pool, user) ? 1U : 0U))
            return user;
    }
    return NULL;
}

/* Takes a reader from a user whose query takes long, if all readers work for such users and another
 * user waits. Returns whether it did. */
static bool take_reader_back(struct reader_pool *pool)
{
    struct reader_slot *longest = NULL;

    for (size_t i = 0; i < READER_POOL_READERS; i++) {
        struct reader_slot *slot = &pool->slots[i];

        if (!slot->is_open)
            continue;
        if (slot->query == NULL || !reader_pool_is_penalized(pool, slot->query->user))
            return false;
        if (longest == NULL || slot->progress.sent_at < longest->progress.sent_at)
            longest = slot;
    }
    /* With one free reader, only a user without a penalty is next. */
    if (longest == NULL || find_next_user(pool, 1) == NULL)
        return false;
    reader_slot_replace(longest);
    return true;
}

void reader_pool_serve(struct reader_pool *pool)
{
    struct reader_slot *slot;
    struct reader_user *user;

    do {
        slot = NULL;
        user = find_next_user(pool, count_free_readers(pool, &slot));
        if (user == NULL || slot == NULL)
            continue;
        list_remove(&user->in_pool);
        list_append(&pool->users, &user->in_pool);
        reader_slot_send(slot,
                         container_of(list_first(&user->queries), struct reader_query, in_user));
    } while ((user != NULL && slot != NULL) || take_reader_back(pool));
}

/* Answers the queries that no reader will take with NULL. */
static void give_up_queries(struct timer *timer)
{
    struct reader_pool *pool = container_of(timer, struct reader_pool, hopeless);
    struct list given_up;

    /* A callback may add further queries and free users. */
    list_init(&given_up);
    list_for_each (link, &pool->users) {
        struct reader_user *user = container_of(link, struct reader_user, in_pool);

        while (!list_is_empty(&user->queries) && !user->is_out && is_refused(pool, user)) {
            struct list_link *first = list_first(&user->queries);

            list_remove(first);
            list_append(&given_up, first);
        }
    }
    while (!list_is_empty(&given_up))
        reader_pool_answer(container_of(list_first(&given_up), struct reader_query, in_user), NULL);
}

/* ---- Starting and ending ---- */

int reader_pool_create(struct loop *loop, const struct reader_pool_events *events,
                       struct reader_pool **ret_pool, struct berth_error *error)
{
    struct reader_pool *pool = calloc(1, sizeof(*pool));

    if (pool == NULL || id_map_init(&pool->by_uid) < 0) {
        free(pool);
        return error_set_memory(error);
    }
    pool->loop = loop;
    pool->events = *events;
    pool->hopeless.fire = give_up_queries;
    list_init(&pool->users);
    stalled_processes_init(&pool->stalled, loop, stalled_process_ended, pool);
    for (size_t i = 0; i < READER_POOL_READERS; i++) {
        struct reader_slot *slot = &pool->slots[i];

        *slot = (struct reader_slot){
            .pool = pool,
            .reader = READER_INIT,
            .timer = {.fire = reader_slot_is_due},
        };
        loop_set_timer(loop, &slot->timer, loop_now(loop));
    }
    *ret_pool = pool;
    return 0;
}

static void answer_all(struct reader_user *user)
{
    while (!list_is_empty(&user->queries)) {
        struct reader_query *query =
            container_of(list_first(&user->queries), struct reader_query, in_user);
        void (*answered)(void *, struct reader_answer *) = query->answered;
        void *context = query->context;

        free_query(query);
        if (answered != NULL)
            answered(context, NULL);
    }
}

void reader_pool_destroy(struct reader_pool *pool)
{
    if (pool == NULL)
        return;
    loop_set_timer(pool->loop, &pool->hopeless, LOOP_NEVER);
    for (size_t i = 0; i < READER_POOL_READERS; i++) {
        reader_pool_put_back(&pool->slots[i]);
        reader_slot_close(&pool->slots[i]);
    }
    stalled_processes_finish(&pool->stalled);
    list_for_each (link, &pool->users) {
        struct reader_user *user = container_of(link, struct reader_user, in_pool);

        answer_all(user);
        free(user);
    }
    id_map_finish(&pool->by_uid);
    free(pool);
}
