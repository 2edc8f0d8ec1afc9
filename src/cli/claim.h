/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes one claim and waits until it is granted. Sends the claim again if the daemon restarts.
 */
#ifndef CLI_CLAIM_H
#define CLI_CLAIM_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text/text.h"
#include "client/session.h"
#include "wire/wire.h"

/* The input of claim_init(). It must live until claim_finish(). */
struct claim_facts {
    struct request *request;
    enum lease_hold hold;
    char *const *argv;   /* the command, ended by NULL; NULL: none */
    const char *command; /* instead of argv: the command as one text; NULL: none */
    char *inventory;     /* as in struct pool_address */

    /* A running process that gets the lease; 0: this process. For another process, the masks of our
     * environment do not count. */
    pid_t pid;
    uint64_t started; /* its start time, from process_stat_started() */
    bool present;     /* request the devices that the process already uses */
};

struct client_claim {
    struct wire_message question; /* WIRE_CLAIM or _TEST; borrows from the facts and from below */
    struct string_list masks;
    struct text command;
    uint64_t explain_number;   /* the number of the last WIRE_EXPLAIN; 0: none */
    bool explains;             /* it is not answered yet */
    uint64_t id;               /* 0 until the daemon has sent it */
    int64_t requested_at;      /* when claim_wait() began (CLOCK_MONOTONIC) */
    struct wire_message grant; /* WIRE_GRANTED with all devices, once it is granted */
    bool granted;
};

/* Callbacks during the wait. Zeroed memory has none. */
struct claim_listener {
    void *context;
    int64_t pause; /* nanoseconds between two requests for the claim's state; 0: no requests */

    /* Called when the wait begins, after each pause, and after a reconnect. Not called for a claim
     * that is granted at once. A negative code ends claim_wait(); the claim then stays in the
     * queue until the connection is closed. */
    int (*waiting)(void *context, const struct wire_message *waiting, struct berth_error *error);
};

/* Prepares the claim: chooses its token, and reads the masks and the enclosing lease from the
 * environment. Fails with BERTH_ERROR_IO (BERTH_LEASE is not an id; no random bytes) or _MEMORY.
 * The caller finishes the claim, also on failure. */
int claim_init(struct client_claim *claim, const struct claim_facts *facts,
               struct berth_error *error);
/* The same for a WIRE_TEST, which asks whether the claim would be granted at once. It has no token,
 * and cannot be passed to claim_wait() or claim_resume(). */
int claim_init_test(struct client_claim *claim, const struct claim_facts *facts,
                    struct berth_error *error);
void claim_finish(struct client_claim *claim);

/* Sends the claim and blocks until it is granted. Fails with the code of the daemon's refusal; with
 * BERTH_ERROR_IO if the daemon is gone for 30 s; with the errors of a daemon that does not answer
 * (session_receive); or as session_send(). */
int claim_wait(struct client_claim *claim, struct session *session,
               const struct claim_listener *listener, struct berth_error *error);

/* Requests the lease that the claim already has from a restarted daemon. The caller receives the
 * answer: WIRE_GRANTED or WIRE_REFUSED with claim->question.number. */
int claim_resume(struct client_claim *claim, struct session *session, struct berth_error *error);

#endif
