/* SPDX-License-Identifier: Apache-2.0
 *
 * The clients of the event stream over HTTP. Every event is written once for all clients. A client
 * that is behind gets no events until its connection has drained, and then the whole state.
 */
#ifndef WEB_EVENT_CLIENTS_H
#define WEB_EVENT_CLIENTS_H

#include "base/list.h"
#include "base/system/user_names.h"
#include "base/vector.h"
#include "view/follower.h"
#include "view/load_history.h"
#include "web/http_server.h"

/* A lease that was sent to the clients. */
struct sent_lease {
    uint64_t id;
    uint64_t fingerprint;
    bool ended;            /* its end was sent */
    bool absent;           /* it was not in the last snapshot; its end must follow */
    uint64_t absent_since; /* the follower's news_count then; the end comes with the next news */
};

struct sent_leases {
    VECTOR_OF(struct sent_lease); /* by id */
};

struct event_clients {
    const struct follower *follower;
    struct user_names *users;
    struct list list;
    size_t count;
    void (*changed)(void *context); /* called when a client comes or goes; may be NULL */
    void *context;

    /* The state that was sent last. */
    struct sent_leases leases;
    uint64_t devices; /* fingerprints */
    uint64_t queue;
    struct load_history recent;
    enum follower_state state;
    int64_t state_since;
    bool is_awaiting; /* the daemon was gone and has not sent its state since */

    /* The whole state for new clients, until something changes; NULL: not written yet. */
    struct shared_text *greeting;
};

void event_clients_init(struct event_clients *clients, const struct follower *follower,
                        struct user_names *users);
/* Call it after the last connection was closed. */
void event_clients_finish(struct event_clients *clients);

/* Turns the connection into an event stream and sends the whole state. */
void event_clients_add(struct event_clients *clients, struct http_connection *connection);

/* Sends the changes after follower_step() returned `news`, and the state of the connection to the
 * daemon if it changed. */
void event_clients_notify(struct event_clients *clients, uint32_t news);
/* Returns the state of the connection to the daemon. It is live only if the view is current. */
enum follower_state event_clients_state(const struct event_clients *clients);

/* Sends the time, so that a page knows that the server is alive. */
void event_clients_send_tick(struct event_clients *clients);

#endif
