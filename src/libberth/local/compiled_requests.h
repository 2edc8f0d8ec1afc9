/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiled requests. A berth_request has a core, which pools reference too. Each pool compiles the
 * request on its first claim and caches the result under the core's address. A changed request gets
 * a new core, and a destroyed one marks its core as ended: the pool closes compiled requests with
 * ended cores when it compiles the next one.
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
    _Atomic uint64_t waits_in; /* serial of a pool that can serve it, now or later; 0: none known */
};

struct berth_request {
    struct request_options options;
    struct request_core *core;
};

struct compiled_request {
    struct request_core *core; /* NULL: none */
    struct engine_request *request;
};

/* A hash table with open addressing, by the address of the core. */
struct compiled_table {
    struct compiled_request *entries;
    size_t entry_count; /* a power of two, or 0 */
    size_t used;
};

struct request_core *local_request_core_create(void);
void local_request_core_release(struct request_core *core);

/* Returns the compiled form of a request (NULL: one whole device); compiles it first if necessary.
 * Called with the lock. Fails with BERTH_ERROR_INVALID or _MEMORY. local_pool_find_compiled is the
 * fast path. */
int compiled_requests_add(struct berth_pool *pool, const struct berth_request *request,
                          struct engine_request **ret_compiled, struct berth_error *error);

/* Closes all compiled requests. Called with the lock, or when no other thread is left. */
void compiled_requests_finish(struct berth_pool *pool);

#endif
