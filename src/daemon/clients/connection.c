/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "daemon/clients/clients.h"
#include "daemon/clients/quota.h"
#include "daemon/core/accounts.h"

enum {
    OUT_MAX = 4 * 1024 * 1024, /* bytes that a client may leave unread */
    OUT_SPARE = 64 * 1024,     /* sent bytes that are not worth a move */
    LENGTH_SIZE = 4,
    PACKETS_OF_TURN = 16,
};

static struct loop *loop_of(const struct connection *connection)
{
    return connection->clients->settings.loop;
}

static bool must_wait(const struct connection *connection)
{
    const struct clients_callbacks *callbacks = &connection->clients->settings.callbacks;

    return callbacks->must_wait(callbacks->context);
}

static void forget_unread(struct connection *connection)
{
    quota_forget_unread(connection->quota, connection->unread);
    connection->unread = connection->sent = 0;
    text_finish(&connection->out);
}

/* Closes the connection at the end of the turn, when no caller uses it. Its unread bytes stop
 * counting at once, so that other connections of the user may go on. */
static void close_later(struct connection *connection)
{
    if (connection->closing)
        return;
    forget_unread(connection);
    connection->closing = true;
    list_append(&connection->clients->closing, &connection->in_closing);
}

static uint32_t wanted_events(const struct connection *connection)
{
    return EPOLLIN | (connection->wants_out ? (uint32_t)EPOLLOUT : 0);
}

static void update_watch(struct connection *connection, bool wants_out)
{
    if (wants_out == connection->wants_out)
        return;
    connection->wants_out = wants_out;
    /* A connection that waits for its turn is not watched. */
    if (!list_is_linked(&connection->in_queue))
        loop_change(loop_of(connection), &connection->watch, wanted_events(connection));
}

