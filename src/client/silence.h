/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides when a connected daemon counts as not answering. Some requests are answered late, such as
 * a claim that waits for devices. So the client first sends a ping to a quiet daemon (WIRE_HELLO,
 * which the daemon answers at once). The daemon counts as silent if the ping is not answered. No
 * I/O and no clock: times are nanoseconds of CLOCK_MONOTONIC.
 */
#ifndef CLIENT_SILENCE_H
#define CLIENT_SILENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text/quantity.h"

/* Time from a request, or from the daemon's last message, to the conclusion that it is silent. */
#define SILENCE_TIMEOUT (5 * DURATION_SECOND)
/* Time from a request to the ping; during a wait that the daemon has acknowledged, the interval of
 * pings. */
#define SILENCE_PING_AFTER (SILENCE_TIMEOUT / 2)
/* Time that the daemon has for a ping at the deadline. */
#define SILENCE_DEADLINE_MARGIN (DURATION_SECOND / 2)

/* Zeroed memory has no deadline. */
struct silence {
    int64_t quiet_since; /* the last message, or the first request after it */
    bool has_request;    /* a request was sent after the last message */
    bool is_silent;
    int64_t pinged_at; /* when the open ping was sent; 0: none */
    int64_t deadline;  /* when the caller's own limit ends; 0: none */
    int64_t earliest;  /* the daemon may still be starting up to this time; 0: it is not */
};

/* Starts a new connection. Keeps `is_silent`, which the next message ends, and the deadline. */
void silence_start(struct silence *silence, int64_t now);

/* Notes a request to the daemon. */
void silence_add_request(struct silence *silence, int64_t now);

/* Notes a message from the daemon. Returns whether the daemon was silent before. */
bool silence_add_message(struct silence *silence, int64_t now);

/* Notes a ping. A daemon that may still be starting up to the time `earliest` is not silent before
 * it. */
void silence_add_ping(struct silence *silence, int64_t now, int64_t earliest);

enum silence_step {
    SILENCE_WAIT,   /* nothing to do before silence_next_time() */
    SILENCE_PING,   /* send a ping */
    SILENCE_BEGIN,  /* the daemon does not answer; returned once, and sets `is_silent` */
    SILENCE_EXPIRE, /* the deadline has passed, and the daemon does not answer */
};

/* Returns the next step. Call it only when no message has arrived. */
enum silence_step silence_step(struct silence *silence, int64_t now);

/* Returns when silence_step() must be called again; INT64_MAX: after the next message. */
int64_t silence_next_time(const struct silence *silence);

#endif
