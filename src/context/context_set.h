/* SPDX-License-Identifier: Apache-2.0
 *
 * A set: one context for each of some devices, for the threads of a program. A context is known by
 * its position and its generation, so whoever holds on to one that is gone is refused.
 *
 * All functions but context_set_destroy may be called by several threads at once. Calls of the
 * driver go one after another on one context. Leases, pools and slots are others' business.
 */
#ifndef CONTEXT_CONTEXT_SET_H
#define CONTEXT_CONTEXT_SET_H

#include <berth/context.h>

#include "base/text/text.h"
#include "context/context_driver.h"

/* What a set is made of. Points to the caller's; all but `surroundings` is copied. */
struct context_set_config {
    const struct context_target *targets;
    size_t count; /* 1 or more */
    enum berth_api api;
    unsigned cuda_flags;
    /* Where a device is not found, its part of a CPU does, of as many as there may be devices in
     * all; 0: none does. */
    size_t parts;
    struct context_callbacks {
        void *data;
        /* Whether the device at a position may be given work. */
        bool (*is_available)(void *data, size_t position);
        /* How much memory it had free when it was sampled last, in bytes. */
        struct optional_number (*free_memory)(void *data, size_t position);
    } callbacks;
};

/* One context of a set. */
struct context_ref {
    uint32_t position;
    uint32_t generation;
};

struct context_set;

/* All or nothing. Fails as berth_contexts_create_on, but for what is about slots. */
int context_set_create(const struct context_set_config *config, struct context_set **ret_set,
                       struct berth_error *error);
/* Releases what is left. No other call may be under way. NULL is fine. */
void context_set_destroy(struct context_set *set);

size_t context_set_count(const struct context_set *set);

/* These are what berth/context.h says of the functions of nearly the same names. */
int context_set_at(struct context_set *set, size_t position, struct context_ref *ret_ref,
                   struct berth_error *error);
int context_set_find(struct context_set *set, struct device_id id, struct context_ref *ret_ref,
                     struct berth_error *error);
int context_set_next(struct context_set *set, struct context_ref *ret_ref,
                     struct berth_error *error);
int context_set_best(struct context_set *set, uint64_t bytes, struct context_ref *ret_ref,
                     struct berth_error *error);
void context_set_describe(struct context_set *set, struct text *out);

/* All but the slot. */
int context_info(struct context_set *set, struct context_ref ref,
                 struct berth_context_info *ret_info, struct berth_error *error);
int context_make_current(struct context_set *set, struct context_ref ref,
                         struct berth_error *error);
int context_report(struct context_set *set, struct context_ref ref, int status,
                   enum berth_fault *ret_fault, struct berth_error *error);
int context_rebuild(struct context_set *set, struct context_ref ref, struct context_ref *ret_ref,
                    struct berth_error *error);
int context_release(struct context_set *set, struct context_ref ref, struct berth_error *error);

/* Whether the context is there and good; fails with BERTH_ERROR_NOT_FOUND, _STALE, _LOST. */
int context_check(struct context_set *set, struct context_ref ref, struct berth_error *error);

#endif
