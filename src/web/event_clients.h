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
struct sent_lease {
    uint64_t id;
    uint64_t fingerprint;
    bool ended;            /* they were told that it is over */
    bool absent;           /* it was not in the last look; why, is to be told */
    uint64_t absent_since; /* so many news: with the next its end should have come */
};

struct sent_leases {
    VECTOR_OF(struct sent_lease); /* by id */
};

struct event_clients {
    const struct follower *follower;
    struct user_names *users;
    struct list list;
    size_t count;
    void (*changed)(void *context); /* somebody came or went */
    void *context;

    /* What they were told last. */
    struct sent_leases leases;
    struct text devices;
    struct text queue;
    struct recent_loads recent;
    enum follower_state state;
    int64_t state_since;
    bool is_awaiting; /* the daemon was gone, and has not told what is since */

    /* For those who come, as long as nothing is new; NULL: to be written. */
    struct shared_text *greeting;
};

void event_clients_init(struct event_clients *clients, const struct follower *follower,
                        struct user_names *users);
/* When no connection is left. */
void event_clients_finish(struct event_clients *clients);

/* Makes the connection one of them. */
void event_clients_add(struct event_clients *clients, struct http_connection *connection);

/* Tells what follower_step said is new, and how the follower stands. */
void event_clients_notify(struct event_clients *clients, uint32_t news);
/* How we stand with the daemon: live only when what is known is what is. */
enum follower_state event_clients_state(const struct event_clients *clients);

/* Tells the time, so that a page knows that we are there. */
void event_clients_send_tick(struct event_clients *clients);

#endif
