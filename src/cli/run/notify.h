/* SPDX-License-Identifier: Apache-2.0
 *
 * Notifies a user after a long wait that the job starts: by a command (--notify), or by a line on
 * the terminal.
 */
#ifndef CLI_RUN_NOTIFY_H
#define CLI_RUN_NOTIFY_H

#include "cli/claim.h"
#include "spec/option.h"

/* The option --notify. */
struct notify_options {
    const char *command; /* a shell command; NULL: none */
};
extern const struct option_set notify_option_set;

/* Call notify_init() before use. Needs no clean-up. */
struct notify {
    const char *command; /* borrowed; NULL: print a line on the terminal */
    const char *name;    /* the request's name, borrowed; NULL: none */
    int64_t after;       /* nanoseconds: do not notify after a shorter wait */
    bool is_sent;
};

/* Initialises the struct. `name` is the request's name. The minimum wait is 1 minute, or
 * BERTH_NOTIFY_AFTER. Fails with BERTH_ERROR_INVALID if the variable is not a duration. */
int notify_init(struct notify *notify, const struct notify_options *options, const char *name,
                struct berth_error *error);

/* Returns how often notify_waiting must be called, in nanoseconds; 0: never. */
int64_t notify_pause(const struct notify *notify);

/* Runs the command, once, if the waiting claim will start within a minute. */
void notify_waiting(struct notify *notify, const struct client_claim *claim,
                    const struct wire_message *waiting);

/* Notifies of the grant, unless the wait was short or a notification was sent before. */
void notify_granted(struct notify *notify, const struct client_claim *claim);

/* Notifies that a tested request can be granted now, after `waited` nanoseconds. */
void notify_possible(struct notify *notify, int64_t waited);

#endif
