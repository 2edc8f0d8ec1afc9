/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/ending.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "daemon/checks.h"
#include "daemon/connection.h"
#include "daemon/handover.h"
#include "daemon/jobs.h"
#include "daemon/keep.h"
#include "daemon/mps.h"
#include "daemon/news.h"
#include "daemon/process.h"
#include "daemon/remains.h"
#include "daemon/settle.h"
#include "daemon/users.h"

/* A lease that was held for less was held when the newest process was not much older. */
#define SHORT (2 * DURATION_SECOND)

/* How much longer than its command a supervisor may take. */
#define SUPERVISOR_TIME (2 * DURATION_SECOND)

/* The lease and those within it. */
static int collect_leases(struct pool *pool, const struct job *job, struct id_list *ret_leases)
{
    uint64_t *id = vector_append(ret_leases);

    if (id == NULL)
        return BERTH_ERROR_MEMORY;
    *id = job->by_id.id;
    if (pool->inner_count == 0)
        return 0;
    /* Those within are younger, so one round finds all. */
    list_for_each (link, &pool->jobs) {
        const struct job *other = container_of(link, struct job, in_pool);

        for (size_t i = 0; other->holder->parent != 0 && i < ret_leases->count; i++) {
            if (ret_leases->items[i] != other->holder->parent)
                continue;
            id = vector_append(ret_leases);
            if (id == NULL)
                return BERTH_ERROR_MEMORY;
            *id = other->by_id.id;
            break;
        }
    }
    return 0;
}

/* Nothing is granted any more within a lease that is being ended: whatever began there now would
 * have to be found and ended, too. */
static void cancel_inside(struct pool *pool, const struct job *job)
{
    struct id_list leases = {0};

    if (pool->inner_count > 0 && collect_leases(pool, job, &leases) == 0) {
        list_for_each (link, &pool->jobs) {
            const struct job *other = container_of(link, struct job, in_pool);

            for (size_t i = 0; other->by_lease.id == 0 && i < leases.count; i++) {
                if (leases.items[i] == other->holder->parent)
                    engine_cancel(pool->engine, other->by_id.id, NULL);
            }
        }
    }
    vector_finish(&leases);
}

static void remains_gone(struct guard *guard)
{
    struct pool *pool = guard->pool;
    struct job *job = guard->job;
    bool over = job->state == JOB_DRAINING;

    remains_free(pool, guard->remains);
    guard->remains = NULL;
    if (over)
        ending_done(pool, job);
    pool_settle(pool);
}

/* Looks for the processes of the lease. Returns whether there are any. */
static bool find_remains(struct pool *pool, struct job *job)
{
    struct guard *guard = job_guard(pool, job);
    struct id_list leases = {0};
    struct lease_view view;
    pid_t after = 0;
    /* A process that was adopted carries no lease. Once it has ended its number means nothing. */
    pid_t root = job->adopted && job->guard != NULL && job->guard->process.descriptor >= 0
                     ? job->holder->pid
                     : 0;

    if (guard == NULL)
        return false;
    if (guard->remains != NULL) {
        remains_refresh(pool, guard->remains);
        return true;
    }
    if (job->hold == LEASE_HOLD_PROCESS && !job->adopted &&
        engine_get_lease(pool->engine, job->by_lease.id, &view) &&
        pool_now(pool) - view.granted < SHORT)
        after = job->holder->pid;
    if (collect_leases(pool, job, &leases) == 0)
        guard->remains = remains_find(pool, &leases, after, root, remains_gone, guard);
    vector_finish(&leases);
    return guard->remains != NULL;
}

static void set_force(struct pool *pool, struct job *job, int64_t force_at)
{
    struct guard *guard = job_guard(pool, job);

    if (guard == NULL || force_at >= guard->force_at)
        return;
    guard->force_at = force_at;
    /* A supervisor that lives uses force by itself, and then has something to say. */
    if (job->connection != NULL && job->state != JOB_DRAINING)
        force_at = clock_after(force_at, SUPERVISOR_TIME);
    timer_set_at(&pool->loop, &guard->force, pool_loop_time(pool, force_at));
}

static void signal_all(struct pool *pool, struct job *job, int number)
{
    find_remains(pool, job);
    if (job->guard == NULL)
        return;
    if (job->guard->remains != NULL)
        remains_signal(job->guard->remains, number);
    if (job->guard->process.descriptor >= 0)
        process_signal(job->guard->process.descriptor, number);
}

void ending_send_notice(const struct pool *pool, const struct job *job, enum lease_end end,
                        int64_t force_at)
{
    int64_t left = force_at - pool_now(pool);

    connection_send(job->connection, &(struct wire_message){
                                         .type = WIRE_NOTICE,
                                         .number = job->number,
                                         .id = job->by_id.id,
                                         .end = end,
                                         .force_at = force_at,
                                         .duration = left > 0 ? (uint64_t)left : 0,
                                     });
}

