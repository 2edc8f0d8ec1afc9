/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests as a pool knows them. A berth_request has a core that pools hold on to as well; each
 * pool compiles the request on its first claim and finds it again by the address of the core. A
 * request that is changed gets another core, and one that is destroyed leaves its core ended: the
 * pool closes what it compiled of ended ones when it compiles the next.
 */
#ifndef LIBBERTH_LOCAL_COMPILED_REQUESTS_H
#define LIBBERTH_LOCAL_COMPILED_REQUESTS_H

#include <berth/berth.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "spec/request_options.h"

struct request_core {
    atomic_uint references;
    atomic_bool ended;
    bool has_limit;            /* the request has a time limit */
    _Atomic uint64_t waits_in; /* serial of a pool that could serve it, if not now; 0: none */
};

struct berth_request {
    struct request_options options;
    struct request_core *core;
};

struct compiled_request {
    struct request_core *core; /* NULL: none */
    struct engine_request *request;
};

/* Open addressing by the address of the core. */
struct compiled_table {
    struct compiled_request *entries;
    size_t entry_count; /* a power of two, or 0 */
    size_t used;
};

struct request_core *local_request_core_create(void);
void local_request_core_release(struct request_core *core);

/* What the pool has compiled of the request (NULL: one whole device), which it compiles first if
 * that is to be done. With the lock. Fails with BERTH_ERROR_INVALID or _MEMORY. pool.h has the
 * short way, local_pool_find_compiled. */
int compiled_requests_add(struct berth_pool *pool, const struct berth_request *request,
                          struct engine_request **ret_compiled, struct berth_error *error);

/* Closes everything that is compiled. With the lock, or alone. */
void compiled_requests_finish(struct berth_pool *pool);

#endif
