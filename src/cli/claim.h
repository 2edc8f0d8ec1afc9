/* SPDX-License-Identifier: Apache-2.0
 *
 * One claim on the way to its lease: asking, waiting, and asking again when the daemon was away.
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

/* What a claim is made of; the caller's, until it is finished. */
struct claim_facts {
    struct request *request;
    enum lease_hold hold;
    char *const *argv;   /* the command, ended by NULL; NULL: none */
    const char *command; /* instead of words: all of it; NULL: none */
    char *inventory;     /* of the pool's address */

    /* For a process that runs already, of which our masks say nothing; 0: for ourselves. */
    pid_t pid;
    uint64_t started; /* process_stat_started */
    bool present;     /* the devices that it uses already */
};

struct client_claim {
    struct wire_message question; /* WIRE_CLAIM; borrows from the facts and from below */
    struct string_list masks;
    struct text command;
    uint64_t explain_number;   /* the number of the last WIRE_EXPLAIN; 0: none */
    uint64_t leases_number;    /* the number of the last WIRE_LOOK; 0: none */
    uint64_t id;               /* 0 until the daemon has told it */
    int64_t requested_at;      /* when claim_wait began (CLOCK_MONOTONIC) */
    struct wire_message grant; /* WIRE_GRANTED with all devices, once it is granted */
    bool granted;
};

/* Who is told about the waiting. All may be zero: nobody. */
struct claim_listener {
    void *context;
    int64_t pause; /* nanoseconds between two askings for news; 0: no news is asked for */

    /* Told when the wait begins, which may be never, and after each pause; also when the daemon was
     * away. A negative code ends the claim, which the connection still holds. */
    int (*waiting)(void *context, const struct wire_message *waiting, struct berth_error *error);

    /* Told the leases there are before that, as a WIRE_PAGE; those within `parent` count. May be
     * NULL: then they are not asked for. */
    void (*leases)(void *context, const struct wire_message *page, uint64_t parent);
};

/* Makes the claim: chooses its token, takes the masks and the lease that we are within from the
 * environment. Fails with BERTH_ERROR_IO (BERTH_LEASE is no number; no random bits) or _MEMORY. The
 * caller finishes the claim, also on failure. */
int claim_init(struct client_claim *claim, const struct claim_facts *facts,
               struct berth_error *error);
void claim_finish(struct client_claim *claim);

/* Asks for it and waits until it is granted. Fails with what the daemon refused it for; with
 * BERTH_ERROR_IO when the daemon stays away for 30 s; or as session_send. */
int claim_wait(struct client_claim *claim, struct session *session,
               const struct claim_listener *listener, struct berth_error *error);

/* The daemon was away while the command runs: asks for the lease that we have. The answer,
 * WIRE_GRANTED or WIRE_REFUSED with claim->question.number, is the caller's to receive. */
int claim_resume(struct client_claim *claim, struct session *session, struct berth_error *error);

#endif
