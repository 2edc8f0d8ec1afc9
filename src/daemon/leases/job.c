/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/job.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "daemon/clients/quota.h"
#include "daemon/core/pidfd.h"
#include "daemon/leases/lease_ending.h"
#include "daemon/leases/pool.h"
#include "daemon/leases/request_cache.h"
#include "daemon/processes/leftovers.h"

/* Jobs are allocated in chunks, which takes less memory than a block for each. */
enum { JOBS_OF_CHUNK = 64 };

/* The load factor of the maps. */
enum { JOBS_OF_BUCKET = 2 };

enum { KIB = 1024 };

int job_init_pool(struct pool *pool, struct berth_error *error)
{
    list_init(&pool->jobs);
    list_init(&pool->watchers);
    list_init(&pool->unused_requests);
    list_init(&pool->deferred_claims);
    list_init(&pool->early_messages);
    list_init(&pool->adoptions);
    list_init(&pool->looks);
    if (id_map_init(&pool->by_id) < 0 || id_map_init(&pool->by_lease) < 0 ||
        id_map_init(&pool->by_token) < 0 || id_map_init(&pool->requests) < 0)
        return error_set_memory(error);
    return 0;
}

void job_finish_pool(struct pool *pool)
{
    struct job **chunk;

    list_for_each (link, &pool->jobs)
        job_free(pool, container_of(link, struct job, in_pool));
    vector_for_each (chunk, &pool->job_chunks)
        free(*chunk);
    vector_finish(&pool->job_chunks);
    pool->spare_jobs = NULL;
    request_cache_drop_unused(pool);
    id_map_finish(&pool->by_id);
    id_map_finish(&pool->by_lease);
    id_map_finish(&pool->by_token);
    id_map_finish(&pool->requests);
}

struct holder *job_holder_new(uint32_t uid, pid_t pid, uint64_t parent, const char *command)
{
    struct holder *holder = calloc(1, sizeof(*holder));
    char *copy = command == NULL ? NULL : strdup(command);

    if (holder == NULL || (command != NULL && copy == NULL)) {
        free(holder);
        free(copy);
        return NULL;
    }
    *holder = (struct holder){
        .users = 1,
        .parent = parent,
        .uid = uid,
        .pid = pid,
        .wait = TIME_NEVER,
        .command = copy,
    };
    return holder;
}

void job_holder_note_session(struct holder *holder)
{
    pid_t session = getsid(holder->pid);

    holder->session = session < 0 ? 0 : session;
}

void job_holder_release(struct holder *holder)
{
    if (holder == NULL || --holder->users > 0)
        return;
    quota_close(holder->quota);
    free(holder->command);
    free(holder);
}

static struct id_link *next_spare(const struct job *job)
{
    return job->by_id.next;
}

static void make_spare(struct pool *pool, struct job *job)
{
    job->by_id.next = pool->spare_jobs == NULL ? NULL : &pool->spare_jobs->by_id;
    pool->spare_jobs = job;
}

static struct job *take_spare(struct pool *pool)
{
    struct job *job = pool->spare_jobs;

    if (job == NULL) {
        struct job *chunk = calloc(JOBS_OF_CHUNK, sizeof(*chunk));
        struct job **place = chunk == NULL ? NULL : vector_append(&pool->job_chunks);

        if (place == NULL) {
            free(chunk);
            return NULL;
        }
        *place = chunk;
        for (size_t i = JOBS_OF_CHUNK; i > 0; i--)
            make_spare(pool, &chunk[i - 1]);
        job = pool->spare_jobs;
    }
    pool->spare_jobs =
        next_spare(job) == NULL ? NULL : container_of(next_spare(job), struct job, by_id);
    *job = (struct job){.exit_code = NO_EXIT_CODE};
    return job;
}

static void leave_connection(struct job *job)
{
    if (job->connection == NULL)
        return;
    job->connection->job_count--;
    list_remove(&job->in_connection);
    job->connection = NULL;
}

