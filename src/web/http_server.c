/* SPDX-License-Identifier: Apache-2.0 */
#include "web/http_server.h"

#include <errno.h>
#include <event2/util.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "web/event_timer.h"
#include "web/http_connection.h"
#include "web/socket_owner.h"

static const struct http_server_timeouts default_times = {
    .head = 10 * DURATION_SECOND,
    .idle = 75 * DURATION_SECOND,
    .answer = 120 * DURATION_SECOND,
    .wait = 10 * DURATION_SECOND,
    .linger = 2 * DURATION_SECOND,
    .stalled = 60 * DURATION_SECOND,
};
/* How long to accept no connections after an error, such as no descriptors left. */
static const int64_t accept_pause = DURATION_SECOND / 4;
/* Connections to accept before other events are handled. */
enum { ACCEPTED_MAX = 32 };

static void close_connection(struct http_connection *connection)
{
    const struct stream_events *events = connection->events;

    list_unlink(&connection->link);
    peer_groups_leave(&connection->member);
    connection->server->count--;
    if (connection->held != NULL)
        evbuffer_free(connection->held);
    if (connection->timer != NULL)
        event_free(connection->timer);
    if (connection->buffers != NULL)
        bufferevent_free(connection->buffers);
    if (events != NULL)
        events->closed(connection->context);
    free(connection);
}

static void read_request(struct http_connection *connection);

/* Ends an answer that was sent: waits for the next request, or for the client to close. */
static void finish_answer(struct http_connection *connection)
{
    struct evbuffer *in = bufferevent_get_input(connection->buffers);

    if (!connection->keeps) {
        /* Closing with unread input would reset the connection, and the client could lose the
         * answer. */
        connection->phase = PHASE_LINGERING;
        evbuffer_drain(in, evbuffer_get_length(in));
        shutdown(bufferevent_getfd(connection->buffers), SHUT_WR);
        bufferevent_enable(connection->buffers, EV_READ);
        event_timer_start(connection->timer, connection->server->settings.timeouts.linger);
        return;
    }
    connection->phase = PHASE_IDLE;
    bufferevent_enable(connection->buffers, EV_READ);
    event_timer_start(connection->timer, connection->server->settings.timeouts.idle);
    if (evbuffer_get_length(in) > 0)
        read_request(connection);
}

/* Parses the input. Calls the handler if a request is complete. */
static void read_request(struct http_connection *connection)
{
    struct evbuffer *in = bufferevent_get_input(connection->buffers);
    size_t length = evbuffer_get_length(in);
    struct http_request request;
    const char *bytes;
    int found;

    if (length > HTTP_HEAD_MAX + HTTP_BODY_MAX)
        length = HTTP_HEAD_MAX + HTTP_BODY_MAX;
    bytes = (const char *)evbuffer_pullup(in, (ev_ssize_t)length);
    found = bytes == NULL ? 503 : http_parse(bytes, length, &request);
    if (found == HTTP_INCOMPLETE) {
        if (connection->phase == PHASE_IDLE)
            event_timer_start(connection->timer, connection->server->settings.timeouts.head);
        connection->phase = PHASE_READING;
        return;
    }
    connection->phase = PHASE_ANSWERING;
    bufferevent_disable(connection->buffers, EV_READ);
    if (found != HTTP_COMPLETE) {
        connection->keeps = false;
        connection->is_head = false;
        http_answer_send_line(connection, found, "%s", http_status_name(found));
        return;
    }
    connection->keeps = request.keeps;
    connection->is_head = request.method == HTTP_HEAD;
    connection->server->settings.handler(connection->server->settings.context, connection,
                                         &request);
    /* The handler never frees the connection: only callbacks of the loop do. */
    evbuffer_drain(in, request.length);
}

static void on_read(struct bufferevent *buffers, void *context)
{
    struct http_connection *connection = context;
    struct evbuffer *in = bufferevent_get_input(buffers);

    if (connection->phase == PHASE_IDLE || connection->phase == PHASE_READING)
        read_request(connection);
    else if (connection->phase != PHASE_ANSWERING)
        evbuffer_drain(in, evbuffer_get_length(in));
}

