/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/pool_news.h"

#include "daemon/clients/connection.h"
#include "daemon/leases/job.h"
#include "daemon/leases/pool.h"
#include "daemon/leases/pool_facts.h"
#include "daemon/leases/visible_commands.h"
#include "daemon/leases/watcher.h"
#include "daemon/stream/ended_leases.h"
#include "daemon/stream/followers.h"

/* Answers the FOLLOW of a client. */
static void answer_follower(void *context, struct stream_follower *follower, uint32_t kinds)
{
    struct pool *pool = context;
    struct watcher *watcher = container_of(follower, struct watcher, follower);
    struct connection *connection = watcher->connection;
    struct berth_error error = BERTH_ERROR_INIT;
    struct visible_commands visible;
    struct wire_message message = {
        .type = WIRE_NEWS,
        .number = watcher->number,
        .epoch = followers_epoch(pool->followers),
        .after = followers_mark(pool->followers),
        .kinds = kinds,
        .id = ended_leases_count(pool->ended_leases),
        .snapshot = pool_facts_counts(pool),
        .tally = &pool->counts.tally,
    };

    if ((follower->kinds & WIRE_NEWS_LEASE) != 0)
        ended_leases_fill(pool->ended_leases, follower->knows_epoch ? follower->ended : 0,
                          &message);
    /* The rest follows at once, without the follower's interval. */
    connection->notified_at = message.more ? 0 : loop_now(&pool->loop);
    visible_commands_init(&visible, connection);
    if (visible_commands_limit(&visible, &message, &error) < 0)
        connection_refuse(connection, message.number, &error);
    else
        connection_send(connection, &message);
    visible_commands_finish(&visible);
    vector_finish(&message.ended);
    watcher_free(watcher);
}

int pool_news_init(struct pool *pool, struct berth_error *error)
{
    const struct followers_settings settings = {
        .loop = &pool->loop, .context = pool, .notify = answer_follower};
    int code = followers_create(&pool->followers, &settings, error);

    pool_counts_init(&pool->counts);
    if (code == 0)
        code = ended_leases_create(&pool->ended_leases, &pool->loop, pool->followers, error);
    return code;
}

void pool_news_finish(struct pool *pool)
{
    ended_leases_destroy(pool->ended_leases);
    followers_destroy(pool->followers);
    pool->ended_leases = NULL;
    pool->followers = NULL;
}

void pool_news_lease_changed(struct pool *pool, const struct job *job)
{
    struct lease_view view;
    struct lease_info info;

    /* Without memory for its facts, the lease is lost to followers. */
    if (!engine_get_lease(pool->engine, job->by_lease.id, &view) ||
        pool_facts_fill_lease(pool, job, &view, &info) < 0)
        return;
    if (ended_leases_note(pool->ended_leases, job->by_lease.id, &info) && !job->restored)
        pool_counts_add_granted(&pool->counts, view.granted - job->since);
}

void pool_news_lease_ended(struct pool *pool, const struct job *job, enum lease_end end)
{
    struct lease_ended facts = {.end = end, .time = pool_clock_now(&pool->clock)};
    const struct lease_info *info;

    if (job->exit_code != NO_EXIT_CODE)
        facts.exit_code = optional_number_of((uint64_t)job->exit_code);
    if (job->guard != NULL) {
        facts.judged_time = job->guard->judged_time;
        facts.idle_time = job->guard->idle_time;
    }
    info = ended_leases_add(pool->ended_leases, job->by_lease.id, &facts);
    if (info != NULL)
        pool_counts_add_held(&pool->counts, facts.time - info->granted);
}
