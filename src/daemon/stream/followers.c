/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/stream/followers.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "wire/wire.h"

/* A follower that has not asked again after this long is gone. */
#define READERS_PAUSE (3 * DURATION_SECOND)

enum { KINDS = 4 };
_Static_assert(WIRE_NEWS_ALL == (1 << KINDS) - 1, "each kind has its mark");

struct followers {
    struct followers_settings settings;
    uint64_t epoch;
    uint64_t mark;           /* counts the changes */
    uint64_t changed[KINDS]; /* the mark of each kind's last change */
    uint64_t ended;          /* leases */
    struct list list;        /* struct stream_follower */
    struct timer timer;      /* when the next of them may be notified */
    int64_t read_at;         /* when a user's program asked last, in the loop's time */
};

static int64_t now_of(const struct followers *followers)
{
    return loop_now(followers->settings.loop);
}

static void wake_up(struct timer *timer)
{
    /* followers_notify() runs before the next wait. */
    (void)timer;
}

int followers_create(struct followers **ret_followers, const struct followers_settings *settings,
                     struct berth_error *error)
{
    struct followers *followers = calloc(1, sizeof(*followers));

    if (followers == NULL)
        return error_set_memory(error);
    followers->settings = *settings;
    list_init(&followers->list);
    followers->timer.fire = wake_up;
    do {
        if (getrandom(&followers->epoch, sizeof(followers->epoch), 0) != sizeof(followers->epoch)) {
            free(followers);
            return error_set_errno(error, errno, "cannot read random bytes");
        }
    } while (followers->epoch == 0);
    *ret_followers = followers;
    return 0;
}

void followers_destroy(struct followers *followers)
{
    if (followers == NULL)
        return;
    list_for_each (link, &followers->list)
        list_remove(link);
    loop_set_timer(followers->settings.loop, &followers->timer, LOOP_NEVER);
    free(followers);
}

uint64_t followers_epoch(const struct followers *followers)
{
    return followers->epoch;
}

uint64_t followers_mark(const struct followers *followers)
{
    return followers->mark;
}

void followers_note(struct followers *followers, uint32_t kinds)
{
    if (followers == NULL || kinds == 0)
        return;
    followers->mark++;
    for (unsigned i = 0; i < KINDS; i++) {
        if ((kinds & (1U << i)) != 0)
            followers->changed[i] = followers->mark;
    }
}

void followers_note_event(struct followers *followers, const struct engine_event *event)
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

    followers_note(followers, kinds[event->type]);
}

void followers_note_ended(struct followers *followers, uint64_t count)
{
    followers->ended = count;
}

void followers_add(struct followers *followers, struct stream_follower *follower)
{
    list_append(&followers->list, &follower->in_followers);
    if (!follower->is_recorder && (follower->kinds & WIRE_NEWS_LEASE) != 0)
        followers->read_at = now_of(followers);
}

void followers_remove(struct stream_follower *follower)
{
    list_remove(&follower->in_followers);
}

bool followers_read_leases(const struct followers *followers)
{
    if (followers->read_at != 0 && now_of(followers) - followers->read_at < READERS_PAUSE)
        return true;
    list_for_each (link, &followers->list) {
        const struct stream_follower *follower =
            container_of(link, struct stream_follower, in_followers);

        if (!follower->is_recorder && (follower->kinds & WIRE_NEWS_LEASE) != 0)
            return true;
    }
    return false;
}

/* Returns the kinds that have changed since the follower knew them. */
static uint32_t find_news(const struct followers *followers, const struct stream_follower *follower)
{
    uint32_t kinds = 0;

    if (!follower->knows_epoch)
        return follower->kinds & WIRE_NEWS_ALL;
    for (unsigned i = 0; i < KINDS; i++) {
        if (followers->changed[i] > follower->mark)
            kinds |= 1U << i;
    }
    if (followers->ended > follower->ended)
        kinds |= WIRE_NEWS_LEASE;
    return kinds & follower->kinds;
}

void followers_notify(struct followers *followers)
{
    int64_t next = LOOP_NEVER;

    if (list_is_empty(&followers->list) && !list_is_linked(&followers->timer.in_loop))
        return;
    list_for_each (link, &followers->list) {
        struct stream_follower *follower = container_of(link, struct stream_follower, in_followers);
        uint32_t kinds = find_news(followers, follower);
        int64_t due = follower->notified_at + follower->interval;

        if (kinds == 0)
            continue;
        if (follower->notified_at == 0 || due <= now_of(followers))
            followers->settings.notify(followers->settings.context, follower, kinds);
        else if (due < next)
            next = due;
    }
    loop_set_timer(followers->settings.loop, &followers->timer, next);
}

int64_t followers_load_interval(const struct followers *followers)
{
    int64_t interval = 0;

    list_for_each (link, &followers->list) {
        const struct stream_follower *follower =
            container_of(link, struct stream_follower, in_followers);

        if ((follower->kinds & WIRE_NEWS_LOAD) != 0 &&
            (interval == 0 || follower->interval < interval))
            interval = follower->interval > 0 ? follower->interval : 1;
    }
    return interval;
}
