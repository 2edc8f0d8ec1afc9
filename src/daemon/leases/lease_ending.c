/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/lease_ending.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "daemon/clients/connection.h"
#include "daemon/clients/quota.h"
#include "daemon/core/pidfd.h"
#include "daemon/devices/device_locks.h"
#include "daemon/leases/engine_events.h"
#include "daemon/leases/handover.h"
#include "daemon/leases/inner_leases.h"
#include "daemon/leases/job.h"
#include "daemon/leases/journal_write.h"
#include "daemon/leases/late_leftovers.h"
#include "daemon/leases/mps_tenants.h"
#include "daemon/leases/pool.h"
#include "daemon/leases/prolog_epilog.h"
#include "daemon/processes/leftovers.h"
#include "daemon/stream/followers.h"

/* How much longer than its command a supervisor may take. */
#define SUPERVISOR_TIME (2 * DURATION_SECOND)

static void end_lease(struct pool *pool, struct job *job, bool wants_exit_code);

static void set_force(struct pool *pool, struct job *job, int64_t force_at)
{
    struct lease_watch *guard = job_lease_watch(pool, job);

    if (guard == NULL || force_at >= guard->force_at)
        return;
    guard->force_at = force_at;
    /* A running supervisor kills the command itself, and reports its exit code. */
    if (job->connection != NULL && !job_is_over(job))
        force_at = clock_after(force_at, SUPERVISOR_TIME);
    loop_set_timer(&pool->loop, &guard->force, pool_clock_loop_time(&pool->clock, force_at));
}

/* ---- Processes that are left ---- */

static void charge_holder(const struct lease_watch *guard, int64_t time)
{
    if (guard->job->holder->quota != NULL)
        quota_charge_time(guard->job->holder->quota, time);
}

static void leftovers_spent(void *context, int64_t time)
{
    charge_holder(context, time);
}

/* The exit code belongs to the holder: it was still a zombie after the reader had looked, so its
 * pid was not used again. */
static void take_exit_code(struct lease_watch *guard, struct optional_number found)
{
    int code = guard->ended_holder < 0 ? -1 : pidfd_exit_code(guard->ended_holder);

    if (guard->ended_holder < 0)
        return;
    if (code < 0 && found.known && pidfd_is_zombie(guard->ended_holder))
        code = (int)found.value;
    if (guard->job->exit_code == NO_EXIT_CODE)
        guard->job->exit_code = (int16_t)code;
    close(guard->ended_holder);
    guard->ended_holder = -1;
}

static void drain_lease(struct pool *pool, struct job *job)
{
    job->state = JOB_DRAINING;
    journal_write_job(pool, job);
    if (quota_may_log_lease(job->holder->quota))
        log_line(&pool->log, pool_clock_now(&pool->clock), "draining", "id=%llu",
                 (unsigned long long)job->by_id.id);
    engine_drain_lease(pool->engine, job->by_lease.id, NULL);
    leftovers_signal(job->guard->leftovers, SIGTERM);
    leftovers_signal(job->guard->leftovers, SIGCONT);
    device_locks_update(pool->device_locks);
    set_force(pool, job, pool_clock_now(&pool->clock) + pool->rules.grace);
}

/* Ends the lease of a holder that has become another user's program (`owner`), which the lease's
 * user could not end. The holder continues to run, and status names it. */
static void leave_holder(struct lease_watch *guard, uint32_t owner)
{
    const struct job *job = guard->job;
    int descriptor = fcntl(guard->process.descriptor, F_DUPFD_CLOEXEC, 0);

    if (descriptor >= 0)
        foreign_processes_add(&guard->pool->foreign,
                              &(struct foreign_process){
                                  .pid = job->holder->pid,
                                  .lease = job->by_id.id,
                                  .uid = job->holder->uid,
                                  .owner = owner,
                              },
                              descriptor);
    end_lease(guard->pool, guard->job, false);
}

static void signal_holder(struct lease_watch *guard, int number)
{
    const struct holder *holder = guard->job->holder;
    const struct signal_right right = {holder->uid, &guard->pool->accounts.ranges};
    uint32_t owner;

    if (guard->process.descriptor < 0)
        return;
    if (guard->is_unconfirmed)
        guard->held_signal = number;
    else if (!signal_right_use(&right, holder->pid, guard->process.descriptor, number, &owner) &&
             number == SIGKILL)
        leave_holder(guard, owner);
}

