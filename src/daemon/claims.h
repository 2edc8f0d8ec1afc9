/* SPDX-License-Identifier: Apache-2.0
 *
 * What claims of clients and of processes that run already share.
 */
#ifndef DAEMON_CLAIMS_H
#define DAEMON_CLAIMS_H

#include "daemon/pool.h"

/* Who is to have the lease. */
struct claimant {
    uint32_t uid;
    const uint32_t *groups;
    size_t group_count;
    pid_t pid;
    uint64_t started;
    bool adopted; /* not the client, but a process that runs already */
};

/* What is asked, as the engine knows it; it gets a user. Fails with what is wrong with it or not
 * allowed. */
int claim_open(struct connection *connection, struct wire_message *message,
               const struct claimant *claimant, struct asked **ret_asked,
               struct berth_error *error);

/* Asks the engine: grants it or puts it into the queue, and says so. */
int claim_make(struct connection *connection, const struct wire_message *message,
               const struct claimant *claimant, struct asked *asked, struct berth_error *error);

/* A job that is not in any map yet; NULL: no memory. */
struct job *claim_new_job(struct connection *connection, const struct wire_message *message,
                          const struct claimant *claimant);

/* When the request gives up, in the pool's time. */
int64_t claim_deadline(const struct pool *pool, const struct request *request);

#endif