struct job *job_new(struct pool *pool, struct connection *connection, struct holder *holder)
{
    struct job *job = take_spare(pool);

    if (job == NULL)
        return NULL;
    holder->account = accounts_find(&pool->accounts, holder->uid);
    if (holder->quota == NULL && quota_open(&pool->clients, holder->account, &holder->quota) < 0) {
        make_spare(pool, job);
        return NULL;
    }
    job->holder = holder;
    holder->users++;
    job->connection = connection;
    if (connection != NULL) {
        list_append(&connection->jobs, &job->in_connection);
        connection->job_count++;
    }
    return job;
}

static bool has_token(const struct job *job)
{
    return job->by_token.id != 0 || job->token_low != 0;
}

/* Counts the job as waiting for its user's quota, until it has a lease, or until it is freed if it
 * is within another lease. */
static void start_waiting(struct job *job)
{
    if (!job->waits)
        quota_wait(job->holder->quota, (size_t)job->kib * KIB);
    job->waits = true;
}

void job_add(struct pool *pool, struct job *job, uint64_t id, uint64_t lease)
{
    job->by_id.id = id;
    id_map_reserve(&pool->by_id, ++pool->job_count / JOBS_OF_BUCKET);
    id_map_add(&pool->by_id, &job->by_id);
    if (has_token(job)) {
        id_map_reserve(&pool->by_token, pool->job_count / JOBS_OF_BUCKET);
        id_map_add(&pool->by_token, &job->by_token);
    }
    list_append(&pool->jobs, &job->in_pool);
    pool->inner_count += job->holder->parent != 0;
    if (lease == 0 || job->holder->parent != 0)
        start_waiting(job);
    if (lease != 0)
        job_set_lease(pool, job, lease);
}

static void stop_waiting(struct job *job)
{
    if (job->waits)
        quota_wait_over(job->holder->quota, (size_t)job->kib * KIB);
    job->waits = false;
}

void job_set_lease(struct pool *pool, struct job *job, uint64_t lease)
{
    /* Leases within leases have no other limit, so the quota counts them until they end. */
    if (job->holder->parent == 0)
        stop_waiting(job);
    job->by_lease.id = lease;
    id_map_reserve(&pool->by_lease, ++pool->lease_count);
    id_map_add(&pool->by_lease, &job->by_lease);
}

static void forget_lease(struct pool *pool, struct job *job)
{
    id_map_remove(&pool->by_lease, &job->by_lease);
    pool->lease_count--;
}

static void lease_watch_free(struct pool *pool, struct lease_watch *guard)
{
    if (guard == NULL)
        return;
    if (guard->process.descriptor >= 0) {
        loop_remove(&pool->loop, &guard->process);
        close(guard->process.descriptor);
    }
    loop_set_timer(&pool->loop, &guard->force, LOOP_NEVER);
    loop_set_timer(&pool->loop, &guard->release_timer, LOOP_NEVER);
    list_remove(&guard->in_warnings);
    if (guard->ended_holder >= 0)
        close(guard->ended_holder);
    list_remove(&guard->in_looks);
    leftovers_free(guard->leftovers);
    free(guard->container);
    free(guard->refusal);
    free(guard);
}

void job_unset_lease(struct pool *pool, struct job *job)
{
    forget_lease(pool, job);
    job->by_lease = (struct id_link){0};
    lease_watch_free(pool, job->guard);
    job->guard = NULL;
    start_waiting(job);
}

void job_free(struct pool *pool, struct job *job)
{
    if (list_is_linked(&job->in_pool)) {
        id_map_remove(&pool->by_id, &job->by_id);
        if (has_token(job))
            id_map_remove(&pool->by_token, &job->by_token);
        if (job->by_lease.id != 0)
            forget_lease(pool, job);
        pool->job_count--;
        pool->inner_count -= job->holder->parent != 0;
    }
    stop_waiting(job);
    list_remove(&job->in_pool);
    leave_connection(job);
    lease_watch_free(pool, job->guard);
    job_holder_release(job->holder);
    make_spare(pool, job);
}

