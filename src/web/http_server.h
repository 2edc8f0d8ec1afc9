/* SPDX-License-Identifier: Apache-2.0
 *
 * A small HTTP server on libevent's loop, safe for untrusted clients: every size and every wait
 * that a client controls has a limit. Call all functions in the thread of the loop; none blocks.
 */
#ifndef WEB_HTTP_SERVER_H
#define WEB_HTTP_SERVER_H

#include <berth/error.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/text/text.h"
#include "web/http.h"
#include "web/listen_address.h"
#include "web/peer_groups.h"

/* Maximum number of connections. If all are in use, a local user or another machine with few of
 * them takes one from the user or machine with the most. */
#define HTTP_CONNECTIONS_MAX 1024
/* A stream with more unsent bytes is behind. */
#define HTTP_STREAM_MAX (256 * 1024)
/* Maximum number of bytes of a stream that the kernel buffers in addition. */
#define HTTP_STREAM_QUEUED (64 * 1024)

struct http_server;
struct http_connection;

/* A text that many streams send; freed with the last reference. */
struct shared_text {
    struct text text;
    size_t references;
};
/* Moves the text into a shared text and leaves it empty. Returns NULL if memory runs out, or has
 * run out in the text. */
struct shared_text *web_shared_text_create(struct text *text);
void web_shared_text_release(struct shared_text *shared);

struct http_answer {
    int status;
    const char *type;    /* the Content-Type; NULL: plain text */
    const char *headers; /* further headers, each ended by "\r\n"; NULL: none */
    const char *bytes;
    size_t length;
    bool is_static;             /* the bytes live as long as the program */
    struct shared_text *shared; /* sent instead of the bytes; takes a reference. NULL: none */
    int64_t delay;              /* the delay before it is sent, in nanoseconds */
};

/* Handles a whole request, which is valid until the handler returns. The handler must call
 * http_answer_send(), http_answer_start_stream() or http_answer_defer(). */
typedef void http_server_handler(void *context, struct http_connection *connection,
                                 const struct http_request *request);

/* Callbacks for the owner of a stream or of a deferred answer. */
struct stream_events {
    void (*drained)(void *context); /* all bytes of the stream were sent */
    void (*closed)(void *context);  /* the connection is closed; do not use it any more */
};

/* Timeouts in nanoseconds; 0: the default. */
struct http_server_timeouts {
    int64_t head;    /* until a request is complete */
    int64_t idle;    /* until the next request begins */
    int64_t answer;  /* until the client has taken the answer */
    int64_t wait;    /* for a deferred answer */
    int64_t linger;  /* until the client closes the connection */
    int64_t stalled; /* while the client takes no byte */
};

struct http_server_settings {
    struct listen_address address;
    int listener; /* listens at the address; the server owns it. 0: open one */
    struct http_server_timeouts timeouts;
    size_t connections;       /* maximum number at once; 0: HTTP_CONNECTIONS_MAX */
    const char *headers;      /* of every answer, each ended by "\r\n" */
    const char *subordinates; /* the file of subordinate uids; NULL: /etc/subuid */
    http_server_handler *handler;
    void *context;
};

/* Creates a server that listens. The caller keeps the strings of the settings until it destroys the
 * server. Fails with BERTH_ERROR_INVALID (the address is in use, or not of this machine), _IO or
 * _MEMORY. */
int http_server_create(struct event_base *base, const struct http_server_settings *settings,
                       struct http_server **ret_server, struct berth_error *error);
/* Closes all connections and calls `closed` for their streams and deferred answers. */
void http_server_destroy(struct http_server *server);

/* Returns the address that it listens on. */
const struct listen_address *http_server_address(const struct http_server *server);

/* Returns the origin of a connection. */
const struct peer *http_server_peer(const struct http_connection *connection);

void http_answer_send(struct http_connection *connection, const struct http_answer *answer);
/* Answers with a line of text. */
void http_answer_send_line(struct http_connection *connection, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Defers the answer: call http_answer_send() later, unless `closed` is called first. After the
 * timeout `wait` the server answers 503 and calls `closed`. */
void http_answer_defer(struct http_connection *connection, const struct stream_events *events,
                       void *context);

/* Starts a stream: an answer without an end. */
void http_answer_start_stream(struct http_connection *connection, const char *type,
                              const struct stream_events *events, void *context);
/* Returns the unsent bytes of a stream. */
size_t http_answer_unsent(const struct http_connection *connection);
/* Appends a text to a stream. */
void http_answer_send_stream(struct http_connection *connection, struct shared_text *text);

#endif
