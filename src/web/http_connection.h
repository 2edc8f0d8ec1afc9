/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of a connection, shared by http_server.c, which reads requests, and http_answer.c,
 * which sends answers.
 */
#ifndef WEB_HTTP_CONNECTION_H
#define WEB_HTTP_CONNECTION_H

#include <event2/buffer.h>
#include <event2/bufferevent.h>

#include "web/http_server.h"

enum phase {
    PHASE_IDLE,      /* no byte of a request has arrived */
    PHASE_READING,   /* a part of a request has arrived */
    PHASE_ANSWERING, /* until the answer is sent */
    PHASE_STREAMING,
    PHASE_LINGERING, /* the answer is sent; input is thrown away */
};

struct http_server {
    struct event_base *base;
    struct http_server_settings settings;
    struct event *acceptable; /* the socket that listens */
    int questions;            /* to the kernel (socket_owner_open); -1: it cannot answer */
    struct event *resume;     /* a timer that accepts connections again */
    struct subordinate_uids subordinates;
    struct list connections;
    struct peer_groups groups;
    size_t count;
};

struct http_connection {
    struct list_link link;
    struct http_server *server;
    struct bufferevent *buffers;
    struct event *timer;
    struct evbuffer *held;     /* a delayed answer; NULL: none */
    struct peer_member member; /* of the group of its peer */
    enum phase phase;
    bool keeps;   /* keep-alive */
    bool is_head; /* a HEAD request: the content is left out */
    const struct stream_events *events;
    void *context;
};

#endif
