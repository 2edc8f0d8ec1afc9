/* SPDX-License-Identifier: Apache-2.0
 *
 * A small HTTP server on libevent's loop, for strangers: everything that somebody else decides has
 * a bound, and everything that somebody else takes time for has an end. One thread.
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

/* At once; one address has three quarters of them at most, so that nobody takes the last ones
 * alone.
 */
#define HTTP_CONNECTIONS_MAX 1024
/* Unsent bytes of a stream from which on it counts as behind. */
#define HTTP_STREAM_MAX (256 * 1024)
/* And how much of it the kernel may hold besides. */
#define HTTP_STREAM_QUEUED (64 * 1024)

struct http_server;
struct http_connection;

/* A text that many streams send, freed with the last of them. */
struct shared_text {
    struct text text;
    size_t references;
};
/* Takes over the text, and leaves an empty one. NULL: no memory, or the text had none. */
struct shared_text *web_shared_text_create(struct text *text);
void web_shared_text_release(struct shared_text *shared);

struct http_answer {
    int status;
    const char *type;    /* of the content; NULL: plain text */
    const char *headers; /* more of them, each ended by "\r\n"; NULL: none */
    const char *bytes;
    size_t length;
    bool is_static;             /* the bytes stay for ever */
    struct shared_text *shared; /* instead of the bytes; stays the caller's, too. NULL: none */
    int64_t delay;              /* nanoseconds until it is sent */
};

/* Called with a whole request, which is good until it returns. It calls http_answer_send,
 * http_answer_start_stream or http_answer_defer before it does. */
typedef void http_server_handler(void *context, struct http_connection *connection,
                                 const struct http_request *request);

/* What the owner of a stream, or of an answer that is to come, is told. */
struct stream_events {
    void (*drained)(void *context); /* all of a stream was taken; more may be sent */
    void (*closed)(void *context);  /* it is gone, and must not be used any more */
};

/* How long whom is waited for, nanoseconds; 0 is as usual. */
struct http_server_timeouts {
    int64_t head;    /* for all of a request */
    int64_t idle;    /* for the next one */
    int64_t answer;  /* until all of an answer is taken */
    int64_t wait;    /* for an answer of ours */
    int64_t linger;  /* for the other side to hang up */
    int64_t stalled; /* while nothing at all is taken */
};

struct http_server_settings {
    struct listen_address address;
    struct http_server_timeouts timeouts;
    size_t connections;  /* that there may be at once; 0: HTTP_CONNECTIONS_MAX */
    const char *headers; /* of every answer, each ended by "\r\n" */
    http_server_handler *handler;
    void *context;
};

/* Listens. The settings' strings stay the caller's. Fails with BERTH_ERROR_INVALID (the address is
 * taken, or not ours) or _IO, _MEMORY. */
int http_server_create(struct event_base *base, const struct http_server_settings *settings,
                       struct http_server **ret_server, struct berth_error *error);
/* Ends all connections; streams are told. */
void http_server_destroy(struct http_server *server);

/* Where it listens. */
const struct listen_address *http_server_address(const struct http_server *server);

void http_answer_send(struct http_connection *connection, const struct http_answer *answer);
/* A line of text. */
void http_answer_send_line(struct http_connection *connection, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The answer follows later: http_answer_send, unless `closed` is called before. It has
 * as long as the settings say. */
void http_answer_defer(struct http_connection *connection, const struct stream_events *events,
                       void *context);

/* Begins an answer that goes on until somebody ends it. */
void http_answer_start_stream(struct http_connection *connection, const char *type,
                              const struct stream_events *events, void *context);
/* How many bytes of a stream are not yet taken. */
size_t http_answer_unsent(const struct http_connection *connection);
/* Sends more of a stream. */
void http_answer_send_stream(struct http_connection *connection, struct shared_text *text);

#endif
