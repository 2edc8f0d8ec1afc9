/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/news.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "daemon/connection.h"
#include "daemon/hardware.h"
#include "daemon/jobs.h"
#include "daemon/messages.h"
#include "daemon/past.h"

/* Who has not asked again after this long is not taken for one who follows. */
#define READERS_PAUSE (3 * DURATION_SECOND)

enum { KINDS = 4 };
_Static_assert(WIRE_NEWS_ALL == (1 << KINDS) - 1, "each kind has its mark");

struct news {
    struct pool *pool;
    uint64_t epoch;
    uint64_t mark;           /* counts what has changed */
    uint64_t changed[KINDS]; /* the mark of each kind's last change */
    struct list followers;   /* struct watcher */
    struct timer timer;      /* when the next of them may be told */
    int64_t read_at;         /* when one that is not our recorder asked last, in the loop's time */
    struct pool_tally tally;
    struct duration_histogram waited;
    struct duration_histogram held;
};

static void followers_are_due(struct timer *timer)
{
    /* The turn ends with telling them: nothing is left to do but to have woken up. */
    (void)timer;
}

int news_init(struct pool *pool, struct berth_error *error)
{
    struct news *news = calloc(1, sizeof(*news));

    if (news == NULL)
        return error_set_memory(error);
    news->pool = pool;
    list_init(&news->followers);
    news->timer.fire = followers_are_due;
    news->tally.waited = &news->waited;
    news->tally.held = &news->held;
    do {
        if (getrandom(&news->epoch, sizeof(news->epoch), 0) != sizeof(news->epoch)) {
            free(news);
            return error_set_errno(error, errno, "cannot read random bytes");
        }
    } while (news->epoch == 0);
    pool->news = news;
    return past_init(pool, error);
}

void news_finish(struct pool *pool)
{
    if (pool->news == NULL)
        return;
    past_finish(pool);
    timer_set_at(&pool->loop, &pool->news->timer, LOOP_NEVER);
    free(pool->news);
    pool->news = NULL;
}

uint64_t news_epoch(const struct pool *pool)
{
    return pool->news->epoch;
}

void news_note(struct pool *pool, uint32_t kinds)
{
    struct news *news = pool->news;

    if (news == NULL || kinds == 0)
        return;
    news->mark++;
    for (unsigned i = 0; i < KINDS; i++) {
        if ((kinds & (1U << i)) != 0)
            news->changed[i] = news->mark;
    }
}

void news_note_event(struct pool *pool, const struct engine_event *event)
{
    static const uint32_t kinds[EVENT_TYPES] = {
        [EVENT_QUEUED] = WIRE_NEWS_QUEUE,
        [EVENT_GRANTED] = WIRE_NEWS_LEASE | WIRE_NEWS_QUEUE,
        [EVENT_REFUSED] = WIRE_NEWS_QUEUE,
        [EVENT_NOTICE] = WIRE_NEWS_LEASE,
        [EVENT_REVOKED] = WIRE_NEWS_LEASE,
        [EVENT_EXPIRED] = WIRE_NEWS_LEASE,
        [EVENT_DRAINING] = WIRE_NEWS_LEASE,
        [EVENT_RELEASED] = WIRE_NEWS_LEASE,
        [EVENT_EXTENDED] = WIRE_NEWS_LEASE,
        [EVENT_DEVICE] = WIRE_NEWS_LOAD,
        [EVENT_RETURNED] = WIRE_NEWS_LEASE | WIRE_NEWS_QUEUE,
    };

    news_note(pool, kinds[event->type]);
}

/* ---- Counting ---- */

static void count_in(struct duration_histogram *histogram, int64_t duration)
{
    unsigned bucket = 0;

    if (duration < 0)
        duration = 0;
    while (bucket < HISTOGRAM_BUCKETS - 1 && duration > histogram_bounds[bucket])
        bucket++;
    histogram->counts[bucket]++;
    histogram->sum += (uint64_t)duration;
}

struct pool_tally *news_tally(struct pool *pool)
{
    return &pool->news->tally;
}

void tally_granted(struct pool *pool, int64_t waited)
{
    pool->news->tally.granted++;
    count_in(&pool->news->waited, waited);
}

void tally_held(struct pool *pool, int64_t held)
{
    count_in(&pool->news->held, held);
}

void tally_refused(struct pool *pool, int error)
{
    struct pool_tally *tally = &pool->news->tally;

    if (error == BERTH_ERROR_BUSY)
        tally->busy++;
    else if (error == BERTH_ERROR_IMPOSSIBLE || error == BERTH_ERROR_NO_DEVICE)
        tally->impossible++;
    else
        tally->refused++;
}

void tally_gone(struct pool *pool, enum lease_end end)
{
    struct pool_tally *tally = &pool->news->tally;

    if (end == LEASE_END_TIMED_OUT)
        tally->timed_out++;
    else if (end == LEASE_END_IMPOSSIBLE)
        tally->impossible++;
    else
        tally->cancelled++;
}

