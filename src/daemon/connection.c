/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "daemon/jobs.h"
#include "daemon/messages.h"
#include "daemon/postponed.h"
#include "daemon/settle.h"

/* A client that does not read may let this much pile up. */
enum { OUT_MOST = 4 * 1024 * 1024, LENGTH_SIZE = 4, PACKETS_OF_TURN = 16 };

/* It is closed at the end of the turn, when nobody is about to use it. */
static void doom(struct connection *connection)
{
    connection->closing = true;
    connection->pool->doomed = true;
}

static void update_watch(struct connection *connection, bool wants_out)
{
    if (wants_out == connection->wants_out)
        return;
    connection->wants_out = wants_out;
    loop_change(&connection->pool->loop, &connection->watch,
                EPOLLIN | (wants_out ? (uint32_t)EPOLLOUT : 0));
}

static bool send_packet(struct connection *connection, const void *bytes, size_t length)
{
    ssize_t sent;

    do {
        sent = send(connection->watch.descriptor, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno != EAGAIN && errno != ENOBUFS)
        doom(connection);
    return sent >= 0;
}

static void keep_packet(struct connection *connection, const void *bytes, size_t length)
{
    uint32_t lead = (uint32_t)length;

    text_append_bytes(&connection->out, &lead, LENGTH_SIZE);
    text_append_bytes(&connection->out, bytes, length);
    if (text_failed(&connection->out) || connection->out.length - connection->sent > OUT_MOST) {
        log_line(&connection->pool->log, pool_now(connection->pool), "closing",
                 "pid=%d uid=%u reason=\"it does not read what it asked for\"",
                 (int)connection->pid, connection->uid);
        doom(connection);
    }
}

static void flush_out(struct connection *connection)
{
    struct text *out = &connection->out;

    while (connection->sent < out->length && !connection->closing) {
        uint32_t length;

        memcpy(&length, out->bytes + connection->sent, LENGTH_SIZE);
        if (!send_packet(connection, out->bytes + connection->sent + LENGTH_SIZE, length))
            break;
        connection->sent += LENGTH_SIZE + length;
    }
    if (connection->sent == out->length && out->length > 0) {
        text_finish(out);
        connection->sent = 0;
    }
    update_watch(connection, out->length > 0);
}

/* `waits`: not before the journal has all that was decided. */
static void send_message(struct connection *connection, const struct wire_message *message,
                         bool waits)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct pool *pool = connection->pool;
    bool behind;

    if (connection->closing)
        return;
    text_clear(&pool->answer);
    if (wire_encode(message, &pool->answer, &error) < 0) {
        log_line(&pool->log, pool_now(pool), "error", "what=send reason=%s",
                 log_quote(error.message).text);
        doom(connection);
        return;
    }
    behind = journal_file_is_behind(&pool->journal);
    if (connection->out.length == 0 && !(waits && behind) &&
        send_packet(connection, pool->answer.bytes, pool->answer.length))
        return;
    keep_packet(connection, pool->answer.bytes, pool->answer.length);
    update_watch(connection, !behind);
}

void connection_send(struct connection *connection, const struct wire_message *message)
{
    send_message(connection, message, true);
}

void connection_refuse(struct connection *connection, uint64_t number,
                       const struct berth_error *error)
{
    const struct wire_message message = {
        .type = WIRE_REFUSED,
        .number = number,
        .error = (uint32_t)-error->code,
        .text = (char *)error->message,
    };

    /* Whoever is refused because there is no room for a record must not wait for that room. */
    send_message(connection, &message, error->code != BERTH_ERROR_IO);
}

void connection_fail(struct connection *connection, const struct berth_error *error)
{
    struct pool *pool = connection->pool;

    log_line(&pool->log, pool_now(pool), "closing", "pid=%d uid=%u reason=%s", (int)connection->pid,
             connection->uid, log_quote(error->message).text);
    connection_send(connection, &(struct wire_message){
                                    .type = WIRE_CLOSING,
                                    .error = (uint32_t)-error->code,
                                    .text = (char *)error->message,
                                });
    doom(connection);
}

