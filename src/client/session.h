/* SPDX-License-Identifier: Apache-2.0
 *
 * A conversation with the daemon that outlives the daemon: when it goes away, the session dials
 * again for 30 s. One thread at a time.
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
    bool closed; /* the daemon closed the connection and said why: dialling again hardly helps */
    uint64_t last_number;
    struct backoff reconnecting; /* since the daemon said its last word, when we dialled again */
    struct text out;
    unsigned char *in; /* room for the longest message */
};

/* Dials. Fails as dial; the session needs no clean-up then. */
int session_open(struct session *session, const struct pool_address *address, enum dial_mode how,
                 struct berth_error *error);

/* The same with another time, in nanoseconds, for a socket that refuses. */
int session_open_with_timeout(struct session *session, const struct pool_address *address,
                              enum dial_mode how, int64_t timeout, struct berth_error *error);

/* Over a connection that is there already, which it consumes, also on failure. `address` is for
 * messages only. Fails with BERTH_ERROR_MEMORY. */
int session_open_connected(struct session *session, const struct pool_address *address,
                           int descriptor, struct berth_error *error);
void session_close(struct session *session);

/* A number that this session has not used yet. */
uint64_t session_next_number(struct session *session);

/* Sends one message. Fails with BERTH_ERROR_IO when the daemon is gone (session_reconnect helps),
 * with what it said when it closed us as session_receive does, or as wire_encode. Blocks while the
 * daemon takes no more. */
int session_send(struct session *session, const struct wire_message *message,
                 struct berth_error *error);

enum { SESSION_NOTHING = 0, SESSION_MESSAGE = 1 };

/* Waits for the next message, at most `timeout` nanoseconds (-1: for ever). Returns SESSION_MESSAGE
 * with the message, which the caller finishes; or SESSION_NOTHING. Messages of types that this
 * version does not know are passed over. Fails with BERTH_ERROR_IO when the daemon is gone; with
 * what it said when it closed us (WIRE_CLOSING) as its error, and `closed` is true then; or as
 * wire_decode. The session is not connected any more after a failure, but for BERTH_ERROR_MEMORY.
 * Interrupted by a signal: SESSION_NOTHING (with -1, only where its handler has no SA_RESTART). */
int session_receive(struct session *session, int64_t timeout, struct wire_message *ret_message,
                    struct berth_error *error);

/* The daemon is gone: dials again, for 30 s in all, with growing pauses; our own daemon is started
 * where none runs, whatever `how` is. What was asked is to be asked again. The time counts from the
 * first call since the daemon last said something, so that a daemon that dies of every question is
 * not asked for ever. Fails with the last error. */
int session_reconnect(struct session *session, struct berth_error *error);

/* The same with a single try and no pause, for those who have something else to do meanwhile. */
int session_try_reconnect(struct session *session, enum dial_mode how, struct berth_error *error);

/* Asks one thing and waits for its answer: the next message of that number, which must be of type
 * `wanted` (else BERTH_ERROR_SYNTAX); WIRE_REFUSED becomes its error. The number is chosen here.
 * Dials again when the daemon goes away before it answered, unless it said why. Messages of other
 * numbers are passed over. The caller finishes *ret_answer. */
int session_request(struct session *session, struct wire_message *question, enum wire_type wanted,
                    struct wire_message *ret_answer, struct berth_error *error);

/* WIRE_REFUSED and WIRE_CLOSING as an error: returns the code. */
int session_refusal(const struct wire_message *message, struct berth_error *error);

#endif