/* ---- Followers ---- */

/* A connection follows once: what it asks now takes the place of what it asked before. */
static void forget_other(struct connection *connection)
{
    list_for_each (link, &connection->watchers) {
        struct watcher *watcher = container_of(link, struct watcher, in_connection);

        if (list_is_linked(&watcher->in_followers))
            watcher_free(watcher);
    }
}

void message_follow(struct connection *connection, struct wire_message *message)
{
    struct news *news = connection->pool->news;
    struct berth_error error = BERTH_ERROR_INIT;
    struct watcher *watcher = NULL;

    forget_other(connection);
    if ((message->kinds & WIRE_NEWS_ALL) == 0)
        error_set(
            &error, BERTH_ERROR_INVALID,
            "unknown kind of notification in the set %u; the client may be newer than the daemon",
            message->kinds);
    else
        watcher = watcher_new(connection, message->number, NULL, &error);
    if (watcher == NULL) {
        connection_refuse(connection, message->number, &error);
        return;
    }
    watcher->follows = (struct following){
        .knows = message->epoch == news->epoch,
        .after = message->after,
        .ended = message->id,
        .kinds = message->kinds,
        .interval = message->duration > INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)message->duration,
    };
    list_append(&news->followers, &watcher->in_followers);
    if (!connection->is_recorder && (message->kinds & WIRE_NEWS_LEASE) != 0)
        news->read_at = loop_now(&connection->pool->loop);
}

bool news_has_readers(const struct pool *pool)
{
    const struct news *news = pool->news;

    if (news->read_at != 0 && loop_now(&pool->loop) - news->read_at < READERS_PAUSE)
        return true;
    list_for_each (link, &news->followers) {
        const struct watcher *watcher = container_of(link, struct watcher, in_followers);

        if (!watcher->connection->is_recorder && (watcher->follows.kinds & WIRE_NEWS_LEASE) != 0)
            return true;
    }
    return false;
}

/* What it does not know of what it wants to know. */
static uint32_t news_for(const struct news *news, const struct following *follows)
{
    uint32_t kinds = 0;

    if (!follows->knows)
        return follows->kinds & WIRE_NEWS_ALL;
    for (unsigned i = 0; i < KINDS; i++) {
        if (news->changed[i] > follows->after)
            kinds |= 1U << i;
    }
    if (past_count(news->pool) > follows->ended)
        kinds |= WIRE_NEWS_LEASE;
    return kinds & follows->kinds;
}

static void tell(struct news *news, struct watcher *watcher, uint32_t kinds)
{
    struct pool *pool = news->pool;
    struct connection *connection = watcher->connection;
    struct wire_message message = {
        .type = WIRE_NEWS,
        .number = watcher->number,
        .epoch = news->epoch,
        .after = news->mark,
        .kinds = kinds,
        .id = past_count(pool),
        .snapshot = look_counts(pool),
        .tally = &news->tally,
    };

    if ((watcher->follows.kinds & WIRE_NEWS_LEASE) != 0)
        past_tell(pool, watcher->follows.knows ? watcher->follows.ended : 0, &message);
    /* The rest comes as soon as it is asked for. */
    connection->told_news_at = message.more ? 0 : loop_now(&pool->loop);
    connection_send(connection, &message);
    vector_finish(&message.ended);
    watcher_free(watcher);
}

void news_tell(struct pool *pool)
{
    struct news *news = pool->news;
    int64_t next = LOOP_NEVER;

    if (list_is_empty(&news->followers) && !list_is_linked(&news->timer.in_loop))
        return;
    list_for_each (link, &news->followers) {
        struct watcher *watcher = container_of(link, struct watcher, in_followers);
        uint32_t kinds = news_for(news, &watcher->follows);
        int64_t due = watcher->connection->told_news_at + watcher->follows.interval;

        if (kinds == 0)
            continue;
        if (watcher->connection->told_news_at == 0 || due <= loop_now(&pool->loop))
            tell(news, watcher, kinds);
        else if (due < next)
            next = due;
    }
    timer_set_at(&pool->loop, &news->timer, next);
}

int64_t news_load_interval(const struct pool *pool)
{
    int64_t interval = 0;

    if (pool->news == NULL)
        return 0;
    list_for_each (link, &pool->news->followers) {
        const struct following *follows =
            &container_of(link, struct watcher, in_followers)->follows;

        if ((follows->kinds & WIRE_NEWS_LOAD) == 0)
            continue;
        if (interval == 0 || follows->interval < interval)
            interval = follows->interval < HARDWARE_WATCHED_EVERY ? HARDWARE_WATCHED_EVERY
                                                                  : follows->interval;
    }
    return interval;
}