/* Answers the RELEASE of a lease, if that is still missing. */
static void answer_release(struct lease_watch *guard)
{
    const struct job *job = guard->job;

    loop_set_timer(&guard->pool->loop, &guard->release_timer, LOOP_NEVER);
    if (guard->release != 0 && job->connection != NULL)
        connection_send(job->connection, &(struct wire_message){
                                             .type = WIRE_DONE,
                                             .number = guard->release,
                                             .id = job->by_id.id,
                                         });
    guard->release = 0;
}

bool lease_ending_answer_later(struct pool *pool, struct job *job, uint64_t number)
{
    if (job->state != JOB_LOOKING)
        return false;
    job->guard->release = number;
    loop_set_timer(&pool->loop, &job->guard->release_timer,
                   loop_now(&pool->loop) + LEASE_ENDING_ANSWER);
    return true;
}

void lease_ending_release_due(struct timer *timer)
{
    answer_release(container_of(timer, struct lease_watch, release_timer));
}

/* Ends the lease. Processes that may still turn out to belong to it keep no device, unless the next
 * report lists them on the device. */
static void vacate_lease(struct lease_watch *guard)
{
    struct pool *pool = guard->pool;
    struct job *job = guard->job;

    if (leftovers_count(guard->leftovers) > 0) {
        late_leftovers_add(pool, guard->leftovers, job->holder->account);
        guard->leftovers = NULL;
        handover_begin(pool, job);
    }
    lease_ending_done(pool, job);
}

static void leftovers_looked(void *context, bool is_gone, struct optional_number exit_code)
{
    struct lease_watch *guard = context;
    struct pool *pool = guard->pool;
    struct job *job = guard->job;
    int64_t began = loop_processor_time(&pool->loop);

    take_exit_code(guard, exit_code);
    if (job->state == JOB_LOOKING) {
        answer_release(guard);
        list_remove(&guard->in_looks);
        pool->has_looked = true;
        charge_holder(guard, loop_processor_time(&pool->loop) - began);
        if (is_gone)
            vacate_lease(guard);
        else
            drain_lease(pool, job);
    } else if (!guard->is_unconfirmed && guard->held_signal != 0) {
        signal_holder(guard, guard->held_signal);
        guard->held_signal = 0;
    }
    engine_events_settle(pool);
}

static void leftovers_gone(void *context)
{
    struct lease_watch *guard = context;
    struct pool *pool = guard->pool;

    if (guard->job->state == JOB_DRAINING) {
        vacate_lease(guard);
    } else if (!job_is_over(guard->job) && leftovers_count(guard->leftovers) == 0) {
        leftovers_free(guard->leftovers);
        guard->leftovers = NULL;
    }
    engine_events_settle(pool);
}

/* Finds the start of the oldest process that may belong to the lease, but for its holder; 0:
 * unknown. A process that has the lease in its initial environment started after the grant. */
static uint64_t find_since(const struct pool *pool, const struct job *job)
{
    struct lease_view view;
    int64_t granted;

    if (job->adopted)
        return job->holder->began;
    if (!engine_get_lease(pool->engine, job->by_lease.id, &view))
        return 0;
    granted = pool_clock_loop_time(&pool->clock, view.granted);
    return granted > 0 ? (uint64_t)granted : 0;
}

static void spare_asker(struct lease_watch *guard)
{
    struct pool *pool = guard->pool;

    leftovers_spare(guard->leftovers, guard->asker,
                    loop_now(&pool->loop) + pool->rules.grace + SUPERVISOR_TIME);
}

/* Returns the leftovers of the job, which it creates if needed; NULL: no memory. */
static struct leftovers *open_leftovers(struct pool *pool, struct job *job)
{
    struct lease_watch *guard = job_lease_watch(pool, job);
    struct id_list leases = {0};

    if (guard == NULL || guard->leftovers != NULL)
        return guard == NULL ? NULL : guard->leftovers;
    if (inner_leases_collect(pool, job, &leases) == 0)
        guard->leftovers = leftovers_new(
            &(struct leftovers_settings){
                .loop = &pool->loop,
                .readers = pool->readers,
                .spared = &pool->spared,
                .foreign = &pool->foreign,
                .socket = pool->settings.socket,
                .uid = job->holder->uid,
                .account = job->holder->account,
                .ranges = &pool->accounts.ranges,
                .leases = &leases,
                .since = find_since(pool, job),
                .holder = job->hold == LEASE_HOLD_PROCESS ? job->holder->pid : 0,
                .session = job->holder->session,
                /* An adopted process carries no mark. Once it has ended, its pid may be another
                 * process's.
                 */
                .root = job->adopted && guard->process.descriptor >= 0 && !guard->is_unconfirmed
                            ? job->holder->pid
                            : 0,
                .containers_matter = pool->settings.inventory == NULL,
            },
            &(struct leftovers_events){
                .looked = leftovers_looked,
                .gone = leftovers_gone,
                .spent = leftovers_spent,
                .context = guard,
            });
    vector_finish(&leases);
    if (guard->leftovers != NULL && guard->asker != 0)
        spare_asker(guard);
    return guard->leftovers;
}