static void on_written(struct bufferevent *buffers, void *context)
{
    struct http_connection *connection = context;

    (void)buffers;
    if (connection->phase == PHASE_ANSWERING && connection->held == NULL)
        finish_answer(connection);
    else if (connection->phase == PHASE_STREAMING)
        connection->events->drained(connection->context);
}

static void on_event(struct bufferevent *buffers, short what, void *context)
{
    (void)buffers;
    (void)what;
    close_connection(context);
}

static void on_timer(evutil_socket_t none, short what, void *context)
{
    struct http_connection *connection = context;

    (void)none;
    (void)what;
    if (connection->phase == PHASE_ANSWERING && connection->events != NULL) {
        /* The owner of the deferred answer must not send it any more. */
        connection->events->closed(connection->context);
        http_answer_send_line(connection, 503, "cannot answer: it took too long");
        return;
    }
    if (connection->held == NULL) {
        close_connection(connection);
        return;
    }
    event_timer_start(connection->timer, connection->server->settings.timeouts.answer);
    bufferevent_write_buffer(connection->buffers, connection->held);
    evbuffer_free(connection->held);
    connection->held = NULL;
}

/* Returns the member of a group that loses the least: the oldest without a request, otherwise the
 * newest. */
static struct http_connection *choose_victim(const struct peer_group *group)
{
    list_for_each (link, &group->members) {
        struct http_connection *connection =
            container_of(link, struct http_connection, member.link);

        if (connection->phase != PHASE_ANSWERING && connection->phase != PHASE_STREAMING)
            return connection;
    }
    return container_of(list_last(&group->members), struct http_connection, member.link);
}

/* Makes room for one more connection from this peer. Returns false if there is none. */
static bool make_room(const struct http_server *server, const struct peer *peer)
{
    struct peer_group *largest;

    if (server->count < server->settings.connections)
        return true;
    largest = peer_groups_largest(&server->groups, peer);
    if (largest == NULL)
        return false;
    close_connection(choose_victim(largest));
    return true;
}