void connection_close(struct connection *connection)
{
    struct pool *pool = connection->pool;

    loop_remove(&pool->loop, &connection->watch);
    close(connection->watch.descriptor);
    list_remove(&connection->in_pool);
    pool->connection_count--;
    if (connection->is_by_pid)
        id_map_remove(&pool->clients, &connection->by_pid);
    list_for_each (link, &connection->watchers)
        watcher_free(container_of(link, struct watcher, in_connection));
    postponed_forget(pool, connection);
    jobs_lose_client(pool, connection);
    text_finish(&connection->out);
    free(connection->groups);
    free(connection);
    if (pool->is_full)
        loop_change(&pool->loop, &pool->listener, EPOLLIN);
    pool->is_full = false;
}

/* Reads one packet. Returns whether the next one is likely to be there already: the client did not
 * wait for an answer to this one. */
static bool take_packet(struct connection *connection)
{
    struct pool *pool = connection->pool;
    struct berth_error error = BERTH_ERROR_INIT;
    struct wire_message message;
    bool unanswered;
    ssize_t length = recv(connection->watch.descriptor, pool->packet, WIRE_MESSAGE_MOST,
                          MSG_DONTWAIT | MSG_TRUNC);

    if (length < 0 && (errno == EINTR || errno == EAGAIN))
        return false;
    if (length <= 0) {
        doom(connection);
        return false;
    }
    pool->packet_length = (size_t)length;
    if (wire_decode(pool->packet, (size_t)length, &message, &error) < 0) {
        connection_fail(connection, &error);
        return false;
    }
    unanswered = message.number == 0;
    message_handle(connection, &message);
    wire_message_finish(&message);
    return unanswered && !connection->closing;
}

static void connection_ready(struct watch *watch, uint32_t events)
{
    struct connection *connection = container_of(watch, struct connection, watch);
    struct pool *pool = connection->pool;

    if ((events & EPOLLOUT) != 0 && !journal_file_is_behind(&pool->journal))
        flush_out(connection);
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
        for (int i = 0; i < PACKETS_OF_TURN && take_packet(connection); i++)
            pool_settle(pool);
    }
    pool_settle(pool);
}

static void add_connection(struct pool *pool, int descriptor)
{
    struct connection *connection = calloc(1, sizeof(*connection));
    struct ucred peer;
    socklen_t length = sizeof(peer);

    if (connection == NULL || getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0) {
        free(connection);
        close(descriptor);
        return;
    }
    connection->watch = (struct watch){.descriptor = descriptor, .ready = connection_ready};
    connection->pool = pool;
    connection->pid = peer.pid;
    connection->uid = peer.uid;
    connection->gid = peer.gid;
    list_init(&connection->jobs);
    list_init(&connection->watchers);
    if (loop_add(&pool->loop, &connection->watch, EPOLLIN, NULL) < 0) {
        free(connection);
        close(descriptor);
        return;
    }
    list_append(&pool->connections, &connection->in_pool);
    id_map_reserve(&pool->clients, ++pool->connection_count);
    connection->by_pid.id = (uint64_t)peer.pid;
    if (id_map_find(&pool->clients, connection->by_pid.id) == NULL) {
        id_map_add(&pool->clients, &connection->by_pid);
        connection->is_by_pid = true;
    }
    /* It has most likely said what it wants already. */
    connection_ready(&connection->watch, EPOLLIN);
}

/* Until one that is there goes. */
static void stop_accepting(struct pool *pool)
{
    log_line(&pool->log, pool_now(pool), "error", "what=accept reason=%s",
             log_quote(strerror(errno)).text);
    pool->is_full = pool->connection_count > 0;
    if (pool->is_full)
        loop_change(&pool->loop, &pool->listener, 0);
}

void connections_accept(struct pool *pool)
{
    for (int i = 0; i < PACKETS_OF_TURN; i++) {
        int descriptor =
            // cppcheck-suppress nullPointer ; as accept(2) has it
            accept4(pool->listener.descriptor, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (descriptor < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
                stop_accepting(pool);
            return;
        }
        add_connection(pool, descriptor);
    }
}

void connections_flush(struct pool *pool)
{
    list_for_each (link, &pool->connections)
        flush_out(container_of(link, struct connection, in_pool));
}

void connections_sweep(struct pool *pool)
{
    while (pool->doomed) {
        pool->doomed = false;
        list_for_each (link, &pool->connections) {
            struct connection *connection = container_of(link, struct connection, in_pool);

            if (connection->closing)
                connection_close(connection);
        }
        pool_settle(pool);
    }
}