static bool send_packet(struct connection *connection, const void *bytes, size_t length)
{
    ssize_t sent;

    do {
        sent = send(connection->watch.descriptor, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno != EAGAIN && errno != ENOBUFS)
        close_later(connection);
    return sent >= 0;
}

static void log_closing(const struct connection *connection, const char *reason)
{
    const struct clients_settings *settings = &connection->clients->settings;

    if (quota_may_log(connection->quota))
        log_line(settings->log, pool_clock_now(settings->clock), "closing",
                 "pid=%d uid=%u reason=%s", (int)connection->pid, connection->uid,
                 log_quote(reason).text);
}

static void keep_packet(struct connection *connection, const void *bytes, size_t length)
{
    uint32_t lead = (uint32_t)length;
    bool is_bounded = quota_keep_unread(connection->quota, LENGTH_SIZE + length);

    connection->unread += LENGTH_SIZE + length;
    text_append_bytes(&connection->out, &lead, LENGTH_SIZE);
    text_append_bytes(&connection->out, bytes, length);
    if (text_failed(&connection->out) || connection->unread > OUT_MAX || !is_bounded) {
        log_closing(connection, "the client does not read its answers");
        close_later(connection);
    }
}

/* Frees the room of sent bytes. Otherwise the text would grow for ever for a client that reads as
 * fast as it asks, but never reads all answers. */
static void drop_sent(struct connection *connection)
{
    struct text *out = &connection->out;

    if (connection->sent == out->length) {
        text_finish(out);
        connection->sent = 0;
    } else if (connection->sent > OUT_SPARE && connection->sent > out->length / 2) {
        memmove(out->bytes, out->bytes + connection->sent, out->length - connection->sent);
        out->length -= connection->sent;
        connection->sent = 0;
    }
}

void connection_flush(struct connection *connection)
{
    struct text *out = &connection->out;

    while (connection->sent < out->length && !connection->closing) {
        uint32_t length;

        memcpy(&length, out->bytes + connection->sent, LENGTH_SIZE);
        if (!send_packet(connection, out->bytes + connection->sent + LENGTH_SIZE, length))
            break;
        connection->sent += LENGTH_SIZE + length;
        connection->unread -= LENGTH_SIZE + length;
        quota_forget_unread(connection->quota, LENGTH_SIZE + length);
    }
    if (out->length > 0)
        drop_sent(connection);
    update_watch(connection, out->length > 0);
}

/* `for_journal`: waits until the journal has all decisions. */
static void send_message(struct connection *connection, const struct wire_message *message,
                         bool for_journal)
{
    struct berth_error error = BERTH_ERROR_INIT;
    const struct clients_settings *settings = &connection->clients->settings;
    struct text *answer = &connection->clients->answer;
    bool behind;

    if (connection->closing)
        return;
    if (connection->is_recorder)
        settings->callbacks.sent_to_recorder(settings->callbacks.context, (int)message->type);
    text_clear(answer);
    if (wire_encode(message, answer, &error) < 0) {
        log_line(settings->log, pool_clock_now(settings->clock), "error", "what=send reason=%s",
                 log_quote(error.message).text);
        close_later(connection);
        return;
    }
    behind = must_wait(connection);
    if (connection->out.length == 0 && !(for_journal && behind) &&
        send_packet(connection, answer->bytes, answer->length))
        return;
    keep_packet(connection, answer->bytes, answer->length);
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

    /* A refusal because the journal is full must not wait for the journal. */
    send_message(connection, &message, error->code != BERTH_ERROR_IO);
}

void connection_fail(struct connection *connection, const struct berth_error *error)
{
    log_closing(connection, error->message);
    connection_send(connection, &(struct wire_message){
                                    .type = WIRE_CLOSING,
                                    .error = (uint32_t)-error->code,
                                    .text = (char *)error->message,
                                });
    close_later(connection);
}

static void destroy_connection(struct connection *connection)
{
    loop_remove(loop_of(connection), &connection->watch);
    close(connection->watch.descriptor);
    list_remove(&connection->in_clients);
    free(connection->groups);
    free(connection);
}

void connection_close(struct connection *connection)
{
    struct clients *clients = connection->clients;

    list_remove(&connection->in_closing);
    if (!connection->is_recorder)
        clients->connection_count--;
    clients->settings.callbacks.closed(clients->settings.callbacks.context, connection);
    forget_unread(connection);
    quota_disconnect(connection);
    destroy_connection(connection);
}

/* Reads one packet. Returns whether the next packet is likely to be there already, because the
 * client expects no answer to this one. */
static bool take_packet(struct connection *connection)
{
    struct clients *clients = connection->clients;
    const struct clients_callbacks *callbacks = &clients->settings.callbacks;
    struct berth_error error = BERTH_ERROR_INIT;
    struct wire_message message;
    bool unanswered;
    int code;
    ssize_t length = recv(connection->watch.descriptor, clients->packet, WIRE_MESSAGE_MAX,
                          MSG_DONTWAIT | MSG_TRUNC);

    if (length < 0 && (errno == EINTR || errno == EAGAIN))
        return false;
    if (length <= 0) {
        close_later(connection);
        return false;
    }
    clients->packet_length = (size_t)length;
    code = wire_decode(clients->packet, (size_t)length, &message, &error);
    if (connection->quota != NULL) {
        quota_heard(connection);
        if (code == 0 && message.type == WIRE_HELLO)
            quota_charge_ping(connection, (size_t)length);
        else
            quota_charge_message(connection->quota, (size_t)length);
    }
    if (code < 0) {
        connection_fail(connection, &error);
        return false;
    }
    unanswered = message.number == 0;
    callbacks->received(callbacks->context, connection, &message);
    wire_message_finish(&message);
    return unanswered && !connection->closing;
}

static void receive_packets(struct connection *connection)
{
    const struct clients_callbacks *callbacks = &connection->clients->settings.callbacks;
    int64_t began = connection->quota == NULL ? 0 : loop_processor_time(loop_of(connection));

    for (int i = 0; i < PACKETS_OF_TURN && take_packet(connection); i++)
        callbacks->settle(callbacks->context);
    callbacks->settle(callbacks->context);
    if (connection->quota != NULL)
        quota_charge_time(connection->quota, loop_processor_time(loop_of(connection)) - began);
}

void connection_serve(struct connection *connection)
{
    if (loop_add(loop_of(connection), &connection->watch, wanted_events(connection), NULL) < 0)
        close_later(connection);
    if (connection->closing)
        return;
    if (connection->wants_out && !must_wait(connection))
        connection_flush(connection);
    receive_packets(connection);
}

static void handle_events(struct watch *watch, uint32_t events)
{
    struct connection *connection = container_of(watch, struct connection, watch);

    if ((events & EPOLLOUT) != 0 && !must_wait(connection))
        connection_flush(connection);
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && quota_may_speak(connection))
        receive_packets(connection);
}

