/* SPDX-License-Identifier: Apache-2.0
 *
 * A connection to the daemon that survives the daemon's restart: when the daemon goes away, the
 * session tries to reconnect for 30 s. A daemon that is connected but does not answer is noticed
 * after 5 s (client/silence.h). Only one thread may use a session at a time.
 */
#ifndef CLIENT_SESSION_H
#define CLIENT_SESSION_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/system/backoff.h"
#include "base/text/text.h"
#include "client/dial.h"
#include "client/pool_address.h"
#include "client/silence.h"
#include "wire/wire.h"

/* How a session waits for a daemon that does not answer. With zeroed memory, session_receive()
 * fails then. */
struct session_patience {
    /* Called once when the daemon stops answering, and once when it answers again; the session
     * waits meanwhile. `news` is "the daemon (pid 7) does not answer; ...". NULL: fail instead. */
    void (*report)(void *context, const char *news);
    void *context;
    /* Nanoseconds from now. After this time, session_receive() fails with BERTH_ERROR_TIMED_OUT if
     * the daemon does not answer, and session_reconnect() if there is no daemon. */
    int64_t limit;
    bool has_limit;
};

struct session {
    const struct pool_address *address; /* the caller's */
    enum dial_mode how;
    int socket;  /* -1: not connected */
    bool closed; /* the daemon closed the connection with a reason; reconnecting hardly helps */
    uint64_t last_number;
    struct backoff reconnecting; /* begun by the first attempt after the daemon's last message */
    struct silence silence;
    struct session_patience patience;
    uint64_t ping_number; /* the number of the open ping; 0: none */
    struct text out;
    unsigned char *in; /* room for the longest message */
};

/* Connects to the daemon. Fails like dial; the session needs no clean-up then. */
int session_open(struct session *session, const struct pool_address *address, enum dial_mode how,
                 struct berth_error *error);

/* Does the same with another timeout, in nanoseconds, for a socket that refuses connections. */
int session_open_with_timeout(struct session *session, const struct pool_address *address,
                              enum dial_mode how, int64_t timeout, struct berth_error *error);

/* Opens a session over an existing connection. The session owns the descriptor; it is closed on
 * failure too. `address` is for messages only. Fails with BERTH_ERROR_MEMORY. */
int session_open_connected(struct session *session, const struct pool_address *address,
                           int descriptor, struct berth_error *error);
void session_close(struct session *session);

/* Returns a number that this session has not used yet. */
uint64_t session_next_number(struct session *session);

/* Sends one message. Fails with BERTH_ERROR_IO when the daemon is gone (session_reconnect helps),
 * with the daemon's reason for closing the connection (see session_receive), or like wire_encode.
 * Blocks while the socket is full, and fails with BERTH_ERROR_IO or _TIMED_OUT as session_receive()
 * does when the daemon does not answer meanwhile. */
int session_send(struct session *session, const struct wire_message *message,
                 struct berth_error *error);

/* Changes how the session waits for a daemon that does not answer. */
void session_set_patience(struct session *session, const struct session_patience *patience);

/* Removes the patience's limit after the wait for which it was set. */
void session_end_limit(struct session *session);

/* Returns the pid of the daemon, by SO_PEERCRED; 0: not connected, or a process that is not visible
 * in this pid namespace. */
pid_t session_daemon_pid(const struct session *session);

/* Finds the user of the daemon, by SO_PEERCRED. Returns false if the session is not connected. */
bool session_daemon_user(const struct session *session, uid_t *ret_uid);

/* Writes an error for a daemon that does not answer: "the daemon (pid 7) does not answer", then the
 * way out. Returns BERTH_ERROR_IO. */
int session_explain_silence(const struct session *session, struct berth_error *error);

enum { SESSION_NOTHING = 0, SESSION_MESSAGE = 1 };

/* Waits for the next message, at most `timeout` nanoseconds (-1: no limit). Returns SESSION_MESSAGE
 * with a message, which the caller finishes, or SESSION_NOTHING after the timeout. Messages of
 * unknown types are ignored. Fails with BERTH_ERROR_IO when the daemon is gone; with the daemon's
 * reason when it closed the connection (WIRE_CLOSING), and sets `closed` then; or like wire_decode.
 * After these failures other than BERTH_ERROR_MEMORY the session is not connected. Also fails when
 * the daemon does not answer, unless the session's patience says otherwise; then the session stays
 * connected. A signal ends the wait with SESSION_NOTHING. */
int session_receive(struct session *session, int64_t timeout, struct wire_message *ret_message,
                    struct berth_error *error);

/* Reconnects after the daemon has gone, for 30 s with growing pauses. Starts the user's own daemon
 * if it does not run, for every `how`. The caller must send its open requests again. The time
 * counts from the first call after the daemon's last message, so that a request that crashes the
 * daemon is not retried forever. Fails with the last error; at the patience's limit, if that is
 * sooner, with BERTH_ERROR_TIMED_OUT. */
int session_reconnect(struct session *session, struct berth_error *error);

/* Makes one attempt to reconnect, without a pause, for callers that do other work between
 * attempts. */
int session_try_reconnect(struct session *session, enum dial_mode how, struct berth_error *error);

/* Sends a request and waits for its answer, with the session's patience: the next message with the
 * request's number, which must have the type `wanted` (else BERTH_ERROR_SYNTAX). WIRE_REFUSED
 * becomes its error. This function sets the number. It reconnects when the daemon goes away before
 * it has answered, unless the daemon gave a reason. Messages with other numbers are ignored. The
 * caller finishes *ret_answer. */
int session_request(struct session *session, struct wire_message *question, enum wire_type wanted,
                    struct wire_message *ret_answer, struct berth_error *error);

/* Converts WIRE_REFUSED or WIRE_CLOSING to an error. Users in the
 * message get their names, so a lookup in the user database may block. Returns its code. */
int session_refusal(const struct wire_message *message, struct berth_error *error);

#endif
