/* SPDX-License-Identifier: Apache-2.0 */
#include "client/session.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "base/system/user_names.h"

static void close_socket(struct session *session)
{
    if (session->socket >= 0)
        close(session->socket);
    session->socket = -1;
}

int session_open_with_timeout(struct session *session, const struct pool_address *address,
                              enum dial_mode how, int64_t timeout, struct berth_error *error)
{
    struct session opened = {.address = address, .how = how, .socket = -1};
    int code;

    opened.in = malloc(WIRE_MESSAGE_MAX);
    if (opened.in == NULL)
        return error_set_memory(error);
    code = dial_with_timeout(address, how, timeout, &opened.socket, error);
    if (code < 0) {
        free(opened.in);
        return code;
    }
    *session = opened;
    return 0;
}

int session_open(struct session *session, const struct pool_address *address, enum dial_mode how,
                 struct berth_error *error)
{
    return session_open_with_timeout(session, address, how, dial_settings.refusal_timeout, error);
}

int session_open_connected(struct session *session, const struct pool_address *address,
                           int descriptor, struct berth_error *error)
{
    struct session opened = {.address = address, .socket = descriptor};

    opened.in = malloc(WIRE_MESSAGE_MAX);
    if (opened.in == NULL) {
        close(descriptor);
        return error_set_memory(error);
    }
    *session = opened;
    return 0;
}

void session_close(struct session *session)
{
    close_socket(session);
    text_finish(&session->out);
    free(session->in);
    *session = (struct session){.socket = -1};
}

uint64_t session_next_number(struct session *session)
{
    return ++session->last_number;
}

static int set_error_daemon_gone(struct session *session, struct berth_error *error)
{
    close_socket(session);
    return error_set(error, BERTH_ERROR_IO, "%s: the daemon is gone", session->address->socket);
}

int session_refusal(const struct wire_message *message, struct berth_error *error)
{
    static const int known[] = {
#define KNOWN(name, number, description) BERTH_ERROR_##name,
        BERTH_ERROR_LIST(KNOWN)
#undef KNOWN
    };
    int code = BERTH_ERROR_IO;

    for (size_t i = 0; i < COUNT(known); i++) {
        if (message->error == (uint32_t)-known[i])
            code = known[i];
    }
    error_set(error, code, "%s",
              message->text != NULL ? message->text : berth_error_describe(code));
    return user_names_explain(error, code);
}

/* Receives one packet. Returns its length, 0 when the connection has ended, or -1 with errno. When
 * the peer closed the connection without reading everything, ECONNRESET comes before the peer's
 * last packets, so this function then receives once more. */
static ssize_t receive_packet(struct session *session, int flags)
{
    ssize_t length = recv(session->socket, session->in, WIRE_MESSAGE_MAX, MSG_TRUNC | flags);

    if (length < 0 && errno == ECONNRESET)
        length = recv(session->socket, session->in, WIRE_MESSAGE_MAX, MSG_TRUNC | MSG_DONTWAIT);
    return length;
}

/* Decodes a packet. Returns SESSION_MESSAGE, or SESSION_NOTHING when its type is unknown. */
static int decode_packet(struct session *session, size_t length, struct wire_message *ret_message,
                         struct berth_error *error)
{
    struct wire_message message = {0};
    int code = wire_decode(session->in, length, &message, error);

    if (code < 0) {
        if (code != BERTH_ERROR_MEMORY)
            close_socket(session);
        return error_wrap(error, code, "%s", session->address->socket);
    }
    if (message.type == WIRE_CLOSING) {
        code = session_refusal(&message, error);
        session->closed = true;
        close_socket(session);
    } else if (wire_type_name(message.type) != NULL) {
        session->reconnecting = (struct backoff){0};
        *ret_message = message;
        return SESSION_MESSAGE;
    }
    wire_message_finish(&message);
    return code;
}

/* Waits until there is a packet, or the connection has failed. Returns false after the timeout. */
static bool wait_for_packet(const struct session *session, int64_t until)
{
    struct pollfd waiting = {.fd = session->socket, .events = POLLIN};
    int64_t left = until - clock_now();
    struct timespec time = {0};

    if (left > 0)
        time = (struct timespec){left / 1000000000, left % 1000000000};
    return ppoll(&waiting, 1, &time, NULL) > 0;
}

int session_receive(struct session *session, int64_t timeout, struct wire_message *ret_message,
                    struct berth_error *error)
{
    int64_t until = timeout > 0 ? clock_after(clock_now(), timeout) : 0;
    int result = SESSION_NOTHING;

