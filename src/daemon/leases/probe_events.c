/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/probe_events.h"

#include "base/error.h"
#include "daemon/devices/probe_poll.h"
#include "daemon/leases/device_report.h"
#include "daemon/leases/engine_events.h"
#include "daemon/leases/handover.h"
#include "daemon/leases/lease_warnings.h"
#include "daemon/leases/lost_leases.h"
#include "daemon/leases/pool.h"
#include "daemon/leases/squatter_watch.h"
#include "daemon/stream/followers.h"
#include "engine/engine_report.h"

static bool is_busy(void *context)
{
    return ((const struct pool *)context)->job_count > 0;
}

/* Some processes cannot be watched. Poll while a claim may wait for one of them. */
static int64_t followed_interval(void *context)
{
    const struct pool *pool = context;

    if (engine_pending(pool->engine) > 0 && squatter_watch_has_hidden(pool))
        return PROBE_POLL_WATCHED_EVERY;
    return pool->followers == NULL ? 0 : followers_load_interval(pool->followers);
}

static bool needs_report(void *context)
{
    return handover_is_unasked(context);
}

static bool awaits_report(void *context)
{
    return handover_is_pending(context);
}

static void begin_request(void *context, struct device_id_list *only)
{
    handover_ask(context, only);
}

/* Applies a report. The engine is paused meanwhile. */
static int take_report(void *context, struct machine_report *report, struct berth_error *error)
{
    struct pool *pool = context;
    int code = device_report_apply(pool, report, error);

    handover_looked(pool);
    lost_leases_reported(pool);
    if (pool->is_restoring)
        return code;
    engine_resume(pool->engine);
    lease_warnings_check(pool);
    followers_note(pool->followers, WIRE_NEWS_LOAD);
    engine_events_settle(pool);
    return code;
}

static void lose_probe(void *context)
{
    struct pool *pool = context;

    engine_mark_devices_old(pool->engine);
    lease_warnings_check(pool);
    followers_note(pool->followers, WIRE_NEWS_LOAD);
    handover_unanswered(pool);
}

static void continue_claims(void *context)
{
    struct pool *pool = context;

    pool->handlers.continue_claims(pool);
}

static int launch_probe(void *context, int socket, struct berth_error *error)
{
    struct pool *pool = context;
    int number = launcher_start(&pool->launcher, LAUNCHER_PROBE, &socket, 1);

    return number == 0 ? 0 : error_set_errno(error, number, "cannot start berth-probe");
}

int probe_events_open(struct pool *pool, struct berth_error *error)
{
    return probe_poll_create(
        &pool->probe_poll,
        &(struct probe_poll_settings){
            .loop = &pool->loop,
            .log = &pool->log,
            .clock = &pool->clock,
            .spawn = launcher_is_separate(&pool->launcher) ? launch_probe : NULL,
            .spawn_context = pool,
            .events =
                {
                    .context = pool,
                    .is_busy = is_busy,
                    .followed_interval = followed_interval,
                    .needs_report = needs_report,
                    .awaits_report = awaits_report,
                    .request = begin_request,
                    .take = take_report,
                    .lost = lose_probe,
                    .answered = continue_claims,
                },
        },
        error);
}

void probe_events_begin(struct pool *pool)
{
    pool->is_restoring = true;
    probe_poll_begin(pool->probe_poll);
    pool->is_restoring = false;
}

bool probe_events_must_wait(struct pool *pool, bool anew)
{
    /* If squatters are ignored, only claims for running processes need a report. */
    if (!anew && pool->rules.squatters == SQUATTING_IGNORED)
        return false;
    return probe_poll_must_wait(pool->probe_poll, anew);
}
