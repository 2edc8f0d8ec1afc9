/* SPDX-License-Identifier: Apache-2.0
 *
 * Those who read the event stream over HTTP. Every event is written once for all of them. One who
 * is behind is told nothing until it has caught up, and then all of what is.
 */
#ifndef WEB_EVENT_CLIENTS_H
#define WEB_EVENT_CLIENTS_H

#include "base/list.h"
#include "base/vector.h"
#include "view/follower.h"
#include "view/user_names.h"
#include "web/http_server.h"
#include "web/recent_loads.h"

/* A lease that readers know. */
struct told_lease {
    uint64_t id;
    uint64_t fingerprint;
    bool ended;            /* they were told that it is over */
    bool absent;           /* it was not in the last look; why, is to be told */
    uint64_t absent_since; /* so many news: with the next its end should have come */
};

struct told_leases {
    VECTOR_OF(struct told_lease); /* by id */
};

struct readers {
    const struct follower *follower;
    struct user_names *users;
    struct list list;
    size_t count;
    void (*changed)(void *context); /* somebody came or went */
    void *context;

    /* What they were told last. */
    struct told_leases leases;
    struct text devices;
    struct text queue;
    struct recent recent;
    enum follow_state state;
    int64_t state_since;
    bool is_awaiting; /* the daemon was gone, and has not told what is since */

    /* For those who come, as long as nothing is new; NULL: to be written. */
    struct shared_text *greeting;
};

void readers_init(struct readers *readers, const struct follower *follower,
                  struct user_names *users);
/* When no connection is left. */
void readers_finish(struct readers *readers);

/* Makes the connection one of them. */
void readers_add(struct readers *readers, struct connection *connection);

/* Tells what follower_step said is new, and how the follower stands. */
void readers_tell(struct readers *readers, uint32_t news);
/* How we stand with the daemon: live only when what is known is what is. */
enum follow_state readers_state(const struct readers *readers);

/* Tells the time, so that a page knows that we are there. */
void readers_tick(struct readers *readers);

#endif
