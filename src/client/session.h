/* SPDX-License-Identifier: Apache-2.0
 *
 * A connection to the daemon that survives the daemon's restart: when the daemon goes away, the
 * session tries to reconnect for 30 s. Only one thread may use a session at a time.
 */
#ifndef CLIENT_SESSION_H
#define CLIENT_SESSION_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/system/backoff.h"
#include "base/text/text.h"
#include "client/dial.h"
#include "client/pool_address.h"
#include "wire/wire.h"

struct session {
    const struct pool_address *address; /* the caller's */
    enum dial_mode how;
    int socket;  /* -1: not connected */
    bool closed; /* the daemon closed the connection with a reason; reconnecting hardly helps */
    uint64_t last_number;
    struct backoff reconnecting; /* begun by the first attempt after the daemon's last message */
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
 * Blocks while the socket is full. */
int session_send(struct session *session, const struct wire_message *message,
                 struct berth_error *error);

enum { SESSION_NOTHING = 0, SESSION_MESSAGE = 1 };

/* Waits for the next message, at most `timeout` nanoseconds (-1: no limit). Returns SESSION_MESSAGE
 * with a message, which the caller finishes, or SESSION_NOTHING after the timeout. Messages of
 * unknown types are ignored. Fails with BERTH_ERROR_IO when the daemon is gone; with the daemon's
 * reason when it closed the connection (WIRE_CLOSING), and sets `closed` then; or like wire_decode.
 * After a failure other than BERTH_ERROR_MEMORY the session is not connected. A signal ends the
 * wait with SESSION_NOTHING (with -1, only if its handler has no SA_RESTART). */
int session_receive(struct session *session, int64_t timeout, struct wire_message *ret_message,
                    struct berth_error *error);

/* Reconnects after the daemon has gone, for 30 s with growing pauses. Starts the user's own daemon
 * if it does not run, whatever `how` is. The caller must send its open requests again. The time
 * counts from the first call after the daemon's last message, so that a request that crashes the
 * daemon is not retried forever. Fails with the last error. */
int session_reconnect(struct session *session, struct berth_error *error);

/* Makes one attempt to reconnect, without a pause, for callers that do other work between
 * attempts. */
int session_try_reconnect(struct session *session, enum dial_mode how, struct berth_error *error);

/* Sends a request and waits for its answer: the next message with the request's number, which must
 * have the type `wanted` (else BERTH_ERROR_SYNTAX). WIRE_REFUSED becomes its error. This function
 * sets the number. It reconnects when the daemon goes away before it has answered, unless the
 * daemon gave a reason. Messages with other numbers are ignored. The caller finishes
 * *ret_answer. */
int session_request(struct session *session, struct wire_message *question, enum wire_type wanted,
                    struct wire_message *ret_answer, struct berth_error *error);

/* Converts WIRE_REFUSED or WIRE_CLOSING to an error. Users in the
 * message get their names, so a lookup in the user database may block. Returns its code. */
int session_refusal(const struct wire_message *message, struct berth_error *error);

#endif
