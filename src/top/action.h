/* SPDX-License-Identifier: Apache-2.0
 *
 * Ends a lease or a claim over a separate connection, without blocking the screen. A zeroed action
 * is not pending. Not thread-safe.
 */
#ifndef TOP_ACTION_H
#define TOP_ACTION_H

#include "client/session.h"
#include "top/control.h"

/* How long to wait for the daemon's answer. */
#define ACTION_TIMEOUT (10 * DURATION_SECOND)

struct action {
    struct control_command command; /* type 0: no action is pending */
    struct session session;
    int64_t deadline; /* by clock_now() */
};

/* Sends the command. No action may be pending before the call, and none is pending after a failure.
 * Fails as session_open_with_timeout() and session_send(). */
int action_begin(struct action *action, const struct pool_address *address,
                 struct control_command command, struct berth_error *error);

/* Returns the descriptor that becomes readable with the answer; -1: no action is pending. */
int action_descriptor(const struct action *action);

enum { ACTION_PENDING = 0, ACTION_DONE = 1 };

/* Reads the answer without blocking. Returns ACTION_PENDING, also if there is no action;
 * ACTION_DONE; or the error of the refusal, of the connection, or of the timeout. */
int action_step(struct action *action, struct berth_error *error);

/* Drops the pending action, if there is one. */
void action_cancel(struct action *action);

#endif