void lease_ending_asked(struct pool *pool, struct job *job, pid_t pid)
{
    if (job_lease_watch(pool, job) == NULL)
        return;
    job->guard->asker = pid;
    if (job->guard->leftovers != NULL)
        spare_asker(job->guard);
}

static void signal_all(struct pool *pool, struct job *job, int number)
{
    struct leftovers *leftovers = open_leftovers(pool, job);

    if (leftovers == NULL) {
        if (job->guard != NULL)
            signal_holder(job->guard, number);
        return;
    }
    if (leftovers_has_answer(leftovers)) {
        signal_holder(job->guard, number);
    } else {
        /* The reader finds the holder's children only while the holder runs. */
        job->guard->held_signal = number;
        leftovers_look(leftovers, false);
    }
    leftovers_signal(leftovers, number);
}

void lease_ending_send_notice(const struct pool *pool, const struct job *job, enum lease_end end,
                              int64_t force_at)
{
    int64_t left = force_at - pool_clock_now(&pool->clock);

    connection_send(job->connection, &(struct wire_message){
                                         .type = WIRE_NOTICE,
                                         .number = job->number,
                                         .id = job->by_id.id,
                                         .end = end,
                                         .force_at = force_at,
                                         .duration = left > 0 ? (uint64_t)left : 0,
                                     });
}

void lease_ending_begin(struct pool *pool, struct job *job, enum lease_end end, int64_t force_at)
{
    if (job_is_over(job))
        return;
    if (quota_may_log_lease(job->holder->quota))
        log_line(&pool->log, pool_clock_now(&pool->clock), "ending", "id=%llu reason=\"%s\"",
                 (unsigned long long)job->by_id.id, pool_info_describe_end(end));
    if (job->end == 0)
        job->end = end;
    /* The client was never notified of the lease. */
    if (job_is_preparing(job)) {
        lease_ending_done(pool, job);
        return;
    }
    job->state = JOB_ENDING;
    journal_write_job(pool, job);
    followers_note(pool->followers, WIRE_NEWS_LEASE);
    inner_leases_cancel_claims(pool, job);
    if (job->hold == LEASE_HOLD_NOTHING) {
        lease_ending_holder_gone(pool, job);
        return;
    }
    set_force(pool, job, force_at);
    if (job->guard == NULL)
        return;
    if (job->connection != NULL)
        lease_ending_send_notice(pool, job, job->end, job->guard->force_at);
    else
        signal_all(pool, job, SIGTERM);
}

void lease_ending_client_gone(struct pool *pool, struct job *job)
{
    /* The client may not have read its notice: berth run hangs up when it becomes the command. */
    if (job->hold == LEASE_HOLD_PROCESS && job->state == JOB_ENDING)
        signal_all(pool, job, SIGTERM);
}

/* Searches for processes that are left; the answer decides whether the lease is over. */
static void look_for_processes(struct pool *pool, struct job *job)
{
    struct leftovers *leftovers = open_leftovers(pool, job);
    struct lease_watch *guard = job->guard;

    if (leftovers == NULL) {
        lease_ending_done(pool, job);
        return;
    }
    job->state = JOB_LOOKING;
    guard->look_number = ++pool->look_count;
    list_append(&pool->looks, &guard->in_looks);
    /* Write this to the journal before the client is notified. */
    if (job->connection != NULL)
        journal_write_job(pool, job);
    inner_leases_cancel_claims(pool, job);
    handover_begin(pool, job);
    leftovers_look(leftovers, guard->ended_holder >= 0);
}

void lease_ending_force(struct pool *pool, struct job *job)
{
    signal_all(pool, job, SIGKILL);
    /* Leases end when their processes have. A lease that a connection holds ends now. */
    if (job->hold == LEASE_HOLD_CONNECTION && !job_is_over(job))
        look_for_processes(pool, job);
}

