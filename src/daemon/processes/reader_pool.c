/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/processes/reader_pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/error.h"
#include "base/id_map.h"
#include "base/list.h"
#include "daemon/core/pidfd.h"
#include "daemon/processes/reader_progress.h"

/* A reader that cannot be started, or was lost without a stall, is started again after this, then
 * after twice as long each time. */
#define RESTART_MIN (DURATION_SECOND / 10)
#define RESTART_MAX (10 * DURATION_SECOND)

/* So many failures in a row, and queries are answered without a reader. */
enum { FAILURES_MAX = 3 };

/* A user's stalls that were none: a busy machine stops the reader itself. Then the next stall of
 * the same query must be longer. */
enum { STALL_FACTOR_MAX = 64 };

/* A user with queries or a recent stall. */
struct reader_user {
    struct id_link by_uid;
    struct list_link in_pool; /* the users take turns in this order */
    size_t query_count;       /* that are not answered yet */
    struct list queries;      /* those that wait for a reader */
    bool is_out;              /* a reader has one of its queries */
    int64_t penalty_until;
};

struct reader_query {
    struct reader_pool *pool;
    struct reader_user *user;
    struct list_link in_user; /* while it waits */
    struct reader_slot *slot; /* that works on it; NULL: none */
    struct reader_request request;
    void (*answered)(void *context, struct reader_answer *answer);
    void *context;
    pid_t suspect; /* stalled one reader; 0: none did */
    int64_t stall_factor;
    unsigned losses; /* readers that were lost while they worked on it */
};

/* One reader. */
struct reader_slot {
    struct reader_pool *pool;
    struct reader reader;
    struct watch watch;
    struct timer timer; /* open: looks whether it makes progress; otherwise: starts it */
    bool is_open;
    struct reader_query *query;      /* that it works on; NULL: it is free */
    struct reader_progress progress; /* with the query */
    unsigned failures;
};

struct reader_pool {
    struct loop *loop;
    struct reader_pool_events events;
    struct reader_slot slots[READER_POOL_READERS];
    struct id_map by_uid;
    struct list users;
    struct stalled_processes stalled;
    struct timer hopeless; /* answers what no reader will answer */
    int64_t waited;        /* for queries that no reader works on any more */
    bool has_failed;
};

static void serve_queries(struct reader_pool *pool);

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

/* Frees the user if nothing of it is left to know. */
static void release_user(struct reader_pool *pool, struct reader_user *user)
{
    if (user->query_count > 0 || user->penalty_until > loop_now(pool->loop))
        return;
    id_map_remove(&pool->by_uid, &user->by_uid);
    list_remove(&user->in_pool);
    free(user);
}

/* ---- Queries ---- */

static void free_query(struct reader_query *query)
{
    query->user->query_count--;
    list_remove(&query->in_user);
    reader_request_finish(&query->request);
    free(query);
}

/* Returns the time that the slot's query has waited, but for a CPU. */
static int64_t waited_for_query(const struct reader_slot *slot)
{
    return reader_progress_waited(&slot->progress, &slot->reader, loop_now(slot->pool->loop));
}

/* Takes the query from its reader, which is free then. */
static void detach_query(struct reader_query *query)
{
    if (query->slot == NULL)
        return;
    query->pool->waited += waited_for_query(query->slot);
    query->slot->query = NULL;
    query->slot = NULL;
    query->user->is_out = false;
}

/* Answers the query and frees it. NULL: nobody could. */
static void answer_query(struct reader_query *query, struct reader_answer *answer)
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
    serve_queries(pool);
    return query;
}

void reader_pool_cancel(struct reader_query *query)
{
    struct reader_pool *pool;
    struct reader_user *user;

    if (query == NULL)
        return;
    if (query->slot != NULL) {
        /* The reader's answer is still to come, and nobody wants it. */
        query->answered = NULL;
        return;
    }
    pool = query->pool;
    user = query->user;
    free_query(query);
    release_user(pool, user);
}

/* ---- Stalled processes ---- */

static void stalled_process_ended(void *context)
{
    serve_queries(context);
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
            waited += waited_for_query(&pool->slots[i]);
    }
    return waited;
}

bool reader_pool_is_stalled(const struct reader_pool *pool, pid_t pid)
{
    return stalled_processes_has(&pool->stalled, pid);
}

/* ---- Readers ---- */

static bool is_penalized(const struct reader_pool *pool, const struct reader_user *user)
{
    return user->penalty_until > loop_now(pool->loop);
}

static void penalize_user(struct reader_pool *pool, struct reader_user *user)
{
    user->penalty_until = loop_now(pool->loop) + READER_POOL_PENALTY;
    pool->events.slowed(pool->events.context);
}

