/* SPDX-License-Identifier: Apache-2.0
 *
 * A cache of the requests that are open in the engine. Equal requests share one entry, so ten
 * thousand equal claims cost little, and a repeated request is compiled once.
 */
#ifndef DAEMON_LEASES_REQUEST_CACHE_H
#define DAEMON_LEASES_REQUEST_CACHE_H

#include <berth/error.h>
#include <stddef.h>
#include <stdint.h>

#include "base/id_map.h"
#include "base/list.h"
#include "base/text/text.h"
#include "engine/engine.h"

struct pool;

/* An open request of the engine, shared by all claims and tests that are equal. */
struct cached_request {
    struct id_link by_hash;
    struct list_link in_spare; /* while it is unused */
    struct engine_request *request;
    struct text key; /* the request and its user as bytes */
    size_t users;
};

/* The user and the place of a request, as far as they are part of the key. */
struct requester {
    uint32_t uid;
    const uint32_t *groups;
    size_t group_count;
    uint64_t parent; /* the engine's lease */
    const struct device_id_list *mask;
};

/* Finds or opens the request. It gets a reference, which request_cache_release() drops. The maximum
 * wait is not part of the key. Fails as engine_request_open(). */
int request_cache_open(struct pool *pool, const struct request *request,
                       const struct requester *requester, struct cached_request **ret_cached,
                       struct berth_error *error);

/* Drops a reference; NULL is fine. Some unused requests stay cached. */
void request_cache_release(struct pool *pool, struct cached_request *cached);

/* Closes all unused requests. */
void request_cache_drop_unused(struct pool *pool);

#endif