static void refuse_connection(int descriptor)
{
    static const char answer[] = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
                                 "Content-Length: 0\r\n\r\n";

    send(descriptor, answer, sizeof(answer) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    close(descriptor);
}

static bool begin_connection(struct http_connection *connection, int descriptor)
{
    struct event_base *base = connection->server->base;
    struct timeval stalled = event_timer_interval(connection->server->settings.timeouts.stalled);
    int yes = 1;

    connection->timer = evtimer_new(base, on_timer, connection);
    connection->buffers = bufferevent_socket_new(base, descriptor, BEV_OPT_CLOSE_ON_FREE);
    if (connection->timer == NULL || connection->buffers == NULL) {
        if (connection->buffers == NULL)
            close(descriptor);
        return false;
    }
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    bufferevent_setcb(connection->buffers, on_read, on_written, on_event, connection);
    bufferevent_setwatermark(connection->buffers, EV_READ, 0, HTTP_HEAD_MAX + HTTP_BODY_MAX + 1);
    bufferevent_set_timeouts(connection->buffers, NULL, &stalled);
    bufferevent_enable(connection->buffers, EV_READ | EV_WRITE);
    event_timer_start(connection->timer, connection->server->settings.timeouts.head);
    return true;
}

static void admit_connection(struct http_server *server, int descriptor,
                             const struct listen_address *address)
{
    struct listen_address ours = {.length = sizeof(ours.six)};
    struct http_connection *connection;
    struct peer peer;

    if (getsockname(descriptor, &ours.any, &ours.length) != 0) {
        close(descriptor);
        return;
    }
    peer = peer_groups_identify(server->questions, &server->subordinates, &ours, address);
    connection = make_room(server, &peer) ? calloc(1, sizeof(*connection)) : NULL;
    if (connection == NULL) {
        refuse_connection(descriptor);
        return;
    }
    connection->server = server;
    connection->phase = PHASE_READING;
    list_append(&server->connections, &connection->link);
    server->count++;
    if (!begin_connection(connection, descriptor) ||
        !peer_groups_join(&server->groups, &peer, &connection->member))
        close_connection(connection);
}

static void on_acceptable(evutil_socket_t listener, short what, void *context)
{
    struct http_server *server = context;

    (void)what;
    subordinate_uids_refresh(&server->subordinates, server->settings.subordinates);
    for (int i = 0; i < ACCEPTED_MAX; i++) {
        struct listen_address address = {.length = sizeof(address.six)};
        int descriptor =
            accept4(listener, &address.any, &address.length, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (descriptor >= 0) {
            admit_connection(server, descriptor, &address);
        } else if (errno == EAGAIN) {
            return;
        } else if (errno != ECONNABORTED && errno != EINTR) {
            struct timeval pause = event_timer_interval(accept_pause);

            event_del(server->acceptable);
            evtimer_add(server->resume, &pause);
            return;
        }
    }
}

static void on_resume(evutil_socket_t none, short what, void *context)
{
    struct http_server *server = context;

    (void)none;
    (void)what;
    event_add(server->acceptable, NULL);
}

static int64_t timeout_or_default(int64_t wanted, int64_t fallback)
{
    return wanted == 0 ? fallback : wanted;
}

static void set_timeouts(struct http_server_timeouts *timeouts)
{
    timeouts->head = timeout_or_default(timeouts->head, default_times.head);
    timeouts->idle = timeout_or_default(timeouts->idle, default_times.idle);
    timeouts->answer = timeout_or_default(timeouts->answer, default_times.answer);
    timeouts->wait = timeout_or_default(timeouts->wait, default_times.wait);
    timeouts->linger = timeout_or_default(timeouts->linger, default_times.linger);
    timeouts->stalled = timeout_or_default(timeouts->stalled, default_times.stalled);
}

int http_server_create(struct event_base *base, const struct http_server_settings *settings,
                       struct http_server **ret_server, struct berth_error *error)
{
    struct http_server *server = calloc(1, sizeof(*server));
    int descriptor;

    if (server == NULL)
        return error_set_memory(error);
    *server = (struct http_server){.base = base, .settings = *settings};
    set_timeouts(&server->settings.timeouts);
    if (server->settings.subordinates == NULL)
        server->settings.subordinates = "/etc/subuid";
    if (server->settings.connections == 0)
        server->settings.connections = HTTP_CONNECTIONS_MAX;
    list_init(&server->connections);
    peer_groups_init(&server->groups);
    server->questions = socket_owner_open();
    descriptor = settings->listener > 0 ? settings->listener
                                        : listen_address_open(&server->settings.address, error);
    if (descriptor < 0) {
        http_server_destroy(server);
        return descriptor;
    }
    server->acceptable = event_new(base, descriptor, EV_READ | EV_PERSIST, on_acceptable, server);
    server->resume = evtimer_new(base, on_resume, server);
    if (server->acceptable == NULL || server->resume == NULL ||
        event_add(server->acceptable, NULL) != 0) {
        if (server->acceptable == NULL)
            close(descriptor);
        http_server_destroy(server);
        return error_set_memory(error);
    }
    *ret_server = server;
    return 0;
}

void http_server_destroy(struct http_server *server)
{
    if (server == NULL)
        return;
    list_for_each (link, &server->connections)
        close_connection(container_of(link, struct http_connection, link));
    if (server->acceptable != NULL) {
        int listener = event_get_fd(server->acceptable);

        event_free(server->acceptable);
        close(listener);
    }
    if (server->resume != NULL)
        event_free(server->resume);
    if (server->questions >= 0)
        close(server->questions);
    subordinate_uids_finish(&server->subordinates);
    free(server);
}

const struct listen_address *http_server_address(const struct http_server *server)
{
    return &server->settings.address;
}

const struct peer *http_server_peer(const struct http_connection *connection)
{
    return &connection->member.group->peer;
}
