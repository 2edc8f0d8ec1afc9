/* SPDX-License-Identifier: Apache-2.0
 *
 * A set: one context for each of some devices, for the threads of a program. A reference to a
 * context is its position and its generation, so that a reference to an old context is refused.
 *
 * Several threads may call all functions at once, except context_set_destroy(). Calls of the driver
 * are serialised per context. This component knows nothing about leases and pools.
 */
#ifndef CONTEXT_CONTEXT_SET_H
#define CONTEXT_CONTEXT_SET_H

#include <berth/context.h>

#include "base/text/text.h"
#include "context/context_driver.h"

/* The parameters of a set. Its pointers belong to the caller; everything except `callbacks.data` is
 * copied. */
struct context_set_config {
    const struct context_target *targets;
    size_t count; /* 1 or more */
    enum berth_api api;
    unsigned cuda_flags;
    /* If a device is not found, it gets its part of a CPU, which is divided into this many parts;
     * 0: it gets none. */
    size_t parts;
    struct context_callbacks {
        void *data;
        /* Returns whether the device at a position may be used. */
        bool (*is_available)(void *data, size_t position);
        /* Returns its free memory in bytes, by the last sample. */
        struct optional_number (*free_memory)(void *data, size_t position);
    } callbacks;
};

/* A reference to one context of a set. */
struct context_ref {
    uint32_t position;
    uint32_t generation;
};

struct context_set;

/* Creates a set, completely or not at all. Fails like berth_contexts_create_on(), except for errors
 * about slots. */
int context_set_create(const struct context_set_config *config, struct context_set **ret_set,
                       struct berth_error *error);
/* Releases all contexts that are left. No other call may be running. NULL is allowed. */
void context_set_destroy(struct context_set *set);

/* berth/context.h documents the functions with similar names, which behave in the same way. */
int context_set_at(struct context_set *set, size_t position, struct context_ref *ret_ref,
                   struct berth_error *error);
int context_set_find(struct context_set *set, struct device_id id, struct context_ref *ret_ref,
                     struct berth_error *error);
int context_set_next(struct context_set *set, struct context_ref *ret_ref,
                     struct berth_error *error);
int context_set_best(struct context_set *set, uint64_t bytes, struct context_ref *ret_ref,
                     struct berth_error *error);
void context_set_describe(struct context_set *set, struct text *out);

/* Gets the facts about a context, except the slot. */
int context_info(struct context_set *set, struct context_ref ref,
                 struct berth_context_info *ret_info, struct berth_error *error);
int context_make_current(struct context_set *set, struct context_ref ref,
                         struct berth_error *error);
int context_report(struct context_set *set, struct context_ref ref, int status,
                   enum berth_fault *ret_fault, struct berth_error *error);
int context_rebuild(struct context_set *set, struct context_ref ref, struct context_ref *ret_ref,
                    struct berth_error *error);
int context_release(struct context_set *set, struct context_ref ref, struct berth_error *error);

/* Returns 0 if the context exists and is good. Fails with BERTH_ERROR_NOT_FOUND, _STALE or _LOST.
 */
int context_check(struct context_set *set, struct context_ref ref, struct berth_error *error);

#endif
