/* SPDX-License-Identifier: Apache-2.0
 *
 * A reader of the pool's event stream: the newest look at the pool, kept up to date as long as
 * somebody calls follower_step. A reader that is slow misses what was in between, never what is.
 * When the daemon goes away, the follower keeps what it knows, says so, and tries again by itself.
 * Nothing here blocks but follower_open, and starting the user's own daemon anew. One thread at a
 * time.
 *
 *     follower_open(&follower, &settings, &error);
 *     for (;;) {
 *         poll(follower_descriptor(&follower), POLLIN, follower_next_timeout(&follower));
 *         news = follower_step(&follower, &error);
 *         ... follower.view, and what has ended
 *         follower_forget_ended(&follower);
 *     }
 */
#ifndef VIEW_FOLLOWER_H
#define VIEW_FOLLOWER_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/quantity.h"
#include "base/vector.h"
#include "client/pool_address.h"
#include "client/session.h"
#include "view/pool_view.h"
#include "wire/wire.h"

struct follower_settings {
    const char *inventory; /* as connect_open's; NULL: none was given */
    uint32_t kinds;        /* what is to be told: bits of enum wire_news */
    int64_t interval;      /* the least time from one news to the next, nanoseconds; with
                              WIRE_NEWS_LOAD also how often devices are looked at, at least 1 s.
                              Where looking takes long, more: see follower_effective_interval */
    uint32_t sections;     /* that are kept up to date: bits 1 << enum wire_section; 0: all */
    size_t claims_max;     /* of the queue that are looked at; 0: all */
    bool keeps_ended;      /* leases that end are wanted, not only what is there */
    uint64_t epoch;        /* of a daemon of which the first `ended` leases that ended are known */
    uint64_t ended_known;  /* already; 0: nothing is */
};

/* How a follower stands with the daemon. */
enum follower_state {
    FOLLOWER_LIVE,   /* what is shown is what is */
    FOLLOWER_SILENT, /* connected, but it has not answered for FOLLOWER_TIMEOUT */
    FOLLOWER_GONE,   /* not connected; it is dialled again and again */
};
#define FOLLOWER_TIMEOUT (5 * DURATION_SECOND)

struct follower {
    struct follower_settings settings;
    struct pool_address address;
    struct session session;
    bool never_reconnects;     /* it is not dialled again */
    int64_t dial_at;           /* when it is, while it is gone; times are clock_now()'s */
    int64_t pause;             /* before that */
    int64_t last_heard_at;     /* when the daemon last said something */
    int64_t requested_at;      /* what it has to answer at once; 0: nothing */
    struct berth_error reason; /* why it is gone */

    uint64_t epoch;        /* of the daemon that is followed */
    uint64_t mark;         /* up to which all is known */
    uint64_t ended_count;  /* leases that had ended by then */
    uint64_t hello_number; /* of the questions that are under way; 0: none is */
    uint64_t subscribe_number;
    uint64_t snapshot_number;
    uint32_t due_sections;       /* sections that are to be looked at */
    uint32_t snapshot_sections;  /* those of the look that is under way */
    int64_t snapshot_started_at; /* when it began */
    int64_t snapshot_duration;   /* how long the last one took, from beginning to end */
    uint64_t snapshots_started;  /* how many looks were begun */
    bool due_whole_queue;        /* the next is to be at all of the queue */
    bool whole;                  /* and the one that is under way is */
    uint32_t pending_kinds;      /* news that are told once the next look is complete */
    uint32_t snapshot_kinds;     /* and those of the one that is under way */
    uint64_t news_count;         /* how often there were news */
    struct pool_view partial;    /* it so far */
    struct pool_view_position position;

    bool has_view;
    uint64_t seen;         /* which look the view is of, of those that were begun */
    int64_t seen_at;       /* when the view came */
    struct pool_view view; /* the newest that is complete; its queue may be cut (claims_max) */
    struct {
        VECTOR_OF(struct ended_lease);
    } ended;       /* leases that are over, oldest first, until they are forgotten */
    uint64_t lost; /* others that are over, and of which nothing is known; likewise */
    struct pool_tally tally;
    struct duration_histogram waited; /* the tally's */
    struct duration_histogram held;
};

/* Finds the pool and dials, starting the user's own daemon where none runs. The follower is not to
 * be moved from here on. Fails as connect_open, and needs no clean-up then. The strings of the
 * settings stay the caller's. */
int follower_open(struct follower *follower, const struct follower_settings *settings,
                  struct berth_error *error);
/* Over a connection that is there already, which it consumes; it is not dialled again. */
int follower_open_connected(struct follower *follower, int descriptor,
                            const struct follower_settings *settings, struct berth_error *error);
void follower_close(struct follower *follower);

/* What to wait for: readable. -1 while the daemon is gone. It changes when it is dialled again. */
int follower_descriptor(const struct follower *follower);
/* How many nanoseconds may pass until follower_step is to be called in any case. */
int64_t follower_next_timeout(const struct follower *follower);

/* Takes in what has come, and asks for more. Returns bits of enum wire_news: what is new in the
 * view since the last call; 0: nothing is. Fails with BERTH_ERROR_MEMORY, or BERTH_ERROR_IO when
 * the daemon is gone and is not dialled again (follower_open_connected), or with what the daemon
 * said when it closed us. */
int follower_step(struct follower *follower, struct berth_error *error);

enum follower_state follower_get_state(const struct follower *follower);

/* The time of the pool's clock at which things are as the view says: now, or where the daemon does
 * not answer or is gone, when it was last heard of. A view that is old because nothing has happened
 * since is as good as new. */
int64_t follower_time(const struct follower *follower);

/* Wants other kinds, or at another pace, from now on. */
void follower_set_interests(struct follower *follower, uint32_t kinds, int64_t interval);

/* Looks at everything now, whatever the pace, and with `whole` at all of the queue. Returns the
 * number of that look: it is over, and was told as news, when `seen` is not less. */
uint64_t follower_refresh(struct follower *follower, bool whole);

/* What has ended was dealt with. */
void follower_forget_ended(struct follower *follower);

#endif
