/* SPDX-License-Identifier: Apache-2.0
 *
 * A follower keeps a snapshot of a pool up to date from the daemon's event stream. Its owner must
 * call follower_step. A slow owner may miss intermediate states, but never the latest one. When
 * the daemon goes away, the follower keeps its snapshot, reports the state, and reconnects. Only
 * follower_open and restarting the user's own daemon block. Only one thread may use a follower at a
 * time.
 *
 *     follower_open(&follower, &settings, &error);
 *     for (;;) {
 *         poll(follower_descriptor(&follower), POLLIN, follower_next_timeout(&follower));
 *         news = follower_step(&follower, &error);
 *         ... use follower.view and follower.ended
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
#include "view/pool_view_fetch.h"
#include "wire/wire.h"

struct follower_settings {
    const char *inventory; /* as in connect_open; NULL: none was given */
    uint32_t kinds;        /* the kinds of news to subscribe to: bits of enum wire_news */
    int64_t interval;      /* the minimum time between two messages with news, in nanoseconds; with
                              WIRE_NEWS_LOAD also the time between samples of the devices, at least
                              1 s. It is longer when snapshots are slow: see
                              follower_effective_interval */
    uint32_t sections;    /* the sections to keep up to date: bits 1 << enum wire_section; 0: all */
    size_t claims_max;    /* maximum number of claims in a snapshot; 0: all */
    bool keeps_ended;     /* collect ended leases in follower.ended */
    uint64_t epoch;       /* the epoch of the daemon to which ended_known refers; 0: none */
    uint64_t ended_known; /* number of ended leases that the owner already knows */
};

/* The state of the connection to the daemon. */
enum follower_state {
    FOLLOWER_LIVE,   /* the view is current */
    FOLLOWER_SILENT, /* connected, but the daemon has not answered for FOLLOWER_TIMEOUT */
    FOLLOWER_GONE,   /* not connected; the follower tries to reconnect */
};
#define FOLLOWER_TIMEOUT (5 * DURATION_SECOND)

struct follower {
    struct follower_settings settings;
    struct pool_address address;
    struct session session;
    bool never_reconnects; /* opened with follower_open_connected */
    int64_t dial_at;       /* time of the next attempt to reconnect; all times are clock_now()'s */
    int64_t pause;         /* the pause before that attempt */
    int64_t last_heard_at; /* the time of the daemon's last message */
    int64_t requested_at;  /* start of the wait for an answer; 0: no open request */
    struct berth_error reason; /* why the connection was lost */

    uint64_t epoch;        /* the daemon's epoch */
    uint64_t mark;         /* the last event that the follower knows */
    uint64_t ended_count;  /* number of leases that had ended before that event */
    uint64_t hello_number; /* numbers of the open requests, by kind; 0: none */
    uint64_t subscribe_number;
    uint64_t snapshot_number;
    uint32_t due_sections;       /* sections that need a new snapshot */
    uint32_t snapshot_sections;  /* sections of the current snapshot */
    int64_t snapshot_started_at; /* the start of the current snapshot */
    int64_t snapshot_duration;   /* how long the last snapshot took */
    uint64_t snapshots_started;  /* number of snapshots that were started */
    bool due_whole_queue;        /* the next snapshot ignores claims_max */
    bool whole;                  /* the current snapshot ignores claims_max */
    uint32_t pending_kinds;      /* news to report after the next snapshot */
    uint32_t snapshot_kinds;     /* news to report after the current snapshot */
    uint64_t news_count;         /* number of messages with news */
    struct pool_view partial;    /* the current snapshot so far */
    struct pool_view_position position;

    bool has_view;
    uint64_t seen;         /* the number of the view's snapshot */
    int64_t seen_at;       /* when that snapshot was completed */
    struct pool_view view; /* the last complete snapshot; its queue may be cut (claims_max) */
    struct {
        VECTOR_OF(struct ended_lease);
    } ended;       /* ended leases, oldest first, until follower_forget_ended */
    uint64_t lost; /* number of ended leases that the daemon has forgotten, until
                      follower_forget_ended */
    struct pool_tally tally;
    struct duration_histogram waited; /* storage for tally.waited */
    struct duration_histogram held;   /* storage for tally.held */
};

/* Finds the pool and connects; starts the user's own daemon if it does not run. The follower must
 * not be moved afterwards. The caller keeps the strings of the settings until follower_close. Fails
 * as connect_open, and needs no clean-up then. */
int follower_open(struct follower *follower, const struct follower_settings *settings,
                  struct berth_error *error);
/* Opens a follower over an existing connection, which it owns, and never reconnects. */
int follower_open_connected(struct follower *follower, int descriptor,
                            const struct follower_settings *settings, struct berth_error *error);
void follower_close(struct follower *follower);

/* Returns the descriptor to poll for reading, or -1 while the daemon is gone. It changes with each
 * reconnection. */
int follower_descriptor(const struct follower *follower);
/* Returns the time in nanoseconds after which follower_step must be called, even without input. */
int64_t follower_next_timeout(const struct follower *follower);

/* Handles all received messages, and sends the next requests. Returns the kinds of news in the view
 * since the last call, as bits of enum wire_news. Fails with BERTH_ERROR_MEMORY, with
 * BERTH_ERROR_IO when the daemon is gone and the follower never reconnects
 * (follower_open_connected), or with the daemon's reason for closing the connection. */
int follower_step(struct follower *follower, struct berth_error *error);

enum follower_state follower_get_state(const struct follower *follower);

/* Returns the time, by the pool's clock, up to which the view is known to be correct: now, or the
 * time of the daemon's last message while the daemon does not answer or is gone. */
int64_t follower_time(const struct follower *follower);

/* Changes the kinds of news and the interval. */
void follower_set_interests(struct follower *follower, uint32_t kinds, int64_t interval);

/* Starts a snapshot of all sections now, regardless of the interval; with `whole`, it ignores
 * claims_max. Returns the snapshot's number. The snapshot is complete, and has been reported as
 * news, when `seen` is at least that number. */
uint64_t follower_refresh(struct follower *follower, bool whole);

/* Empties `ended` and `lost`, after the owner has handled them. */
void follower_forget_ended(struct follower *follower);

#endif
