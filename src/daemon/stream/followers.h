/* SPDX-License-Identifier: Apache-2.0
 *
 * Followers of the pool's event stream. A follower asks once and is answered once, when there is
 * something newer than it knows; then it reads the sections that it needs. So a slow follower costs
 * nothing, and gets the newest state when it asks again.
 *
 * Nothing here blocks. All functions belong to the loop's thread.
 */
#ifndef DAEMON_STREAM_FOLLOWERS_H
#define DAEMON_STREAM_FOLLOWERS_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "daemon/core/loop.h"
#include "engine/event.h"

struct followers;

/* One follower: its knowledge and the news that it wants. It is the caller's memory; zeroed memory
 * follows nothing. */
struct stream_follower {
    struct list_link in_followers;
    bool knows_epoch;    /* it knows something of this daemon */
    uint64_t mark;       /* the last change that it knows */
    uint64_t ended;      /* how many ended leases it knows */
    uint32_t kinds;      /* bits of enum wire_news */
    int64_t interval;    /* at least so long between two answers */
    int64_t notified_at; /* when it was answered last, in the loop's time; 0: never */
    bool is_recorder;    /* it is berth-recorder, not a user's program */
};

struct followers_settings {
    struct loop *loop;
    void *context;
    /* Answers a follower, which must be removed. `kinds`: the kinds of changes. */
    void (*notify)(void *context, struct stream_follower *follower, uint32_t kinds);
};

/* Fails with BERTH_ERROR_MEMORY, or with _IO without random bytes. */
int followers_create(struct followers **ret_followers, const struct followers_settings *settings,
                     struct berth_error *error);
/* Forgets all followers. Accepts NULL. */
void followers_destroy(struct followers *followers);

void followers_add(struct followers *followers, struct stream_follower *follower);
/* Removes a follower; one that was never added is fine. */
void followers_remove(struct stream_follower *follower);

/* Notes a change of these kinds, bits of enum wire_news. Accepts NULL. */
void followers_note(struct followers *followers, uint32_t kinds);
/* Notes the changes that an event of the engine causes. Accepts NULL. */
void followers_note_event(struct followers *followers, const struct engine_event *event);
/* Notes how many leases have ended since the start. */
void followers_note_ended(struct followers *followers, uint64_t count);

/* Returns a number that differs for each start of the daemon; not 0. */
uint64_t followers_epoch(const struct followers *followers);
/* Returns the mark of the last change. */
uint64_t followers_mark(const struct followers *followers);

/* Answers the followers that may be answered. Called before each wait of the loop. */
void followers_notify(struct followers *followers);

/* Returns whether a user's program follows leases, or did a moment ago. */
bool followers_read_leases(const struct followers *followers);

/* Returns the shortest interval at which a follower wants the devices' loads; 0: none does. */
int64_t followers_load_interval(const struct followers *followers);

#endif
