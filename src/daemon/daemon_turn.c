/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/daemon_turn.h"

#include "base/text/quantity.h"
#include "daemon/clients/activation.h"
#include "daemon/core/runner.h"
#include "daemon/devices/probe_poll.h"
#include "daemon/handlers/deferred_claims.h"
#include "daemon/leases/engine_events.h"
#include "daemon/leases/journal_write.h"
#include "daemon/leases/lost_leases.h"
#include "daemon/leases/pool.h"
#include "daemon/mps/mps.h"
#include "daemon/stream/followers.h"

/* The intervals between retries of a failed journal write, and of a failed checkpoint, which takes
 * longer. */
#define JOURNAL_RETRY    (DURATION_SECOND / 5)
#define CHECKPOINT_RETRY DURATION_SECOND

static void engine_is_due(struct timer *timer)
{
    /* daemon_turn_begin() does the work of the turn that this timer starts. */
    (void)timer;
}

static void tests_are_due(struct timer *timer)
{
    struct pool *pool = container_of(timer, struct pool, test_timer);

    pool->changed = true;
    engine_events_settle(pool);
}

static void journal_is_due(struct timer *timer)
{
    struct pool *pool = container_of(timer, struct pool, journal_timer);

    if (!journal_file_is_behind(&pool->journal))
        clients_flush(&pool->clients);
}

/* Returns whether a user's own daemon has no job, no client and no running program. */
static bool is_idle(const struct pool *pool)
{
    return pool->settings.own && pool->job_count == 0 && pool->clients.connection_count == 0 &&
           !runner_is_busy(pool->runner) && !mps_is_busy(pool->mps) &&
           !lost_leases_are_sought(pool);
}

static void idle_is_over(struct timer *timer)
{
    struct pool *pool = container_of(timer, struct pool, idle_timer);

    if (is_idle(pool) && clients_stop_listening(&pool->clients))
        pool->loop.ended = true;
}

/* Fires within a turn of the loop, so that a daemon that is stuck gives no sign. */
static void report_alive(struct timer *timer)
{
    struct pool *pool = container_of(timer, struct pool, watchdog_timer);

    activation_alive(&pool->watchdog_socket);
    loop_set_timer(&pool->loop, timer, loop_now(&pool->loop) + pool->watchdog_interval);
}

static void set_if_other(struct pool *pool, struct timer *timer, int64_t at)
{
    if (timer->at != at || !list_is_linked(&timer->in_loop))
        loop_set_timer(&pool->loop, timer, at);
}

/* Repeats a failed write, or makes a long journal short. */
static void maintain_journal(struct pool *pool)
{
    int64_t now = loop_now(&pool->loop);

    if (journal_file_is_behind(&pool->journal)) {
        if (!list_is_linked(&pool->journal_timer.in_loop))
            loop_set_timer(&pool->loop, &pool->journal_timer, now + JOURNAL_RETRY);
    } else if (journal_file_is_long(&pool->journal) && now >= pool->next_checkpoint) {
        /* Without space for a new file, the old one is continued. */
        if (journal_write_checkpoint(pool, NULL) < 0)
            pool->next_checkpoint = now + CHECKPOINT_RETRY;
    }
}

static void set_timers(struct pool *pool)
{
    int64_t next = engine_next_time(pool->engine);

    probe_poll_schedule(pool->probe_poll);
    if (next != TIME_NEVER || list_is_linked(&pool->engine_timer.in_loop))
        set_if_other(pool, &pool->engine_timer, pool_clock_loop_time(&pool->clock, next));
    if (is_idle(pool) != list_is_linked(&pool->idle_timer.in_loop))
        loop_set_timer(&pool->loop, &pool->idle_timer,
                       is_idle(pool) ? loop_now(&pool->loop) + pool->settings.idle : LOOP_NEVER);
}

void daemon_turn_end(void *context)
{
    struct pool *pool = context;

    /* Closing a connection is news for followers, and answering a follower may close another
     * connection. */
    do {
        deferred_claims_continue_early(pool);
        clients_end_turn(&pool->clients);
        followers_notify(pool->followers);
    } while (!list_is_empty(&pool->clients.closing));
    maintain_journal(pool);
    set_timers(pool);
}

void daemon_turn_begin(void *context)
{
    struct pool *pool = context;

    clients_begin_turn(&pool->clients);
    engine_advance(pool->engine, pool_clock_now(&pool->clock));
    engine_events_settle(pool);
}

void daemon_turn_init(struct pool *pool)
{
    pool->engine_timer.fire = engine_is_due;
    pool->idle_timer.fire = idle_is_over;
    pool->journal_timer.fire = journal_is_due;
    pool->test_timer.fire = tests_are_due;
    pool->watchdog_timer.fire = report_alive;
    pool->watchdog_socket = -1;
}

void daemon_turn_start_watchdog(struct pool *pool)
{
    pool->watchdog_interval = activation_watchdog_time() / 2;
    if (pool->watchdog_interval > 0)
        report_alive(&pool->watchdog_timer); /* takes the socket while descriptors are free */
}
