/* SPDX-License-Identifier: Apache-2.0
 *
 * The sets of contexts of a pool: which sets exist, which calls use them, and which sets end with
 * a lease. The lock of the sets is taken before that of the pool, and never during a driver call.
 */
#ifndef LIBBERTH_LOCAL_CONTEXT_SETS_H
#define LIBBERTH_LOCAL_CONTEXT_SETS_H

#include <berth/context.h>
#include <pthread.h>

#include "base/list.h"
#include "context/context_set.h"

struct kept_set {
    struct list_link in_sets;
    struct list_link
        in_leases; /* in the list of sets that end with a lease; under the pool's lock */
    struct berth_pool *pool;
    uint64_t id;
    uint64_t lease;          /* 0: the program ends the set */
    struct context_set *set; /* NULL: the set is being created */
    unsigned guests;         /* calls under way, including the one that creates the set */
    bool is_ending;
    size_t count;
    size_t slots[]; /* by position */
};

struct context_sets {
    pthread_mutex_t lock;
    pthread_cond_t
        changed;   /* signalled when a set was created, has ended, or lost a guest while ending */
    uint64_t last; /* the id of the last set */
    struct list sets;   /* struct kept_set, in_sets */
    struct list leases; /* struct kept_set, in_leases; under the pool's lock */
};

void context_sets_init(struct context_sets *sets);
/* Ends all sets. No other call may be under way. In a child of fork() it does nothing: drivers do
 * not work there. */
void context_sets_finish(struct berth_pool *pool);

/* The parameters of a set. */
struct context_order {
    const size_t *slots;
    size_t count;
    uint64_t lease; /* 0: none */
    struct berth_context_options options;
};

/* Creates a set. Fails like berth_contexts_create_on. */
int context_sets_make(struct berth_pool *pool, const struct context_order *order,
                      struct berth_context_set *ret_set, struct berth_error *error);
/* Returns the set of a lease and creates it if necessary. Does not read the order's slots. */
int context_sets_of_lease(struct berth_pool *pool, const struct context_order *order,
                          struct berth_context_set *ret_set, struct berth_error *error);

/* Begins a call on a set, which then cannot end before context_sets_leave ends the call. Fails with
 * BERTH_ERROR_NOT_FOUND or _FORKED. */
int context_sets_enter(struct berth_pool *pool, struct berth_context_set handle,
                       struct kept_set **ret_kept, struct berth_error *error);
void context_sets_leave(struct kept_set *kept);

/* Ends a set after the calls on it have ended. Fails like context_sets_enter. */
int context_sets_end(struct berth_pool *pool, struct berth_context_set handle,
                     struct berth_error *error);

/* Returns whether a lease has a set. Called with the pool's lock. */
bool context_sets_has_lease(const struct berth_pool *pool, uint64_t lease);
/* Ends the set of a lease. Called without the pool's lock. */
void context_sets_end_lease(struct berth_pool *pool, uint64_t lease);

#endif