    while (result == SESSION_NOTHING) {
        ssize_t length;

        if (session->socket < 0)
            return set_error_daemon_gone(session, error);
        if (timeout > 0 && !wait_for_packet(session, until))
            return SESSION_NOTHING;
        length = receive_packet(session, timeout < 0 ? 0 : MSG_DONTWAIT);
        if (length < 0 && (errno == EAGAIN || errno == EINTR))
            return SESSION_NOTHING;
        if (length <= 0)
            return set_error_daemon_gone(session, error);
        result = decode_packet(session, (size_t)length, ret_message, error);
    }
    return result;
}

/* Reads the daemon's reason for closing the connection, after sending failed. */
static int receive_closing_reason(struct session *session, struct berth_error *error)
{
    struct wire_message message;
    int code;

    while ((code = session_receive(session, 0, &message, error)) == SESSION_MESSAGE)
        wire_message_finish(&message);
    return code < 0 ? code : set_error_daemon_gone(session, error);
}

int session_send(struct session *session, const struct wire_message *message,
                 struct berth_error *error)
{
    ssize_t sent;
    int code;

    text_clear(&session->out);
    code = wire_encode(message, &session->out, error);
    if (code < 0)
        return code;
    if (session->socket < 0)
        return set_error_daemon_gone(session, error);
    do {
        sent = send(session->socket, session->out.bytes, session->out.length, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent >= 0)
        return 0;
    if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN)
        return receive_closing_reason(session, error);
    code = error_set_errno(error, errno, "cannot send to %s", session->address->socket);
    close_socket(session);
    return code;
}

/* Returns whether a retry may help. */
static bool is_worth_retrying(int code)
{
    return code == BERTH_ERROR_IO || code == BERTH_ERROR_NOT_FOUND;
}

int session_reconnect(struct session *session, struct berth_error *error)
{
    enum dial_mode how = session->address->own ? DIAL_START : session->how;
    bool first = session->reconnecting.until == 0;
    int code;

    close_socket(session);
    session->closed = false;
    if (first)
        backoff_begin(&session->reconnecting, dial_settings.reconnect_timeout, BACKOFF_PAUSE_MAX);
    else if (!backoff_sleep(&session->reconnecting))
        return set_error_daemon_gone(session, error);
    do {
        code = dial_with_timeout(session->address, how, 0, &session->socket, error);
    } while (code < 0 && is_worth_retrying(code) && backoff_sleep(&session->reconnecting));
    return code;
}

int session_try_reconnect(struct session *session, enum dial_mode how, struct berth_error *error)
{
    close_socket(session);
    session->closed = false;
    return dial_with_timeout(session->address, how, 0, &session->socket, error);
}

/* Sends the request once and waits for the answer. Sets *ret_gone when the daemon went away without
 * a reason. */
static int request_once(struct session *session, const struct wire_message *question,
                        struct wire_message *ret_answer, bool *ret_gone, struct berth_error *error)
{
    int code = session_send(session, question, error);

    while (code == 0 || code == SESSION_MESSAGE) {
        code = session_receive(session, -1, ret_answer, error);
        if (code == SESSION_MESSAGE && ret_answer->number == question->number)
            return 0;
        if (code == SESSION_MESSAGE)
            wire_message_finish(ret_answer);
    }
    *ret_gone = code == BERTH_ERROR_IO && session->socket < 0 && !session->closed;
    return code;
}

static int check_answer(struct session *session, struct wire_message *answer, enum wire_type wanted,
                        struct berth_error *error)
{
    if (answer->type == wanted)
        return 0;
    if (answer->type == WIRE_REFUSED)
        return session_refusal(answer, error);
    return error_set(error, BERTH_ERROR_SYNTAX, "%s: expected the answer '%s', got '%s'",
                     session->address->socket, wire_type_name(wanted),
                     wire_type_name(answer->type));
}

int session_request(struct session *session, struct wire_message *question, enum wire_type wanted,
                    struct wire_message *ret_answer, struct berth_error *error)
{
    struct wire_message answer = {0};
    bool gone;
    int code;

    question->number = session_next_number(session);
    do {
        gone = false;
        code = request_once(session, question, &answer, &gone, error);
        if (gone)
            code = session_reconnect(session, error);
    } while (gone && code == 0);
    if (code < 0)
        return code;
    code = check_answer(session, &answer, wanted, error);
    if (code == 0)
        *ret_answer = answer;
    else
        wire_message_finish(&answer);
    return code;
}
