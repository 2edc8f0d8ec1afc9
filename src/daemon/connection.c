/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "daemon/jobs.h"
#include "daemon/messages.h"
#include "daemon/postponed.h"
#include "daemon/recorder.h"
#include "daemon/settle.h"
#include "daemon/users.h"

/* A client that does not read may let this much pile up. */
enum {
    OUT_MAX = 4 * 1024 * 1024,
    OUT_SPARE = 64 * 1024, /* that moving it is not worth */
    LENGTH_SIZE = 4,
    PACKETS_OF_TURN = 16,
    ACCEPTED_IN_TURN = 64,
};

static void forget_unread(struct connection *connection)
{
    user_forget_unread(connection->user, connection->unread);
    connection->unread = connection->sent = 0;
    text_finish(&connection->out);
}

/* It is closed at the end of the turn, when nobody is about to use it. What it has not read counts
 * no more for its user, whose other connections may go on. */
static void doom(struct connection *connection)
{
    if (connection->closing)
        return;
    forget_unread(connection);
    connection->closing = true;
    list_append(&connection->pool->doomed, &connection->in_doomed);
}

static uint32_t events_of(const struct connection *connection)
{
    return EPOLLIN | (connection->wants_out ? (uint32_t)EPOLLOUT : 0);
}

static void update_watch(struct connection *connection, bool wants_out)
{
    if (wants_out == connection->wants_out)
        return;
    connection->wants_out = wants_out;
    /* One that waits for its turn is not watched. */
    if (!list_is_linked(&connection->in_queue))
        loop_change(&connection->pool->loop, &connection->watch, events_of(connection));
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

static void log_closing(const struct connection *connection, const char *reason)
{
    struct pool *pool = connection->pool;

    if (user_may_log(connection->user))
        log_line(&pool->log, pool_now(pool), "closing", "pid=%d uid=%u reason=%s",
                 (int)connection->pid, connection->uid, log_quote(reason).text);
}

static void keep_packet(struct connection *connection, const void *bytes, size_t length)
{
    uint32_t lead = (uint32_t)length;
    bool is_bounded = user_keep_unread(connection->user, LENGTH_SIZE + length);

    connection->unread += LENGTH_SIZE + length;
    text_append_bytes(&connection->out, &lead, LENGTH_SIZE);
    text_append_bytes(&connection->out, bytes, length);
    if (text_failed(&connection->out) || connection->unread > OUT_MAX || !is_bounded) {
        log_closing(connection, "the client does not read its answers");
        doom(connection);
    }
}

/* What was sent takes no more room than what was not: a client that reads as fast as it asks, and
 * never all, would make it grow for ever. */
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

static void flush_out(struct connection *connection)
{
    struct text *out = &connection->out;

    while (connection->sent < out->length && !connection->closing) {
        uint32_t length;

        memcpy(&length, out->bytes + connection->sent, LENGTH_SIZE);
        if (!send_packet(connection, out->bytes + connection->sent + LENGTH_SIZE, length))
            break;
        connection->sent += LENGTH_SIZE + length;
        connection->unread -= LENGTH_SIZE + length;
        user_forget_unread(connection->user, LENGTH_SIZE + length);
    }
    if (out->length > 0)
        drop_sent(connection);
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
    if (connection->is_recorder && message->type == WIRE_NEWS)
        recorder_answered(pool);
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
    log_closing(connection, error->message);
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
    list_remove(&connection->in_doomed);
    if (connection->is_recorder)
        recorder_hung_up(pool);
    else
        pool->connection_count--;
    if (connection->is_by_pid)
        id_map_remove(&pool->clients, &connection->by_pid);
    list_for_each (link, &connection->watchers)
        watcher_free(container_of(link, struct watcher, in_connection));
    postponed_forget(pool, connection);
    jobs_lose_client(pool, connection);
    forget_unread(connection);
    user_disconnect(connection);
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
    ssize_t length = recv(connection->watch.descriptor, pool->packet, WIRE_MESSAGE_MAX,
                          MSG_DONTWAIT | MSG_TRUNC);

    if (length < 0 && (errno == EINTR || errno == EAGAIN))
        return false;
    if (length <= 0) {
        doom(connection);
        return false;
    }
    pool->packet_length = (size_t)length;
    if (connection->user != NULL) {
        users_heard(connection);
        user_charge_message(connection->user, (size_t)length);
    }
    if (wire_decode(pool->packet, (size_t)length, &message, &error) < 0) {
        connection_fail(connection, &error);
        return false;
    }
    unanswered = message.number == 0;
    if (connection->is_recorder && message.type == WIRE_FOLLOW)
        recorder_asked(pool);
    message_handle(connection, &message);
    wire_message_finish(&message);
    return unanswered && !connection->closing;
}

/* Reads what it says, and does that. */
static void listen_to(struct connection *connection)
{
    struct pool *pool = connection->pool;
    int64_t began = connection->user == NULL ? 0 : clock_read(CLOCK_THREAD_CPUTIME_ID);

    for (int i = 0; i < PACKETS_OF_TURN && take_packet(connection); i++)
        pool_settle(pool);
    pool_settle(pool);
    if (connection->user != NULL)
        user_charge_time(connection->user, clock_read(CLOCK_THREAD_CPUTIME_ID) - began);
}

void connection_serve(struct connection *connection)
{
    struct pool *pool = connection->pool;

    if (loop_add(&pool->loop, &connection->watch, events_of(connection), NULL) < 0)
        doom(connection);
    if (connection->closing)
        return;
    if (connection->wants_out && !journal_file_is_behind(&pool->journal))
        flush_out(connection);
    listen_to(connection);
}

static void connection_ready(struct watch *watch, uint32_t events)
{
    struct connection *connection = container_of(watch, struct connection, watch);
    struct pool *pool = connection->pool;

    if ((events & EPOLLOUT) != 0 && !journal_file_is_behind(&pool->journal))
        flush_out(connection);
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && user_may_speak(connection))
        listen_to(connection);
}

