/* SPDX-License-Identifier: Apache-2.0
 *
 * Waits for a claim in the foreground: with a waiting line, and with a notification after a long
 * wait.
 */
#ifndef CLI_RUN_CLAIM_AWAIT_H
#define CLI_RUN_CLAIM_AWAIT_H

#include "cli/claim.h"
#include "cli/run/notify.h"

struct claim_await_options {
    bool verbose;
    bool quiet; /* another process shows the waiting line; ignored if `verbose` is set */
    struct notify_options notify;
};

/* Waits and fails as claim_wait does. Also fails as notify_init. */
int claim_await(struct client_claim *claim, struct session *session,
                const struct claim_await_options *how, struct berth_error *error);

/* Prints the granted devices on standard error: "berth: lease 12: nvidia0 nvidia1". */
void claim_await_print_grant(const struct client_claim *claim);

#endif