/* Penalizes the user if the slot's query takes long. */
static void judge_query(const struct reader_slot *slot)
{
    if (reader_progress_accesses(&slot->progress, &slot->reader) > READER_POOL_LONG ||
        reader_progress_spent(&slot->progress, &slot->reader, loop_now(slot->pool->loop)) >
            READER_POOL_SLOW)
        penalize_user(slot->pool, slot->query->user);
}

static void set_timer(struct reader_slot *slot, int64_t after)
{
    loop_set_timer(slot->pool->loop, &slot->timer, loop_now(slot->pool->loop) + after);
}

static void close_reader(struct reader_slot *slot)
{
    if (slot->is_open)
        loop_remove(slot->pool->loop, &slot->watch);
    slot->is_open = false;
    reader_finish(&slot->reader);
    loop_set_timer(slot->pool->loop, &slot->timer, LOOP_NEVER);
}

/* Gives the query of a reader that is gone back to its user, as the next one. */
static void put_back_query(struct reader_slot *slot)
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

static void report_failure(struct reader_pool *pool, const char *reason)
{
    if (reason == NULL && !pool->has_failed)
        return;
    pool->has_failed = reason != NULL;
    pool->events.failed(pool->events.context, reason);
}

/* Returns whether the reader may have ended because of the time limit of a request. */
static bool is_request_too_long(const struct reader_slot *slot)
{
    return slot->query != NULL && loop_now(slot->pool->loop) - slot->progress.sent_at >=
                                      (READER_REQUEST_SECONDS - 1) * DURATION_SECOND;
}

/* The reader is lost without a process to blame. */
static void lose_reader(struct reader_slot *slot, const struct berth_error *error)
{
    struct reader_pool *pool = slot->pool;
    int64_t pause = RESTART_MIN;

    if (slot->query != NULL)
        slot->query->losses++;
    if (is_request_too_long(slot)) {
        penalize_user(pool, slot->query->user);
    } else {
        for (unsigned i = 0; i < slot->failures && pause < RESTART_MAX; i++)
            pause *= 2;
        slot->failures++;
    }
    put_back_query(slot);
    close_reader(slot);
    set_timer(slot, pause);
    if (slot->failures == FAILURES_MAX)
        report_failure(pool, error->message);
    serve_queries(pool);
}

static void take_answers(struct reader_slot *slot)
{
    struct reader_pool *pool = slot->pool;
    struct berth_error error = BERTH_ERROR_INIT;
    struct reader_answer answer;
    int code;

    code = reader_receive(&slot->reader, &answer, &error);
    if (code < 0) {
        lose_reader(slot, &error);
        return;
    }
    if (code == 0)
        return;
    slot->failures = 0;
    loop_set_timer(pool->loop, &slot->timer, LOOP_NEVER);
    report_failure(pool, NULL);
    if (slot->query != NULL) {
        judge_query(slot);
        answer_query(slot->query, &answer);
    }
    reader_answer_finish(&answer);
    serve_queries(pool);
}

static void reader_is_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    take_answers(container_of(watch, struct reader_slot, watch));
}

static void open_reader(struct reader_slot *slot)
{
    struct reader_pool *pool = slot->pool;
    struct berth_error error = BERTH_ERROR_INIT;
    int code = pool->events.spawn == NULL ? reader_start(&slot->reader, &error)
                                          : reader_start_with(&slot->reader, pool->events.spawn,
                                                              pool->events.context, &error);

    if (code == 0) {
        slot->watch =
            (struct watch){.descriptor = slot->reader.descriptor, .ready = reader_is_ready};
        code = loop_add(pool->loop, &slot->watch, EPOLLIN, &error);
    }
    slot->is_open = code == 0;
    if (code < 0)
        lose_reader(slot, &error);
    else
        serve_queries(pool);
}

/* Gives the query back and starts another reader. */
static void replace_reader(struct reader_slot *slot)
{
    put_back_query(slot);
    close_reader(slot);
    open_reader(slot);
}

/* ---- Progress ---- */

/* The reader has been in one access for too long. `descriptor` is the process's, taken over. */
static void replace_stalled_reader(struct reader_slot *slot, int descriptor)
{
    struct reader_pool *pool = slot->pool;
    struct reader_query *query = slot->query;
    pid_t pid = slot->progress.touch.pid;
    bool is_confirmed = query->suspect == pid;
    const struct stalled_process *stalled;

    penalize_user(pool, query->user);
    if (is_confirmed) {
        stalled = stalled_processes_add(&pool->stalled, pid, descriptor,
                                        (uint32_t)query->user->by_uid.id);
        if (stalled != NULL)
            pool->events.stalled(pool->events.context, stalled);
    } else {
        close(descriptor);
        if (query->suspect != 0 && query->stall_factor < STALL_FACTOR_MAX)
            query->stall_factor *= 2;
    }
    query->suspect = is_confirmed ? 0 : pid;
    replace_reader(slot);
}