void ending_begin(struct pool *pool, struct job *job, enum lease_end end, int64_t force_at)
{
    if (job->state == JOB_DRAINING)
        return;
    log_line(&pool->log, pool_now(pool), "ending", "id=%llu reason=\"%s\"",
             (unsigned long long)job->by_id.id, pool_info_describe_end(end));
    if (job->end == 0)
        job->end = end;
    /* Nobody was told that it began. */
    if (job_is_preparing(job)) {
        ending_done(pool, job);
        return;
    }
    job->state = JOB_ENDING;
    keep_job(pool, job);
    news_note(pool, WIRE_NEWS_LEASE);
    cancel_inside(pool, job);
    if (job->hold == LEASE_HOLD_NOTHING) {
        ending_holder_gone(pool, job);
        return;
    }
    set_force(pool, job, force_at);
    if (job->guard == NULL)
        return;
    if (job->connection != NULL)
        ending_send_notice(pool, job, job->end, job->guard->force_at);
    else
        signal_all(pool, job, SIGTERM);
}

void ending_client_gone(struct pool *pool, struct job *job)
{
    /* It may never have read its notice: berth run hangs up when it becomes the command. */
    if (job->hold == LEASE_HOLD_PROCESS && job->state == JOB_ENDING)
        signal_all(pool, job, SIGTERM);
}

void ending_force(struct pool *pool, struct job *job)
{
    signal_all(pool, job, SIGKILL);
    /* The ends of the processes do the rest. Who holds by a connection alone has had its time. */
    if (job->hold == LEASE_HOLD_CONNECTION && job->state != JOB_DRAINING)
        ending_done(pool, job);
}

void ending_force_due(struct timer *timer)
{
    struct guard *guard = container_of(timer, struct guard, force);
    struct pool *pool = guard->pool;

    ending_force(pool, guard->job);
    pool_settle(pool);
}

void ending_holder_gone(struct pool *pool, struct job *job)
{
    if (job->guard != NULL && job->guard->process.descriptor >= 0) {
        loop_remove(&pool->loop, &job->guard->process);
        close(job->guard->process.descriptor);
        job->guard->process.descriptor = -1;
    }
    if (job->end == 0)
        job->end = LEASE_END_DIED;
    if (job->hold == LEASE_HOLD_CONNECTION || job_is_preparing(job) || !find_remains(pool, job)) {
        ending_done(pool, job);
        return;
    }
    job->state = JOB_DRAINING;
    keep_job(pool, job);
    log_line(&pool->log, pool_now(pool), "draining", "id=%llu", (unsigned long long)job->by_id.id);
    engine_drain_lease(pool->engine, job->by_lease.id, NULL);
    remains_signal(job->guard->remains, SIGTERM);
    remains_signal(job->guard->remains, SIGCONT);
    set_force(pool, job, pool_now(pool) + pool->rules.grace);
}

void ending_done(struct pool *pool, struct job *job)
{
    handover_begin(pool, job);
    checks_end(pool, job);
    mps_end(pool, job);
    engine_vacated(pool->engine, job->by_lease.id, NULL);
}

static void holder_ended(struct watch *watch, uint32_t events)
{
    struct guard *guard = container_of(watch, struct guard, process);
    struct pool *pool = guard->pool;
    struct job *job = guard->job;
    struct user *user = job->holder->user;
    int64_t began = user == NULL ? 0 : clock_read(CLOCK_THREAD_CPUTIME_ID);

    (void)events;
    /* How it ended is worth knowing when nobody has ended it. */
    if (job->end == 0 && job->exit_code == NO_EXIT_CODE)
        job->exit_code =
            (int16_t)process_exit_code(watch->descriptor, job->holder->pid, job->holder->started);
    /* Looking for what it left may take long, which its user is to wait for. */
    ending_holder_gone(pool, job);
    pool_settle(pool);
    if (user != NULL)
        user_charge_time(user, clock_read(CLOCK_THREAD_CPUTIME_ID) - began);
}

bool ending_watch(struct pool *pool, struct job *job, int descriptor)
{
    struct guard *guard = descriptor < 0 ? NULL : job_guard(pool, job);

    if (guard == NULL) {
        if (descriptor >= 0)
            close(descriptor);
        return false;
    }
    guard->process.descriptor = descriptor;
    guard->process.ready = holder_ended;
    /* Whoever comes after its end finds its devices free, even in one turn with it. */
    guard->process.first = true;
    if (loop_add(&pool->loop, &guard->process, EPOLLIN, NULL) == 0)
        return true;
    close(descriptor);
    guard->process.descriptor = -1;
    return false;
}
