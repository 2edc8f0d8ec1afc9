/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests as the engine knows them, one for all who ask the same, so that ten thousand equal
 * claims cost little and a request that comes again and again is worked out once.
 */
#ifndef DAEMON_ASKED_H
#define DAEMON_ASKED_H

#include "daemon/pool.h"

/* Who asks, as far as it matters. */
struct asker {
    uint32_t uid;
    const uint32_t *groups;
    size_t group_count;
    uint64_t parent; /* the engine's lease */
    const struct device_id_list *mask;
};

/* The request for these, known already or opened; it gets a user. How long it waits is not part of
 * it. Fails as engine_request_open. */
int asked_open(struct pool *pool, const struct request *request, const struct asker *asker,
               struct asked **ret_asked, struct berth_error *error);

/* A user less; NULL is fine. Some that nobody uses are kept for who comes next. */
void asked_release(struct pool *pool, struct asked *asked);

/* Forgets those that nobody uses. */
void asked_forget_spare(struct pool *pool);

#endif