/* Looks whether the reader makes progress with its query. */
static void look_at_progress(struct reader_slot *slot)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct reader_progress *progress = &slot->progress;
    int descriptor;

    switch (reader_progress_look(progress, &slot->reader,
                                 READER_POOL_STALL * slot->query->stall_factor,
                                 loop_now(slot->pool->loop))) {
    case READER_LOST:
        error_set(&error, BERTH_ERROR_TIMED_OUT, "berth-reader does not answer");
        lose_reader(slot, &error);
        return;
    case READER_STALLS:
        descriptor = pidfd_open_process(progress->touch.pid);
        if (descriptor >= 0 && reader_progress_is_same(progress, &slot->reader)) {
            replace_stalled_reader(slot, descriptor);
            return;
        }
        if (descriptor >= 0)
            close(descriptor);
        break;
    case READER_GOES_ON:
        break;
    }
    if (!is_penalized(slot->pool, slot->query->user)) {
        judge_query(slot);
        serve_queries(slot->pool);
    }
    /* Another user's query may have taken the reader. */
    if (slot->is_open && slot->query != NULL)
        set_timer(slot, READER_POOL_STALL);
}

static void slot_is_due(struct timer *timer)
{
    struct reader_slot *slot = container_of(timer, struct reader_slot, timer);

    if (!slot->is_open) {
        open_reader(slot);
        return;
    }
    /* The answer may be there: this process may have been stopped meanwhile. */
    take_answers(slot);
    if (slot->is_open && slot->query != NULL)
        look_at_progress(slot);
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

/* Whether no reader is there, and none will be soon. */
static bool is_hopeless(const struct reader_pool *pool)
{
    for (size_t i = 0; i < READER_POOL_READERS; i++) {
        if (pool->slots[i].is_open || pool->slots[i].failures < FAILURES_MAX)
            return false;
    }
    return true;
}

/* Whether the user's next query will not be sent, but answered by NULL. */
static bool is_refused(const struct reader_pool *pool, const struct reader_user *user)
{
    const struct reader_query *query =
        container_of(list_first(&user->queries), struct reader_query, in_user);

    return stalled_processes_count(&pool->stalled, (uint32_t)user->by_uid.id) >=
               READER_POOL_STALLED_MAX ||
           query->losses >= FAILURES_MAX || is_hopeless(pool);
}

/* The next user whose query may be sent now; NULL: none. */
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
        if (free_count > (is_penalized(pool, user) ? 1U : 0U))
            return user;
    }
    return NULL;
}

static void send_query(struct reader_slot *slot, struct reader_query *query)
{
    struct reader_pool *pool = slot->pool;
    struct berth_error error = BERTH_ERROR_INIT;
    int code;

    list_remove(&query->in_user);
    query->slot = slot;
    query->user->is_out = true;
    slot->query = query;
    reader_progress_begin(&slot->progress, &slot->reader, loop_now(pool->loop));
    stalled_processes_list(&pool->stalled, &query->request.stalled);
    code = reader_send(&slot->reader, &query->request, &error);
    if (code < 0) {
        /* A request that is too long is never sent. */
        query->losses += code == BERTH_ERROR_IO ? 0 : FAILURES_MAX;
        lose_reader(slot, &error);
        return;
    }
    set_timer(slot, READER_POOL_STALL);
}

/* Takes a reader from a user whose query takes long if all readers are with such users and another
 * user waits. Returns whether it did. */
static bool take_reader_back(struct reader_pool *pool)
{
    struct reader_slot *longest = NULL;

    for (size_t i = 0; i < READER_POOL_READERS; i++) {
        struct reader_slot *slot = &pool->slots[i];

        if (!slot->is_open)
            continue;
        if (slot->query == NULL || !is_penalized(pool, slot->query->user))
            return false;
        if (longest == NULL || slot->progress.sent_at < longest->progress.sent_at)
            longest = slot;
    }
    /* With one free reader, only a user without a penalty is next. */
    if (longest == NULL || find_next_user(pool, 1) == NULL)
        return false;
    replace_reader(longest);
    return true;
}

static void serve_queries(struct reader_pool *pool)
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
        send_query(slot, container_of(list_first(&user->queries), struct reader_query, in_user));
    } while ((user != NULL && slot != NULL) || take_reader_back(pool));
}

/* Answers the queries that no reader will answer. */
static void give_up_queries(struct timer *timer)
{
    struct reader_pool *pool = container_of(timer, struct reader_pool, hopeless);
    struct list given_up;

    /* An answer may lead to further queries, and free users. */
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
        answer_query(container_of(list_first(&given_up), struct reader_query, in_user), NULL);
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
            .timer = {.fire = slot_is_due},
        };
        set_timer(slot, 0);
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
        put_back_query(&pool->slots[i]);
        close_reader(&pool->slots[i]);
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
