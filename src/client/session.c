/* SPDX-License-Identifier: Apache-2.0 */
#include "client/session.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "base/system/process_stat.h"
#include "base/system/user_names.h"
#include "base/text/quantity.h"
#include "client/start_daemon.h"

/* Room for "the daemon at PATH". */
enum { DAEMON_NAME_SIZE = 160 };

/* The daemon applies the caller's limit itself. This is the time for its answer to arrive before
 * the daemon is asked with a ping. */
#define LIMIT_SLACK (DURATION_SECOND / 10)

static void close_socket(struct session *session)
{
    if (session->socket >= 0)
        close(session->socket);
    session->socket = -1;
    session->ping_number = 0;
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
    silence_start(&session->silence, clock_now());
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
    silence_start(&session->silence, clock_now());
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

static bool has_passed_limit(const struct session *session)
{
    return session->silence.deadline != 0 && clock_now() >= session->silence.deadline;
}

void session_set_patience(struct session *session, const struct session_patience *patience)
{
    session->patience = *patience;
    session->silence.deadline =
        patience->has_limit ? clock_after(clock_now() + LIMIT_SLACK, patience->limit) : 0;
}

void session_end_limit(struct session *session)
{
    session->patience.has_limit = false;
    session->silence.deadline = 0;
}

pid_t session_daemon_pid(const struct session *session)
{
    struct ucred peer = {0};
    socklen_t length = sizeof(peer);

    return getsockopt(session->socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 ? peer.pid : 0;
}

bool session_daemon_user(const struct session *session, uid_t *ret_uid)
{
    struct ucred peer = {0};
    socklen_t length = sizeof(peer);

    if (getsockopt(session->socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
        return false;
    *ret_uid = peer.uid;
    return true;
}

/* Writes "the daemon (pid 7)". */
static void describe_daemon(const struct session *session, char *out, size_t size)
{
    pid_t pid = session_daemon_pid(session);

    if (pid > 0)
        snprintf(out, size, "the daemon (pid %ld)", (long)pid);
    else
        snprintf(out, size, "the daemon at %s", session->address->socket);
}

static const char *find_way_out(const struct pool_address *address)
{
    if (address->own)
        return "kill it with SIGKILL, and the next command restarts it";
    return pool_address_is_machine(address)
               ? "an administrator can restart it: systemctl restart berthd"
               : "its user can kill it with SIGKILL, and start it again";
}

int session_explain_silence(const struct session *session, struct berth_error *error)
{
    char daemon[DAEMON_NAME_SIZE];

    describe_daemon(session, daemon, sizeof(daemon));
    return error_set(error, BERTH_ERROR_IO, "%s does not answer; %s (leases are kept)", daemon,
                     find_way_out(session->address));
}

static void report_silence(const struct session *session)
{
    struct berth_error news = BERTH_ERROR_INIT;

    session_explain_silence(session, &news);
    session->patience.report(session->patience.context, news.message);
}

static void report_answer(const struct session *session)
{
    char news[DAEMON_NAME_SIZE + 32];

    describe_daemon(session, news, DAEMON_NAME_SIZE);
    strcat(news, " answers again");
    session->patience.report(session->patience.context, news);
}

/* Returns the time up to which the daemon may still be starting; 0: it is not. A daemon that waits
 * for a slow driver at its start answers no client. */
static int64_t find_start_limit(const struct session *session)
{
    pid_t pid = session_daemon_pid(session);
    int64_t now = clock_now();
    char buffer[512];
    const char *fields;
    int64_t age;

    if (session->address->own)
        return start_daemon_is_in_progress(session->address) ? now + dial_settings.start_timeout
                                                             : 0;
    fields = pid > 0 ? process_stat_fields(pid, buffer, sizeof(buffer)) : NULL;
    age = fields == NULL ? INT64_MAX : process_stat_age(fields);
    return age < dial_settings.start_timeout ? now - age + dial_settings.start_timeout : 0;
}

/* Sends WIRE_HELLO without blocking. A full socket holds requests that the daemon has not read, so
 * the ping then counts as sent. */
static int send_ping(struct session *session, struct berth_error *error)
{
    struct wire_message ping = {.type = WIRE_HELLO, .number = session_next_number(session)};
    int code;

    text_clear(&session->out);
    code = wire_encode(&ping, &session->out, error);
    if (code < 0)
        return code;
    send(session->socket, session->out.bytes, session->out.length, MSG_NOSIGNAL | MSG_DONTWAIT);
    session->ping_number = ping.number;
    silence_add_ping(&session->silence, clock_now(), find_start_limit(session));
    return 0;
}

/* `state` is "does not answer", or "is gone". */
static int fail_deadline(const struct session *session, const char *state,
                         struct berth_error *error)
{
    char daemon[DAEMON_NAME_SIZE];

    describe_daemon(session, daemon, sizeof(daemon));
    return error_set(error, BERTH_ERROR_TIMED_OUT, "not granted within %s: %s %s",
                     quantity_format_duration(session->patience.limit).text, daemon, state);
}

/* Handles that no message has arrived. Returns 0 to wait on, or an error. */
static int handle_silence(struct session *session, struct berth_error *error)
{
    switch (silence_step(&session->silence, clock_now())) {
    case SILENCE_PING:
        return send_ping(session, error);
    case SILENCE_EXPIRE:
        return fail_deadline(session, "does not answer", error);
    case SILENCE_BEGIN:
        if (session->patience.report != NULL)
            report_silence(session);
        break;
    case SILENCE_WAIT:
        break;
    }
    return session->silence.is_silent && session->patience.report == NULL
               ? session_explain_silence(session, error)
               : 0;
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
    } else if (message.number == session->ping_number && session->ping_number != 0) {
        session->ping_number = 0;
    } else if (wire_type_name(message.type) != NULL) {
        session->reconnecting = (struct backoff){0};
        *ret_message = message;
        return SESSION_MESSAGE;
    }
    wire_message_finish(&message);
    return code;
}

/* Waits until the socket is ready for these events of poll(), or the connection has failed, and
 * then returns 1. Returns 0 at the time `until` or after a signal, or an error when the daemon does
 * not answer. */
static int wait_for_socket(struct session *session, short events, int64_t until,
                           struct berth_error *error)
{
    struct pollfd waiting = {.fd = session->socket, .events = events};

    for (;;) {
        int64_t next = silence_next_time(&session->silence);
        int64_t left = (next < until ? next : until) - clock_now();
        struct timespec time = {0};
        int ready;
        int code;

        if (session->silence.is_silent && session->patience.report == NULL)
            left = 0;
        if (left > 0)
            time = (struct timespec){left / DURATION_SECOND, left % DURATION_SECOND};
        ready = ppoll(&waiting, 1, &time, NULL);
        if (ready != 0)
            return ready > 0;
        if (clock_now() >= until)
            return 0;
        code = handle_silence(session, error);
        if (code < 0)
            return code;
    }
}

int session_receive(struct session *session, int64_t timeout, struct wire_message *ret_message,
                    struct berth_error *error)
{
    int64_t until = timeout < 0 ? INT64_MAX : clock_after(clock_now(), timeout);
    int result = SESSION_NOTHING;

    while (result == SESSION_NOTHING) {
        ssize_t length;

        if (session->socket < 0)
            return set_error_daemon_gone(session, error);
        if (timeout != 0) {
            int code = wait_for_socket(session, POLLIN, until, error);

            if (code <= 0)
                return code;
        }
        length = receive_packet(session, MSG_DONTWAIT);
        if (length < 0 && (errno == EAGAIN || errno == EINTR))
            return SESSION_NOTHING;
        if (length <= 0)
            return set_error_daemon_gone(session, error);
        if (silence_add_message(&session->silence, clock_now()) && session->patience.report != NULL)
            report_answer(session);
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

/* Sends the packet in `out`; sets *ret_number to 0 or an errno. Waits while the socket is full, for
 * example because the daemon is stopped. Fails when the daemon does not answer. */
static int send_packet(struct session *session, int *ret_number, struct berth_error *error)
{
    struct text packet = session->out;
    int number;
    int code = 0;

    /* A ping uses the text, too. */
    session->out = (struct text){0};
    do {
        number = send(session->socket, packet.bytes, packet.length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0
                     ? errno
                     : 0;
        if (number == EAGAIN)
            code = wait_for_socket(session, POLLOUT, INT64_MAX, error);
    } while (code >= 0 && (number == EAGAIN || number == EINTR));
    text_finish(&session->out);
    session->out = packet;
    *ret_number = number;
    return code < 0 ? code : 0;
}

int session_send(struct session *session, const struct wire_message *message,
                 struct berth_error *error)
{
    int number;
    int code;

    text_clear(&session->out);
    code = wire_encode(message, &session->out, error);
    if (code < 0)
        return code;
    if (session->socket < 0)
        return set_error_daemon_gone(session, error);
    silence_add_request(&session->silence, clock_now());
    code = send_packet(session, &number, error);
    if (code < 0 || number == 0)
        return code;
    if (number == EPIPE || number == ECONNRESET || number == ENOTCONN)
        return receive_closing_reason(session, error);
    code = error_set_errno(error, number, "cannot send to %s", session->address->socket);
    close_socket(session);
    return code;
}

/* Returns whether a retry may help. */
static bool is_worth_retrying(int code)
{
    return code == BERTH_ERROR_IO || code == BERTH_ERROR_NOT_FOUND;
}

static void begin_reconnecting(struct session *session)
{
    int64_t time = dial_settings.reconnect_timeout;
    int64_t left = session->silence.deadline - clock_now();

    if (session->silence.deadline != 0 && left < time)
        time = left;
    backoff_begin(&session->reconnecting, time, BACKOFF_PAUSE_MAX);
}

int session_reconnect(struct session *session, struct berth_error *error)
{
    enum dial_mode how = session->address->own ? DIAL_START : session->how;
    bool first = session->reconnecting.until == 0;
    int code;

    close_socket(session);
    session->closed = false;
    if (first)
        begin_reconnecting(session);
    else if (!backoff_sleep(&session->reconnecting))
        return has_passed_limit(session) ? fail_deadline(session, "is gone", error)
                                         : set_error_daemon_gone(session, error);
    do {
        code = dial_with_timeout(session->address, how, 0, &session->socket, error);
    } while (code < 0 && is_worth_retrying(code) && backoff_sleep(&session->reconnecting));
    silence_start(&session->silence, clock_now());
    if (code < 0 && is_worth_retrying(code) && has_passed_limit(session))
        return fail_deadline(session, "is gone", error);
    return code;
}

int session_try_reconnect(struct session *session, enum dial_mode how, struct berth_error *error)
{
    close_socket(session);
    session->closed = false;
    silence_start(&session->silence, clock_now());
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
