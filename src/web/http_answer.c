/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers of the server, and streams.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "web/event_timer.h"
#include "web/http_connection.h"

struct shared_text *web_shared_text_create(struct text *text)
{
    struct shared_text *shared = text_failed(text) ? NULL : malloc(sizeof(*shared));

    if (shared == NULL) {
        text_finish(text);
        return NULL;
    }
    *shared = (struct shared_text){.text = *text, .references = 1};
    *text = (struct text){0};
    return shared;
}

void web_shared_text_release(struct shared_text *shared)
{
    if (shared == NULL || --shared->references > 0)
        return;
    text_finish(&shared->text);
    free(shared);
}

static void release_reference(const void *bytes, size_t length, void *shared)
{
    (void)bytes;
    (void)length;
    web_shared_text_release(shared);
}

static void add_shared(struct evbuffer *out, struct shared_text *shared)
{
    shared->references++;
    if (evbuffer_add_reference(out, shared->text.bytes, shared->text.length, release_reference,
                               shared) != 0)
        web_shared_text_release(shared);
}

static void add_date(struct evbuffer *out)
{
    time_t now = time(NULL);
    struct tm parts;
    char date[64];

    /* This program runs in the C locale: days and months are in English. */
    if (gmtime_r(&now, &parts) != NULL &&
        strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &parts) > 0)
        evbuffer_add_printf(out, "Date: %s\r\n", date);
}

static void add_head(struct http_connection *connection, struct evbuffer *out, int status,
                     const char *type, const char *headers)
{
    evbuffer_add_printf(out,
                        "HTTP/1.1 %d %s\r\n"
                        "Content-Type: %s\r\n"
                        "Connection: %s\r\n"
                        "%s%s",
                        status, http_status_name(status),
                        type == NULL ? "text/plain; charset=utf-8" : type,
                        connection->keeps ? "keep-alive" : "close",
                        connection->server->settings.headers, headers == NULL ? "" : headers);
    add_date(out);
}

static void add_content(const struct http_answer *answer, struct evbuffer *out)
{
    if (answer->shared != NULL)
        add_shared(out, answer->shared);
    else if (answer->is_static)
        evbuffer_add_reference(out, answer->bytes, answer->length, NULL, NULL);
    else
        evbuffer_add(out, answer->bytes, answer->length);
}

void http_answer_send(struct http_connection *connection, const struct http_answer *answer)
{
    size_t length = answer->shared != NULL ? answer->shared->text.length : answer->length;
    struct evbuffer *out = evbuffer_new();

    connection->events = NULL;
    if (out == NULL) {
        /* Without memory there is no answer: the timer closes the connection. */
        event_timer_start(connection->timer, 0);
        return;
    }
    add_head(connection, out, answer->status, answer->type, answer->headers);
    if (answer->status == 304)
        evbuffer_add(out, "\r\n", 2);
    else
        evbuffer_add_printf(out, "Content-Length: %zu\r\n\r\n", length);
    if (!connection->is_head && answer->status != 304 && length > 0)
        add_content(answer, out);
    if (answer->delay > 0) {
        connection->held = out;
        event_timer_start(connection->timer, answer->delay);
        return;
    }
    event_timer_start(connection->timer, connection->server->settings.timeouts.answer);
    bufferevent_write_buffer(connection->buffers, out);
    evbuffer_free(out);
}

void http_answer_send_line(struct http_connection *connection, int status, const char *format, ...)
{
    char line[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof(line) - 1, format, arguments);
    va_end(arguments);
    strcat(line, "\n");
    http_answer_send(
        connection, &(struct http_answer){.status = status, .bytes = line, .length = strlen(line)});
}

void http_answer_defer(struct http_connection *connection, const struct stream_events *events,
                       void *context)
{
    connection->events = events;
    connection->context = context;
    event_timer_start(connection->timer, connection->server->settings.timeouts.wait);
}

void http_answer_start_stream(struct http_connection *connection, const char *type,
                              const struct stream_events *events, void *context)
{
    struct evbuffer *out = bufferevent_get_output(connection->buffers);
    int queued = HTTP_STREAM_QUEUED;

    /* Otherwise the kernel buffers megabytes of old events for a slow client. */
    setsockopt(bufferevent_getfd(connection->buffers), SOL_SOCKET, SO_SNDBUF, &queued,
               sizeof(queued));
    connection->keeps = false;
    connection->phase = PHASE_STREAMING;
    connection->events = events;
    connection->context = context;
    evtimer_del(connection->timer);
    add_head(connection, out, 200, type, "Cache-Control: no-store\r\nX-Accel-Buffering: no\r\n");
    evbuffer_add(out, "\r\n", 2);
    bufferevent_enable(connection->buffers, EV_READ);
}

size_t http_answer_unsent(const struct http_connection *connection)
{
    return evbuffer_get_length(bufferevent_get_output(connection->buffers));
}

void http_answer_send_stream(struct http_connection *connection, struct shared_text *text)
{
    add_shared(bufferevent_get_output(connection->buffers), text);
}
