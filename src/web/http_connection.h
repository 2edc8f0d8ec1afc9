/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the server know of a connection: server.c reads requests, answer.c answers
 * them.
 */
#ifndef WEB_HTTP_CONNECTION_H
#define WEB_HTTP_CONNECTION_H

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>

#include "web/http_server.h"

enum phase {
    PHASE_IDLE,      /* nothing of a request is there */
    PHASE_READING,   /* some of it is */
    PHASE_ANSWERING, /* until the answer is taken */
    PHASE_STREAMING,
    PHASE_LINGERING, /* all is said; what comes is thrown away */
};

struct http_server {
    struct event_base *base;
    struct http_server_settings settings;
    struct evconnlistener *listener;
    struct event *resume; /* accepts again */
    struct list connections;
    size_t count;
};

struct http_connection {
    struct list_link link;
    struct http_server *server;
    struct bufferevent *buffers;
    struct event *timer;
    struct evbuffer *held; /* an answer that is sent later; NULL: none */
    struct listen_address peer;
    enum phase phase;
    bool keeps;
    bool is_head; /* the answer's content is left out */
    const struct stream_events *events;
    void *context;
};

#endif
