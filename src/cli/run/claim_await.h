/* SPDX-License-Identifier: Apache-2.0
 *
 * Waiting for a claim as those do who stay in the foreground: with a line for people, and a word to
 * those who have waited for long.
 */
#ifndef CLI_RUN_CLAIM_AWAIT_H
#define CLI_RUN_CLAIM_AWAIT_H

#include "cli/claim.h"
#include "cli/run/notify.h"

struct claim_await_options {
    bool verbose;
    bool quiet; /* another one shows that it waits; unless verbose */
    struct notify_options notify;
};

/* As claim_wait. Fails also with BERTH_ERROR_INVALID: notify_init. */
int claim_await(struct client_claim *claim, struct session *session,
                const struct claim_await_options *how, struct berth_error *error);

/* Says on standard error what was granted: "berth: lease 12: nvidia0 nvidia1". */
void claim_await_print_grant(const struct client_claim *claim);

#endif
