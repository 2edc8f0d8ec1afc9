/* SPDX-License-Identifier: Apache-2.0
 *
 * Ending a lease or a claim over a conversation of its own, while everything else goes on. Zeroed
 * memory has nothing to do. One thread at a time.
 */
#ifndef TOP_ACTION_H
#define TOP_ACTION_H

#include "client/session.h"
#include "top/control.h"

/* The daemon has so long to answer. */
#define ACTION_TIMEOUT (10 * DURATION_SECOND)

struct action {
    struct control_command command; /* type 0: nothing is under way */
    struct session session;
    int64_t deadline; /* by clock_now() */
};

/* Asks for a deed; there must be none under way. Fails as session_open_with_timeout and
 * session_send, and nothing is under way then. */
int action_begin(struct action *action, const struct pool_address *address,
                 struct control_command command, struct berth_error *error);

/* What to wait for: readable; -1: nothing is under way. */
int action_descriptor(const struct action *action);

enum { ACTION_PENDING = 0, ACTION_DONE = 1 };

/* Looks for an answer. Returns ACTION_PENDING, also when nothing is under way; ACTION_DONE; or the
 * error that the daemon refused it with, or that it did not answer with. */
int action_step(struct action *action, struct berth_error *error);

/* Gives up what is under way. */
void action_cancel(struct action *action);

#endif