/* A connection on this descriptor, watched but in no list yet; NULL: none was made, and the
 * descriptor is still the caller's. */
static struct connection *new_connection(struct pool *pool, int descriptor,
                                         const struct ucred *peer, struct user *user)
{
    struct connection *connection = calloc(1, sizeof(*connection));

    if (connection == NULL)
        return NULL;
    connection->watch = (struct watch){.descriptor = descriptor, .ready = connection_ready};
    connection->pool = pool;
    connection->pid = peer->pid;
    connection->uid = peer->uid;
    connection->gid = peer->gid;
    connection->user = user;
    list_init(&connection->jobs);
    list_init(&connection->watchers);
    if (loop_add(&pool->loop, &connection->watch, EPOLLIN, NULL) == 0)
        return connection;
    free(connection);
    return NULL;
}

struct connection *connection_to_recorder(struct pool *pool, int descriptor)
{
    const struct ucred ourselves = {.pid = pool->pid, .uid = pool->owner, .gid = getegid()};
    struct connection *connection = new_connection(pool, descriptor, &ourselves, NULL);

    if (connection == NULL)
        return NULL;
    connection->is_recorder = true;
    list_append(&pool->connections, &connection->in_pool);
    return connection;
}

/* Says why, to one that is not read from and becomes no connection. */
static void turn_away(struct pool *pool, int descriptor, const struct ucred *peer,
                      const struct berth_error *error)
{
    struct connection nobody = {
        .watch.descriptor = descriptor, .pool = pool, .pid = peer->pid, .uid = peer->uid};
    const struct wire_message message = {
        .type = WIRE_CLOSING,
        .error = (uint32_t)-error->code,
        .text = (char *)error->message,
    };

    text_clear(&pool->answer);
    if (wire_encode(&message, &pool->answer, NULL) == 0)
        send(descriptor, pool->answer.bytes, pool->answer.length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (user_open(pool, peer->uid, &nobody.user) < 0)
        return;
    log_closing(&nobody, error->message);
    user_close(nobody.user);
}

static void add_connection(struct pool *pool, int descriptor)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct connection *connection;
    struct user *user = NULL;
    struct ucred peer;
    socklen_t length = sizeof(peer);

    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0) {
        close(descriptor);
        return;
    }
    if (user_connect(pool, peer.uid, &user, &error) < 0) {
        turn_away(pool, descriptor, &peer, &error);
        close(descriptor);
        return;
    }
    connection = new_connection(pool, descriptor, &peer, user);
    if (connection == NULL) {
        user_disconnect(&(struct connection){.user = user});
        close(descriptor);
        return;
    }
    if (user != NULL)
        users_await(connection);
    list_append(&pool->connections, &connection->in_pool);
    id_map_reserve(&pool->clients, ++pool->connection_count);
    connection->by_pid.id = (uint64_t)peer.pid;
    if (id_map_find(&pool->clients, connection->by_pid.id) == NULL) {
        id_map_add(&pool->clients, &connection->by_pid);
        connection->is_by_pid = true;
    }
    /* It has most likely said what it wants already. But where a process was granted something in
     * this turn, its end may have come first, and is noticed in the next. */
    if (!pool->has_granted)
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
    for (int i = 0; i < ACCEPTED_IN_TURN; i++) {
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
    while (!list_is_empty(&pool->doomed)) {
        list_for_each (link, &pool->doomed)
            connection_close(container_of(link, struct connection, in_doomed));
        pool_settle(pool);
    }
}