void lease_ending_force_due(struct timer *timer)
{
    struct lease_watch *guard = container_of(timer, struct lease_watch, force);
    struct pool *pool = guard->pool;
    int64_t began = loop_processor_time(&pool->loop);

    lease_ending_force(pool, guard->job);
    charge_holder(guard, loop_processor_time(&pool->loop) - began);
    engine_events_settle(pool);
}

/* Stops watching the holder. Its pidfd stays open for its exit code, if that is wanted. */
static void forget_holder(struct pool *pool, const struct job *job, bool wants_exit_code)
{
    struct lease_watch *guard = job->guard;

    if (guard == NULL || guard->process.descriptor < 0)
        return;
    loop_remove(&pool->loop, &guard->process);
    if (guard->leftovers != NULL)
        leftovers_root_ended(guard->leftovers);
    if (wants_exit_code && guard->ended_holder < 0)
        guard->ended_holder = guard->process.descriptor;
    else
        close(guard->process.descriptor);
    guard->process.descriptor = -1;
}

static void end_lease(struct pool *pool, struct job *job, bool wants_exit_code)
{
    if (job->state == JOB_LOOKING || job->leaves_mps ||
        (job->guard != NULL && job->state == JOB_DRAINING && job->guard->leftovers != NULL))
        return;
    forget_holder(pool, job, wants_exit_code);
    if (job->end == 0)
        job->end = LEASE_END_DIED;
    if (job->hold == LEASE_HOLD_CONNECTION || job_is_preparing(job))
        lease_ending_done(pool, job);
    else
        look_for_processes(pool, job);
}

void lease_ending_holder_gone(struct pool *pool, struct job *job)
{
    end_lease(pool, job, false);
}

/* Keeps the devices of a lease that is over until their MPS control daemons have ended. */
static void keep_devices(struct pool *pool, struct job *job)
{
    job->state = JOB_DRAINING;
    journal_write_job(pool, job);
    engine_drain_lease(pool->engine, job->by_lease.id, NULL);
}

void lease_ending_done(struct pool *pool, struct job *job)
{
    if (job->leaves_mps)
        return;
    /* A report that began with the search is new enough if the search found no process. */
    if (job->state != JOB_LOOKING)
        handover_begin(pool, job);
    prolog_epilog_end(pool, job);
    mps_tenants_leave(pool, job);
    if (mps_tenants_must_keep(pool, job))
        keep_devices(pool, job);
    else
        engine_vacated(pool->engine, job->by_lease.id, NULL);
}

static void holder_ended(struct watch *watch, uint32_t events)
{
    struct lease_watch *guard = container_of(watch, struct lease_watch, process);
    struct pool *pool = guard->pool;
    struct job *job = guard->job;
    int64_t began = loop_processor_time(&pool->loop);
    struct quota *user = job->holder->quota;
    bool wants_exit_code = false;

    (void)events;
    /* Keep the exit code if the command ended by itself. */
    if (job->end == 0 && job->exit_code == NO_EXIT_CODE && !guard->is_unconfirmed) {
        job->exit_code = (int16_t)pidfd_exit_code(watch->descriptor);
        wants_exit_code = job->exit_code == NO_EXIT_CODE;
    }
    end_lease(pool, job, wants_exit_code);
    engine_events_settle(pool);
    if (user != NULL)
        quota_charge_time(user, loop_processor_time(&pool->loop) - began);
}

bool lease_ending_watch(struct pool *pool, struct job *job, int descriptor)
{
    struct lease_watch *guard = descriptor < 0 ? NULL : job_lease_watch(pool, job);

    if (guard == NULL) {
        if (descriptor >= 0)
            close(descriptor);
        return false;
    }
    guard->process.descriptor = descriptor;
    guard->process.ready = holder_ended;
    /* A message of the same turn must find the devices free. */
    guard->process.first = true;
    if (loop_add(&pool->loop, &guard->process, EPOLLIN, NULL) == 0)
        return true;
    close(descriptor);
    guard->process.descriptor = -1;
    return false;
}

void lease_ending_confirm(struct pool *pool, struct job *job, bool is_holder)
{
    struct lease_watch *guard = job->guard;

    guard->is_unconfirmed = false;
    if (!is_holder)
        end_lease(pool, job, false);
    else if (guard->held_signal != 0 && leftovers_has_answer(guard->leftovers))
        signal_holder(guard, guard->held_signal);
}