static uint32_t find_account(const struct clients *clients, uint32_t uid)
{
    const struct accounts *accounts = clients->settings.accounts;

    return accounts == NULL ? uid : accounts_find(accounts, uid);
}

/* Makes a connection that is not watched and has no quota yet. Returns NULL if memory runs out. */
static struct connection *create_connection(struct clients *clients, int descriptor,
                                            const struct ucred *peer)
{
    struct connection *connection = calloc(1, sizeof(*connection));

    if (connection == NULL)
        return NULL;
    connection->watch = (struct watch){.descriptor = descriptor, .ready = handle_events};
    connection->clients = clients;
    connection->pid = peer->pid;
    connection->uid = peer->uid;
    connection->account = find_account(clients, peer->uid);
    connection->gid = peer->gid;
    list_init(&connection->jobs);
    list_init(&connection->watchers);
    return connection;
}

/* Watches the connection. Returns false if memory runs out. */
static bool begin_connection(struct connection *connection)
{
    struct clients *clients = connection->clients;

    if (loop_add(clients->settings.loop, &connection->watch, EPOLLIN, NULL) < 0)
        return false;
    list_append(&clients->connections, &connection->in_clients);
    return true;
}

struct connection *connection_open_recorder(struct clients *clients, int descriptor)
{
    const struct ucred ourselves = {
        .pid = getpid(), .uid = clients->settings.owner, .gid = getegid()};
    struct connection *connection = create_connection(clients, descriptor, &ourselves);

    if (connection == NULL)
        return NULL;
    connection->is_recorder = true;
    if (begin_connection(connection))
        return connection;
    free(connection);
    return NULL;
}

/* Tells the reason to a client that does not become a connection. */
static void turn_away(struct connection *connection, const struct berth_error *error)
{
    struct clients *clients = connection->clients;
    const struct wire_message message = {
        .type = WIRE_CLOSING,
        .error = (uint32_t)-error->code,
        .text = (char *)error->message,
    };

    text_clear(&clients->answer);
    if (wire_encode(&message, &clients->answer, NULL) == 0)
        send(connection->watch.descriptor, clients->answer.bytes, clients->answer.length,
             MSG_DONTWAIT | MSG_NOSIGNAL);
    if (quota_open(clients, connection->account, &connection->quota) < 0)
        return;
    log_closing(connection, error->message);
    quota_close(connection->quota);
}

void connection_open(struct clients *clients, int descriptor, bool is_full)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct connection *connection;
    struct ucred peer;
    socklen_t length = sizeof(peer);

    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 ||
        (connection = create_connection(clients, descriptor, &peer)) == NULL) {
        close(descriptor);
        return;
    }
    /* A flood of connections that are refused must cost little. */
    if (quota_connect(connection, connection->account, is_full, &error) < 0) {
        turn_away(connection, &error);
        close(descriptor);
        free(connection);
        return;
    }
    if (!begin_connection(connection)) {
        quota_disconnect(connection);
        close(descriptor);
        free(connection);
        return;
    }
    if (connection->quota != NULL)
        quota_await_message(connection);
    clients->connection_count++;
    /* The first message has most likely arrived already. */
    if (!clients->is_deferring)
        handle_events(&connection->watch, EPOLLIN);
}
