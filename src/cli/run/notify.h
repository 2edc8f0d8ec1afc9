/* SPDX-License-Identifier: Apache-2.0
 *
 * Telling a user who has waited for long, and does something else by now, that it is about to go
 * on: a command of theirs (--notify), or else a line on their terminal.
 */
#ifndef CLI_RUN_NOTIFY_H
#define CLI_RUN_NOTIFY_H

#include "cli/claim.h"
#include "spec/option.h"

/* --notify. */
struct notify_options {
    const char *command; /* for a shell; NULL: none */
};
extern const struct option_set notify_option_set;

/* Zeroed memory tells everybody of everything on the terminal; notify_init is how to begin. */
struct notify {
    const char *command; /* the caller's; NULL: a line on the terminal */
    const char *name;    /* the request's; NULL: none */
    int64_t after;       /* nanoseconds: who has waited for less is not told */
    bool is_sent;
};

/* `name` is the request's. The time is 1 minute unless BERTH_NOTIFY_AFTER says another. Fails with
 * BERTH_ERROR_INVALID when that is no duration. */
int notify_init(struct notify *notify, const struct notify_options *options, const char *name,
                struct berth_error *error);

/* Nanoseconds between two askings for news that are often enough; 0: none are needed. */
int64_t notify_pause(const struct notify *notify);

/* The claim waits: runs the command, once, when it is to start within a minute. */
void notify_waiting(struct notify *notify, const struct client_claim *claim,
                    const struct wire_message *waiting);

/* The claim is granted: tells so, unless it told something before. */
void notify_granted(struct notify *notify, const struct client_claim *claim);

/* What was only tested would be granted now, after so many nanoseconds. */
void notify_possible(struct notify *notify, int64_t waited);

#endif
