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
#define SERVER_CONNECTIONS_MAX 1024
/* Unsent bytes of a stream from which on it counts as behind. */
#define SERVER_STREAM_MAX (256 * 1024)
/* And how much of it the kernel may hold besides. */
#define SERVER_STREAM_QUEUED (64 * 1024)

struct server;
struct connection;

/* A text that many streams send, freed with the last of them. */
struct shared_text {
    struct text text;
    size_t references;
};
/* Takes over the text, and leaves an empty one. NULL: no memory, or the text had none. */
struct shared_text *shared_text_create(struct text *text);
void shared_text_release(struct shared_text *shared);

struct answer {
    int status;
    const char *type;    /* of the content; NULL: plain text */
    const char *headers; /* more of them, each ended by "\r\n"; NULL: none */
    const char *bytes;
    size_t length;
    bool is_static;             /* the bytes stay for ever */
    struct shared_text *shared; /* instead of the bytes; stays the caller's, too. NULL: none */
    int64_t delay;              /* nanoseconds until it is sent */
};

/* Called with a whole request, which is good until it returns. It calls connection_answer,
 * connection_stream or connection_wait before it does. */
typedef void server_handler(void *context, struct connection *connection,
                            const struct http_request *request);

/* What the owner of a stream, or of an answer that is to come, is told. */
struct stream_events {
    void (*drained)(void *context); /* all of a stream was taken; more may be sent */
    void (*closed)(void *context);  /* it is gone, and must not be used any more */
};

/* How long whom is waited for, nanoseconds; 0 is as usual. */
struct server_times {
    int64_t head;    /* for all of a request */
    int64_t idle;    /* for the next one */
    int64_t answer;  /* until all of an answer is taken */
    int64_t wait;    /* for an answer of ours */
    int64_t linger;  /* for the other side to hang up */
    int64_t stalled; /* while nothing at all is taken */
};

struct server_settings {
    struct listen_address address;
    struct server_times times;
    size_t connections;  /* that there may be at once; 0: SERVER_CONNECTIONS_MAX */
    const char *headers; /* of every answer, each ended by "\r\n" */
    server_handler *handler;
    void *context;
};

/* Listens. The settings' strings stay the caller's. Fails with BERTH_ERROR_INVALID (the address is
 * taken, or not ours) or _IO, _MEMORY. */
int server_create(struct event_base *base, const struct server_settings *settings,
                  struct server **ret_server, struct berth_error *error);
/* Ends all connections; streams are told. */
void server_destroy(struct server *server);

/* Where it listens. */
const struct listen_address *server_address(const struct server *server);

void connection_answer(struct connection *connection, const struct answer *answer);
/* A line of text. */
void connection_answer_line(struct connection *connection, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The answer follows later: connection_answer, unless `closed` is called before. It has
 * as long as the settings say. */
void connection_wait(struct connection *connection, const struct stream_events *events,
                     void *context);

/* Begins an answer that goes on until somebody ends it. */
void connection_stream(struct connection *connection, const char *type,
                       const struct stream_events *events, void *context);
/* How many bytes of a stream are not yet taken. */
size_t connection_unsent(const struct connection *connection);
/* Sends more of a stream. */
void connection_send(struct connection *connection, struct shared_text *text);

#endif