static struct job *job_of_link(const struct id_link *link, size_t offset)
{
    return link == NULL ? NULL : (struct job *)(void *)((char *)link - offset);
}

struct job *job_of_id(const struct pool *pool, uint64_t id)
{
    return job_of_link(id_map_find(&pool->by_id, id), offsetof(struct job, by_id));
}

struct job *job_of_lease(const struct pool *pool, uint64_t lease)
{
    return job_of_link(id_map_find(&pool->by_lease, lease), offsetof(struct job, by_lease));
}

struct job *job_of_token(const struct pool *pool, const uint64_t token[2])
{
    /* The map has the first half of the token, which several jobs may share. */
    for (struct id_link *link = id_map_find(&pool->by_token, token[0]); link != NULL;
         link = link->next) {
        struct job *job = container_of(link, struct job, by_token);

        if (link->id == token[0] && job->token_low == token[1])
            return job;
    }
    return NULL;
}

void job_attach(struct job *job, struct connection *connection, uint64_t number)
{
    leave_connection(job);
    list_append(&connection->jobs, &job->in_connection);
    connection->job_count++;
    job->connection = connection;
    job->number = number;
    job->restored = false;
}

void job_detach_all(struct connection *connection)
{
    while (!list_is_empty(&connection->jobs))
        leave_connection(container_of(list_first(&connection->jobs), struct job, in_connection));
}

void job_lose_client(struct pool *pool, struct connection *connection)
{
    /* Claims first, so that none of them is granted the devices of the leases that end. */
    list_for_each (link, &connection->jobs) {
        const struct job *job = container_of(link, struct job, in_connection);

        if (job->state == JOB_WAITING)
            engine_cancel(pool->engine, job->by_id.id, NULL);
    }
    while (!list_is_empty(&connection->jobs)) {
        struct job *job = container_of(list_first(&connection->jobs), struct job, in_connection);

        leave_connection(job);
        if (job->state == JOB_WAITING)
            continue;
        if (job->hold == LEASE_HOLD_CONNECTION || job_is_preparing(job))
            lease_ending_holder_gone(pool, job);
        else
            lease_ending_client_gone(pool, job);
    }
}

struct lease_watch *job_lease_watch(struct pool *pool, struct job *job)
{
    if (job->guard != NULL)
        return job->guard;
    job->guard = calloc(1, sizeof(*job->guard));
    if (job->guard == NULL)
        return NULL;
    job->guard->job = job;
    job->guard->pool = pool;
    job->guard->process.descriptor = -1;
    job->guard->ended_holder = -1;
    job->guard->force_at = TIME_NEVER;
    job->guard->force.fire = lease_ending_force_due;
    job->guard->release_timer.fire = lease_ending_release_due;
    return job->guard;
}

void job_keep_container(struct pool *pool, struct job *job, const char *container)
{
    struct lease_watch *guard = job_lease_watch(pool, job);

    if (guard == NULL)
        return;
    free(guard->container);
    guard->container = strdup(container);
}

void job_remember_ended(struct pool *pool, const struct ended_job *ended)
{
    struct ended_job_ring *ring = &pool->ended[ended->uid % ENDED_RINGS];

    ring->items[ring->count++ % ENDED_KEPT] = *ended;
}

const struct ended_job *job_find_ended(const struct pool *pool, uint64_t id)
{
    for (size_t i = 0; i < ENDED_RINGS; i++) {
        const struct ended_job_ring *ring = &pool->ended[i];

        for (size_t place = 0; place < ENDED_KEPT && place < ring->count; place++) {
            if (ring->items[place].id == id)
                return &ring->items[place];
        }
    }
    return NULL;
}
